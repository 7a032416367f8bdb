/* What healing finds in a process: the bytes of a resident area, which the process may have written itself.
 *
 * The process is this one, with three mappings at fixed places: an object's text, in whose last page an area lies, a
 * mapping of the kind that holds further areas, and one of the kind that holds notes of masks.  An input says what
 * stands in each. */
#define _GNU_SOURCE              /* MAP_FIXED_NOREPLACE */
#include "fuzz.h"
#include "tracer.h"

#include "target/masks.h"
#include "target/resident.h"
#include "target/resident_area.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define TEXT_AT 0x200000000000ull
#define TEXT_SIZE (2 * PAGE)
#define AREA_AT 0x200000100000ull
#define MASKS_AT 0x200000200000ull
#define MASKS_SIZE (16 * PAGE)

static uint8_t *map_at(uint64_t at, size_t size)
{
	void *memory = mmap((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	MUST(memory != MAP_FAILED);
	return memory;
}

static int memory_fd = -1;

static void map_all(void)
{
	if (memory_fd >= 0)
		return;
	memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	MUST(memory_fd >= 0);
	map_at(TEXT_AT, TEXT_SIZE);
	map_at(AREA_AT, INJECTED_SIZE);
	map_at(MASKS_AT, MASKS_SIZE);
}

/* One of the places where something may stand, or anywhere. */
static uint64_t take_place(struct fuzz_bytes *bytes)
{
	static const uint64_t places[] = { 0, AREA_AT, MASKS_AT, TEXT_AT, TEXT_AT + PAGE, TEXT_AT + PAGE + 0x800 };
	unsigned which = fuzz_take_number(bytes, 1) % 8;

	return which < 6 ? places[which] : which == 6 ? TEXT_AT + fuzz_take_number(bytes, 2) : fuzz_take_number(bytes, 8);
}

static void take_entry(struct resident_entry *entry, uint64_t start, const struct resident_header *header,
		       struct fuzz_bytes *bytes)
{
	uint64_t slot = fuzz_take_number(bytes, 2);
	const uint8_t *text;
	size_t len;

	memset(entry, 0, sizeof(*entry));
	entry->breakpoint = TEXT_AT + fuzz_take_number(bytes, 2);
	entry->text_len = (uint8_t)fuzz_take_number(bytes, 1);
	/* Mostly one that it has. */
	entry->slot = start + header->slots_offset + (slot & 0xff) * ARCH_SLOT_SIZE + (slot >> 14);
	text = fuzz_take(bytes, sizeof(entry->text), &len);
	memcpy(entry->text, text, len);
}

/* An area as a tracer of this version lays one out, whose contents are the input's. */
static void lay_out(uint64_t start, uint32_t size, bool is_main, struct fuzz_bytes *bytes)
{
	struct resident_header *header = (struct resident_header *)(uintptr_t)start;
	struct resident_entry *entries;

	if (resident_layout(size, is_main, header) < 0)
		return;
	memcpy(header->magic, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE);
	header->entry_count = (uint32_t)fuzz_take_number(bytes, 1);
	header->next_area = take_place(bytes);
	header->masks = take_place(bytes);
	header->begun = take_place(bytes);
	header->note = fuzz_take_number(bytes, 8);
	header->old_handler = take_place(bytes);
	entries = (struct resident_entry *)(uintptr_t)(start + header->table_offset);
	for (uint32_t i = 0; i < header->entry_count && i < header->entry_capacity; i++)
		take_entry(&entries[i], start, header, bytes);
}

static void lay_out_masks(uint64_t at, struct fuzz_bytes *bytes)
{
	struct resident_masks *masks = (struct resident_masks *)(uintptr_t)at;

	memcpy(masks->magic, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE);
	masks->pid = (uint32_t)getpid();
	masks->count = (uint32_t)fuzz_take_number(bytes, 4);
}

/* A byte that says how, two bytes of length, bytes; behind these nothing.  Odd: then an area is laid out upon it. */
static void fill(uint64_t at, size_t size, struct fuzz_bytes *bytes)
{
	uint8_t *to = (uint8_t *)(uintptr_t)at;
	unsigned how = (unsigned)fuzz_take_number(bytes, 1);
	size_t want = fuzz_take_number(bytes, 2), len;
	const uint8_t *from = fuzz_take(bytes, want < size ? want : size, &len);

	memcpy(to, from, len);
	memset(to + len, 0, size - len);
	if (!(how & 1))
		return;
	if (at == MASKS_AT)
		lay_out_masks(at, bytes);
	else if (at == AREA_AT)
		lay_out(at, INJECTED_SIZE, how & 2, bytes);
	else
		lay_out(at + PAGE + 16u * (how >> 2), PAGE - 16u * (how >> 2) - STUB_SPACE, !(how & 2), bytes);
}

static void add_module(struct target *target, uint64_t start, uint64_t end)
{
	const struct module module = { .path = (char *)"/usr/lib/libc.so.6", .bias = start };
	int64_t id = module_map_add(&target->modules, &module);
	int *fd = vec_push(&target->module_fds);

	MUST(id >= 0 && fd && module_map_add_range(&target->modules, start, end, (uint32_t)id) == 0);
	*fd = -1;
}

/* Each is in it once, taken over wholly or not: a table for each of thousands would be the target's to ask for. */
static void check_chain(const struct resident_area *area)
{
	for (; area; area = area->next) {
		for (const struct resident_area *other = area->next; other; other = other->next)
			MUST(other->start != area->start);
	}
}

static void check_areas(const struct target *target)
{
	for (const struct resident_area *area = target->areas; area; area = area->next) {
		const struct resident_header *header = &area->header;

		MUST(header->entry_count <= header->entry_capacity && header->area_size <= INJECTED_SIZE);
		MUST(header->slots_offset + (uint64_t)header->entry_capacity * ARCH_SLOT_SIZE <= header->area_size);
		/* What is taken out afterwards is ours: an object's slack, or the whole of a mapping. */
		if (area->injected)
			MUST(area->start % PAGE == 0 && header->area_size == INJECTED_SIZE);
		else
			MUST(area->start / PAGE == (area->start + header->area_size - 1) / PAGE);
	}
	MUST(target->breakpoints.count <= BREAKPOINTS_MAX && target->mask_count <= RESIDENT_MASKS_MAX);
}

static void use(struct target *target)
{
	struct reader reader = target_reader(target);
	uint8_t bytes[64];

	check_areas(target);
	if (target->breakpoints.count > 0)
		fuzz_reached(2);
	for (size_t i = 0; i < target->breakpoints.count; i++) {
		const struct breakpoint *bp = target->breakpoints.items[i];

		MUST(bp_find(target, bp->address) && bp->text_len <= sizeof(bp->text));
		reader_read(&reader, bp->address - 7, bytes, sizeof(bytes));
		for (raddr pc = bp->slot; pc < bp->slot + ARCH_SLOT_SIZE; pc++) {
			MUST(resident_contains(target, pc));
			resident_resume(target, pc);
		}
	}
	for (const struct resident_area *area = target->areas; area; area = area->next) {
		for (raddr pc = area->start - 8; pc < area->start + area->header.area_size; pc += 13)
			resident_translate(target, &(struct arch_regs){ .reg[ARCH_DWARF_PC] = pc }, &reader);
	}
	bp_verify(target, false);
	target_memory(target);
}

void fuzz_resident_run(const uint8_t *data, size_t len)
{
	struct fuzz_bytes bytes = { data, len };
	struct target target = { .pid = getpid(), .memory_tid = getpid(), .start_time = 0x1122334455667788, .pid_fd = -1,
				 .maps_fd = -1 };
	raddr found;

	map_all();
	target.mem_fd = memory_fd;
	fill(TEXT_AT, TEXT_SIZE, &bytes);
	fill(AREA_AT, INJECTED_SIZE, &bytes);
	fill(MASKS_AT, MASKS_SIZE, &bytes);
	module_map_init(&target.modules);
	add_module(&target, TEXT_AT, TEXT_AT + TEXT_SIZE);
	found = resident_find(&target);
	if (found) {
		int r;

		fuzz_reached(0);
		resident_is_parked(&target, found);
		r = resident_adopt(&target, found);
		/* EAGAIN: there is no such memory, and no thread through which to look again. */
		MUST(r == 0 || r == -ENOENT || r == -EBADMSG || r == -ENODATA || r == -EAGAIN || r == -ENOSPC);
		check_chain(target.areas);
		if (r == 0) {
			fuzz_reached(1);
			use(&target);
		}
	}
	bp_drop_all(&target);
	resident_forget(&target);
	masks_drop(&target);
	module_map_fini(&target.modules);
	vec_fini(&target.module_fds);
	vec_fini(&target.slacks);
	vec_fini(&target.breakpoints);
	free(target.bp_hash);
}
