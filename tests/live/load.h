/* A day of use in little time (check_load.c): eight targets at work, each with a hand that does to it what people and
 * programs do, drawn from one seed. */
#ifndef ALLOCWATCH_TESTS_LOAD_H
#define ALLOCWATCH_TESTS_LOAD_H

#include "programs.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct subject;
struct tool;

#define LOAD_TARGETS 8
#define LOAD_DEEDS_MAX 24

struct load_target {
	const char *name;
	struct program program;        /* its subject, also of a victim of ours */
	/* One portion, and then a pause of at most so long. */
	void (*work)(struct load_target *target, uint64_t random);
	unsigned pause_ms;
	bool stays;                    /* attached all the time, to one tracer */
	/* Its threads block all signals by system calls of the C library's own, which detached ones do at their ends, and
	 * posix_spawn: should its tracer die just then, so may the target, see doc/SAFETY.md. */
	bool blocks;
	bool busy;                     /* all of its threads may wait in vfork for a moment */
};

/* Shared by the case, the hands and those who keep the targets at work. */
struct load_board {
	atomic_uint rests, released;   /* asked for; over */
	atomic_uint resting;           /* who has come to rest, of 2 * LOAD_TARGETS */
	atomic_bool ended;
	atomic_uint done[LOAD_DEEDS_MAX][LOAD_TARGETS];
	atomic_uint refused, portions;
	atomic_uint lost;              /* tracers that the daemon took for stuck */
};

struct load {
	struct tool *tool;
	struct load_board *board;
	struct load_target targets[LOAD_TARGETS];
	uint64_t seed;
};

/* Of a deed by its number; NULL: there are no more. */
const char *load_deed_name(unsigned deed);
/* Whether it is drawn often enough that a run of minutes must have it. */
bool load_deed_is_common(unsigned deed);

/* Processes of their own; they return when the board says so, with the target let go.  At rest targets have no work and are
 * attached anew, those that stay excepted, and nothing else is under way. */
void load_hand(struct load *load, unsigned target);
void load_work(struct load *load, unsigned target);

/* A number of what is drawn at this step: the same for the same seed, whatever the machine does. */
uint64_t load_draw(uint64_t seed, uint64_t who, uint64_t step);

#endif
