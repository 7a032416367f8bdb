#define _GNU_SOURCE
/* The resident code of a tracer that is dead: found by its magic, read back, taken over.
 *
 * What is read is the target's memory, which may hold anything: everything is checked against the layout that
 * this version would have made. */
#include "target/resident.h"

#include "target/bp.h"
#include "target/elf_file.h"
#include "target/inject.h"
#include "target/jumps.h"
#include "target/maps.h"
#include "target/masks.h"
#include "target/park.h"
#include "target/process.h"
#include "target/resident_area.h"
#include "target/rights.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define AREAS_MAX 4096u
#define PAGE 4096u

static int read_header(struct target *target, raddr at, struct resident_header *ret)
{
	struct resident_header expected;
	int r = target_read_surely(target, at, ret, sizeof(*ret));
	bool is_main;

	if (r < 0)
		return r;
	if (memcmp(ret->magic, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE) != 0 || ret->area_size > INJECTED_SIZE)
		return -ENOENT;
	is_main = ret->table_offset > sizeof(*ret);
	if (resident_layout(ret->area_size, is_main, &expected) < 0 ||
	    ret->area_size != expected.area_size || ret->table_offset != expected.table_offset ||
	    ret->slots_offset != expected.slots_offset || ret->entry_capacity != expected.entry_capacity ||
	    ret->entry_count > ret->entry_capacity)
		return -ENOENT;
	return 0;
}

static bool is_main(const struct resident_header *header)
{
	return header->table_offset > sizeof(*header);
}

/* Slack is in one page, the last one of an executable mapping, and does not begin where that does. */
static raddr end_of_slack(raddr start)
{
	return (start + PAGE) & ~(raddr)(PAGE - 1);
}

static struct module_slack *slack_at(struct target *target, raddr start)
{
	const struct module_range *range;
	struct module_slack *slack;

	for (size_t i = 0; i < target->slacks.count; i++) {
		if (target->slacks.items[i].start == start)
			return &target->slacks.items[i];
	}
	/* Without the object's file it is not known beforehand. */
	range = start % PAGE != 0 ? module_map_find(&target->modules, start) : NULL;
	if (!range || range->end != end_of_slack(start))
		return NULL;
	slack = vec_push(&target->slacks);
	if (slack)
		*slack = (struct module_slack){ .start = start, .end = range->end, .module = range->module };
	return slack;
}

static bool is_main_area(struct target *target, raddr start)
{
	struct resident_header header;

	return read_header(target, start, &header) == 0 && is_main(&header);
}

/* What was written there is no page of the file any more but the process's own, in memory or swapped out
 * (Documentation/admin-guide/mm/pagemap.rst).  To read one of the file could mean to wait for its file system. */
static bool is_own_page(pid_t pid, raddr at)
{
	const uint64_t present = 1ULL << 63, swapped = 1ULL << 62, of_file = 1ULL << 61;
	uint64_t entry;
	char path[64];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, &entry, sizeof(entry), (off_t)(at / PAGE * sizeof(entry)));
	fd_close(&fd);
	/* Where that cannot be seen it has to be read. */
	return n != sizeof(entry) || ((entry & (present | swapped)) && !(entry & of_file));
}

/* In the slack of an object whose file is gone, or another one by now. */
static raddr find_in_last_page(struct target *target, raddr end)
{
	uint8_t page[PAGE];

	if (!is_own_page(target->memory_tid, end - PAGE) || target_read(target, end - PAGE, page, sizeof(page)) < 0)
		return 0;
	for (size_t at = 16; at + sizeof(struct resident_header) <= sizeof(page); at += 16) {
		if (memcmp(page + at, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE) == 0 &&
		    is_main_area(target, end - PAGE + at))
			return end - PAGE + at;
	}
	return 0;
}

raddr resident_find(struct target *target)
{
	raddr found = 0;

	for (size_t i = 0; i < target->slacks.count && !found; i++) {
		if (is_main_area(target, target->slacks.items[i].start))
			found = target->slacks.items[i].start;
	}
	for (size_t i = 0; i < target->modules.ranges.count && !found; i++)
		found = find_in_last_page(target, target->modules.ranges.items[i].end);
	return found;
}

/* A busy machine may keep a tracer without ptrace from a processor, or from the target's mappings, which a thread of that holds that gets
 * none, for longer than the time that it has noted.  In a copy that a fork has made of its process it is nobody's tracer. */
static bool is_late(const struct target *target, const struct resident_header *header)
{
	return header->note != 0 && header->tracer != 0 && header->tracer <= INT_MAX &&
	       process_has_opened((pid_t)header->tracer, target->pid);
}

/* A number of another PID namespace says nothing here. */
static bool is_tracer_dead(const struct resident_header *header)
{
	return header->tracer != 0 && header->tracer <= INT_MAX && header->tracer_namespace != 0 &&
	       header->tracer_namespace == process_own_namespace() && process_is_surely_dead((pid_t)header->tracer);
}

uint64_t resident_parked_until(struct target *target, raddr start)
{
	struct resident_header header;
	uint64_t now_ns = clock_monotonic_ns();

	/* A time that park_leave() cannot have written is the target's own doing. */
	if (read_header(target, start, &header) < 0 ||
	    (header.note > now_ns && header.note - now_ns > PARK_SECONDS * NSEC_PER_SEC) || is_tracer_dead(&header))
		return 0;
	return header.note > now_ns || is_late(target, &header) ? header.note : 0;
}

bool resident_is_parked(struct target *target, raddr start)
{
	return resident_parked_until(target, start) != 0;
}

raddr resident_note(const struct target *target)
{
	return target->areas->start + offsetof(struct resident_header, note);
}

int resident_note_traced(struct target *target, uint64_t until_ns)
{
	const struct {
		uint32_t tracer;
		uint64_t note, tracer_namespace;
	} __attribute__((packed)) noted = { until_ns != 0 ? (uint32_t)getpid() : 0, until_ns, process_own_namespace() };

	_Static_assert(offsetof(struct resident_header, tracer_namespace) + sizeof(noted.tracer_namespace) -
		       offsetof(struct resident_header, tracer) == sizeof(noted), "one behind the other");
	return target_write(target, target->areas->start + offsetof(struct resident_header, tracer), &noted, sizeof(noted));
}

/* Slack is in the last page of an executable mapping. */
static bool last_page_has_magic(pid_t pid, raddr end)
{
	uint8_t page[PAGE];
	struct iovec local = { page, sizeof(page) };
	struct iovec remote = { (void *)(uintptr_t)(end - PAGE), PAGE };

	return is_own_page(pid, end - PAGE) &&
	       process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)PAGE &&
	       memmem(page, PAGE, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE) != NULL;
}

bool resident_is_left(pid_t pid)
{
	struct map_line map;
	struct maps maps;
	bool found = false;

	if (maps_open(pid, &maps) < 0)
		return false;
	while (!found && maps_next(&maps.cursor, &map))
		found = map.executable && map.inode != 0 && last_page_has_magic(pid, map.end);
	maps_close(&maps);
	return found;
}

int resident_find_room(pid_t pid, raddr near, size_t data_len, raddr *ret_at)
{
	size_t len = (ARCH_STUB_MAX + data_len + 15) & ~(size_t)15;
	uint8_t bytes[PAGE];
	struct map_line map = { 0 };
	struct maps maps;
	bool found = false;

	if (len > sizeof(bytes) || maps_open(pid, &maps) < 0)
		return -ENOSPC;
	while (!found && maps_next(&maps.cursor, &map))
		found = map.executable && near >= map.start && near < map.end;
	maps_close(&maps);
	if (!found || !rights_read_memory(pid, map.end - len, bytes, len))
		return -ENOSPC;
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != 0)
			return -ENOSPC;
	}
	*ret_at = map.end - len;
	return 0;
}

/* The file of the last breakpoint's module, whose others follow it mostly. */
struct text_file {
	uint32_t module;               /* MODULE_NONE: none yet */
	struct elf_file file;
};

static bool open_text(struct text_file *text, uint32_t module, int fd)
{
	if (text->module == module)
		return true;
	elf_file_fini(&text->file);
	text->file = (struct elf_file){ 0 };
	text->module = elf_file_read(fd, &text->file) == 0 ? module : MODULE_NONE;
	return text->module == module;
}

static bool read_text(const struct target *target, struct text_file *file, const struct resident_entry *entry,
		      uint32_t module, uint8_t text[16], size_t *ret_len)
{
	int fd = target_module_fd(target, module);

	return fd >= 0 && open_text(file, module, fd) &&
	       elf_file_text_of(fd, &file->file, entry->breakpoint - target->modules.modules.items[module].bias, text, 16,
				ret_len) == 0;
}

/* The instruction under an int3: from the file that is mapped there, or, where that is not to be had any more (an
 * upgrade has put another one in its place), as the tracer noted it. */
static int adopt_breakpoint(struct target *target, struct text_file *file, const struct resident_entry *entry)
{
	const struct module_range *range = module_map_find(&target->modules, entry->breakpoint);
	uint8_t text[16];
	size_t len;
	int r;

	if (!range)
		return 0;              /* its object is gone, and the int3 with it */
	if (!read_text(target, file, entry, range->module, text, &len)) {
		len = entry->text_len;
		if (len == 0 || len > sizeof(entry->text) || entry->text[0] == ARCH_BREAKPOINT_BYTE)
			return -ENODATA;
		memcpy(text, entry->text, len);
	}
	r = bp_adopt(target, entry->breakpoint, range->module, text, len, entry->slot);
	return r == -EEXIST ? 0 : r;
}

static int adopt_entries(struct target *target, struct resident_area *area)
{
	const struct resident_header *header = &area->header;
	struct text_file file = { .module = MODULE_NONE };
	int r = target_read_surely(target, area->start + header->table_offset, area->entries,
				   header->entry_count * sizeof(*area->entries));

	for (uint32_t i = 0; r == 0 && i < header->entry_count; i++) {
		const struct resident_entry *entry = &area->entries[i];
		uint64_t offset = entry->slot - (area->start + header->slots_offset);

		/* An entry that was being taken out when the tracer died. */
		if (entry->breakpoint == 0)
			continue;
		if (offset % ARCH_SLOT_SIZE != 0 || offset / ARCH_SLOT_SIZE >= header->entry_capacity) {
			r = -EBADMSG;
			break;
		}
		area->slots[i] = (uint32_t)(offset / ARCH_SLOT_SIZE);
		area->slot_used[area->slots[i]] = 1;
		r = adopt_breakpoint(target, &file, entry);
	}
	elf_file_fini(&file.file);
	return r;
}

static void adopt_action(struct target *target, const struct resident_header *header)
{
	const uint64_t action[4] = { header->old_handler, header->old_flags, header->old_restorer,
				     header->old_mask };

	_Static_assert(sizeof(action) == sizeof(target->old_action), "the kernel's struct sigaction");
	memcpy(target->old_action, action, sizeof(action));
	/* Whether it is set indeed is looked at before it is taken out. */
	target->handler_installed = true;
}

static int adopt_area(struct target *target, raddr start, struct resident_area **ret_area)
{
	struct module_slack *slack = slack_at(target, start);
	struct resident_header header;
	struct resident_area *area;
	int r = read_header(target, start, &header);

	if (r < 0)
		return r;
	/* What is unmapped afterwards must be what was mapped for it. */
	if (slack ? header.area_size > slack->end - start : start % PAGE != 0 || header.area_size != INJECTED_SIZE ||
							    module_map_find(&target->modules, start))
		return -EBADMSG;
	r = resident_area_new(start, header.area_size, is_main(&header), &area);
	if (r < 0)
		return r;
	area->header = header;
	area->injected = slack == NULL;
	area->module = slack ? slack->module : MODULE_NONE;
	if (slack)
		slack->used = true;
	r = adopt_entries(target, area);
	if (r < 0) {
		resident_area_free(area);
		return r;
	}
	*ret_area = area;
	return 0;
}

static bool is_adopted(const struct target *target, raddr start)
{
	const struct resident_area *area = target->areas;

	while (area && area->start != start)
		area = area->next;
	return area != NULL;
}

int resident_adopt(struct target *target, raddr start)
{
	struct module_slack *slack = slack_at(target, start);
	struct resident_area **link = &target->areas;
	raddr at = start;

	if (!slack || slack->end - slack->start < STUB_SPACE)
		return -ENOENT;
	target->stub = slack->end - STUB_SPACE;
	target->adopted = true;
	for (unsigned count = 0; at != 0; count++) {
		/* What lies behind an area that cannot be read is not known, and the handler must stay for it; a chain that
		 * comes back to itself is nobody's of ours. */
		int r = count < AREAS_MAX && !is_adopted(target, at) ? adopt_area(target, at, link) : -EBADMSG;

		if (r < 0)
			return r;
		at = (*link)->header.next_area;
		link = &(*link)->next;
	}
	adopt_action(target, &target->areas->header);
	masks_adopt(target, target->areas->header.masks);
	return jumps_adopt(target);
}

/* --- what was not linked yet, or not any more --- */

/* A mapping just as it was asked for, in which nothing stands yet, or our magic does. */
static bool is_ours(struct target *target, const struct map_line *map)
{
	static const uint8_t nothing[RESIDENT_MAGIC_SIZE];
	uint64_t size = map->end - map->start;
	uint8_t begin[RESIDENT_MAGIC_SIZE];

	if (map->inode != 0 || map->shared || map->writable || !map->readable || map->path[0] != '\0' ||
	    (map->executable ? size != INJECTED_SIZE && size != RING_CODE_SIZE + PAGE : size != RESIDENT_MASKS_SIZE))
		return false;
	return target_read(target, map->start, begin, sizeof(begin)) == 0 &&
	       (memcmp(begin, RESIDENT_MAGIC, sizeof(begin)) == 0 || memcmp(begin, nothing, sizeof(begin)) == 0);
}

static bool find_mapping(struct target *target, raddr at, struct map_line *ret_map)
{
	struct maps maps;
	bool found = false;

	if (maps_of(target, &maps) < 0)
		return false;
	while (!found && maps_next(&maps.cursor, ret_map))
		found = ret_map->start == at && is_ours(target, ret_map);
	maps_close(&maps);
	return found;
}

static int clear_begun(struct target *target, raddr at)
{
	static const uint8_t zeros[PAGE];
	struct resident_header header;

	if (read_header(target, at, &header) < 0 || header.area_size > end_of_slack(at) - at)
		return 0;
	return target_write(target, at, zeros, header.area_size);
}

int resident_begun(struct target *target, raddr *ret_at)
{
	return target_read(target, target->areas->start + offsetof(struct resident_header, begun), ret_at, sizeof(*ret_at));
}

int resident_remove_begun(struct target *target, struct task *task)
{
	raddr at;
	int r = resident_begun(target, &at);

	return r < 0 || at == 0 ? r : resident_remove_unlinked(target, task, at);
}

int resident_remove_unlinked(struct target *target, struct task *task, raddr at)
{
	struct map_line map;

	if (at == target->masks || is_adopted(target, at))
		return 0;
	if (slack_at(target, at))
		return clear_begun(target, at);
	if (!find_mapping(target, at, &map))
		return 0;
	return resident_unmap(task, map.start, map.end - map.start);
}
