#include "model/builds.h"

#include "model/definition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The objects of one snapshot. */
struct objects {
	const struct snapshot *snapshot;
	uint32_t *names;                      /* by module: id of its object's name */
	uint32_t *first;                      /* by name: one more than a module; 0: it has none */
	uint32_t *next;                       /* by module: the same of another one of its name */
};

struct builds {
	struct strtab *names;
	uint32_t known;                       /* as many are there; others may follow that were asked for */
	size_t count;
	struct objects *objects;              /* by snapshot */
};

static const char *path_of(const struct snapshot *snapshot, uint32_t module)
{
	return strtab_get(snapshot->strings, snapshot->modules.items[module].path);
}

static int name_objects(struct builds *builds, struct objects *objects)
{
	const struct snapshot *snapshot = objects->snapshot;

	objects->names = calloc(snapshot->modules.count + 1, sizeof(*objects->names));
	if (!objects->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < snapshot->modules.count; i++) {
		size_t len;
		const char *name = definition_object_name(path_of(snapshot, i), &len);
		int64_t id = strtab_add_len(builds->names, name, len);

		if (id < 0)
			return (int)id;
		objects->names[i] = (uint32_t)id;
	}
	return 0;
}

/* The place in the chain of its name where the module belongs: that of an older one of its path, or the chain's end. */
static uint32_t *find_place(const struct objects *objects, uint32_t module)
{
	const struct snapshot_module *modules = objects->snapshot->modules.items;
	uint32_t *place = &objects->first[objects->names[module]];

	for (size_t i = 0; *place; i++) {
		if (modules[*place - 1].path == modules[module].path)
			return place;
		if (i == BUILDS_OF_NAME_MAX)
			return NULL;
		place = &objects->next[*place - 1];
	}
	return place;
}

static int chain_objects(const struct builds *builds, struct objects *objects)
{
	size_t modules = objects->snapshot->modules.count;

	objects->first = calloc(builds->known, sizeof(*objects->first));
	objects->next = calloc(modules + 1, sizeof(*objects->next));
	if (!objects->first || !objects->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < modules; i++) {
		uint32_t *place = find_place(objects, i);

		if (!place)
			continue;
		if (*place)
			objects->next[i] = objects->next[*place - 1];
		*place = i + 1;
	}
	return 0;
}

static int fill(struct builds *builds, const struct snapshot *const *snapshots)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < builds->count; i++) {
		builds->objects[i].snapshot = snapshots[i];
		r = name_objects(builds, &builds->objects[i]);
	}
	builds->known = strtab_count(builds->names);
	for (size_t i = 0; r == 0 && i < builds->count; i++)
		r = chain_objects(builds, &builds->objects[i]);
	return r;
}

int builds_new(const struct snapshot *const *snapshots, size_t count, struct builds **ret)
{
	struct builds *builds = calloc(1, sizeof(*builds));
	int r = -ENOMEM;

	if (!builds)
		return r;
	builds->count = count;
	builds->names = strtab_new();
	builds->objects = calloc(count, sizeof(*builds->objects));
	if (builds->names && builds->objects)
		r = fill(builds, snapshots);
	if (r < 0) {
		builds_free(builds);
		return r;
	}
	*ret = builds;
	return 0;
}

void builds_free(struct builds *builds)
{
	if (!builds)
		return;
	for (size_t i = 0; builds->objects && i < builds->count; i++) {
		free(builds->objects[i].names);
		free(builds->objects[i].first);
		free(builds->objects[i].next);
	}
	free(builds->objects);
	strtab_free(builds->names);
	free(builds);
}

/* --- questions --- */

static bool is_build(const struct snapshot_module *a, const struct snapshot_module *b)
{
	return a->build_id_len == b->build_id_len && memcmp(a->build_id, b->build_id, a->build_id_len) == 0;
}

/* Whether `in` has a build of that name that `other` has not; an object without a build-id is none. */
static bool has_own(const struct objects *in, const struct objects *other, uint32_t name)
{
	for (uint32_t i = in->first[name]; i; i = in->next[i - 1]) {
		const struct snapshot_module *module = &in->snapshot->modules.items[i - 1];
		uint32_t same = other->first[name];

		while (same && !is_build(module, &other->snapshot->modules.items[same - 1]))
			same = other->next[same - 1];
		if (!same && module->build_id_len > 0)
			return true;
	}
	return false;
}

static bool differ(const struct builds *builds, uint32_t name, size_t a, size_t b)
{
	return has_own(&builds->objects[a], &builds->objects[b], name) &&
	       has_own(&builds->objects[b], &builds->objects[a], name);
}

bool builds_differ(const struct builds *builds, const char *object, size_t a, size_t b)
{
	size_t len;
	const char *name = definition_object_name(object, &len);
	int64_t id = strtab_add_len(builds->names, name, len);

	return id >= 0 && id < builds->known && differ(builds, (uint32_t)id, a, b);
}

bool builds_any_differ(const struct builds *builds)
{
	for (size_t i = 1; i < builds->count; i++) {
		for (uint32_t name = 1; name < builds->known; name++) {
			if (differ(builds, name, i - 1, i))
				return true;
		}
	}
	return false;
}

int builds_for_query(const struct snapshot *const *snapshots, size_t count, struct statistics_query *query,
		     struct builds **ret)
{
	int r;

	*ret = NULL;
	if (!query->key_is_open && query->key != KEY_DEFINITION)
		return 0;
	r = builds_new(snapshots, count, ret);
	if (r == 0 && query->key_is_open && builds_any_differ(*ret))
		query->key = KEY_DEFINITION;
	query->key_is_open = false;
	return r;
}
