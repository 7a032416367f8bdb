/* What stacks hang on, handed to helpers: module map, files to read tables from, and the process's code. */
#define _GNU_SOURCE
#include "probe/ring_ahead_private.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void file_unref(struct ahead_file *file)
{
	if (!file || atomic_fetch_sub(&file->refs, 1) > 1)
		return;
	fd_close(&file->fd);
	free(file);
}

/* Of all descriptors there may be one half is left to who traces: a snapshot or a detach must not fail for want of them.  The lowest free one
 * says that all below it are used. */
static bool is_to_spare(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)fd < limit.rlim_cur / 2;
}

static int duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (copy >= 0 && !is_to_spare(copy))
		fd_close(&copy);
	return copy;
}

static struct ahead_file *file_new(int fd)
{
	struct ahead_file *file = fd >= 0 ? calloc(1, sizeof(*file)) : NULL;

	if (!file)
		return NULL;
	file->refs = 1;
	file->fd = duplicate(fd);
	if (file->fd < 0) {
		free(file);
		return NULL;
	}
	return file;
}

/* One that has not changed is opened once for all tables. */
static struct ahead_file *file_of(const struct ring_ahead_world *world, uint32_t module, struct unwind_module known,
				  const struct ahead_table *before)
{
	if (before && module < before->map.modules.count && before->modules[module].file &&
	    before->modules[module].known.since == known.since) {
		atomic_fetch_add(&before->modules[module].file->refs, 1);
		return before->modules[module].file;
	}
	return file_new(world->module_fd(world->context, module));
}

static int copy_map(const struct module_map *map, struct module_map *ret)
{
	struct module_map copy = { .generation = map->generation };

	if (vec_reserve(&copy.modules, map->modules.count) < 0 || vec_reserve(&copy.ranges, map->ranges.count) < 0) {
		vec_fini(&copy.modules);
		return -ENOMEM;
	}
	copy.modules.count = map->modules.count;
	copy.ranges.count = map->ranges.count;
	for (size_t i = 0; i < map->modules.count; i++) {
		copy.modules.items[i] = map->modules.items[i];
		copy.modules.items[i].path = NULL;
	}
	if (map->ranges.count > 0)
		memcpy(copy.ranges.items, map->ranges.items, map->ranges.count * sizeof(map->ranges.items[0]));
	*ret = copy;
	return 0;
}

static bool open_files(struct ahead_table *table, const struct ring_ahead_world *world, const struct ahead_table *before)
{
	size_t files = 0;

	for (uint32_t i = 0; i < table->map.modules.count; i++) {
		struct ahead_module *module = &table->modules[i];

		module->known = unwinder_module(world->unwinder, i);
		if (module->known.since == 0)
			continue;
		if (++files > RING_AHEAD_MODULES_MAX)
			return false;
		module->file = file_of(world, i, module->known, before);
		if (!module->file)
			return false;
	}
	return true;
}

struct ahead_table *ahead_table_new(const struct ring_ahead_world *world, uint64_t generation, const struct ahead_table *before)
{
	struct ahead_table *table = calloc(1, sizeof(*table));
	size_t count = world->map->modules.count;
	int memory_fd;

	if (!table)
		return NULL;
	*table = (struct ahead_table){ .refs = 1, .generation = generation, .memory_fd = -1 };
	table->modules = calloc(count + 1, sizeof(*table->modules));
	table->is_patched = calloc(count + 1, sizeof(*table->is_patched));
	if (!table->modules || !table->is_patched || copy_map(world->map, &table->map) < 0 ||
	    !unwinder_knows_all_endings(world->unwinder) || !open_files(table, world, before)) {
		ahead_table_unref(table);
		return NULL;
	}
	world->find_patched(world->context, table->is_patched, count);
	memory_fd = world->memory_fd(world->context);
	if (memory_fd >= 0)
		table->memory_fd = duplicate(memory_fd);
	return table;
}

struct ahead_table *ahead_table_ref(struct ahead_table *table)
{
	if (table)
		atomic_fetch_add(&table->refs, 1);
	return table;
}

void ahead_table_unref(struct ahead_table *table)
{
	if (!table || atomic_fetch_sub(&table->refs, 1) > 1)
		return;
	for (size_t i = 0; table->modules && i < table->map.modules.count; i++)
		file_unref(table->modules[i].file);
	vec_fini(&table->map.modules);
	vec_fini(&table->map.ranges);
	free(table->modules);
	free(table->is_patched);
	fd_close(&table->memory_fd);
	free(table);
}

static bool is_patched(const struct ahead_table *table, raddr at)
{
	const struct module_range *range = module_map_find(&table->map, at);

	return range && table->is_patched[range->module];
}

/* Our own int3s and jumps are taken out of what the reader reads of code, by lists that are its own. */
int ahead_table_read(const struct ahead_table *table, raddr at, void *buf, size_t len)
{
	ssize_t n;

	if (table->memory_fd < 0 || is_patched(table, at) || is_patched(table, at + len - 1))
		return -EAGAIN;
	n = pread(table->memory_fd, buf, len, (off_t)at);
	if (n == 0)
		return -ESRCH;
	return n == (ssize_t)len ? 0 : -EFAULT;
}
