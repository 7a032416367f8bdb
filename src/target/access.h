/* Why the kernel does not let us look at a process.  It is asked first; this finds out afterwards which of
 * its rules said no, in the order in which it has them (ptrace(2), "Ptrace access mode checking"). */
#ifndef ALLOCWATCH_TARGET_ACCESS_H
#define ALLOCWATCH_TARGET_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

enum access_obstacle {
	ACCESS_OPEN,             /* none of these: it may be looked at */
	ACCESS_OWN_FILTER,       /* a seccomp filter keeps us from ptrace */
	ACCESS_OTHER_UID,        /* not all of its uids are ours */
	ACCESS_OTHER_GID,        /* not all of its gids are ours */
	ACCESS_UNDUMPABLE,       /* prctl(PR_SET_DUMPABLE, 0), or an unreadable or set-id program */
	ACCESS_NAMESPACE,        /* it is in a user namespace in which we have no rights */
	ACCESS_MORE_RIGHTS,      /* it has capabilities that we have not */
	ACCESS_YAMA,             /* /proc/sys/kernel/yama/ptrace_scope */
	ACCESS_UNKNOWN,          /* refused all the same: another security module, or a container's rules */
};

struct access {
	enum access_obstacle obstacle;
	bool capable;            /* we have CAP_SYS_PTRACE, if only in our own user namespace */
	bool in_namespace;       /* our user namespace is not the machine's first */
	uid_t uid;               /* the one of its uids that is not ours, else its effective one */
	gid_t gid;               /* likewise */
	int yama_scope;          /* 0 without Yama */
};

struct access access_examine(pid_t pid);
/* The kernel's rules but Yama's let us look at the process.  (False, too, where kcmp(2) is missing or filtered.) */
bool access_but_for_yama(pid_t pid);
/* /proc/sys/kernel/yama/ptrace_scope; 0 without Yama. */
int access_yama_scope(void);
/* Whether a filter can be lifted for a moment (PTRACE_O_SUSPEND_SECCOMP): takes CAP_SYS_ADMIN in the first
 * user namespace, and no filter on us. */
bool access_may_suspend_seccomp(void);

#endif
