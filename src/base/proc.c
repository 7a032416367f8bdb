#include "base/proc.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAT_MAX 2048          /* some fifty numbers and a name of 64 bytes at most */
#define FIELD_PARENT 4
#define FIELD_USER_TIME 14
#define FIELD_START_TIME 22
#define STATUS_MAX (1u << 20)  /* a line may name many groups */

/* The command name, field 2, may hold anything, brackets and blanks too: fields count from the last ')'. */
static int read_stat(const char *path, char text[STAT_MAX], const char **ret_behind_name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	ssize_t n;
	char *end;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, STAT_MAX - 1);
	error = errno;
	fd_close(&fd);
	if (n < 0)
		return -error;
	text[n] = '\0';
	end = strrchr(text, ')');
	if (!end || end[1] != ' ')
		return -EBADMSG;
	*ret_behind_name = end + 1;
	return 0;
}

/* The text before a numeric field; NULL: there are not so many. */
static const char *find_field(const char *behind_name, unsigned field)
{
	const char *at = behind_name;

	for (unsigned i = 3; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at;
}

int proc_stat_number(const char *path, unsigned field, uint64_t *ret_value)
{
	char text[STAT_MAX];
	const char *at;
	int r = read_stat(path, text, &at);

	if (r < 0)
		return r;
	at = find_field(at, field);
	if (!at)
		return -EBADMSG;
	*ret_value = strtoull(at, NULL, 10);
	return 0;
}

uint64_t proc_stat_cpu(const char *path)
{
	char text[STAT_MAX], *end;
	const char *at;
	uint64_t user;

	if (read_stat(path, text, &at) < 0 || !(at = find_field(at, FIELD_USER_TIME)))
		return 0;
	user = strtoull(at, &end, 10);
	return user + strtoull(end, NULL, 10);     /* the system's follows */
}

/* Its three numbers, see Documentation/scheduler/sched-stats.rst. */
struct schedstat {
	uint64_t ran_ns, waited_ns, turns;
};

static struct schedstat read_schedstat(const char *path)
{
	struct schedstat stat;
	char *text;
	int n;

	if (file_read_text(path, STAT_MAX, &text, NULL) < 0)
		return (struct schedstat){ 0 };
	n = sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &stat.ran_ns, &stat.waited_ns, &stat.turns);
	free(text);
	return n == 3 ? stat : (struct schedstat){ 0 };
}

uint64_t proc_schedstat_ran_ns(const char *path)
{
	return read_schedstat(path).ran_ns;
}

uint64_t proc_schedstat_waited_ns(const char *path)
{
	return read_schedstat(path).waited_ns;
}

uint64_t proc_schedstat_turns(const char *path)
{
	return read_schedstat(path).turns;
}

char proc_stat_state(const char *path)
{
	char text[STAT_MAX];
	const char *at;

	return read_stat(path, text, &at) == 0 ? at[1] : '\0';
}

bool proc_stat_is_named(const char *path, const char *name)
{
	char text[STAT_MAX];
	const char *at, *start;

	if (read_stat(path, text, &at) < 0)
		return false;
	start = strchr(text, '(');
	return start && strncmp(start + 1, name, strlen(name)) == 0 && start[1 + strlen(name)] == ')';
}

int proc_next(DIR *folder, pid_t *ret_pid)
{
	struct dirent *entry;
	int r;

	while ((r = folder_next(folder, &entry)) > 0) {
		long pid = strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid > INT_MAX)
			continue;
		*ret_pid = (pid_t)pid;
		return 1;
	}
	return r;
}

pid_t proc_parent(pid_t pid)
{
	uint64_t parent;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_number(path, FIELD_PARENT, &parent) == 0 ? (pid_t)parent : 0;
}

int proc_start_time(pid_t pid, uint64_t *ret_ticks)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_number(path, FIELD_START_TIME, ret_ticks);
}

int proc_status_fields(pid_t pid, const struct status_field *fields, size_t count)
{
	char path[32], *text;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	r = file_read_text(path, STATUS_MAX, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	for (size_t i = 0; r == 0 && i < count; i++) {
		char *at = strstr(text, fields[i].key);

		if (at)
			at += strlen(fields[i].key);
		else
			r = -EBADMSG;
		for (unsigned k = 0; at && k < fields[i].count; k++)
			fields[i].ret[k] = strtoul(at, &at, fields[i].base);
	}
	free(text);
	return r;
}

int proc_status_numbers(pid_t pid, const char *key, int base, unsigned long *ret, unsigned count)
{
	const struct status_field field = { key, base, ret, count };

	return proc_status_fields(pid, &field, 1);
}

pid_t proc_thread_group(pid_t tid)
{
	unsigned long group;

	return proc_status_numbers(tid, "\nTgid:", 10, &group, 1) == 0 ? (pid_t)group : 0;
}

unsigned proc_innermost(const unsigned long numbers[PROC_NAMESPACES_MAX])
{
	unsigned level = 0;

	while (level + 1 < PROC_NAMESPACES_MAX && numbers[level + 1] != 0)
		level++;
	return level;
}

unsigned proc_namespace_level(pid_t pid)
{
	unsigned long numbers[PROC_NAMESPACES_MAX];

	if (proc_status_numbers(pid, "\nNSpid:", 10, numbers, PROC_NAMESPACES_MAX) < 0)
		return 0;
	return proc_innermost(numbers);
}

pid_t proc_number_at(pid_t tid, unsigned level)
{
	unsigned long numbers[PROC_NAMESPACES_MAX];

	if (level == 0)
		return tid;
	if (level >= PROC_NAMESPACES_MAX || proc_status_numbers(tid, "\nNSpid:", 10, numbers, level + 1) < 0)
		return 0;
	return (pid_t)numbers[level];
}

const char *proc_end_text(char text[PROC_END_MAX], int wait_status)
{
	if (wait_status != -1 && WIFSIGNALED(wait_status))
		snprintf(text, PROC_END_MAX, "was killed by signal %d (%s)", WTERMSIG(wait_status),
			 strsignal(WTERMSIG(wait_status)));
	else if (wait_status != -1 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0)
		snprintf(text, PROC_END_MAX, "has ended with status %d", WEXITSTATUS(wait_status));
	else
		snprintf(text, PROC_END_MAX, "has ended");
	return text;
}
