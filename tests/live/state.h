/* The state of a process as others can see it, before and after: what a tracer must not change. */
#ifndef ALLOCWATCH_TESTS_STATE_H
#define ALLOCWATCH_TESTS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct state;

/* What the threads, signals, mappings and descriptors of a process look like now.  It should be at
 * a quiet point of its life: what it changes itself is a difference, too. */
struct state *state_take(pid_t pid);
/* NULL or the first difference.  Compared are: every thread (stopped by job control or not, traced or
 * not, signal mask, pending signals), ignored and caught signals, privileges and seccomp, all
 * descriptors and all mappings; without strict, not those that a heap and stacks consist of. */
const char *state_difference(const struct state *before, const struct state *after, bool strict);
void state_require_same(pid_t pid, const struct state *before, bool strict);

/* The executable mappings, byte by byte, against the files they come from; *ret_bytes: how many were
 * compared.  NULL or the difference. */
const char *text_difference(pid_t pid, size_t *ret_bytes);
/* Fails on a difference, and when so little was compared that it cannot have been a libc's text. */
void text_require_intact(pid_t pid);

/* For live_wait(); context: the pid_t. */
bool state_is_traced(void *context);              /* with ptrace, or without it */
bool state_is_untraced(void *context);            /* neither, and what was there for the latter has been taken out */
bool state_has_no_tracer(void *context);          /* by ptrace, of any thread */
bool state_text_is_intact(void *context);

/* What every live test ends with: not traced, no thread stopped, text intact and, with before not NULL,
 * everything as it was. */
void require_unharmed(pid_t pid, const struct state *before);

/* Of a process that runs: what it does not change itself. */
struct outline {
	long long caught, ignored, blocked;     /* signals, without those of the C library, which come when it needs them */
	unsigned executable;                    /* mappings */
};

struct outline outline_take(pid_t pid);
/* NULL once it is as before (a handler that runs has its own mask for a moment), else the difference.  mappings: are
 * compared, too. */
const char *outline_wait(pid_t pid, const struct outline *before, bool mappings, int timeout_ms);

/* The number behind "Name:" in /proc/PID/status, in the given base; -1 when the process is gone. */
long long status_number(pid_t pid, const char *name, int base);
/* A thread that still has the process's memory: the process itself, or another one when its main thread
 * has ended.  /proc/TID shows of it what /proc/PID would. */
pid_t living_thread(pid_t pid);
/* 'R', 'S', 'T', 't', ... of one thread. */
char thread_state(pid_t pid, pid_t tid);

#endif
