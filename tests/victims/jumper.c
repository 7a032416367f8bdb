/* Leaves its own malloc at any instruction, by siglongjmp out of the handler of a 1 kHz timer.
 *
 * The malloc gives out pieces of one mapping by one atomic addition, so it may be left anywhere.  A block counts when
 * malloc has returned, which the handler knows from where it came in.  A round goes on until 50 more calls were left
 * (--jumps); a malloc takes as many turns of a loop as --turns says (200).  Tally: jumps, within (malloc), blocks and
 * bytes; frees; unclear (of those within: in code of nobody's but the tracer's, when malloc had done its work). */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#define ARENA_BYTES (64UL << 30)
#define TICK_USEC 1000

void *malloc(size_t size);
void free(void *block);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);

extern const char __executable_start[], etext[];

static char *arena;
static long turns = 200;
static volatile bool is_done;          /* all but the return of the last malloc */
static atomic_size_t used;
static volatile size_t sink;

__attribute__((noinline)) void *malloc(size_t size)
{
	size_t room = (size + 31) & ~(size_t)15, at;
	size_t *block;

	if (!arena) {
		arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
		if (arena == MAP_FAILED)
			die("no arena");
	}
	for (long i = 0; i < turns; i++)
		sink += size;
	at = atomic_fetch_add(&used, room);
	if (room > ARENA_BYTES || at > ARENA_BYTES - room)
		return NULL;
	block = (size_t *)(void *)(arena + at);
	block[0] = size;
	is_done = true;
	return block + 2;
}

__attribute__((noinline)) void free(void *block)
{
	sink += block != NULL;
}

__attribute__((noinline)) void *calloc(size_t count, size_t size)
{
	void *block = malloc(count * size);

	return block ? memset(block, 0, count * size) : NULL;
}

__attribute__((noinline)) void *realloc(void *block, size_t size)
{
	void *new = malloc(size);

	if (new && block)
		memcpy(new, block, ((size_t *)block)[-2] < size ? ((size_t *)block)[-2] : size);
	return new;
}

/* void take_block(size_t size): calls malloc, stores in `taken`. */
void take_block(size_t size);
extern char take_returned[];
extern void *volatile taken;
void *volatile taken;

__asm__(".text\n"
	".globl take_block\n"
	".type take_block, @function\n"
	"take_block:\n"
	".cfi_startproc\n"
	"sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"call malloc\n"
	".globl take_returned\n"
	"take_returned:\n"
	"mov %rax, taken(%rip)\n"
	"add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size take_block, . - take_block\n");

static sigjmp_buf way_out;
static volatile sig_atomic_t armed;
static volatile uintptr_t left_at;
static volatile long jumps, within, blocks, bytes, frees, unclear;
static long jumps_a_round = 50;

static void leave(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;

	(void)sig;
	(void)info;
	if (!armed)
		return;
	armed = 0;
	left_at = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
	jumps++;
	siglongjmp(way_out, 1);
}

static void set_timer(long usec)
{
	struct itimerval timer = { .it_interval.tv_usec = usec, .it_value.tv_usec = usec };

	if (setitimer(ITIMER_REAL, &timer, NULL))
		die("setitimer: %s", strerror(errno));
}

static __attribute__((noinline)) void one_call(size_t size)
{
	taken = NULL;
	left_at = 0;
	is_done = false;
	if (sigsetjmp(way_out, 1) == 0) {
		armed = 1;
		take_block(size);
		armed = 0;
	}
	if (taken || left_at == (uintptr_t)take_returned) {
		blocks++;
		bytes += (long)size;
	} else {
		within++;
		unclear += is_done && !(left_at >= (uintptr_t)__executable_start && left_at < (uintptr_t)etext);
	}
	if (taken && size % 3 == 0) {
		free(taken);
		blocks--;
		bytes -= (long)size;
		frees++;
	}
}

static __attribute__((noinline)) void deeper(int depth, size_t size)
{
	volatile char room[100];

	room[0] = 1;
	if (depth > 0)
		deeper(depth - 1, size);
	else
		one_call(size);
	if (room[0] != 1)
		die("the stack was written to");
}

static void jump_around(void)
{
	long until = jumps + jumps_a_round;

	set_timer(TICK_USEC);
	for (size_t i = 0; jumps < until; i++)
		deeper((int)(i % 4), 24 + i % 200);
	set_timer(0);
	free(malloc(10));
	say("jumps=%ld within=%ld unclear=%ld blocks=%ld bytes=%ld frees=%ld", jumps, within, unclear, blocks, bytes, frees);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO };

	jumps_a_round = option_number(argc, argv, "--jumps", jumps_a_round);
	turns = option_number(argc, argv, "--turns", turns);
	free(malloc(10));
	sigaction(SIGALRM, &action, NULL);
	obey(jump_around);
	return 0;
}
