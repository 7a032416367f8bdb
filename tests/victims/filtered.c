/* Kills itself, by a seccomp filter, for a system call that it never makes but a tracer would.
 *
 * The filter answers rt_sigaction, mmap, munmap, prctl, ppoll, restart_syscall, sched_yield and process_vm_readv.  Tally: blocks and bytes, one kept a round.
 *   --late             the filter comes with the first 'g', not before the "R"
 *   --trap             it answers with SIGSYS instead of killing the process at once
 *   --main             the main thread alone has it; four others poll all the time, without a filter
 *   --sleepers         the filter is all threads' (TSYNC); four sleep in nanosleep and poll with a timeout
 *   --coroutine        after the filter each 'g' allocates on a stack of its own
 *   --forks            after the filter each 'g' forks a child that allocates, waits for its parent's next command and
 *                      ends; tally: child (its pid), status (its end as waitpid has it, of the one before) */
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define KEPT_BYTES 100
#define SLEEPERS 4
#define STACK_BYTES (256 << 10)

static long blocks, late, forks, coroutine;
static unsigned int action = SECCOMP_RET_KILL_PROCESS, flags;
static volatile char *kept;
static pid_t child;
static int child_goes = -1, status;

static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program))
		die("no filter");
}

static void *poll_on(void *unused)
{
	(void)unused;
	for (;;)
		poll(NULL, 0, -1);
	return NULL;
}

static void *sleep_on(void *number)
{
	const struct timespec hour = { 3600, 0 };

	for (;;) {
		if ((long)number % 2)
			poll(NULL, 0, 3600 * 1000);
		else
			nanosleep(&hour, NULL);
	}
	return NULL;
}

static void live_on(int goes)
{
	char byte;

	for (size_t i = 1; i < 100; i++) {
		volatile char *p = malloc(i);

		p[0] = 1;
		free((char *)p);
	}
	if (read(goes, &byte, 1) < 0)
		_exit(1);
	for (size_t i = 1; i < 100; i++)
		free(malloc(i));
	_exit(7);
}

static void fork_one(void)
{
	int ends[2];

	if (child_goes >= 0) {
		close(child_goes);
		if (waitpid(child, &status, 0) != child)
			die("no child to wait for");
	}
	if (pipe(ends))
		die("no pipe");
	child = fork();
	if (child < 0)
		die("no child");
	if (child == 0) {
		close(ends[1]);
		live_on(ends[0]);
	}
	close(ends[0]);
	child_goes = ends[1];
}

static void allocate(void)
{
	kept = malloc(KEPT_BYTES);     /* kept */
}

static void allocate_in_coroutine(void)
{
	static char stack[STACK_BYTES];
	static ucontext_t here, there;

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, allocate, 0);
	swapcontext(&here, &there);
}

static void keep_one(void)
{
	bool elsewhere = coroutine && !late;

	if (late) {
		confine();
		late = 0;
	}
	if (elsewhere)
		allocate_in_coroutine();
	else
		allocate();
	if (!kept)
		die("malloc failed");
	kept[0] = 1;
	blocks++;
	if (forks)
		fork_one();
	say("blocks=%ld bytes=%ld child=%d status=%d", blocks, blocks * KEPT_BYTES, (int)child, status);
}

int main(int argc, char **argv)
{
	late = option_given(argc, argv, "--late");
	forks = option_given(argc, argv, "--forks");
	coroutine = option_given(argc, argv, "--coroutine");
	if (option_given(argc, argv, "--trap"))
		action = SECCOMP_RET_TRAP;
	if (option_given(argc, argv, "--sleepers"))
		flags = SECCOMP_FILTER_FLAG_TSYNC;
	for (long i = 0; i < SLEEPERS; i++) {
		if (option_given(argc, argv, "--main"))
			start_thread(poll_on, NULL, STACK_BYTES);
		if (option_given(argc, argv, "--sleepers"))
			start_thread(sleep_on, (void *)i, STACK_BYTES);
	}
	free(malloc(1));               /* the heap is there before the filter is */
	if (!late)
		confine();
	obey(keep_one);
	return 0;
}
