/* The floor of an attach: what it takes to hold all threads of a process for a moment, without doing anything with them. */
#ifndef ALLOCWATCH_BENCH_EMPTY_STOP_H
#define ALLOCWATCH_BENCH_EMPTY_STOP_H

#include <sys/types.h>

/* A new process seizes all threads, interrupts them, waits until each stands, reads its registers and lets it go, by the smallest
 * loops that do that.  Returns when it has ended: for how many milliseconds it has held one, from the first interruption to the
 * last detach. */
double empty_stop(pid_t target);

#endif
