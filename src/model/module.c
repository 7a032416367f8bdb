#include "model/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void module_map_init(struct module_map *map)
{
	memset(map, 0, sizeof(*map));
}

void module_map_fini(struct module_map *map)
{
	for (size_t i = 0; i < map->modules.count; i++)
		free(map->modules.items[i].path);
	vec_fini(&map->modules);
	vec_fini(&map->ranges);
}

int64_t module_map_add(struct module_map *map, const struct module *module)
{
	struct module *copy;
	char *path;

	if (map->modules.count >= MODULES_MAX)
		return -ENOSPC;
	if (module->build_id_len > BUILD_ID_MAX)
		return -EINVAL;
	path = strdup(module->path ? module->path : "");
	if (!path)
		return -ENOMEM;
	copy = vec_push(&map->modules);
	if (!copy) {
		free(path);
		return -ENOMEM;
	}
	*copy = *module;
	copy->path = path;
	copy->id = (uint32_t)map->modules.count - 1;
	return copy->id;
}

static bool is_same_file(const struct module *a, const struct module *b)
{
	return a->build_id_len > 0 && a->build_id_len == b->build_id_len &&
	       memcmp(a->build_id, b->build_id, a->build_id_len) == 0 && a->device == b->device && a->inode == b->inode &&
	       strcmp(a->path, b->path ? b->path : "") == 0;
}

int64_t module_map_take_back(struct module_map *map, const struct module *module)
{
	for (size_t i = map->modules.count; i-- > 0;) {
		struct module *known = &map->modules.items[i];

		if (!known->left || !is_same_file(known, module))
			continue;
		known->left = false;
		known->back = true;
		known->bias = module->bias;
		known->piece = module->piece;
		return known->id;
	}
	return -ENOENT;
}

/* The index of the first range that ends behind an address. */
static size_t range_index(const struct module_map *map, raddr address)
{
	size_t low = 0, high = map->ranges.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranges.items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int module_map_add_range(struct module_map *map, raddr start, raddr end, uint32_t module)
{
	struct module_range *at;
	size_t i;

	if (start >= end || module >= map->modules.count)
		return -EINVAL;
	i = range_index(map, start);
	if (i < map->ranges.count && map->ranges.items[i].start < end)
		return -EEXIST;
	if (map->ranges.count >= MODULE_RANGES_MAX)
		return -ENOSPC;
	if (vec_reserve(&map->ranges, 1) < 0)
		return -ENOMEM;
	at = &map->ranges.items[i];
	memmove(at + 1, at, (map->ranges.count - i) * sizeof(*at));
	*at = (struct module_range){ .start = start, .end = end, .module = module };
	map->ranges.count++;
	map->modules.items[module].mapped = true;
	map->generation++;
	return 0;
}

void module_map_remove(struct module_map *map, uint32_t module)
{
	size_t kept = 0;

	if (module >= map->modules.count)
		return;
	for (size_t i = 0; i < map->ranges.count; i++) {
		if (map->ranges.items[i].module != module)
			map->ranges.items[kept++] = map->ranges.items[i];
	}
	if (kept != map->ranges.count)
		map->generation++;
	map->ranges.count = kept;
	map->modules.items[module].mapped = false;
}

const struct module_range *module_map_find(const struct module_map *map, raddr address)
{
	size_t i = range_index(map, address);

	if (i == map->ranges.count || address < map->ranges.items[i].start)
		return NULL;
	return &map->ranges.items[i];
}

size_t module_map_memory(const struct module_map *map)
{
	size_t bytes = vec_memory(&map->modules) + vec_memory(&map->ranges);

	for (size_t i = 0; i < map->modules.count; i++)
		bytes += strlen(map->modules.items[i].path) + 1;
	return bytes;
}
