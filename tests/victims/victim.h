/* What the victims share: one does one known thing, says "R" when it is ready and then obeys.
 *
 * The protocol, on stdin and stdout: each command is one byte, each answer one line.
 *   g   one round of the known thing; the answer is the victim's own tally, NAME=VALUE pairs
 *   q   quit with status 0 (also at the end of input, so that no victim outlives its test)
 * Some victims know more; their first comment says so.
 *
 * Nothing here allocates: a victim's tally must hold to the block, so there is no stdio, threads'
 * stacks are mapped, and all threads exist before the "R" (the loader allocates for each). */
#ifndef ALLOCWATCH_TESTS_VICTIM_H
#define ALLOCWATCH_TESTS_VICTIM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define VICTIM_CLOSED 'q'

/* A line on stdout, by one write(2). */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "failed: ..." on stderr and status 99: something that the victim itself found wrong. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The next command byte; VICTIM_CLOSED at the end of input.  White space is skipped. */
int next_command(void);
/* Says "R", then calls round() at each 'g' until 'q'. */
void obey(void (*round)(void));

/* Its own text against its files, in bytes: for those who may not read it from outside.  Allocates nothing. */
void compare_text(long *ret_compared, long *ret_different);

/* The value of "--name VALUE" among the arguments, else fallback. */
long option_number(int argc, char **argv, const char *name, long fallback);
int option_given(int argc, char **argv, const char *name);

/* A thread on a mapped stack, running when this returns; not joined, it ends with the process or by
 * itself. */
pthread_t start_thread(void *(*run)(void *), void *argument, size_t stack_bytes);

uint64_t now_ns(void);
/* xorshift64*: the same numbers each run, so that a failure can be had again. */
uint64_t random_next(uint64_t *state);

/* Of the bytes of all code that is mapped from files; 0: there is no /proc to find it by (text.c). */
uint64_t text_hash(void);

#endif
