#define _GNU_SOURCE              /* process_vm_readv */
#include "target/access.h"

#include "target/process.h"
#include "target/ptrace.h"

#include "base/fd.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define YAMA_SCOPE "/proc/sys/kernel/yama/ptrace_scope"
#define STATUS_MAX (1u << 16)
#define WHOLE_MAP_LENGTH 4294967295ul

struct rights {
	unsigned long uids[4], gids[4];          /* real, effective, saved, file system */
	unsigned long permitted, effective;
	unsigned long seccomp;                   /* 0: no filter */
};

static bool has(unsigned long capabilities, int capability)
{
	return capabilities >> capability & 1;
}

static int read_rights(pid_t pid, struct rights *ret_rights)
{
	const struct status_field fields[] = {
		{ "\nUid:", 10, ret_rights->uids, 4 }, { "\nGid:", 10, ret_rights->gids, 4 },
		{ "\nCapPrm:", 16, &ret_rights->permitted, 1 }, { "\nCapEff:", 16, &ret_rights->effective, 1 },
		{ "\nSeccomp:", 10, &ret_rights->seccomp, 1 },
	};

	return proc_status_fields(pid, fields, sizeof(fields) / sizeof(fields[0]));
}

/* What is no tracee of ours says ESRCH to that; whatever else comes back is a filter's word. */
static bool ptrace_is_filtered(void)
{
	return ptrace_cont(getpid(), 0) != -ESRCH;
}

/* The check that PTRACE_SEIZE makes, without its consequences: nothing is mapped at address 0, and that is
 * said only to who may look. */
static bool kernel_permits(pid_t pid)
{
	char byte, path[32];
	struct iovec local = { &byte, 1 }, remote = { NULL, 1 };
	int fd;

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1 || errno == EFAULT)
		return true;
	/* A filter on us may forbid that one call. */
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* /proc gives the files of such a process, but not its folder, to root. */
static bool is_undumpable(pid_t pid)
{
	char folder[32], file[48];
	struct stat whole, part;

	snprintf(folder, sizeof(folder), "/proc/%d", pid);
	snprintf(file, sizeof(file), "/proc/%d/status", pid);
	return stat(folder, &whole) == 0 && stat(file, &part) == 0 && whole.st_uid != part.st_uid;
}

static char *read_map(const char *who)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%s/uid_map", who);
	return file_read_text(path, STATUS_MAX, &text, NULL) == 0 ? text : NULL;
}

/* The links in /proc/PID/ns are closed to who may not look at the process; the map of its ids is not, and it
 * reads the same in both only when they are in one namespace (or in two alike). */
static bool is_in_other_namespace(const char *who)
{
	char *ours = read_map("self"), *theirs = read_map(who);
	bool other = ours && theirs && strcmp(ours, theirs) != 0;

	free(ours);
	free(theirs);
	return other;
}

static bool is_in_first_namespace(void)
{
	unsigned long inside, outside, length;
	char *map = read_map("self");
	bool first = map && sscanf(map, "%lu %lu %lu", &inside, &outside, &length) == 3 && inside == 0 &&
		     outside == 0 && length == WHOLE_MAP_LENGTH;

	free(map);
	return first;
}

int access_yama_scope(void)
{
	char *text;
	int scope = 0;

	if (file_read_text(YAMA_SCOPE, 64, &text, NULL) == 0) {
		scope = atoi(text);
		free(text);
	}
	return scope;
}

/* Real, effective and saved: all must be the one that the caller has as its real one.  True: one is not. */
static bool differs(const unsigned long theirs[4], unsigned long ours, unsigned long *ret_other)
{
	for (size_t i = 0; i < 3; i++) {
		if (theirs[i] != ours) {
			*ret_other = theirs[i];
			return true;
		}
	}
	return false;
}

static enum access_obstacle obstacle_without_capability(struct access *access, pid_t pid, const char *who,
							const struct rights *ours, const struct rights *theirs)
{
	unsigned long other;

	if (differs(theirs->uids, ours->uids[0], &other)) {
		access->uid = (uid_t)other;
		return ACCESS_OTHER_UID;
	}
	if (differs(theirs->gids, ours->gids[0], &other)) {
		access->gid = (gid_t)other;
		return ACCESS_OTHER_GID;
	}
	if (is_undumpable(pid))
		return ACCESS_UNDUMPABLE;
	if (is_in_other_namespace(who))
		return ACCESS_NAMESPACE;
	if (theirs->permitted & ~ours->permitted)
		return ACCESS_MORE_RIGHTS;
	return access->yama_scope > 0 ? ACCESS_YAMA : ACCESS_UNKNOWN;
}

static enum access_obstacle obstacle_with_capability(const struct access *access, const char *who)
{
	if (is_in_other_namespace(who))
		return ACCESS_NAMESPACE;
	return access->yama_scope > 2 ? ACCESS_YAMA : ACCESS_UNKNOWN;
}

/* kcmp asks them all, in the mode for reading, in which Yama has no say. */
bool access_but_for_yama(pid_t pid)
{
	return syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0) >= 0;
}

/* It lets those with the capability pass in all its modes but the last. */
static bool yama_forbids(const struct access *access, pid_t pid)
{
	return access->yama_scope > (access->capable ? 2 : 0) && access_but_for_yama(pid);
}

struct access access_examine(pid_t pid)
{
	struct access access = { .obstacle = ACCESS_UNKNOWN };
	struct rights ours, theirs;
	char who[16];

	snprintf(who, sizeof(who), "%d", pid);
	access.in_namespace = !is_in_first_namespace();
	access.yama_scope = access_yama_scope();
	if (read_rights(getpid(), &ours) < 0 || read_rights(pid, &theirs) < 0)
		return access;
	access.capable = has(ours.effective, CAP_SYS_PTRACE);
	access.uid = (uid_t)theirs.uids[1];
	access.gid = (gid_t)theirs.gids[1];
	if (ptrace_is_filtered())
		access.obstacle = ACCESS_OWN_FILTER;
	else if (kernel_permits(pid))
		access.obstacle = ACCESS_OPEN;
	else if (yama_forbids(&access, pid))
		access.obstacle = ACCESS_YAMA;
	else if (access.capable)
		access.obstacle = obstacle_with_capability(&access, who);
	else
		access.obstacle = obstacle_without_capability(&access, pid, who, &ours, &theirs);
	return access;
}

bool access_may_suspend_seccomp(void)
{
	struct rights ours;

	return read_rights(getpid(), &ours) == 0 && has(ours.effective, CAP_SYS_ADMIN) && ours.seccomp == 0 &&
	       is_in_first_namespace();
}
