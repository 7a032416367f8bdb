/* Whether the SIGTRAP handler is still ours is asked at a stop that comes anyhow.  Here one is made, where none comes. */
#include "tracer/loop_private.h"

#include "target/process.h"
#include "target/ptrace.h"
#include "arch/syscall.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKS_MAX 16                   /* at threads, each time */

/* A read of these is begun again by the kernel; one of a socket with a timeout is not. */
static bool reads_pipe_or_terminal(pid_t tid, uint64_t fd)
{
	char path[64], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%u", tid, (unsigned)fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strncmp(name, "pipe:", 5) == 0 || strncmp(name, "/dev/pts/", 9) == 0 || strncmp(name, "/dev/tty", 8) == 0;
}

/* To stop it does it no harm: it runs, or its wait goes on as if nothing had been, even should we die now. */
static bool may_be_stopped(const struct task *task)
{
	uint64_t argument;
	long number;

	if (task->guest || task->stopped || task->interrupt_due || task->group_stopped ||
	    process_call(task->tid, &number, &argument) < 0)
		return false;
	if (number == PROCESS_RUNS)
		return true;
	return syscall_begins_again(number) || (number == SYS_read && reads_pipe_or_terminal(task->tid, argument));
}

/* A few threads, others each time. */
static struct task *find_task(struct loop *loop)
{
	const struct target *target = loop->session->target;
	size_t count = target->tasks.count;

	for (size_t i = 0; i < count && i < LOOKS_MAX; i++) {
		struct task *task = target->tasks.items[loop->next_asked++ % count];

		if (may_be_stopped(task))
			return task;
	}
	return NULL;
}

static void interrupt_one(struct loop *loop)
{
	struct task *task = find_task(loop);

	if (task && !process_is_filtered(task->tid) && ptrace_interrupt(task->tid) == 0)
		task->interrupt_due = true;
}

static bool can_ask(const struct loop *loop)
{
	return loop->session && !loop->session->leaving && loop->session->target->handler_installed;
}

void loop_ask_in_time(struct loop *loop)
{
	if (!can_ask(loop))
		return;
	/* No stop has come since the last time. */
	if (loop->session->target->ask_for_handler)
		interrupt_one(loop);
	loop->session->target->ask_for_handler = true;
}
