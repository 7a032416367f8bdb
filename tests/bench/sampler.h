/* Runs a program and stops it at its calls of malloc or others, or a few instructions after one, for tests and
 * benchmarks of the unwinder.  A plain ptrace loop: int3 in the text, restored for one single step; the
 * daemon does this differently. */
#ifndef ALLOCWATCH_TESTS_SAMPLER_H
#define ALLOCWATCH_TESTS_SAMPLER_H

#include "arch/arch.h"
#include "model/module.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler;

struct sampler_options {
	char *const *argv;
	const char *stdin_path;            /* NULL: /dev/null */
	uid_t uid;                         /* whom it runs as; 0: as this process */
	const char *const *functions;      /* whose calls, up to a NULL; NULL: malloc alone */
	uint32_t every;                    /* stop at each so-many-th call, counted at random around it */
	bool all;                          /* at each call, instead */
	uint32_t max_steps;                /* then go on, at every second one, for 0 to so many instructions */
};

/* A stopped thread. */
struct sample {
	pid_t process, thread;
	struct arch_regs regs;
};

/* Starts the program and plants the breakpoints once its libraries are loaded; NULL with errno. */
struct sampler *sampler_start(const struct sampler_options *options);
/* Goes on to the next sample; false when the program has ended. */
bool sampler_next(struct sampler *sampler, struct sample *ret_sample);
/* Takes the breakpoints away, detaches and leaves the process stopped; and back again. */
int sampler_let_go(struct sampler *sampler);
int sampler_take_back(struct sampler *sampler);
/* Kills the program. */
void sampler_free(struct sampler *sampler);

pid_t sampler_process(const struct sampler *sampler);
/* The modules, as of the last sample; a new one is added to `unwinder` when it is not NULL. */
int sampler_update_map(struct sampler *sampler, struct module_map *map, struct unwinder *unwinder);
/* Reads the target's memory; the breakpoints do not show. */
struct reader sampler_reader(struct sampler *sampler);

#endif
