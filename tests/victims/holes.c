/* Runs coroutines on parts of its threads' own stacks, below a page that it makes unreadable; they allocate there.
 *
 *   m  the first thread makes such a page, and takes it back         t  another thread does
 *   n  a new thread does                                             N  a new thread, whose stack has the page before it begins
 *   p  below pages that were there at the start, in the first thread and in another one
 *   b  the first thread makes such a page, and allocates nothing      e  it runs below that
 *   g  nothing of the kind: the first thread allocates               h  another handler for SIGSEGV and SIGBUS
 *
 * Options: --way WAY (below), --raw (by system calls of its own, past the C library), --before (for 'p'); --handler or --ignore,
 * --block: SIGSEGV and SIGBUS; --undumpable: by PR_SET_DUMPABLE.
 * Tally: blocks, bytes (live), acts (1: at both signals as it has set it). */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096UL
#define PART_BYTES (16 * PAGE)
#define STACK_BYTES (1024 * 1024)
#define GUARD_INSTALL 102              /* MADV_GUARD_INSTALL and its like, since Linux 6.13 */
#define GUARD_REMOVE 103

enum { BY_MPROTECT, BY_MUNMAP, BY_MMAP, BY_MADVISE };

static long way, blocks, bytes;
static int raw;
static int ask[2], told[2];

struct part {
	ucontext_t back, in;
	char *guard;
};

static struct part first, other;

/* --- allocations --- */

static void keep(void *block, long size)
{
	if (!block)
		die("no memory");
	memset(block, 1, (size_t)size);
	blocks++;
	bytes += size;
}

static __attribute__((noinline)) void allocate(int depth)
{
	volatile char room[200];

	room[0] = 1;
	keep(malloc(120), 120);
	free(malloc(60));
	keep(calloc(3, 20), 60);
	keep(realloc(malloc(10), 300), 300);
	free(realloc(malloc(2000), 20));
	if (depth > 0)
		allocate(depth - 1);
	room[1] = room[0];
}

/* --- the page --- */

static void check(long result, const char *what)
{
	if (result == -1)
		die("%s: %s", what, strerror(errno));
}

static void protect(char *page, int protection)
{
	check(raw ? syscall(SYS_mprotect, page, PAGE, protection) : mprotect(page, PAGE, protection), "mprotect");
}

static void unmap(char *page)
{
	check(raw ? syscall(SYS_munmap, page, PAGE) : munmap(page, PAGE), "munmap");
}

static void map(char *page, int protection)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	check(raw ? syscall(SYS_mmap, page, PAGE, protection, flags, -1, 0L) :
		    (long)mmap(page, PAGE, protection, flags, -1, 0), "mmap");
}

static void advise(char *page, int advice)
{
	check(raw ? syscall(SYS_madvise, page, PAGE, advice) : madvise(page, PAGE, advice), "madvise");
}

static void make_hole(char *page)
{
	switch (way) {
	case BY_MUNMAP:
		unmap(page);
		break;
	case BY_MMAP:
		map(page, PROT_NONE);
		break;
	case BY_MADVISE:
		advise(page, GUARD_INSTALL);
		break;
	default:
		protect(page, PROT_NONE);
	}
}

static void take_back(char *page)
{
	if (way == BY_MPROTECT)
		protect(page, PROT_READ | PROT_WRITE);
	else if (way == BY_MADVISE)
		advise(page, GUARD_REMOVE);
	else
		map(page, PROT_READ | PROT_WRITE);
}

/* --- coroutines --- */

static void allocate_again_and_again(unsigned low, unsigned high)
{
	struct part *part = (struct part *)((uintptr_t)high << 32 | low);

	for (;;) {
		allocate(2);
		swapcontext(&part->in, &part->back);
	}
}

static void enter(struct part *part)
{
	swapcontext(&part->back, &part->in);
}

/* The room is a part of the caller's stack. */
static void begin(struct part *part, char *room)
{
	char *start = room + PAGE - (uintptr_t)room % PAGE;

	memset(room, 0, PART_BYTES + 2 * PAGE);
	part->guard = start + PART_BYTES;
	getcontext(&part->in);
	part->in.uc_stack.ss_sp = start;
	part->in.uc_stack.ss_size = PART_BYTES;
	part->in.uc_link = NULL;
	makecontext(&part->in, (void (*)(void))allocate_again_and_again, 2, (unsigned)(uintptr_t)part,
		    (unsigned)((uintptr_t)part >> 32));
	make_hole(part->guard);
}

static __attribute__((noinline)) void once(void)
{
	char room[PART_BYTES + 2 * PAGE];
	struct part part;

	begin(&part, room);
	enter(&part);
	enter(&part);
	take_back(part.guard);
}

/* --- threads --- */

static void serve(char command)
{
	char c = command;

	if (command == 't')
		once();
	else
		enter(&other);
	if (write(told[1], &c, 1) != 1)
		die("write: %s", strerror(errno));
}

static void *other_thread(void *before)
{
	char room[PART_BYTES + 2 * PAGE], command;

	if (before)
		begin(&other, room);
	for (;;) {
		if (read(ask[0], &command, 1) != 1)
			return NULL;
		serve(command);
	}
}

static void have_other(char command)
{
	if (write(ask[1], &command, 1) != 1 || read(told[0], &command, 1) != 1)
		die("the other thread: %s", strerror(errno));
}

static void *new_thread(void *unused)
{
	once();
	return unused;
}

static void run_new(char *stack, void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK_BYTES);
	if (pthread_create(&thread, &attributes, run, argument))
		die("no thread");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void *below(void *guard)
{
	struct part part = { .guard = guard };

	getcontext(&part.in);
	part.in.uc_stack.ss_sp = part.guard - PART_BYTES;
	part.in.uc_stack.ss_size = PART_BYTES;
	makecontext(&part.in, (void (*)(void))allocate_again_and_again, 2, (unsigned)(uintptr_t)&part,
		    (unsigned)((uintptr_t)&part >> 32));
	enter(&part);
	return NULL;
}

static void run_below_a_page(char *stack)
{
	char *guard = stack + STACK_BYTES - 16 * PAGE;

	make_hole(guard);
	run_new(stack, below, guard);
	take_back(guard);
}

/* --- */

static void see_fault(int sig)
{
	(void)sig;
	_exit(3);
}

static void see_other_fault(int sig)
{
	(void)sig;
	_exit(4);
}

static void (*action)(int) = SIG_DFL;
static int blocks_faults;

static void set_actions(void (*handler)(int))
{
	action = handler;
	signal(SIGSEGV, handler);
	signal(SIGBUS, handler);
}

/* As the kernel has it. */
static int acts_as_set(int sig)
{
	struct sigaction now;
	sigset_t blocked;

	sigaction(sig, NULL, &now);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	return now.sa_handler == action && sigismember(&blocked, sig) == blocks_faults;
}

static void block_faults(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	blocks_faults = 1;
}

static void go(char command, char *stack)
{
	if (command == 'm')
		once();
	else if (command == 't')
		have_other('t');
	else if (command == 'n')
		run_new(stack, new_thread, NULL);
	else if (command == 'N')
		run_below_a_page(stack);
	else if (command == 'g')
		allocate(2);
	else if (command == 'h')
		set_actions(see_other_fault);
	else if (command == 'p' || command == 'e')
		enter(&first);
	else
		die("unknown command '%c'", command);
	if (command == 'p')
		have_other('p');
}

static void obey_all(char *stack, int before)
{
	char room[PART_BYTES + 2 * PAGE];
	int command;

	if (before)
		begin(&first, room);
	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'b')
			begin(&first, room);
		else
			go((char)command, stack);
		say("blocks=%ld bytes=%ld acts=%d", blocks, bytes, acts_as_set(SIGSEGV) && acts_as_set(SIGBUS));
	}
	/* What runs at the exit has this room for its stack. */
	if (first.guard)
		take_back(first.guard);
}

int main(int argc, char **argv)
{
	int before = option_given(argc, argv, "--before");
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	way = option_number(argc, argv, "--way", BY_MPROTECT);
	raw = option_given(argc, argv, "--raw");
	if (option_given(argc, argv, "--undumpable") && prctl(PR_SET_DUMPABLE, 0))
		die("PR_SET_DUMPABLE failed");
	if (option_given(argc, argv, "--handler"))
		set_actions(see_fault);
	if (option_given(argc, argv, "--ignore"))
		set_actions(SIG_IGN);
	if (option_given(argc, argv, "--block"))
		block_faults();
	if (stack == MAP_FAILED || pipe(ask) || pipe(told))
		die("no room: %s", strerror(errno));
	start_thread(other_thread, before ? &other : NULL, STACK_BYTES);
	obey_all(stack, before);
	return 0;
}
