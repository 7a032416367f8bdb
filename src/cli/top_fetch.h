/* Where `allocwatch top` gets its figures: one request at a time, in steps that never wait, so that the
 * keyboard is served meanwhile.
 *
 * A refresh is GetSnapshot of the PID: the daemon takes a fresh snapshot, streams it and keeps nothing.  No
 * further one is asked for before the last has come wholly, nor before as much time has passed since
 * as it took: a view never has the target copied more than half of the time, however short its interval.
 * A connection that breaks is made again, once for each refresh: the daemon drops a client that has been stopped
 * in the middle of an answer.
 * A snapshot that has an id is one that was kept: then nothing is traced under this PID any more. */
#ifndef ALLOCWATCH_CLI_TOP_FETCH_H
#define ALLOCWATCH_CLI_TOP_FETCH_H

#include "cli/session.h"
#include "model/snapshot.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TOP_INTERVAL_DEFAULT_NS (2 * NSEC_PER_SEC)
#define TOP_INTERVAL_MIN_NS (50 * NSEC_PER_MSEC)
#define TOP_INTERVAL_MAX_NS (24 * 3600 * NSEC_PER_SEC)

enum top_news_kind {
	TOP_NO_NEWS,            /* poll the descriptor for input */
	TOP_MORE_COMES,         /* a piece was taken; the next one may be here already */
	TOP_NEWS_SNAPSHOT,
	TOP_NEWS_SAVED,
	TOP_NEWS_FAILED,        /* this request; another may do better */
	TOP_NEWS_OVER,          /* nothing is traced */
	TOP_NEWS_CUT,           /* the daemon is gone, or speaks another language */
};

struct top_news {
	enum top_news_kind kind;
	struct snapshot *snapshot;      /* its reference is the receiver's */
	char text[256];                 /* the id of what was saved, or why it failed */
};

struct top_fetch;

/* Borrows the session.  blocks: snapshots shall have them.  NULL when there is no memory. */
struct top_fetch *top_fetch_new(struct session *session, pid_t pid, uint64_t interval_ns, bool blocks);
void top_fetch_free(struct top_fetch *fetch);           /* accepts NULL */
int top_fetch_descriptor(const struct top_fetch *fetch);

/* Asks for what is due, when no request runs: what is to be saved before what is to be shown.  0 or -ENOMEM;
 * what the daemon makes of it comes as news. */
int top_fetch_begin(struct top_fetch *fetch, uint64_t now_ns, bool refresh);
/* Saves as soon as it can; name: "" for none.  False when another one is not done yet. */
bool top_fetch_save(struct top_fetch *fetch, const char *name);
/* Making something of the last snapshot took until now: the next one is left as much time. */
void top_fetch_pace(struct top_fetch *fetch, uint64_t began_ns, uint64_t now_ns);
/* The next refresh is due at once. */
void top_fetch_hurry(struct top_fetch *fetch);
/* One step.  0 or -ENOMEM. */
int top_fetch_step(struct top_fetch *fetch, uint64_t now_ns, struct top_news *ret_news);

/* Monotonic: when the next refresh is due, while no request runs. */
uint64_t top_fetch_due_ns(const struct top_fetch *fetch);
/* Since when a request runs; 0: none does. */
uint64_t top_fetch_asked_ns(const struct top_fetch *fetch);

#endif
