#include "symbol/split.h"

#include "symbol/dwp.h"
#include "symbol/opener.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct wanted {
	struct split *split;
	uint64_t unit_id;
};

/* What the kernel appends to the path of a file that has none any more. */
static size_t without_mark(const char *path, size_t len)
{
	static const char mark[] = " (deleted)";
	size_t mark_len = sizeof(mark) - 1;

	return len > mark_len && memcmp(path + len - mark_len, mark, mark_len) == 0 ? len - mark_len : len;
}

/* PROGRAM.dwp, also of one that was deleted or replaced: a package is known by the numbers of its units. */
static int open_package(const struct elf_file *file, struct elf_file **ret)
{
	char link[32], path[PATH_MAX + sizeof(".dwp")];
	ssize_t len;
	int r;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	len = readlink(link, path, PATH_MAX);
	if (len <= 0 || len == PATH_MAX || path[0] != '/')
		return -ENOENT;
	strcpy(path + len, ".dwp");
	r = elf_file_open_path(path, ret);
	if (r == -ENOENT && without_mark(path, (size_t)len) < (size_t)len) {
		strcpy(path + without_mark(path, (size_t)len), ".dwp");
		r = elf_file_open_path(path, ret);
	}
	return r;
}

/* Where there is no .dwo file. */
static int open_piece(void *context)
{
	const struct wanted *wanted = context;
	struct split *split = wanted->split;

	if (!split->looked_for && open_package(split->file, &split->package) < 0)
		split->package = NULL;
	split->looked_for = true;
	return split->package ? dwp_extract(split->package, wanted->unit_id) : -ENOENT;
}

int split_unit(struct split *split, Dwarf_Die *skeleton, Dwarf_Die *ret)
{
	struct wanted wanted = { .split = split };
	Dwarf_Die found = { 0 };
	int r;

	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &wanted.unit_id, NULL, NULL) < 0)
		return -ENOENT;
	opener_enter(open_piece, &wanted);
	r = dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, &found, NULL, NULL, NULL);
	opener_leave();
	if (r < 0 || !found.addr)
		return -ENOENT;
	*ret = found;
	return 0;
}

void split_fini(struct split *split)
{
	elf_file_free(split->package);
}
