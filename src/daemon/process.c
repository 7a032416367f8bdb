#include "daemon/process.h"

#include "base/fd.h"
#include "base/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not by its state: that is Z, too, when only the main thread has ended. */
static bool has_ended(int pidfd)
{
	struct pollfd ready = { .fd = pidfd, .events = POLLIN };

	return poll(&ready, 1, 0) > 0;
}

int process_open(int pid, struct process *ret, bool *ret_zombie, int *ret_leader)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), leader, r;
	uint64_t start_time;

	if (pidfd < 0) {
		r = -errno;
		/* pidfd_open() says ENOENT or EINVAL, by kernel version, for a thread that leads no process. */
		leader = proc_thread_group(pid);
		if (leader > 0 && leader != pid) {
			*ret_leader = leader;
			return -EINVAL;
		}
		return r == -ENOENT || r == -EINVAL ? -ESRCH : r;
	}
	r = proc_start_time(pid, &start_time);
	if (r == 0 && has_ended(pidfd)) {
		*ret_zombie = true;
		r = -ESRCH;
	}
	/* Still alive: so what was read between is about the process that the pidfd holds. */
	if (r == 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno != EPERM)
		r = -errno;
	if (r < 0) {
		fd_close(&pidfd);
		return r;
	}
	ret->pidfd = pidfd;
	ret->start_time = start_time;
	return 0;
}

void process_program(int pid, char path[PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	char link[32];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, path, PATH_MAX - 1);
	path[len > 0 ? len : 0] = '\0';
	len -= (ssize_t)sizeof(deleted) - 1;
	if (len > 0 && strcmp(path + len, deleted) == 0)
		path[len] = '\0';
}
