/* Why a process stays traced by ptrace, and is not let go (release.h).
 *
 * The first ones are why it cannot be let go at all; where it is for one of the others something would be given up, and it is let go all
 * the same when the user asks for that.  Which one holds a session stands in its `hold`. */
#ifndef ALLOCWATCH_TRACER_HOLD_H
#define ALLOCWATCH_TRACER_HOLD_H

#include <stdbool.h>

struct session;

enum hold_reason {
	HOLD_NOT,                      /* it is let go, or will be */
	HOLD_ENGINE,                   /* no ring serves it */
	HOLD_FORKS,                    /* its children are followed */
	HOLD_MAPPINGS,                 /* mmap and its like are watched */
	HOLD_OPERATORS,                /* what new has made is told apart */
	HOLD_MEMORY,                   /* its memory cannot be read otherwise */
	HOLD_WAITS,                    /* a thread could not be held, and so looked at */
	HOLD_LAST_REFUSAL = HOLD_WAITS,
	HOLD_ASKED,                    /* the user or the configuration wants it */
	HOLD_PLACES,                   /* places without room for a jump */
	HOLD_LOADER,                   /* no jump stands where the loader tells of objects */
	HOLD_EXEC,                     /* nor where it executes programs and forks */
	HOLD_FILTER,                   /* a system call filter */
	HOLD_SHARED,                   /* another process has its memory */
	HOLD_SIGNALS,                  /* signals come too often */
	HOLD_COUNT
};

/* In words that follow "it is held by ptrace: ".  NULL: HOLD_NOT. */
const char *hold_text(const struct session *session, enum hold_reason reason);
/* Whoever attaches to it knows already. */
bool hold_was_asked_for(const struct session *session);

#endif
