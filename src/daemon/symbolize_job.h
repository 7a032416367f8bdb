/* One snapshot that waits for its names: which frames of which files are still to be asked for, and
 * how an answer gets into the snapshot. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_JOB_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_JOB_H

#include "daemon/file_user.h"
#include "daemon/generated.h"
#include "daemon/symbolize_cache.h"
#include "daemon/symbolize_files.h"
#include "model/snapshot.h"

/* What is to be asked about one module. */
struct symbolize_work {
	struct symbolize_file *file;         /* NULL: it has none that can be read */
	int fd;                              /* the caller's */
	VEC_OF(uint32_t) frames;             /* in the snapshot */
	size_t answered;
	uint64_t deadline_ns;                /* CLOCK_MONOTONIC; 0: not begun */
	uint64_t left_ns;                    /* of its time, when it was put off; 0: it was not */
	bool is_put_off;                     /* it is passed over until there is time for it */
	bool mute;                           /* a file that belongs to it could not be opened in time: no other is */
	bool waits;                          /* for debug information from elsewhere; it is then passed over */
	bool is_later;                       /* the symbolizer was told that it comes later */
	bool is_partial;                     /* it could not be had: answers are true of this snapshot only */
	uint8_t wanted[BUILD_ID_MAX];        /* of the debug information that it asked for last */
	size_t wanted_len;
	uint8_t shared[BUILD_ID_MAX];        /* what dwz has moved out of it: one file, or it could ask for any */
	size_t shared_len;
};

struct symbolize_job {
	struct symbolize_job *next;
	struct snapshot *snapshot;           /* a reference */
	struct symbolize_work *works;        /* by module; behind them those of generated code */
	size_t work_count, module_count, current;
	struct generated *generated;         /* the caller's; NULL: its files are not, or no more, to be looked for */
	unsigned place;                      /* where to look for them next */
	unsigned found;                      /* bits by kind */
	struct file_user user;
	uint64_t user_key;
	uint64_t deadline_ns;                /* CLOCK_MONOTONIC; 0: not begun */
	uint64_t debug_deadline_ns;          /* for what `waits`; 0: it has not been set aside for that yet */
	bool is_out_of_patience;             /* that has passed */
	uint64_t slow_deadline_ns;           /* for what is put off; likewise */
	bool has_slow_turn;                  /* a longer one, that is not cut short */
	bool is_partial;                     /* of some module, by lack of debug information that may come later */
	uint64_t paused_ns;                  /* since then it waits for its turn; 0: it does not */
	int result;
	void (*done)(void *context, struct snapshot *snapshot, int result);
	void *context;
};

/* Fills in what the cache knows and lists the rest.  generated: NULL: there is nothing of that kind.  -ENOMEM. */
int symbolize_job_new(struct snapshot *snapshot, const int *fds, size_t fd_count, const struct file_user *user,
		      struct generated *generated, struct symbolize_files *files, struct symbolize_cache *cache,
		      struct symbolize_job **ret);
/* Lists what is in no module, for the files that were found.  Once; -ENOMEM. */
int symbolize_job_list_generated(struct symbolize_job *job, struct symbolize_files *files, struct symbolize_cache *cache);
void symbolize_job_free(struct symbolize_job *job);           /* accepts NULL */

/* The module to ask about next, or NULL when the job is finished. */
struct symbolize_work *symbolize_job_work(struct symbolize_job *job);
/* Whether some module waits for debug information, or is put off; none is any more. */
bool symbolize_job_waits(const struct symbolize_job *job);
void symbolize_job_stop_waiting(struct symbolize_job *job);
/* It waits for its turn from now on, and so do its deadlines; and no more. */
void symbolize_job_pause(struct symbolize_job *job);
void symbolize_job_resume(struct symbolize_job *job);
void symbolize_work_put_off(struct symbolize_work *work);
/* Nothing more is asked about it: its other frames stay unnamed. */
void symbolize_work_drop(struct symbolize_work *work);
struct symbolize_key symbolize_work_key(const struct symbolize_job *job,
					const struct symbolize_work *work, size_t i);
/* Puts an answer into the snapshot's frame, unless it has one.  -ENOMEM; -ENOSPC past SYMBOLIZE_NAMES_MAX. */
int symbolize_job_name(struct symbolize_job *job, uint32_t frame,
		       const struct symbolize_location *locations, size_t count);

#endif
