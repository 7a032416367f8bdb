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

struct trend_row {
	size_t row;                     /* in statistics->rows */
	double growth;                  /* bytes an hour */
	double steadiness;
	uint64_t *sizes;                /* in each snapshot */
};

struct trend {
	struct statistics *statistics;  /* size and count are the last snapshot's */
	struct trend_row *rows;         /* as many; the steadiest, fastest growth first */
	size_t snapshot_count;
};

/* 0, -EINVAL with *ret_reason, -ENOMEM.  The snapshots come in the order in which they were taken. */
int trend_make(const struct snapshot *const *snapshots, size_t count, const struct statistics_query *query,
	       struct trend **ret, const char **ret_reason);
void trend_free(struct trend *trend);   /* accepts NULL */

#endif
