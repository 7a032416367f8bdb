/* Threads that run freely, of which one is in the midst of something: whether each could have done it by now.  Not while a debugger or
 * job control holds it, nor while it waits for a processor, nor when it was this process that had none. */
#ifndef ALLOCWATCH_TARGET_AWAITED_H
#define ALLOCWATCH_TARGET_AWAITED_H

#include "target/target.h"

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define AWAITED_LOOKS 10
#define AWAITED_PAUSE_MS 100           /* from look to look, at least */
/* For a moment: a handler of some microseconds has ended by then, at whatever rate it comes. */
#define AWAITED_BRIEFLY_LOOKS 3
#define AWAITED_BRIEFLY_PAUSE_US 300
#define AWAITED_STARVED_PAUSE_MS 5     /* between two looks at who has no processor */
#define AWAITED_THREADS_MAX 4096       /* further ones are not asked */

struct awaited_thread {
	pid_t tid;
	uint64_t ran_ns;               /* its time on processors at the last look */
	unsigned looks;                /* that found it able to go on */
};

struct awaited_threads {
	VEC_OF(struct awaited_thread) items;
};

/* Nothing is awaited: all 0. */
struct awaited {
	uint64_t looked_ns;            /* CLOCK_MONOTONIC */
	pid_t tid;
	struct awaited_threads threads;
};

/* To be called again and again, until it is done; tid: who does it, 0: any thread of the process, not known which.  True: each was able to
 * go on at AWAITED_LOOKS looks, and it is not done. */
bool awaited_in_vain(struct awaited *awaited, pid_t pid, pid_t tid);
/* The same at AWAITED_BRIEFLY_LOOKS looks. */
bool awaited_briefly(struct awaited *awaited, pid_t pid, pid_t tid);
/* Of a process that is traced by ptrace, to be called again and again: whether one of its threads, guests' as well, that is not held, and
 * was to run at the first call, has not been able to go on at AWAITED_BRIEFLY_LOOKS looks since: it had no processor.  Such a one may
 * be in the midst of anything, and is not to be hurried. */
bool awaited_starves(struct awaited *awaited, const struct target *target);
/* It is done, or given up. */
void awaited_end(struct awaited *awaited);

#endif
