/* Gets SIGTRAP in every way there is, and says what it got.
 *
 *   P p   sets a handler, with and without SA_SIGINFO    R   one with SA_RESETHAND
 *   A     one on an alternate stack                      M   one that allocates
 *   I D   ignores SIGTRAP; sets it to its default
 *   Q     sets a handler and then the one again that it was told to be the old one
 *   i 2   executes int3, of one byte and of two          t   has another thread execute one
 *   r     raises SIGTRAP                                 b   allocates with all signals blocked
 *   s     goes through an allocation step by step, by the trap flag
 *   g     allocates
 *
 * Tally: caught, code (of the last signal), pc (how far from the int3), stack (the alternate one), and of the last
 * 's': steps, and hash of all addresses. */
#define _GNU_SOURCE
#include "victim.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES (64 * 1024)

static volatile long caught, code, pc, on_stack, steps;
static volatile uint64_t hash;
static volatile int stepping, allocating;
static _Alignas(16) char alternate[STACK_BYTES];
static sem_t asked, done;
static volatile uintptr_t expected;

static void note(uint64_t rip)
{
	char here;

	caught++;
	on_stack = &here >= alternate && &here < alternate + sizeof(alternate);
	pc = expected ? (long)(rip - expected) : 0;
	if (allocating)
		free(malloc(10));
}

static void catch_with_info(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	uint64_t rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];

	(void)signal;
	code = info->si_code;
	if (stepping) {
		steps++;
		hash = (hash ^ rip) * 0x100000001b3;
		return;
	}
	note(rip);
}

static void catch(int signal)
{
	code = 0;
	(void)signal;
	note(expected);
}

static void set(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags | SA_RESTART };

	allocating = 0;
	if (flags & SA_SIGINFO)
		action.sa_sigaction = catch_with_info;
	if (sigaction(SIGTRAP, &action, NULL) < 0)
		die("sigaction");
}

static void set_old_one_again(void)
{
	struct sigaction action = { .sa_handler = catch }, old;

	if (sigaction(SIGTRAP, &action, &old) < 0 || sigaction(SIGTRAP, &old, NULL) < 0)
		die("sigaction");
}

static __attribute__((noinline)) void meet(int command)
{
	if (command == 'i')
		__asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; int3; 1: movq $0, %0" : "=m"(expected) : : "rax", "memory");
	else
		__asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; .byte 0xcd, 3; 1: movq $0, %0" : "=m"(expected) : : "rax",
				 "memory");
}

static void *serve(void *nothing)
{
	for (;;) {
		while (sem_wait(&asked) < 0)
			;
		meet('i');
		free(malloc(30));
		sem_post(&done);
	}
	return nothing;
}

static void step(void)
{
	hash = 0xcbf29ce484222325;
	steps = 0;
	stepping = 1;
	__asm__ volatile("sub $128, %%rsp; pushf; orq $0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	free(malloc(24));
	__asm__ volatile("sub $128, %%rsp; pushf; andq $~0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	stepping = 0;
}

static void allocate_blocked(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	free(malloc(50));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void do_it(int command)
{
	if (command == 'P' || command == 'p')
		set(catch, command == 'P' ? SA_SIGINFO : 0);
	else if (command == 'R')
		set(catch, SA_SIGINFO | (int)SA_RESETHAND);
	else if (command == 'A')
		set(catch, SA_SIGINFO | SA_ONSTACK);
	else if (command == 'I' || command == 'D')
		set(command == 'I' ? SIG_IGN : SIG_DFL, 0);
	else if (command == 'Q')
		set_old_one_again();
	else if (command == 'i' || command == '2')
		meet(command);
	else if (command == 'r')
		raise(SIGTRAP);
	else if (command == 's')
		step();
	else if (command == 'b')
		allocate_blocked();
	else if (command == 'g')
		free(malloc(100));
	if (command == 'M') {
		set(catch, SA_SIGINFO);
		allocating = 1;
	}
	if (command == 't') {
		sem_post(&asked);
		while (sem_wait(&done) < 0)
			;
	}
}

int main(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	int command;

	sem_init(&asked, 0, 0);
	sem_init(&done, 0, 0);
	sigaltstack(&stack, NULL);
	start_thread(serve, NULL, STACK_BYTES);
	free(malloc(24));
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		do_it(command);
		say("caught=%ld code=%ld pc=%ld stack=%ld steps=%ld hash=%lx", caught, code, pc, on_stack, steps,
		    (unsigned long)hash);
	}
	return 0;
}
