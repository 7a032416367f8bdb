#include "symbol/jit_names.h"

#include "base/fd.h"
#include "base/strtab.h"
#include "symbol/jit_table.h"
#include "symbol/jitdump.h"
#include "symbol/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct jit_names {
	int fd;
	bool is_dump;
	struct jit_table *table;
	struct strtab *strings;
};

int jit_names_open(int fd, struct jit_names **ret)
{
	struct jit_names *names = calloc(1, sizeof(*names));
	int r = -ENOMEM;

	if (!names) {
		fd_close(&fd);
		return r;
	}
	names->fd = fd;
	names->is_dump = jitdump_is(fd);
	names->table = jit_table_new();
	names->strings = strtab_new();
	if (names->table && names->strings)
		r = names->is_dump ? jitdump_read(fd, names->table) : perf_map_read(fd, names->table);
	if (r == 0)
		r = jit_table_finish(names->table);
	if (r < 0) {
		jit_names_free(names);
		return r;
	}
	*ret = names;
	return 0;
}

void jit_names_free(struct jit_names *names)
{
	if (!names)
		return;
	jit_table_free(names->table);
	strtab_free(names->strings);
	fd_close(&names->fd);
	free(names);
}

/* NULL: no memory; "": the file has changed. */
static const char *name_of(struct jit_names *names, const struct jit_entry *entry)
{
	char text[SYMBOL_NAME_MAX];
	ssize_t n = pread(names->fd, text, entry->name_len, (off_t)entry->name_at);
	int64_t id = strtab_add_len(names->strings, text, n > 0 ? strnlen(text, (size_t)n) : 0);

	return id < 0 ? NULL : strtab_get(names->strings, (uint32_t)id);
}

static int add_line(struct jit_names *names, const struct jit_entry *entry, uint64_t pc, struct symbol_location *ret)
{
	char file[SYMBOL_NAME_MAX];
	int64_t id;

	if (!names->is_dump || jitdump_line(names->fd, entry, pc, file, sizeof(file), &ret->line) < 0)
		return 0;
	id = strtab_add(names->strings, file);
	if (id < 0)
		return -ENOMEM;
	ret->file = strtab_get(names->strings, (uint32_t)id);
	return 0;
}

int jit_names_resolve(struct jit_names *names, uint64_t address, bool is_call, struct symbol_location *ret)
{
	uint64_t pc = is_call && address > 0 ? address - 1 : address;
	const struct jit_entry *entry = jit_table_find(names->table, pc);
	struct symbol_location found = { 0 };

	if (!entry)
		return 0;
	found.function = name_of(names, entry);
	found.function_offset = address - entry->start;
	if (!found.function || add_line(names, entry, pc, &found) < 0)
		return -ENOMEM;
	if (!found.function[0])
		return 0;
	*ret = found;
	return 1;
}
