#include "daemon/process.h"

#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STAT_MAX 4096
#define STATUS_MAX 65536

/* proc(5): the command, field 2, may hold anything, so the fields are counted from its last ')'. */
static int parse_stat(const char *text, uint64_t *ret_start_time)
{
	const char *at = strrchr(text, ')');

	if (!at || at[1] != ' ')
		return -EBADMSG;
	at += 2;
	for (int field = 3; field < 22; field++) {
		at = strchr(at, ' ');
		if (!at)
			return -EBADMSG;
		at++;
	}
	return sscanf(at, "%" SCNu64, ret_start_time) == 1 ? 0 : -EBADMSG;
}

static int read_start_time(int pid, uint64_t *ret_start_time)
{
	char path[64], *text;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	r = file_read_text(path, STAT_MAX, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	r = parse_stat(text, ret_start_time);
	free(text);
	return r;
}

/* pidfd_open() says ENOENT or EINVAL, by kernel version, for a thread that leads no process. */
static int leader_of(int tid)
{
	char path[64], *text, *line;
	int leader = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (file_read_text(path, STATUS_MAX, &text, NULL) < 0)
		return 0;
	line = strstr(text, "\nTgid:");
	if (line && sscanf(line, "\nTgid: %d", &leader) != 1)
		leader = 0;
	free(text);
	return leader;
}

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
		leader = leader_of(pid);
		if (leader > 0 && leader != pid) {
			*ret_leader = leader;
			return -EINVAL;
		}
		return r == -ENOENT || r == -EINVAL ? -ESRCH : r;
	}
	r = read_start_time(pid, &start_time);
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

int process_parent(int pid)
{
	char path[64], *text, *at;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read_text(path, STAT_MAX, &text, NULL) < 0)
		return 0;
	at = strrchr(text, ')');
	if (at && sscanf(at, ") %*c %d", &parent) != 1)
		parent = 0;
	free(text);
	return parent;
}
