#define _GNU_SOURCE
#include "target/stop.h"

#include "target/process.h"
#include "target/ptrace.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSCALL_MARK 0x80   /* PTRACE_O_TRACESYSGOOD */

static enum stop_kind event_kind(int event, int sig)
{
	switch (event) {
	case PTRACE_EVENT_STOP:
		return sig == SIGTRAP ? STOP_INTERRUPTED : STOP_GROUP;
	case PTRACE_EVENT_CLONE:
		return STOP_CLONE;
	case PTRACE_EVENT_FORK:
		return STOP_FORK;
	case PTRACE_EVENT_VFORK:
		return STOP_VFORK;
	case PTRACE_EVENT_EXEC:
		return STOP_EXEC;
	default:
		return STOP_OTHER_EVENT;
	}
}

struct stop stop_classify(const siginfo_t *info)
{
	struct stop stop = { .tid = info->si_pid, .sig = info->si_status };
	int event = info->si_status >> 8;

	if (info->si_pid == 0)
		return (struct stop){ .kind = STOP_NONE };
	switch (info->si_code) {
	case CLD_EXITED:
		stop.kind = STOP_EXITED;
		return stop;
	case CLD_KILLED:
	case CLD_DUMPED:
		stop.kind = STOP_KILLED;
		return stop;
	case CLD_TRAPPED:
	case CLD_STOPPED:
		break;
	default:
		stop.kind = STOP_NONE;
		return stop;
	}
	stop.sig = info->si_status & 0xff;
	if (event)
		stop.kind = event_kind(event, stop.sig);
	else if (stop.sig == (SIGTRAP | SYSCALL_MARK))
		stop.kind = STOP_SYSCALL;
	else
		stop.kind = STOP_SIGNAL;
	return stop;
}

static int look(idtype_t type, pid_t id, int flags, struct stop *ret_stop)
{
	siginfo_t info;

	info.si_pid = 0;
	if (waitid(type, (id_t)id, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | flags) < 0) {
		int error = errno;

		/* One that an exec in another thread has ended is ours a moment longer. */
		if ((error != EINTR && error != ECHILD) ||
		    (error == ECHILD && type == P_PID && process_tracer(id) == getpid() && !process_thread_is_dead(id, id)))
			ptrace_refused(id, -error);
		return -error;
	}
	*ret_stop = stop_classify(&info);
	return 0;
}

int stop_wait(struct stop *ret_stop)
{
	return look(P_ALL, 0, 0, ret_stop);
}

int stop_look(pid_t tid, struct stop *ret_stop)
{
	return look(P_PID, tid, WNOHANG, ret_stop);
}

int stop_look_at_any(struct stop *ret_stop)
{
	return look(P_ALL, 0, WNOHANG, ret_stop);
}

void stop_pause(uint64_t ns)
{
	const struct timespec pause = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &pause);
}

void stop_reap(pid_t tid)
{
	siginfo_t info;

	while (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | __WALL) < 0 && errno == EINTR)
		;
}

int stop_let_go(const struct stop *stop)
{
	return ptrace_detach(stop->tid, stop->kind == STOP_SIGNAL ? stop->sig : 0);
}
