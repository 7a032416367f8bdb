/* What the files of symbolize.h share: its state, and the steps from one to the other. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_PRIVATE_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_PRIVATE_H

#include "daemon/symbolize.h"
#include "daemon/symbolize_cache.h"
#include "daemon/symbolize_files.h"
#include "daemon/symbolize_job.h"
#include "daemon/symbolize_queue.h"
#include "daemon/symbolizer.h"
#include "symbol/wire.h"

#include <stdbool.h>

enum symbolize_phase {
	IDLE,                    /* nothing has been asked */
	SEEKING,                 /* waiting for a file with the names of generated code; the process has nothing to do */
	STARTING,                /* waiting for READY */
	OPENING,                 /* waiting for OPENED */
	RESOLVING,               /* waiting for the rest of the ANSWERS */
};

struct symbolize {
	sd_event *event;
	char *program;
	struct symbolize_times times;
	struct symbolizer *process;
	struct symbolize_cache *cache;
	struct symbolize_files files;
	struct symbolize_queue queue;            /* the first one is worked on */
	struct symbolize_job *waiting;           /* for debug information or their longer turn, by their `next` */
	sd_event_source *step_source, *idle_source, *wait_source;
	enum symbolize_phase phase;
	uint32_t serial;
	uint32_t asked, answered;                /* of the current RESOLVE */
	uint64_t deaths;
	uint64_t named;                          /* answers that were remembered */
	uint64_t user_key;                       /* for whom the process works */
	struct symbolize_opener opener;
	struct symbolize_debug debug;
	bool needs_file;                         /* the process waits for one */
	bool moved_on;                           /* something was settled in this turn */
	bool broken_off;                         /* it is ended, and its file is not to blame */
	bool is_other_version;                   /* the program that was started last is not this daemon's */
};

/* --- symbolize.c --- */

/* Everything that goes on does so from the event loop, a step at a time. */
void symbolize_step_soon(struct symbolize *symbolize);
struct symbolize_job *symbolize_current_job(const struct symbolize *symbolize);
struct symbolize_work *symbolize_current_work(const struct symbolize *symbolize);
bool symbolize_turn_is_over(const struct symbolize *symbolize, uint64_t after_ms);
/* In the middle of a module. */
uint64_t symbolize_longest_turn_ms(const struct symbolize *symbolize);
void symbolize_end_process(struct symbolize *symbolize);
/* It died, or must be ended; it was silent for too long. */
void symbolize_on_end(void *context);
void symbolize_on_silence(void *context);
void symbolize_found(struct symbolize *symbolize, int fd);

/* --- symbolize_ask.c --- */

/* The next question about a module; negative errno: the process cannot be started, or does not read. */
int symbolize_ask_next(struct symbolize *symbolize, struct symbolize_work *work);
/* The process must say something in time. */
int symbolize_expect_answer(const struct symbolize *symbolize);

/* --- symbolize_answers.c --- */

int symbolize_on_message(void *context, const void *data, size_t len);

/* --- symbolize_wait.c --- */

int symbolize_wait_init(struct symbolize *symbolize);
void symbolize_wait_fini(struct symbolize *symbolize);
/* The current job, which has nothing else to do than to wait: true when it was set aside. */
bool symbolize_set_aside(struct symbolize *symbolize);
/* Who waits is looked at: there may be something to do now. */
void symbolize_look_through(struct symbolize *symbolize);
/* As struct symbolize_debug's get, of what the module wants. */
int symbolize_debug_of(const struct symbolize *symbolize, const struct symbolize_job *job, const struct symbolize_work *work);

/* --- symbolize_slow.c --- */

/* Whether others wait, and the current job has no longer turn for its slow modules. */
bool symbolize_is_hurried(const struct symbolize *symbolize);
/* What is asked about was broken off without a result: the next attempt needs more time than the others can wait. */
void symbolize_note_slow(struct symbolize *symbolize);
/* The module is to be opened: true when it was put off instead. */
bool symbolize_let_others_first(struct symbolize *symbolize, struct symbolize_work *work);
/* What is put off of the job, when there is time for it now: true. */
bool symbolize_wake_slow(const struct symbolize *symbolize, struct symbolize_job *job);

#endif
