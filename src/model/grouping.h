/* Groups of traces by a key, of one snapshot or of several at once: what statistics, differences and trends have in
 * common. */
#ifndef ALLOCWATCH_MODEL_GROUPING_H
#define ALLOCWATCH_MODEL_GROUPING_H

#include "model/id_table.h"
#include "model/measure.h"
#include "model/statistics.h"

struct group {
	uint64_t hash;
	uint64_t sequence;                    /* where its frames begin in `sequences` */
	uint32_t frame_count;
	uint32_t first_round, last_round;     /* the snapshots in which it came first and last, see grouping->round */
	uint32_t domain, thread;
	uint32_t total_frames;
	enum truncation truncated;
	uint64_t *histogram;
	struct measure now, old;              /* old: of the older snapshot */
};

struct grouping {
	const struct statistics_query *query;
	struct strtab *strings;               /* names of the rows; the caller's */
	VEC_OF(struct statistic_frame) frames;/* those that groups are made of */
	VEC_OF(uint32_t) lines;               /* of each frame: equal numbers for what compares equal */
	struct id_table line_index;
	VEC_OF(uint32_t) sequences;           /* of frames, most recent first, one group's behind the other's */
	VEC_OF(struct group) groups;
	uint32_t *slots;                      /* of groups, by hash: one more than their number; 0: free */
	size_t slot_count;                    /* a power of two, at most half of them taken; 0: there are none */
	uint32_t round;                       /* how many snapshots were added, the one at hand included */
	bool alone;                           /* of one snapshot only: its index tells groups apart already */
	struct measure now, old;              /* of all traces that passed the filters */
};

/* A group's key. */
struct group_key {
	const uint32_t *frames;               /* in grouping->frames; most recent first */
	uint32_t count;
	uint32_t domain;
	uint32_t thread;
};

/* 0, or -EINVAL with a reason when the query cannot be answered. */
int grouping_init(struct grouping *grouping, const struct statistics_query *query,
		  struct strtab *strings, const char **ret_reason);
void grouping_fini(struct grouping *grouping);
/* Adds the live traces of a snapshot that pass the filters; 0, -ENOMEM, or -EINVAL with a reason when it does
 * not know what is asked for. */
int grouping_add(struct grouping *grouping, const struct snapshot *snapshot, uint32_t limit, bool older,
		 const char **ret_reason);

/* Takes a frame in, whose ids are of `strings`; its number, or -ENOMEM. */
int64_t grouping_frame(struct grouping *grouping, const struct statistic_frame *frame);
/* Room for so many groups more, of so many frames each. */
int grouping_reserve(struct grouping *grouping, size_t groups, size_t frames);
/* The group's number, made if need be; -ENOMEM. */
int64_t grouping_find(struct grouping *grouping, const struct group_key *key);
/* Of a frame, for a group that is known to be new, of groups that are `alone`. */
int64_t grouping_add_new(struct grouping *grouping, const struct statistic_frame *frame);

/* Makes one of several groups of single frames each, also for what is added later.  into: by group, the lowest number of
 * those that it becomes one with, or its own; it is changed to the numbers that groups have then, which are no higher.
 * shown: by such a lowest number, one more than the group whose frame the new one has; 0: its own.  0 or -ENOMEM. */
int grouping_join(struct grouping *grouping, uint32_t *into, const uint32_t *shown);

/* Hands the rows over, with their differences when there was an older snapshot; 0 or -ENOMEM.  All, each at its group's
 * number; or those that come first in the query's order, as many as it wants. */
int grouping_take_all(struct grouping *grouping, struct statistics *into);
int grouping_take_first(struct grouping *grouping, bool with_diff, struct statistics *into);
/* Their groups; *ret_order is to be freed. */
int grouping_rank(const struct grouping *grouping, bool with_diff, uint32_t **ret_order, size_t *ret_count);
/* tracemalloc's order of two rows that are no differences: less than 0 when a comes first, 0 for one and the same only. */
int grouping_order(const struct grouping *grouping, uint32_t a, uint32_t b);

/* Statistics without rows yet; NULL when there is no memory. */
struct statistics *statistics_new(const struct snapshot *snapshot, enum statistics_key key);
/* Narrows *limit, the query's own, to what all snapshots have.  True: they differ, that is why, and it decides the
 * answer. */
bool statistics_common_limit(const struct snapshot *const *snapshots, size_t count,
			     const struct statistics_query *query, uint32_t *limit);
/* Whether a trace passes all filters together; frames most recent first, at least one. */
bool filters_pass(const struct filter *filters, size_t count, const struct strtab *strings,
		  const struct statistic_frame *frames, uint32_t frame_count, uint32_t domain);

#endif
