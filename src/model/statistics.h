/* tracemalloc's Snapshot.statistics() and compare_to(): groups of traces by a key, and their
 * differences, in tracemalloc's orders down to the last tie-breaker. */
#ifndef ALLOCWATCH_MODEL_STATISTICS_H
#define ALLOCWATCH_MODEL_STATISTICS_H

#include "model/filter.h"
#include "model/snapshot.h"
#include "model/traceback.h"

enum statistics_key {
	KEY_LINENO,               /* the default */
	KEY_FILENAME,
	KEY_TRACEBACK,
	KEY_FUNCTION,
	KEY_DEFINITION,           /* a function of one file, without its line: the same one in another build */
	KEY_OBJECT,
	KEY_THREAD,               /* needs a snapshot with blocks */
	KEY_DOMAIN,
};
/* -EINVAL for an unknown name. */
int statistics_key_parse(const char *name, enum statistics_key *ret_key);
const char *statistics_key_name(enum statistics_key key);

enum diff_sort { SORT_ABS, SORT_GROWTH, SORT_SHRINK, SORT_CHURN };
int diff_sort_parse(const char *name, enum diff_sort *ret_sort);
const char *diff_sort_name(enum diff_sort sort);

/* Only blocks of such an age, when their snapshot was taken; needs a snapshot with blocks. */
struct block_ages {
	bool given;
	uint64_t least_ns, below_ns;
};

/* Sizes by powers of two: step 0 is no byte, step N from 2^(N-1) to 2^N - 1 bytes. */
#define HISTOGRAM_STEPS 65
static inline unsigned histogram_step(uint64_t size)
{
	return size ? 64 - (unsigned)__builtin_clzll(size) : 0;
}

static inline uint64_t histogram_least(unsigned step)
{
	return step ? 1ULL << (step - 1) : 0;
}

static inline uint64_t histogram_most(unsigned step)
{
	return step ? UINT64_MAX >> (64 - step) : 0;
}

struct statistics_query {
	enum statistics_key key;
	bool key_is_open;         /* of a diff: nobody has chosen it, see statistics_compare() */
	bool cumulative;          /* with KEY_TRACEBACK: -EINVAL */
	enum diff_sort sort;      /* SORT_CHURN needs `churn`; the others are for diffs */
	size_t limit;             /* only so many rows, those that come first; 0: all */
	bool churn;               /* what was ever made, too, and groups of which nothing is left */
	bool histogram;           /* of the sizes of the blocks, which the snapshot must have; not cumulative */
	bool peak;                /* what lived at the peak, in place of what lives */
	struct block_ages ages;
	bool born;                /* of a diff: what was born after the older and lives in the newer; no differences,
				   * but ages */
	const struct filter *filters;
	size_t filter_count;
	struct traceback_options traceback;
};

/* One row.  In a statistic the *_diff are 0; in a diff size and count are the newer snapshot's. */
struct statistic {
	uint64_t size, count;
	int64_t size_diff, count_diff;
	/* With sampling size and count are estimates: with 95 in 100 the truth is no further away than this, of a diff that of
	 * the differences; samples: how many they come of, of a diff in both. */
	uint64_t size_error, count_error, samples;
	/* What was ever made, freed, and gone at once (see heap_trace); of a diff, between the two.  When the
	 * query was about churn. */
	int64_t made_size, made_count, freed_count, temporary_count;
	uint64_t *histogram;                /* HISTOGRAM_STEPS numbers of blocks, or NULL */
	uint64_t youngest_ns, oldest_ns;    /* of its blocks; when the query was about ages */
	uint32_t domain;                    /* KEY_DOMAIN only */
	uint32_t thread;                    /* KEY_THREAD only: its tid, 0 not known */
	bool is_thread;                     /* of KEY_THREAD */
	/* tracemalloc's traceback of the group, most recent frame LAST as in Traceback: one frame
	 * for lineno, filename (line 0), function, definition (line 0), object; all for traceback; none for domain and thread. */
	struct statistic_frame {
		uint32_t name;              /* string id: tracemalloc's filename */
		uint32_t line;
		uint32_t function;          /* string ids; 0 unknown */
		uint32_t object;
		uint64_t offset;
		bool inlined;
		bool has_line;              /* false: print without ":LINE" */
		uint32_t number;            /* below frame_numbers; frames of one number are equal */
	} *frames;                          /* among those of the statistics */
	uint32_t frame_count, total_frames;
	enum truncation truncated;
};

/* In a diff: grew though there are no more blocks than before. */
static inline bool statistic_is_bigger(const struct statistic *row)
{
	return row->size_diff > 0 && row->count_diff <= 0 && (int64_t)row->count > row->count_diff;
}

struct statistics {
	enum statistics_key key;                  /* what rows are groups by */
	struct strtab *strings;
	struct statistic *rows;
	size_t row_count;
	struct statistic_frame *frames;           /* all rows' */
	uint32_t frame_numbers;
	size_t all_rows;                          /* also behind the query's limit */
	uint64_t rows_size;                       /* of these; stays at INT64_MAX instead of overflowing */
	uint64_t total_size, total_count;         /* over all rows of a non-cumulative grouping:
						   * of the filtered traces */
	int64_t total_size_diff, total_count_diff;
	uint64_t sample_bytes;                    /* one sample for so many bytes; 0: none was left out */
	uint64_t total_size_error, total_count_error;
	bool exact;
	struct snapshot_unknown unknown;          /* of a diff: the newer's */
	bool has_ages, has_churn, has_histograms;
	enum diff_sort sort;
	bool limits_differ;                       /* diff by traceback at the smaller limit */
	bool unnamed;                             /* of a snapshot not all names could be looked for */
};

static inline struct block_ages statistics_older_than(uint64_t ns)
{
	return (struct block_ages){ .given = true, .least_ns = ns + 1, .below_ns = UINT64_MAX };
}

/* 0, -EINVAL with *ret_reason, -ENOMEM.  Free with statistics_free. */
int statistics_make(const struct snapshot *snapshot, const struct statistics_query *query,
		    struct statistics **ret, const char **ret_reason);
/* Rows of (newer - older).  tracemalloc's compare_to: groups equal on both sides stay, with diffs
 * of 0.  A query for what was born needs two snapshots of one process, the newer with blocks.
 *
 * With an open key, two builds of a program (or of a library that both have) are compared by definition, since lines and
 * offsets have moved; see model/match.h for what is one definition then. */
int statistics_compare(const struct snapshot *older, const struct snapshot *newer,
		       const struct statistics_query *query, struct statistics **ret,
		       const char **ret_reason);
void statistics_free(struct statistics *statistics);          /* accepts NULL */

#endif
