/* Keeps known values in the 128 bytes below its stack pointer, as a leaf function may.
 *
 * The main thread does it all the time, with no call and no system call in the loop; another one
 * allocates, and one obeys.  A round waits for 10,000 more loops.  Tally: loops, wrong (values found changed). */
#include "victim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define LOOPS_PER_LOOK 2000

static atomic_long loops, wrong;

/* How many of the words below the stack pointer changed within so many loops. */
static __attribute__((noinline)) uint64_t count_changes(uint64_t count, uint64_t pattern)
{
	uint64_t changes = 0;

	__asm__ volatile(
		".macro put n\n\tmovq %[pattern], -8*\\n(%%rsp)\n.endm\n"
		".macro look n\n\tcmpq %[pattern], -8*\\n(%%rsp)\n\tje 2f\n\tincq %[changes]\n2:\n.endm\n"
		"1:\n"
		".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16\n\tput \\n\n.endr\n"
		"\tpause\n"
		".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16\n\tlook \\n\n.endr\n"
		"\tdecq %[count]\n"
		"\tjnz 1b\n"
		".purgem put\n.purgem look\n"
		: [count] "+r"(count), [changes] "+r"(changes)
		: [pattern] "r"(pattern)
		: "cc", "memory");
	return changes;
}

static __attribute__((noreturn)) void use_red_zone(void)
{
	uint64_t pattern = 0x0123456789abcdefULL;

	for (;;) {
		uint64_t changes = count_changes(LOOPS_PER_LOOK, random_next(&pattern));

		atomic_fetch_add(&wrong, (long)changes);
		atomic_fetch_add(&loops, LOOPS_PER_LOOK);
	}
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(64));
	return argument;
}

static void answer(void)
{
	long until = atomic_load(&loops) + 10000;

	while (atomic_load(&loops) < until)
		;
	say("loops=%ld wrong=%ld", atomic_load(&loops), atomic_load(&wrong));
}

static void *obey_beside(void *argument)
{
	while (atomic_load(&loops) == 0)
		;
	obey(answer);
	_exit(0);
	return argument;
}

int main(void)
{
	start_thread(churn, NULL, STACK_BYTES);
	start_thread(obey_beside, NULL, STACK_BYTES);
	use_red_zone();
}
