#include "model/builds.h"

#include "model/definition.h"
#include "model/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The objects of one snapshot. */
struct objects {
	const struct snapshot *snapshot;
	uint32_t *names;                      /* by module: id of its object's name */
	uint32_t *first;                      /* by name: one more than a module; 0: it has none */
	uint32_t *next;                       /* by module: the same of another one of its name */
	uint32_t *numbers;                    /* by module without a build-id: equal for what may be one build */
};

struct builds {
	struct strtab *names;
	uint32_t known;                       /* as many are there; others may follow that were asked for */
	uint32_t last_number;
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

/* --- without build-ids --- */

static bool has_build_id(const struct objects *objects, uint32_t module)
{
	return objects->snapshot->modules.items[module].build_id_len > 0;
}

static bool lacks_build_ids(const struct objects *objects)
{
	for (uint32_t i = 0; i < objects->snapshot->modules.count; i++) {
		if (objects->names[i] && !has_build_id(objects, i))
			return true;
	}
	return false;
}

/* That of an object of the snapshot before, or a new one.  Layouts are NULL where all have build-ids. */
static uint32_t find_number(struct builds *builds, size_t snapshot, uint32_t module, const struct layout *before,
			    const struct layout *layout)
{
	const struct objects *own = &builds->objects[snapshot], *other = own - 1;

	for (uint32_t i = before ? other->first[own->names[module]] : 0; i; i = other->next[i - 1]) {
		if (!has_build_id(other, i - 1) && !layout_contradicts(before, i - 1, layout, module))
			return other->numbers[i - 1];
	}
	return ++builds->last_number;
}

static int number_snapshot(struct builds *builds, size_t snapshot, const struct layout *before, struct layout **ret_layout)
{
	struct objects *objects = &builds->objects[snapshot];
	uint32_t modules = (uint32_t)objects->snapshot->modules.count;

	*ret_layout = NULL;
	if (!lacks_build_ids(objects))
		return 0;
	objects->numbers = calloc(modules, sizeof(*objects->numbers));
	if (!objects->numbers || layout_new(objects->snapshot, ret_layout) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < modules; i++) {
		if (!has_build_id(objects, i))
			objects->numbers[i] = find_number(builds, snapshot, i, before, *ret_layout);
	}
	return 0;
}

static int number_builds(struct builds *builds)
{
	struct layout *before = NULL, *layout;
	int r = 0;

	for (size_t i = 0; r == 0 && i < builds->count; i++) {
		r = number_snapshot(builds, i, before, &layout);
		layout_free(before);
		before = layout;
	}
	layout_free(before);
	return r;
}

/* --- all of it --- */

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
	return r < 0 ? r : number_builds(builds);
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
		free(builds->objects[i].numbers);
	}
	free(builds->objects);
	strtab_free(builds->names);
	free(builds);
}

/* --- questions --- */

/* Whether it may be. */
static bool is_build(const struct objects *in, uint32_t module, const struct objects *other, uint32_t of_other)
{
	const struct snapshot_module *a = &in->snapshot->modules.items[module];
	const struct snapshot_module *b = &other->snapshot->modules.items[of_other];

	if (a->build_id_len == 0 && b->build_id_len == 0)
		return in->numbers[module] == other->numbers[of_other];
	if (a->build_id_len == 0 || b->build_id_len == 0)
		return true;
	return a->build_id_len == b->build_id_len && memcmp(a->build_id, b->build_id, a->build_id_len) == 0;
}

/* Whether `in` has a build of that name that `other` has not. */
static bool has_own(const struct objects *in, const struct objects *other, uint32_t name)
{
	for (uint32_t i = in->first[name]; i; i = in->next[i - 1]) {
		uint32_t same = other->first[name];

		while (same && !is_build(in, i - 1, other, same - 1))
			same = other->next[same - 1];
		if (!same)
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
