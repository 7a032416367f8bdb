/* The targets of chaos: one of each kind that there is, at work all the time, each of which says by itself in the end whether
 * anything went wrong.  A round's process has one. */
#ifndef ALLOCWATCH_TESTS_FLEET_H
#define ALLOCWATCH_TESTS_FLEET_H

#include "rounds.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How a round ends, worst last. */
enum outcome { LIVED, MISSED, BROKEN_OFF, UNSAFE, LEFTOVERS, CORRUPT, DEAD, OUTCOMES };

extern const struct outcomes chaos_outcomes;

struct kind {
	const char *name;
	const char *argv[6];           /* a victim; empty: a server, which is asked all the time */
	const char *start;             /* commands that set it to work; after 'q' none is understood */
	bool answers;                  /* each of them is answered, at some time, and there may be more of them */
	const char *end;               /* the last of these is answered */
	const char *zero[3];           /* what must be 0 in an answer that has it */
	const char *equal[2];          /* two that must be the same in the last */
	/* Who dies just when it has stopped a thread, and has not seen it stop yet, leaves EINTR in a wait that
	 * cannot begin again by itself. */
	bool waits;
	/* Its filter kills for a call that is made in it, should the tracer die while it is made: the kernel lifts
	 * it for a tracer that lives. */
	bool filtered;
	bool unstoppable;              /* a stop and its end break off waits by themselves, see signal(7) */
	bool signals;                  /* is sent numbered ones all the time */
	bool other_actions;            /* sets actions for signals itself, or executes */
	void (*serve)(void);           /* starts the server; and */
	void (*ask)(void);             /* asks it once, and counts what is wrong in its answer */
};

extern const struct kind fleet[];
extern const size_t fleet_count;

/* One of a kind, at work; its pid. */
pid_t fleet_start(const struct kind *kind);
/* Gives it more of the same work. */
void fleet_work(const struct kind *kind);
/* Its own word, and its end.  Ends the round unless all is well. */
void fleet_judge(const struct kind *kind);
/* Ends the round when it has ended. */
void fleet_require_alive(const char *when);

#endif
