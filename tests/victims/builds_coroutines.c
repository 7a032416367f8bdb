/* For builds.c: two coroutines, one on a stack from malloc and one on a stack from mmap, in turn. */
#include "builds.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (64UL * 1024)

static ucontext_t main_context, contexts[2];

__attribute__((noinline)) static void step(int number, int depth)
{
	volatile char filled[100];

	filled[depth] = 1;
	if (depth > 0)
		step(number, depth - 1);
	else
		keep(malloc(1200), 1200); /* in a coroutine */
	if (filled[depth] != 1)
		_exit(97);
}

static void run(int number)
{
	step(number, 3);
	swapcontext(&contexts[number], &contexts[!number]);
	step(number, 5);
}

static void prepare(int number, void *stack)
{
	if (!stack || stack == MAP_FAILED || getcontext(&contexts[number]))
		_exit(97);
	contexts[number].uc_stack.ss_sp = stack;
	contexts[number].uc_stack.ss_size = STACK_BYTES;
	contexts[number].uc_link = &main_context;
	makecontext(&contexts[number], (void (*)(void))run, 1, number);
}

void more_shapes(void)
{
	void *mapped = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prepare(0, keep(malloc(STACK_BYTES), STACK_BYTES));
	prepare(1, mapped);
	/* the first one to its swap, the second to its, the first to its end; and the second to its */
	swapcontext(&main_context, &contexts[0]);
	swapcontext(&main_context, &contexts[1]);
	munmap(mapped, STACK_BYTES);
}
