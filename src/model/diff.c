#include "model/builds.h"
#include "model/grouping.h"
#include "model/match.h"

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

/* The newer one comes first in the grouping, so that its names are the rows'. */
static int add_both(struct grouping *grouping, const struct snapshot *const *both, uint32_t limit,
		    const struct builds *builds, const char **ret_reason)
{
	bool by_definition = grouping->query->key == KEY_DEFINITION;
	uint32_t *into = NULL;
	int r = grouping_add(grouping, both[0], limit, false, ret_reason);

	if (r == 0)
		r = grouping_add(grouping, both[1], limit, true, ret_reason);
	if (r == 0 && by_definition)
		r = match_groups(grouping, builds, true, &into);
	free(into);
	return r;
}

static int compare(const struct snapshot *const *both, const struct statistics_query *query, const struct builds *builds,
		   struct statistics **ret, const char **ret_reason)
{
	const struct snapshot *newer = both[0], *older = both[1];
	uint32_t limit = query->traceback.limit;
	struct statistics *statistics;
	struct grouping grouping;
	int r;

	if (older->sample_bytes != newer->sample_bytes) {
		*ret_reason = "one of the snapshots counts samples of another rate than the other, or is no sample: what differs "
			      "would be chance; compare snapshots that were taken with one --sample-bytes";
		return -EINVAL;
	}
	statistics = statistics_new(newer, query->key);
	if (!statistics)
		return -ENOMEM;
	statistics->exact = older->exact && newer->exact;
	statistics->unnamed = !older->symbolized || !newer->symbolized;
	statistics->limits_differ = statistics_common_limit(both, 2, query, &limit);
	r = grouping_init(&grouping, query, statistics->strings, ret_reason);
	if (r < 0)
		goto free_statistics;
	r = add_both(&grouping, both, limit, builds, ret_reason);
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

int statistics_compare(const struct snapshot *older, const struct snapshot *newer,
		       const struct statistics_query *query, struct statistics **ret,
		       const char **ret_reason)
{
	const struct snapshot *const both[] = { newer, older };
	struct statistics_query decided = *query;
	struct builds *builds = NULL;
	int r;

	if (query->born)
		return make_born(older, newer, query, ret, ret_reason);
	r = builds_for_query(both, 2, &decided, &builds);
	if (r == 0)
		r = compare(both, &decided, builds, ret, ret_reason);
	builds_free(builds);
	return r;
}
