/* Why an attach was refused, for people: tried first, explained afterwards. */
#ifndef ALLOCWATCH_TRACER_EXPLAIN_H
#define ALLOCWATCH_TRACER_EXPLAIN_H

#include "tracer/wire.h"

#include <sys/types.h>

/* Fills text (one line) and says which failure it is; *ret_tracer is who traces the process already, or 0. */
enum wire_failure explain_attach(pid_t pid, int error, char *text, size_t space, pid_t *ret_tracer);

/* The refusal of a process all of whose threads have seccomp filters, which we may not lift. */
void explain_filter(pid_t pid, char *text, size_t space);

/* Who has the same memory may not be traced: a thread, or another process. */
void explain_stranger(pid_t pid, pid_t stranger, char *text, size_t space, pid_t *ret_tracer);

#endif
