#include "tracer/explain.h"

#include "target/access.h"
#include "target/process.h"

#include "base/proc.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STAT_FLAGS 9
#define STAT_EXIT_CODE 52
#define PF_KTHREAD 0x00200000          /* include/linux/sched.h */
#define ENDING_MS 2000             /* to see whether a process that cannot be looked at is one that ends */

static void explain_yama(pid_t pid, const struct access *access, char *text, size_t space)
{
	static const char setting[] = "/proc/sys/kernel/yama/ptrace_scope";

	if (access->yama_scope < 3 && geteuid() == 0)
		snprintf(text, space, "cannot attach to process %d: %s is %d, and root has no CAP_SYS_PTRACE here (a "
			 "container?), which that asks for; run allocwatch where it has that capability", pid, setting,
			 access->yama_scope);
	else if (access->yama_scope == 1)
		snprintf(text, space, "cannot attach to process %d: it is yours, but %s is 1, which lets a process be "
			 "traced only by what started it or by whom it names (PR_SET_PTRACER); run allocwatch as root, start "
			 "the program with 'allocwatch run', or let root set it to 0", pid, setting);
	else if (access->yama_scope == 2)
		snprintf(text, space, "cannot attach to process %d: %s is 2, which lets only processes with CAP_SYS_PTRACE "
			 "trace; run allocwatch as root", pid, setting);
	else
		snprintf(text, space, "cannot attach to process %d: %s is %d, which forbids all tracing, to root too, "
			 "until the next boot; set kernel.yama.ptrace_scope to 2 or less in sysctl.d(5) and boot again", pid,
			 setting, access->yama_scope);
}

static void explain_namespace(pid_t pid, const struct access *access, char *text, size_t space)
{
	if (access->in_namespace)
		snprintf(text, space, "cannot attach to process %d: it is not in the user namespace of allocwatch, which "
			 "runs in one of its own (a container?) and has no rights outside; run allocwatch outside, as "
			 "that process's user or as root", pid);
	else
		snprintf(text, space, "cannot attach to process %d: it is in a user namespace (a container?) that is not "
			 "yours; run allocwatch as root", pid);
}

static void explain_uid(pid_t pid, const struct access *access, char *text, size_t space)
{
	if (getuid() != 0)
		snprintf(text, space, "cannot attach to process %d: it runs as uid %u and you are uid %u; run "
			 "allocwatch as that user or as root", pid, access->uid, getuid());
	else
		snprintf(text, space, "cannot attach to process %d: it runs as uid %u, and root has no CAP_SYS_PTRACE here "
			 "(a container?); run allocwatch as that user, or where it has that capability", pid,
			 access->uid);
}

/* The kernel would let us look, and yet said no. */
static bool explain_open(pid_t pid, char *text, size_t space, pid_t *ret_tracer)
{
	pid_t tracer = process_tracer(pid);
	char name[256];

	if (tracer != 0) {
		process_command(tracer, name, sizeof(name));
		snprintf(text, space, "cannot attach to process %d: process %d (%s) traces it already, and a process "
			 "has one tracer at a time; end that one or let it detach first", pid, tracer, name);
		*ret_tracer = tracer;
		return true;
	} else {
		snprintf(text, space, "cannot attach to process %d: tracing is allowed, but not to open its files in "
			 "/proc, which takes CAP_DAC_READ_SEARCH beside CAP_SYS_PTRACE; run allocwatch as that user or "
			 "as root", pid);
		return false;
	}
}

void explain_filter(pid_t pid, char *text, size_t space)
{
	snprintf(text, space,
		 geteuid() != 0 ?
		 "cannot attach to process %d: a seccomp filter watches its system calls and might kill it for one of "
		 "ours; run allocwatch as root, which can lift the filter for that moment" :
		 "cannot attach to process %d: a seccomp filter watches its system calls, and to lift it for a moment "
		 "takes CAP_SYS_ADMIN and no filter on allocwatch itself (a container?); run allocwatch outside", pid);
}

/* False: what it says is not sure, and another cause possible. */
static bool explain_not_permitted(pid_t pid, char *text, size_t space, pid_t *ret_tracer)
{
	struct access access = access_examine(pid);

	switch (access.obstacle) {
	case ACCESS_OPEN:
		return explain_open(pid, text, space, ret_tracer);
	case ACCESS_OWN_FILTER:
		snprintf(text, space, "cannot attach to process %d: a seccomp filter keeps allocwatch itself from ptrace "
			 "(a container, or a unit's SystemCallFilter=); run it outside, or allow @debug there", pid);
		break;
	case ACCESS_OTHER_UID:
		explain_uid(pid, &access, text, space);
		break;
	case ACCESS_OTHER_GID:
		snprintf(text, space, "cannot attach to process %d: it runs with gid %u and you with gid %u, which must be the "
			 "same; run allocwatch with that group (newgrp(1), sg(1)) or as root", pid, access.gid, getgid());
		break;
	case ACCESS_UNDUMPABLE:
		snprintf(text, space, "cannot attach to process %d: it is yours but not dumpable (it called prctl "
			 "PR_SET_DUMPABLE, changed its ids or capabilities, or its program cannot be read); run "
			 "allocwatch as root", pid);
		break;
	case ACCESS_NAMESPACE:
		explain_namespace(pid, &access, text, space);
		break;
	case ACCESS_MORE_RIGHTS:
		snprintf(text, space, "cannot attach to process %d: it has capabilities that you have not; run allocwatch as "
			 "root, where that has all capabilities", pid);
		break;
	case ACCESS_YAMA:
		explain_yama(pid, &access, text, space);
		break;
	case ACCESS_UNKNOWN:
		snprintf(text, space, "cannot attach to process %d: the kernel refuses, and none of its usual rules says "
			 "why: a security module (SELinux, AppArmor, Landlock) or a container forbids it; its log may "
			 "say more (dmesg(1), audit)", pid);
		return false;
	}
	return true;
}

/* Of a process that is about to end nobody is shown anything. */
static bool is_ending(pid_t pid)
{
	struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool is = ended.fd < 0 || poll(&ended, 1, ENDING_MS) > 0;

	if (ended.fd >= 0)
		close(ended.fd);
	return is;
}

/* Told by the kernel as soon as it has been killed or has begun to exit, and not only of zombies. */
static const char *end_text(const char *stat, char text[PROC_END_MAX])
{
	uint64_t status = 0;

	return proc_end_text(text, proc_stat_number(stat, STAT_EXIT_CODE, &status) == 0 ? (int)status : -1);
}

static bool is_kernel_thread(const char *stat)
{
	uint64_t flags;

	return proc_stat_number(stat, STAT_FLAGS, &flags) == 0 && (flags & PF_KTHREAD);
}

static void explain_gone(pid_t pid, char *text, size_t space)
{
	char stat[32], end[PROC_END_MAX];

	snprintf(stat, sizeof(stat), "/proc/%d/stat", pid);
	if (proc_thread_group(pid) == pid && !is_kernel_thread(stat))
		is_ending(pid);            /* then as a zombie, or gone */
	if (access("/proc/self", F_OK) < 0)
		snprintf(text, space, "cannot attach to process %d: /proc is not mounted", pid);
	else if (process_thread_state(pid, pid) != '\0' && process_thread_is_dead(pid, pid))
		snprintf(text, space, "cannot attach to process %d: it %s already (a zombie that its parent "
			 "has not waited for)", pid, end_text(stat, end));
	else if (proc_thread_group(pid) != 0 && proc_thread_group(pid) != pid)
		snprintf(text, space, "cannot attach to %d: that is a thread of process %d; give that number", pid,
			 proc_thread_group(pid));
	else if (is_kernel_thread(stat))
		snprintf(text, space, "cannot attach to process %d: it has no memory of its own (a kernel thread)",
			 pid);
	else if (process_thread_is_exiting(pid, pid) && proc_thread_group(pid) == pid)
		snprintf(text, space, "cannot attach to process %d: it %s, and is still on its way out", pid,
			 end_text(stat, end));
	else if (proc_thread_group(pid) == pid)
		snprintf(text, space, "cannot attach to process %d: it ended, or began another program, while it was looked "
			 "at; try again", pid);
	else
		snprintf(text, space, "no process %d: it does not exist or has ended; see 'ps -e' for those that "
			 "run", pid);
}

void explain_stranger(pid_t pid, pid_t stranger, char *text, size_t space, pid_t *ret_tracer)
{
	bool thread = proc_thread_group(stranger) == pid;
	pid_t tracer = process_tracer(stranger);
	uid_t uid = 0;
	gid_t gid = 0;
	char name[256];

	*ret_tracer = tracer;
	process_ids(stranger, &uid, &gid);
	if (tracer != 0) {
		process_command(tracer, name, sizeof(name));
		snprintf(text, space, "cannot attach to process %d: process %d (%s) traces %s %d already; end that one or "
			 "let it detach first", pid, tracer, name,
			 thread ? "its thread" : "a process that shares its memory,", stranger);
	} else {
		snprintf(text, space, "cannot attach to process %d: %s %d, which you may not trace (it runs as uid %u, gid %u), "
			 "has the same memory, and what is seen of one is seen of both; run allocwatch as root", pid,
			 thread ? "its thread" : "process", stranger, uid, gid);
	}
}

enum wire_failure explain_attach(pid_t pid, int error, char *text, size_t space, pid_t *ret_tracer)
{
	*ret_tracer = 0;
	switch (error) {
	case -ESRCH:
	case -ECHILD:
		explain_gone(pid, text, space);
		return FAILURE_NO_SUCH_PROCESS;
	case -EPERM:
	case -EACCES:
	case -ENOSYS:               /* a seccomp filter's other way to say no */
		if (!explain_not_permitted(pid, text, space, ret_tracer) && is_ending(pid)) {
			explain_gone(pid, text, space);
			return FAILURE_NO_SUCH_PROCESS;
		}
		return FAILURE_NOT_PERMITTED;
	case -EKEYREJECTED:         /* it has one since it was looked at */
		explain_filter(pid, text, space);
		return FAILURE_NOT_PERMITTED;
	case -ENOSPC:
		snprintf(text, space, "cannot attach to process %d: no room beside its code for the few hundred bytes that "
			 "keep it safe, or a limit on threads or breakpoints was reached", pid);
		return FAILURE_LIMIT;
	case -EAGAIN:
		snprintf(text, space, "cannot attach to process %d: all its threads are in waits that nothing breaks off (in "
			 "vfork until the child executes a program, in D state for a disk); it was let go unchanged, try "
			 "again", pid);
		return FAILURE_INTERNAL;
	case -ETIMEDOUT:
		snprintf(text, space, "cannot attach to process %d: its threads did not stop in time; it was let go "
			 "unchanged, try again", pid);
		return FAILURE_INTERNAL;
	default:
		snprintf(text, space, "cannot attach to process %d: %s", pid, strerror(-error));
		return FAILURE_INTERNAL;
	}
}
