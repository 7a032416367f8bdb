/* Groups over three or more snapshots: which of them grow, how fast, and how steadily.
 *
 * The growth is Theil and Sen's: the median of the slopes between all pairs of snapshots, which one peak does not
 * change.  The steadiness is Mann and Kendall's tau: the pairs that grew less those that shrank, in all pairs; 1 for
 * a group that grew each time, -1 for one that shrank each time, about 0 for one that goes up and down. */
#ifndef ALLOCWATCH_MODEL_TREND_H
#define ALLOCWATCH_MODEL_TREND_H

#include "model/statistics.h"

#define TREND_SNAPSHOTS_LEAST 3
#define TREND_SNAPSHOTS_MAX 100
/* Sizes that are kept, one of each group in each snapshot: half a gigabyte of them. */
#define TREND_SIZES_MAX (1ULL << 26)

struct trend_row {
	size_t row;                     /* in statistics->rows */
	double growth;                  /* bytes an hour */
	double steadiness;
};

struct trend {
	struct statistics *statistics;  /* size and count are the last snapshot's */
	struct trend_row *rows;         /* as many; the fastest growth, as far as it is steady, first, then as tracemalloc
					 * orders statistics */
	size_t snapshot_count;
	uint64_t *sizes[TREND_SNAPSHOTS_MAX];   /* of the groups known by then: see trend_size() */
	size_t known[TREND_SNAPSHOTS_MAX];
};

/* What the sizes may take: how many there may be, and an account that is asked for each snapshot's bytes before they are
 * there (false: there is no room).  What it gave is the caller's to give back, once the trend is freed or was not made. */
struct trend_room {
	uint64_t sizes_max;
	bool (*take)(void *context, uint64_t bytes);    /* NULL: there is no account */
	void *context;
};

/* The snapshots come in the order in which they were taken; of different frames limits they are compared at the
 * smallest; an open key is as of statistics_compare().  room: NULL for TREND_SIZES_MAX without an account.  0; -EINVAL with *ret_reason; -E2BIG with *ret_reason,
 * when there is no room; -ENOMEM. */
int trend_make(const struct snapshot *const *snapshots, size_t count, const struct statistics_query *query,
	       const struct trend_room *room, struct trend **ret, const char **ret_reason);
void trend_free(struct trend *trend);   /* accepts NULL */

/* What a group had in one of the snapshots. */
static inline uint64_t trend_size(const struct trend *trend, const struct trend_row *row, size_t snapshot)
{
	return row->row < trend->known[snapshot] ? trend->sizes[snapshot][row->row] : 0;
}

#endif
