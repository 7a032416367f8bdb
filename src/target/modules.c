#define _GNU_SOURCE
#include "target/elf_file.h"
#include "target/maps.h"
#include "target/maps_query.h"
#include "target/target.h"

#include "base/fd.h"
#include "base/hash.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IN_PAGE 4095ULL
#define VDSO_MAX (1u << 20)

int target_module_fd(const struct target *target, uint32_t module)
{
	return module < target->module_fds.count ? target->module_fds.items[module] : -1;
}

/* The vdso is an ELF image without a file. */
static int copy_vdso(struct target *target, const struct map_line *map)
{
	size_t size = map->end - map->start;
	char *image;
	int fd;

	if (size > VDSO_MAX)
		return -1;
	image = malloc(size);
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (!image || fd < 0 || target_read(target, map->start, image, size) < 0 ||
	    fd_write_all(fd, image, size) < 0)
		fd_close(&fd);
	free(image);
	return fd;
}

static bool same_build_id(struct target *target, const struct elf_file *file, raddr bias)
{
	uint8_t mapped[BUILD_ID_MAX];

	return target_read(target, bias + file->build_id_vaddr, mapped, file->build_id_len) == 0 &&
	       memcmp(mapped, file->build_id, file->build_id_len) == 0;
}

static bool has_header(struct target *target, const struct elf_file *file, raddr bias)
{
	const struct elf_segment *first = elf_file_segment_at(file, 0, false);
	char magic[SELFMAG];

	return first && target_read(target, bias + first->vaddr, magic, SELFMAG) == 0 && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool is_known_elsewhere(const struct target *target, const struct module *module)
{
	for (size_t i = 0; i < target->modules.modules.count; i++) {
		const struct module *m = &target->modules.modules.items[i];

		if (m->mapped && m->device == module->device && m->inode == module->inode && m->bias != module->bias &&
		    target->module_fds.items[i] >= 0)
			return true;
	}
	return false;
}

enum fit { FIT_WHOLE, FIT_PIECE, FIT_NONE, FIT_UNKNOWN };

/* What of a file is mapped, where the code is.  A program may map some of its code once more at another place, without the rest
 * (V8 does so with its built-in functions): what lies around it is anything, and nothing may be written there.  FIT_UNKNOWN: it
 * may be that, of a file that is not known yet. */
static enum fit fit_of(struct target *target, const struct elf_file *file, const struct module *module)
{
	if (file->build_id_len > 0 ? same_build_id(target, file, module->bias) : has_header(target, file, module->bias))
		return FIT_WHOLE;
	return module->inode != 0 && is_known_elsewhere(target, module) ? FIT_PIECE : FIT_UNKNOWN;
}

static void note_slack(struct target *target, const struct elf_segment *segment, raddr bias, uint32_t module)
{
	raddr end = bias + segment->vaddr + segment->file_size;
	struct module_slack *slack;

	if (segment->file_size != segment->memory_size || (end & IN_PAGE) == 0)
		return;
	slack = vec_push(&target->slacks);
	if (!slack)
		return;
	slack->start = (end + 15) & ~15ULL;
	slack->end = (end + IN_PAGE) & ~IN_PAGE;
	slack->module = module;
}

/* mprotect and several executable segments cut one object into several mappings. */
static int find_other_piece(const struct target *target, const struct module *module)
{
	for (size_t i = target->modules.modules.count; i-- > 0;) {
		const struct module *m = &target->modules.modules.items[i];

		if (m->mapped && m->device == module->device && m->inode == module->inode &&
		    m->bias == module->bias && module->inode != 0)
			return (int)i;
	}
	return -1;
}

/* Reads the object behind an executable mapping; *ret_segment: the one that is mapped, of what fits. */
static enum fit read_object(struct target *target, const struct map_line *map, int fd, bool copy, struct elf_file *file,
			    struct module *module, const struct elf_segment **ret_segment)
{
	const struct elf_segment *segment;

	if (fd < 0 || elf_file_read(fd, file) < 0)
		return FIT_NONE;
	segment = elf_file_segment_at(file, map->offset, true);
	if (!segment)
		return FIT_NONE;
	module->bias = map->start - (segment->vaddr + (map->offset - segment->offset));
	if (!file->is_64 || file->machine != EM_X86_64)
		return FIT_NONE;
	*ret_segment = segment;
	/* To read what is mapped of a file may be to read the file. */
	return copy ? FIT_WHOLE : fit_of(target, file, module);
}

/* Adds the object behind an executable mapping.  A file that cannot be opened or is another one still
 * becomes a module: frames in it are told by object and offset.  -EAGAIN, not when it is asked for the last time: once others
 * are known. */
static int add_module(struct target *target, const struct map_line *map, int fd, bool copy, bool last)
{
	struct module module = { .path = map->path, .device = map->device, .inode = map->inode,
				 .bias = map->start - map->offset };
	const struct elf_segment *segment = NULL;
	struct elf_file file = { 0 };
	enum fit fit = read_object(target, map, fd, copy, &file, &module, &segment);
	int64_t id;
	int *slot;

	if (fit == FIT_UNKNOWN && !last) {
		fd_close(&fd);
		elf_file_fini(&file);
		return -EAGAIN;
	}
	if (fit == FIT_NONE || (fit == FIT_UNKNOWN && file.build_id_len > 0)) {
		fd_close(&fd);
		segment = NULL;
	}
	module.piece = fit == FIT_PIECE;
	module.build_id_len = segment ? file.build_id_len : 0;
	memcpy(module.build_id, file.build_id, module.build_id_len);
	id = find_other_piece(target, &module);
	if (id >= 0) {
		fd_close(&fd);
		elf_file_fini(&file);
		return (int)id;
	}
	id = segment ? module_map_take_back(&target->modules, &module) : -ENOENT;
	if (id >= 0) {
		slot = &target->module_fds.items[id];
	} else {
		id = module_map_add(&target->modules, &module);
		slot = id < 0 ? NULL : vec_push(&target->module_fds);
	}
	if (!slot) {
		fd_close(&fd);
		elf_file_fini(&file);
		return id < 0 ? (int)id : -ENOMEM;
	}
	*slot = fd;
	if (segment && map->inode != 0 && !module.piece)
		note_slack(target, segment, module.bias, (uint32_t)id);
	elf_file_fini(&file);
	return (int)id;
}

/* --- a look at all mappings --- */

static bool is_object(const struct map_line *map)
{
	return map->executable && (map->inode != 0 || strcmp(map->path, "[vdso]") == 0);
}

/* All executable mappings of objects, in the order of their addresses. */
struct scan {
	VEC_OF(struct map_line) lines;
	VEC_OF(size_t) fresh;          /* lines that are not known */
	size_t later;                  /* as many of them, the first ones, are to be added once the others are known */
};

static bool is_of(const struct map_line *line, const struct module *module)
{
	return line->device == module->device && line->inode == module->inode;
}

static bool still_mapped(const struct scan *scan, const struct target *target, const struct module_range *range)
{
	size_t low = 0, high = scan->lines.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scan->lines.items[middle].end <= range->start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < scan->lines.count && scan->lines.items[low].start <= range->start &&
	       scan->lines.items[low].end >= range->end &&
	       is_of(&scan->lines.items[low], &target->modules.modules.items[range->module]);
}

static void forget_slacks(struct target *target, uint32_t module)
{
	for (size_t i = target->slacks.count; i-- > 0;) {
		if (target->slacks.items[i].module == module)
			vec_remove_unordered(&target->slacks, i);
	}
}

static bool drop_unmapped(struct target *target, const struct scan *scan)
{
	size_t i = target->modules.ranges.count;
	bool changed = false;

	while (i > 0) {
		struct module_range range = target->modules.ranges.items[--i];

		if (still_mapped(scan, target, &range))
			continue;
		module_map_remove(&target->modules, range.module);
		forget_slacks(target, range.module);
		fd_close(&target->module_fds.items[range.module]);
		changed = true;
		/* Those below are where they were, but for others of the same module. */
		if (i > target->modules.ranges.count)
			i = target->modules.ranges.count;
	}
	return changed;
}

static int add_new(struct target *target, const struct map_line *map, bool last)
{
	bool copy = false;
	int fd = map->inode ? mapped_file_open(&target->files, target->memory_tid, map, &copy) : copy_vdso(target, map);
	int id = add_module(target, map, fd, copy, last);

	if (id < 0)
		return id;
	return module_map_add_range(&target->modules, map->start, map->end, (uint32_t)id);
}

static int list_lines(struct target *target, struct scan *scan, char *text)
{
	struct map_line map, *line;
	size_t *fresh;

	while (maps_next(&text, &map)) {
		const struct module_range *range;

		if (strcmp(map.path, "[stack]") == 0)
			target->main_stack = (struct stack_bounds){ map.start, map.end };
		if (!is_object(&map))
			continue;
		line = vec_push(&scan->lines);
		if (!line)
			return -ENOMEM;
		*line = map;
		range = module_map_find(&target->modules, map.start);
		if (range && range->start <= map.start && range->end >= map.end &&
		    is_of(&map, &target->modules.modules.items[range->module]))
			continue;
		fresh = vec_push(&scan->fresh);
		if (!fresh)
			return -ENOMEM;
		*fresh = scan->lines.count - 1;
	}
	return 0;
}

/* Mappings of one file, counted: those that are known and those that come. */
struct tally {
	uint64_t device, inode;
	unsigned count;
};

struct tallies {
	struct tally *items;
	size_t mask;
};

static struct tally *tally_of(struct tallies *tallies, uint64_t device, uint64_t inode)
{
	size_t at = hash_pair(device, inode) & tallies->mask;

	while (tallies->items[at].count > 0 &&
	       (tallies->items[at].device != device || tallies->items[at].inode != inode))
		at = (at + 1) & tallies->mask;
	tallies->items[at].device = device;
	tallies->items[at].inode = inode;
	return &tallies->items[at];
}

static int count_known(const struct target *target, const struct scan *scan, struct tallies *ret)
{
	const struct module_map *map = &target->modules;
	size_t space = 64;

	while (space < 2 * (map->ranges.count + scan->fresh.count))
		space *= 2;
	ret->mask = space - 1;
	ret->items = calloc(space, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < map->ranges.count; i++) {
		const struct module *module = &map->modules.items[map->ranges.items[i].module];

		tally_of(ret, module->device, module->inode)->count++;
	}
	return 0;
}

/* What is no ELF file (the memory of some compilers) is no loss. */
static bool is_an_object(const struct target *target, const struct map_line *line)
{
	for (size_t i = 0; i < target->modules.modules.count; i++) {
		if (is_of(line, &target->modules.modules.items[i]) && target->module_fds.items[i] >= 0)
			return true;
	}
	return false;
}

/* No object has so many; what is left out is code in no object. */
static bool is_wanted(struct target *target, const struct map_line *line, struct tallies *tallies)
{
	struct tally *tally = tally_of(tallies, line->device, line->inode);

	if (++tally->count > OBJECT_MAPPINGS_MAX) {
		if (tally->count == OBJECT_MAPPINGS_MAX + 1 && is_an_object(target, line))
			mapped_files_miss(&target->files, line->path, "it is mapped too often");
		return false;
	}
	if (target->modules.ranges.count < MAPPINGS_MAX)
		return true;
	mapped_files_miss(&target->files, line->path, "the process has too many executable mappings");
	return false;
}

static int add_line(struct target *target, const struct map_line *line, bool last)
{
	int r = add_new(target, line, last);

	return r == -EEXIST ? 0 : r;           /* a mapping grew over a known piece: the known part stays */
}

static int add_fresh(struct target *target, struct scan *scan)
{
	struct tallies tallies;
	int r = count_known(target, scan, &tallies);

	for (size_t i = 0; r == 0 && i < scan->fresh.count; i++) {
		size_t number = scan->fresh.items[i];
		const struct map_line *line = &scan->lines.items[number];

		if (is_wanted(target, line, &tallies))
			r = add_line(target, line, false);
		if (r == -EAGAIN) {
			scan->fresh.items[scan->later++] = number;
			r = 0;
		}
	}
	for (size_t i = 0; r == 0 && i < scan->later; i++)
		r = add_line(target, &scan->lines.items[scan->fresh.items[i]], true);
	free(tallies.items);
	return r;
}

static int scan_text(struct target *target, char *text, bool *ret_changed)
{
	struct scan scan = { 0 };
	bool changed = false;
	int r = list_lines(target, &scan, text);

	if (r == 0) {
		changed = drop_unmapped(target, &scan) || scan.fresh.count > 0;
		r = add_fresh(target, &scan);
	}
	mapped_files_look_done(&target->files);
	vec_fini(&scan.lines);
	vec_fini(&scan.fresh);
	*ret_changed = changed;
	return r;
}

static const struct module_range *next_of_file(const struct module_map *map, size_t *at)
{
	while (*at < map->ranges.count) {
		const struct module_range *range = &map->ranges.items[(*at)++];

		if (map->modules.items[range->module].inode != 0)
			return range;
	}
	return NULL;
}

static bool is_known(const struct module_map *map, const struct module_range *range, const struct mapped_code *code)
{
	const struct module *module = range ? &map->modules.items[range->module] : NULL;

	return module && range->start == code->start && range->end == code->end && module->device == code->device &&
	       module->inode == code->inode;
}

/* Each mapping of an object is one that is known, and each of these is there: the vdso stays where it is.  False also where
 * the kernel cannot be asked so. */
static bool is_as_known(const struct target *target)
{
	struct mapped_code code = { .end = 0 };
	size_t at = 0;
	int r;

	while ((r = maps_query_code(target->maps_fd, code.end, &code)) == 0) {
		if (!is_known(&target->modules, next_of_file(&target->modules, &at), &code))
			return false;
	}
	return r == -ENOENT && at > 0 && !next_of_file(&target->modules, &at);
}

int target_scan_modules(struct target *target, bool *ret_changed)
{
	char *text;
	int r;

	/* The threads may all be held: the text of some thousand mappings takes milliseconds. */
	if (is_as_known(target)) {
		*ret_changed = false;
		return 0;
	}
	if (lseek(target->maps_fd, 0, SEEK_SET) < 0)
		return -errno;
	r = fd_read_text(target->maps_fd, MAPS_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	if (*text == '\0')
		r = -ESRCH;            /* the memory is gone */
	else
		r = scan_text(target, text, ret_changed);
	free(text);
	return r;
}

void target_forget_modules(struct target *target)
{
	for (size_t i = 0; i < target->module_fds.count; i++) {
		if (!target->modules.modules.items[i].mapped)
			continue;
		module_map_remove(&target->modules, (uint32_t)i);
		fd_close(&target->module_fds.items[i]);
	}
	target->slacks.count = 0;
	target->main_stack = (struct stack_bounds){ 0, 0 };
}
