#include "tracer/explain.h"

#include "base/fd.h"
#include "target/process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define YAMA_SCOPE "/proc/sys/kernel/yama/ptrace_scope"

static int yama_scope(void)
{
	char *text;
	int scope = 0;

	if (file_read_text(YAMA_SCOPE, 64, &text, NULL) == 0) {
		scope = atoi(text);
		free(text);
	}
	return scope;
}

static bool is_zombie(pid_t pid)
{
	char path[64], *text;
	bool zombie = false;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (file_read_text(path, 65536, &text, NULL) == 0) {
		zombie = strstr(text, "\nState:\tZ") != NULL || strstr(text, "\nState:\tX") != NULL;
		free(text);
	}
	return zombie;
}

static void explain_not_permitted(pid_t pid, char *text, size_t space, pid_t *ret_tracer)
{
	pid_t tracer = process_tracer(pid);
	char name[256];
	uid_t uid = 0;
	gid_t gid;

	if (tracer != 0) {
		process_command(tracer, name, sizeof(name));
		snprintf(text, space, "cannot attach to process %d: process %d (%s) traces it already, and a process "
			 "has one tracer at a time; end that one or let it detach first", pid, tracer, name);
		*ret_tracer = tracer;
		return;
	}
	if (process_ids(pid, &uid, &gid) == 0 && geteuid() != 0 && uid != geteuid()) {
		snprintf(text, space, "cannot attach to process %d: it runs as uid %u and you are uid %u; run "
			 "allocwatch as that user or as root", pid, uid, geteuid());
		return;
	}
	if (geteuid() != 0 && yama_scope() == 1) {
		snprintf(text, space, "cannot attach to process %d: " YAMA_SCOPE " is 1, which lets a process trace only "
			 "its own children; run allocwatch as root, or start the program with 'allocwatch run'", pid);
		return;
	}
	if (yama_scope() >= 2) {
		snprintf(text, space, "cannot attach to process %d: " YAMA_SCOPE " is %d, which %s", pid, yama_scope(),
			 yama_scope() == 2 ? "lets only processes with CAP_SYS_PTRACE trace; run allocwatch as root" :
					     "forbids all tracing until the next boot");
		return;
	}
	if (geteuid() != 0) {
		snprintf(text, space, "cannot attach to process %d: the kernel refuses, though it is yours: it has made "
			 "itself undumpable (prctl PR_SET_DUMPABLE, or it changed its ids or capabilities); run "
			 "allocwatch as root", pid);
		return;
	}
	snprintf(text, space, "cannot attach to process %d: the kernel refuses; CAP_SYS_PTRACE is missing here (a "
		 "container?), or a security module forbids it", pid);
}

enum wire_failure explain_attach(pid_t pid, int error, char *text, size_t space, pid_t *ret_tracer)
{
	*ret_tracer = 0;
	switch (error) {
	case -ESRCH:
	case -ECHILD:
		if (access("/proc/self", F_OK) < 0)
			snprintf(text, space, "cannot attach to process %d: /proc is not mounted", pid);
		else if (is_zombie(pid))
			snprintf(text, space, "cannot attach to process %d: it has ended already (a zombie that its parent "
				 "has not waited for)", pid);
		else if (process_thread_group(pid) != 0 && process_thread_group(pid) != pid)
			snprintf(text, space, "cannot attach to %d: that is a thread of process %d; give that number", pid,
				 process_thread_group(pid));
		else if (process_thread_group(pid) == pid)
			snprintf(text, space, "cannot attach to process %d: it has no memory of its own (a kernel thread)",
				 pid);
		else
			snprintf(text, space, "no process %d: it does not exist or has ended; see 'ps -e' for those that "
				 "run", pid);
		return FAILURE_NO_SUCH_PROCESS;
	case -EPERM:
	case -EACCES:
		explain_not_permitted(pid, text, space, ret_tracer);
		return FAILURE_NOT_PERMITTED;
	case -ENOSPC:
		snprintf(text, space, "cannot attach to process %d: no room beside its code for the few hundred bytes that "
			 "keep it safe, or a limit on threads or breakpoints was reached", pid);
		return FAILURE_LIMIT;
	case -ETIMEDOUT:
		snprintf(text, space, "cannot attach to process %d: its threads did not stop in time; it was let go "
			 "unchanged, try again", pid);
		return FAILURE_INTERNAL;
	default:
		snprintf(text, space, "cannot attach to process %d: %s", pid, strerror(-error));
		return FAILURE_INTERNAL;
	}
}
