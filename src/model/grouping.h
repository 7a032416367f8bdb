/* Groups of traces by a key, of one snapshot or of two at once: what statistics and differences
 * have in common. */
#ifndef ALLOCWATCH_MODEL_GROUPING_H
#define ALLOCWATCH_MODEL_GROUPING_H

#include "model/id_table.h"
#include "model/measure.h"
#include "model/statistics.h"

struct group {
	struct statistic row;                 /* what it is; the numbers come at the end */
	struct measure now, old;              /* old: of the older snapshot */
};

struct grouping {
	const struct statistics_query *query;
	struct strtab *strings;               /* names of the rows; the caller's */
	VEC_OF(struct group) groups;
	uint32_t latest;                      /* the group that was counted in last */
	struct id_table index;                /* of groups: the same ids */
	VEC_OF(struct statistic_frame) frames;/* of the trace at hand, most recent first */
	VEC_OF(uint32_t) places;              /* where these are; of an addition */
	struct measure now, old;              /* of all traces that passed the filters */
};

/* 0, or -EINVAL with a reason when the query cannot be answered. */
int grouping_init(struct grouping *grouping, const struct statistics_query *query,
		  struct strtab *strings, const char **ret_reason);
void grouping_fini(struct grouping *grouping);
/* Adds the live traces of a snapshot that pass the filters; 0, -ENOMEM, or -EINVAL with a reason when it does
 * not know what is asked for. */
int grouping_add(struct grouping *grouping, const struct snapshot *snapshot, uint32_t limit, bool older,
		 const char **ret_reason);
/* Hands the rows over, in no order, with their differences when there was an older snapshot. */
int grouping_take(struct grouping *grouping, bool with_diff, struct statistics *into);

/* Statistics without rows yet; NULL when there is no memory. */
struct statistics *statistics_new(const struct snapshot *snapshot);
/* tracemalloc's order of rows; 0 or -ENOMEM. */
int statistics_sort(struct statistics *statistics, bool with_diff, enum diff_sort sort);
/* The same of two rows that are no differences: less than 0 when a comes first, 0 for one and the same only. */
int statistics_order(const struct statistics *statistics, const struct statistic *a, const struct statistic *b);
/* Narrows *limit, the query's own, to what all snapshots have.  True: they differ, that is why, and it decides the
 * answer. */
bool statistics_common_limit(const struct snapshot *const *snapshots, size_t count,
			     const struct statistics_query *query, uint32_t *limit);
/* Whether a trace passes all filters together; frames most recent first, at least one. */
bool filters_pass(const struct filter *filters, size_t count, const struct strtab *strings,
		  const struct statistic_frame *frames, uint32_t frame_count, uint32_t domain);

#endif
