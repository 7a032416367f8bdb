#include "target/process.h"

#include "base/fd.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROC_TEXT_MAX (1u << 20)
#define SYSCALL_TEXT_MAX 512
#define FIELD_FLAGS 9                  /* in /proc/PID/stat */
#define FIELD_THREADS 20
#define FIELD_SIGNAL 31                /* the thread's own pending ones */
#define FIELD_WAIT_STATUS 52
#define SIGKILL_BIT (1u << (SIGKILL - 1))
#define PF_EXITING 0x4                 /* include/linux/sched.h */

static int read_proc(pid_t pid, const char *file, char **ret_text, size_t *ret_len)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	r = file_read_text(path, PROC_TEXT_MAX, ret_text, ret_len);
	return r == -ENOENT ? -ESRCH : r;
}

static void thread_stat(pid_t pid, pid_t tid, char path[64])
{
	snprintf(path, 64, "/proc/%d/task/%d/stat", pid, tid);
}

int process_last_cpu(pid_t pid, pid_t tid, int *ret_cpu)
{
	char path[64];
	uint64_t cpu;
	int r;

	thread_stat(pid, tid, path);
	r = proc_stat_number(path, 39, &cpu);
	if (r == 0)
		*ret_cpu = (int)cpu;
	return r;
}

char process_thread_state(pid_t pid, pid_t tid)
{
	char path[64];

	thread_stat(pid, tid, path);
	return proc_stat_state(path);
}

bool process_thread_is_dead(pid_t pid, pid_t tid)
{
	char state = process_thread_state(pid, tid);

	return state == '\0' || state == 'Z' || state == 'X';
}

/* "running", or "NUMBER ARGUMENT... SP PC", or "-1 SP PC" when it waits in no call. */
uint64_t process_blocked_pc(pid_t tid)
{
	char path[64], *text, *last;
	uint64_t pc = 0;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	if (file_read_text(path, SYSCALL_TEXT_MAX, &text, NULL) < 0)
		return 0;
	last = strrchr(text, ' ');
	if (last)
		pc = strtoull(last, NULL, 16);
	free(text);
	return pc;
}

int process_call(pid_t tid, long *ret_number, uint64_t *ret_argument)
{
	char path[64], *text, *end;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	r = file_read_text(path, SYSCALL_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	*ret_number = strtol(text, &end, 10);
	if (end == text)
		*ret_number = PROCESS_RUNS;
	*ret_argument = strtoull(end, NULL, 16);
	free(text);
	return 0;
}

bool process_has_opened(pid_t holder, pid_t pid)
{
	char path[64], link[64], folder[32];
	int length = snprintf(folder, sizeof(folder), "/proc/%d/", pid), fd;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", holder);
	dir = opendir(path);
	while (dir && !found && proc_next(dir, &fd) > 0) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", holder, fd);
		found = readlink(path, link, sizeof(link)) > length && memcmp(link, folder, (size_t)length) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

uint64_t process_own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* With hidepid, which proc(5) has, /proc does not show all there are. */
bool process_is_surely_dead(pid_t pid)
{
	char state = process_thread_state(pid, process_living_thread(pid));

	return state == 'Z' || state == 'X' || (kill(pid, 0) < 0 && errno == ESRCH);
}

bool process_thread_is_exiting(pid_t pid, pid_t tid)
{
	uint64_t flags, signals;
	char path[64];

	thread_stat(pid, tid, path);
	/* A busy machine may leave a thread that was killed waiting for a processor before it begins to exit. */
	return proc_stat_number(path, FIELD_SIGNAL, &signals) < 0 || (signals & SIGKILL_BIT) ||
	       proc_stat_number(path, FIELD_FLAGS, &flags) < 0 || (flags & PF_EXITING);
}

pid_t process_living_thread(pid_t pid)
{
	pid_t living = pid, tid;
	char path[64];
	DIR *dir;

	if (!process_thread_is_dead(pid, pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && living == pid && proc_next(dir, &tid) > 0) {
		if (!process_thread_is_dead(pid, tid))
			living = tid;
	}
	if (dir)
		closedir(dir);
	return living;
}

pid_t process_tracer(pid_t pid)
{
	unsigned long tracer;

	return proc_status_numbers(pid, "\nTracerPid:", 10, &tracer, 1) == 0 ? (pid_t)tracer : 0;
}

bool process_has_shadow_stack(pid_t tid)
{
	const struct status_field is_there = { .key = "\nx86_Thread_features:\tshstk" };

	return proc_status_fields(tid, &is_there, 1) == 0;
}

bool process_is_filtered(pid_t tid)
{
	unsigned long mode;

	return proc_status_numbers(tid, "\nSeccomp:", 10, &mode, 1) == 0 && mode != 0;
}

uint64_t process_threads(pid_t pid)
{
	uint64_t threads;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_number(path, FIELD_THREADS, &threads) == 0 ? threads : 0;
}

/* A thread that could not be looked at may be filtered. */
void process_filters(pid_t pid, bool *ret_some, bool *ret_all)
{
	bool some = false, all = true;
	char path[64];
	int r = -ENOENT;
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (r = proc_next(dir, &tid)) > 0) {
		bool filtered;

		if (process_thread_is_dead(pid, tid))
			continue;
		filtered = process_is_filtered(tid);
		some |= filtered;
		all &= filtered;
	}
	if (dir)
		closedir(dir);
	*ret_some = some || r < 0;
	*ret_all = some && all;
}

int process_ids(pid_t pid, uid_t *ret_uid, gid_t *ret_gid)
{
	unsigned long uids[2], gids[2];
	const struct status_field fields[] = { { "\nUid:", 10, uids, 2 }, { "\nGid:", 10, gids, 2 } };
	int r = proc_status_fields(pid, fields, 2);

	if (r < 0)
		return r;
	*ret_uid = (uid_t)uids[1];
	*ret_gid = (gid_t)gids[1];
	return 0;
}

int process_signal_masks(pid_t tid, uint64_t *ret_blocked, uint64_t *ret_ignored, uint64_t *ret_caught)
{
	unsigned long blocked, ignored, caught;
	const struct status_field fields[] = {
		{ "\nSigBlk:", 16, &blocked, 1 }, { "\nSigIgn:", 16, &ignored, 1 }, { "\nSigCgt:", 16, &caught, 1 },
	};
	int r = proc_status_fields(tid, fields, 3);

	if (r < 0)
		return r;
	*ret_blocked = blocked;
	*ret_ignored = ignored;
	*ret_caught = caught;
	return 0;
}

void process_command(pid_t pid, char *buf, size_t space)
{
	size_t len = 0;
	char *text;

	buf[0] = '\0';
	if (read_proc(pid, "cmdline", &text, &len) == 0) {
		while (len > 0 && text[len - 1] == '\0')
			len--;
		if (len >= space)
			len = space - 1;
		for (size_t i = 0; i < len; i++)
			buf[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
		buf[len] = '\0';
		free(text);
	}
	if (len == 0 && read_proc(pid, "comm", &text, NULL) == 0) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(buf, space, "[%s]", text);
		free(text);
	}
}

void process_exe(pid_t pid, char *buf, size_t space)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, buf, space - 1);
	buf[n > 0 ? n : 0] = '\0';
}

/* --- how it ended --- */

/* include/uapi/linux/pidfd.h, since 6.15 */
struct ended_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t wait_status;
};
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct ended_info)
#define PIDFD_INFO_EXIT (UINT64_C(1) << 3)

_Static_assert(sizeof(struct ended_info) == 64, "the first version of struct pidfd_info");

/* To others the kernel shows 0, which is a status, too: by the same right this link is read. */
static bool may_see_status(pid_t pid)
{
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return readlink(path, link, sizeof(link)) >= 0;
}

/* Of one that its parent has not waited for. */
static bool status_of_zombie(pid_t pid, uint64_t start_time, int *ret_status)
{
	uint64_t there, status;
	char path[64];

	thread_stat(pid, pid, path);
	if (proc_stat_state(path) != 'Z' || !may_see_status(pid) || proc_stat_number(path, FIELD_WAIT_STATUS, &status) < 0 ||
	    proc_start_time(pid, &there) < 0 || there != start_time)
		return false;
	*ret_status = (int)status;
	return true;
}

int process_wait_status(pid_t pid, uint64_t start_time, int pid_fd, int *ret_status)
{
	struct ended_info info = { .mask = PIDFD_INFO_EXIT };

	if (status_of_zombie(pid, start_time, ret_status))
		return 0;
	if (ioctl(pid_fd, PIDFD_GET_INFO, &info) < 0 || !(info.mask & PIDFD_INFO_EXIT))
		return -ENODATA;
	*ret_status = info.wait_status;
	return 0;
}
