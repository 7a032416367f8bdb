#include "process_map.h"

#include "base/fd.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VDSO "[vdso]"
#define PAGE 4096u

struct line {
	uint64_t start, end, offset;
	char permissions[5];
	const char *path;
};

static bool parse_line(char *text, struct line *ret)
{
	int at = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &ret->start, &ret->end,
		   ret->permissions, &ret->offset, &at) != 4 || at == 0)
		return false;
	ret->path = text + at;
	return ret->permissions[2] == 'x' && (ret->path[0] == '/' || strcmp(ret->path, VDSO) == 0);
}

/* Run-time address minus ELF address of a mapping, from the program header that it maps. */
static int find_bias(int fd, const struct line *line, raddr *ret_bias)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + i * sizeof(segment));
		uint64_t page;

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return -ENOEXEC;
		page = segment.p_offset & ~(uint64_t)(PAGE - 1);
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || line->offset < page ||
		    line->offset >= segment.p_offset + segment.p_filesz)
			continue;
		*ret_bias = line->start - line->offset + segment.p_offset - segment.p_vaddr;
		return 0;
	}
	return -ENOEXEC;
}

static int copy_vdso(pid_t pid, raddr start, raddr end)
{
	char path[64], page[PAGE];
	int from, to = memfd_create("vdso", MFD_CLOEXEC), err = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0 || to < 0)
		err = -errno;
	for (raddr at = start; err == 0 && at < end; at += PAGE)
		if (pread(from, page, PAGE, (off_t)at) != PAGE || fd_write_all(to, page, PAGE) < 0)
			err = -EIO;
	fd_close(&from);
	if (err < 0)
		fd_close(&to);
	return err < 0 ? err : to;
}

static int open_path(pid_t pid, const char *path, raddr start, raddr end)
{
	char full[4200];
	int fd;

	if (strcmp(path, VDSO) == 0)
		return copy_vdso(pid, start, end);
	snprintf(full, sizeof(full), "/proc/%d/root%s", (int)pid, path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int process_map_open(pid_t pid, const struct module_map *map, uint32_t module)
{
	for (size_t i = 0; i < map->ranges.count; i++) {
		const struct module_range *range = &map->ranges.items[i];

		if (range->module == module)
			return open_path(pid, map->modules.items[module].path, range->start, range->end);
	}
	return -ENOENT;
}

/* Another object has its place. */
static void forget(struct module_map *map, uint32_t module, struct unwinder *unwinder)
{
	if (unwinder)
		unwinder_remove_module(unwinder, module);
	module_map_remove(map, module);
}

static int add_line(pid_t pid, const struct line *line, struct module_map *map, struct unwinder *unwinder)
{
	const struct module_range *range = module_map_find(map, line->start);
	struct module module = { .path = (char *)line->path };
	int64_t id = -1;
	int fd, err;

	if (range && strcmp(map->modules.items[range->module].path, line->path) == 0)
		return 0;
	if (range)
		forget(map, range->module, unwinder);
	fd = open_path(pid, line->path, line->start, line->end);
	if (fd < 0)
		return 0;
	err = find_bias(fd, line, &module.bias);
	if (err < 0) {
		fd_close(&fd);
		return 0;                               /* no ELF file */
	}
	for (size_t i = 0; i < map->modules.count; i++)
		if (strcmp(map->modules.items[i].path, line->path) == 0 &&
		    map->modules.items[i].bias == module.bias && map->modules.items[i].mapped)
			id = (int64_t)i;
	if (id < 0) {
		id = module_map_add(map, &module);
		if (id >= 0 && unwinder)
			unwinder_add_module(unwinder, (uint32_t)id, fd);
	}
	fd_close(&fd);
	return id < 0 ? (int)id : module_map_add_range(map, line->start, line->end, (uint32_t)id);
}

int process_map_update(pid_t pid, struct module_map *map, struct unwinder *unwinder)
{
	char path[64], *text, *rest, *one;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	err = file_read_text(path, 16u << 20, &text, NULL);
	if (err < 0)
		return err;
	for (rest = text; err >= 0 && (one = strsep(&rest, "\n")) && *one;) {
		struct line line;

		if (parse_line(one, &line))
			err = add_line(pid, &line, map, unwinder);
	}
	free(text);
	return err < 0 ? err : 0;
}
