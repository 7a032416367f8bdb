#include "model/grouping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const sort_names[] = {
	[SORT_ABS] = "abs", [SORT_GROWTH] = "growth", [SORT_SHRINK] = "shrink", [SORT_CHURN] = "churn",
};

const char *diff_sort_name(enum diff_sort sort)
{
	return sort_names[sort];
}

int diff_sort_parse(const char *name, enum diff_sort *ret_sort)
{
	for (size_t i = 0; i < sizeof(sort_names) / sizeof(*sort_names); i++) {
		if (strcmp(sort_names[i], name) == 0) {
			*ret_sort = (enum diff_sort)i;
			return 0;
		}
	}
	return -EINVAL;
}

static uint32_t smaller_limit(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a ? a : b;
	return a < b ? a : b;
}

/* Whether more frames than the most recent one decide the answer. */
static bool sees_frames(const struct statistics_query *query)
{
	bool sees = query->key == KEY_TRACEBACK || query->cumulative;

	for (size_t i = 0; i < query->filter_count; i++)
		sees |= query->filters[i].all_frames;
	return sees;
}

bool statistics_common_limit(const struct snapshot *const *snapshots, size_t count,
			     const struct statistics_query *query, uint32_t *limit)
{
	uint32_t common = snapshots[0]->frames_limit;
	bool differ = false;

	for (size_t i = 1; i < count; i++) {
		differ |= snapshots[i]->frames_limit != snapshots[0]->frames_limit;
		common = smaller_limit(common, snapshots[i]->frames_limit);
	}
	*limit = smaller_limit(query->traceback.limit, common);
	/* Asked for no more frames than all have, they do not differ. */
	return differ && *limit == common && query->traceback.limit != *limit && sees_frames(query);
}

/* Whatever dates are rounded to, a snapshot's clock parts its blocks from those that came later. */
static int make_born(const struct snapshot *older, const struct snapshot *newer,
		     const struct statistics_query *query, struct statistics **ret, const char **ret_reason)
{
	struct statistics_query born = *query;

	if (older->pid != newer->pid || older->start_time != newer->start_time)
		*ret_reason = "what was born between two snapshots is known of two of one process only";
	else if (!older->clock_ns || !newer->clock_ns)
		*ret_reason = "one of the snapshots was taken by an older version, which did not note the exact moment";
	else if (older->clock_ns > newer->clock_ns)
		*ret_reason = "the first snapshot is the later one: the older one comes first";
	else
		*ret_reason = NULL;
	if (*ret_reason)
		return -EINVAL;
	born.born = false;
	born.ages.given = true;
	born.ages.below_ns = newer->clock_ns - older->clock_ns;
	return statistics_make(newer, &born, ret, ret_reason);
}

static bool is_another_build(const struct snapshot_module *a, const struct snapshot_module *b)
{
	return a->build_id_len > 0 && b->build_id_len > 0 &&
	       (a->build_id_len != b->build_id_len || memcmp(a->build_id, b->build_id, a->build_id_len) != 0);
}

static const char *path_of(const struct snapshot *snapshot, size_t module)
{
	return strtab_get(snapshot->strings, snapshot->modules.items[module].path);
}

/* Ids of the paths go up from 1 in the order of first sight.  Of two modules of one path the last counts: the others were
 * replaced while the process ran. */
static int index_paths(const struct snapshot *snapshot, struct strtab *paths, uint32_t *modules)
{
	for (size_t i = 0; i < snapshot->modules.count; i++) {
		int64_t id = strtab_add(paths, path_of(snapshot, i));

		if (id < 0)
			return (int)id;
		modules[id] = (uint32_t)i;
	}
	return 0;
}

static int find_another_build(const struct snapshot *older, const uint32_t *older_modules, struct strtab *paths,
			      const struct snapshot *newer)
{
	uint32_t known = strtab_count(paths);

	for (size_t i = 0; i < newer->modules.count; i++) {
		int64_t id = strtab_add(paths, path_of(newer, i));

		if (id < 0)
			return (int)id;
		if (id > 0 && id < known &&
		    is_another_build(&older->modules.items[older_modules[id]], &newer->modules.items[i]))
			return 1;
	}
	return 0;
}

/* 1: a file that both have mapped was built anew in between; 0; -ENOMEM. */
static int builds_differ(const struct snapshot *older, const struct snapshot *newer)
{
	struct strtab *paths = strtab_new();
	uint32_t *modules = calloc(older->modules.count + 1, sizeof(*modules));
	int r = paths && modules ? index_paths(older, paths, modules) : -ENOMEM;

	if (r == 0)
		r = find_another_build(older, modules, paths, newer);
	free(modules);
	strtab_free(paths);
	return r;
}

int statistics_compare(const struct snapshot *older, const struct snapshot *newer,
		       const struct statistics_query *query, struct statistics **ret,
		       const char **ret_reason)
{
	const struct snapshot *const both[] = { older, newer };
	uint32_t limit = query->traceback.limit;
	struct statistics_query decided = *query;
	struct statistics *statistics;
	struct grouping grouping;
	int r;

	if (query->born)
		return make_born(older, newer, query, ret, ret_reason);
	r = query->key_is_open ? builds_differ(older, newer) : 0;
	if (r < 0)
		return r;
	if (r > 0)
		decided.key = KEY_FUNCTION;
	query = &decided;
	statistics = statistics_new(newer, query->key);
	if (!statistics)
		return -ENOMEM;
	statistics->exact = older->exact && newer->exact;
	statistics->limits_differ = statistics_common_limit(both, 2, query, &limit);
	r = grouping_init(&grouping, query, statistics->strings, ret_reason);
	if (r < 0)
		goto free_statistics;
	r = grouping_add(&grouping, newer, limit, false, ret_reason);
	if (r == 0)
		r = grouping_add(&grouping, older, limit, true, ret_reason);
	if (r == 0)
		r = grouping_take_first(&grouping, true, statistics);
	grouping_fini(&grouping);
	if (r < 0)
		goto free_statistics;
	*ret = statistics;
	return 0;

free_statistics:
	statistics_free(statistics);
	return r;
}
