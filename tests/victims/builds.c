/* Asks for memory in the usual shapes of code; its test builds it in many ways, with builds_more.c.
 *
 *   g   keeps a block of each shape, from two threads    f   frees all    q   quits
 *
 * The answer is "blocks=N bytes=N" of what it keeps.  Depends on libc and on threads alone, so that any C library does.
 * -DALTERNATE_STACK: its signal handler runs on a stack of its own; -DNO_SIGNAL: it gets no signal; -DMORE_SHAPES: built with
 * a third file, whose shapes there are, too. */
#define _GNU_SOURCE
#include "builds.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEPT_MAX 100000
#define DEPTH 12

static struct {
	void *block;
	size_t size;
} kept[KEPT_MAX];
static size_t kept_count, kept_bytes;
static sem_t begin, done;
static jmp_buf back;
static char alternate_stack[64 * 1024];
static volatile size_t large = 2000;

void *keep(void *block, size_t size)
{
	if (!block || kept_count == KEPT_MAX)
		_exit(97);
	kept[kept_count].block = block;
	kept[kept_count++].size = size;
	kept_bytes += size;
	return block;
}

__attribute__((noinline)) static void odd(int depth);

__attribute__((noinline)) static void even(int depth)
{
	volatile char filled[100];

	filled[depth] = 1;
	if (depth > 0)
		odd(depth - 1);
	else
		keep(malloc(100), 100); /* deep */
	if (filled[depth] != 1)
		_exit(97);
}

static void odd(int depth)
{
	volatile char filled[large];

	filled[depth] = 1;
	even(depth - 1);
	if (filled[depth] != 1)
		_exit(97);
}

/* The call is the last instruction of its function. */
__attribute__((noinline, noreturn)) static void leave(void)
{
	keep(malloc(200), 200); /* never returns */
	longjmp(back, 1);
}

static void *make(size_t size)
{
	char *block = keep(malloc(size), size); /* called back */

	block[2] = 1;
	return block;
}

static int order(const void *a, const void *b)
{
	if (*(const int *)a > *(const int *)b)
		keep(malloc(300), 300); /* below libc */
	return *(const int *)a - *(const int *)b;
}

static void handle(int number)
{
	keep(malloc(400), 400); /* in a handler */
	(void)number;
}

__attribute__((noinline)) static void all_functions(void)
{
	void *aligned;

	keep(calloc(5, 100), 500); /* calloc */
	keep(realloc(malloc(10), 600), 600); /* realloc */
	keep(aligned_alloc(64, 640), 640); /* aligned_alloc */
	if (posix_memalign(&aligned, 128, 700))
		_exit(97);
	keep(aligned, 700); /* posix_memalign */
	free(malloc(50));
	keep(strdup("strings are kept, too"), sizeof("strings are kept, too")); /* strdup */
}

__attribute__((noinline)) static void all_shapes(void)
{
	int numbers[] = { 2, 1 };

	even(DEPTH);
	if (setjmp(back) == 0)
		leave();
	more_call(make, 800);
	keep(more_jump(900), 900); /* a jump */
	inlined_get(1000);
	qsort(numbers, 2, sizeof(numbers[0]), order);
#ifndef NO_SIGNAL
	raise(SIGUSR1);
#endif
	all_functions();
#ifdef MORE_SHAPES
	more_shapes();
#endif
}

static void *work(void *argument)
{
	for (;;) {
		while (sem_wait(&begin))
			;
		keep(malloc(1100), 1100); /* by the other thread */
		even(DEPTH / 2);
		sem_post(&done);
	}
	return argument;
}

static void both_threads(void)
{
	all_shapes();
	sem_post(&begin);
	while (sem_wait(&done))
		;
}

static void free_all(void)
{
	while (kept_count > 0)
		free(kept[--kept_count].block);
	kept_bytes = 0;
}

static void prepare(void)
{
	const stack_t stack = { .ss_sp = alternate_stack, .ss_size = sizeof(alternate_stack) };
	struct sigaction action = { .sa_handler = handle };
	pthread_t thread;

#ifdef ALTERNATE_STACK
	action.sa_flags = SA_ONSTACK;
#endif
	sem_init(&begin, 0, 0);
	sem_init(&done, 0, 0);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) || pthread_create(&thread, NULL, work, NULL))
		_exit(98);
}

int main(void)
{
	char command, line[64];

	prepare();
	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 98;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		if (command == 'g')
			both_threads();
		if (command == 'f')
			free_all();
		if (write(STDOUT_FILENO, line, (size_t)snprintf(line, sizeof(line), "blocks=%zu bytes=%zu\n", kept_count,
								kept_bytes)) < 0)
			return 98;
	}
	_exit(0);
}
