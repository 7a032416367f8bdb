#include "base/proc.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAT_MAX 2048          /* some fifty numbers and a name of 64 bytes at most */
#define FIELD_PARENT 4

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

int proc_stat_number(const char *path, unsigned field, uint64_t *ret_value)
{
	char text[STAT_MAX];
	const char *at;
	int r = read_stat(path, text, &at);

	for (unsigned i = 3; r == 0 && i < field; i++) {
		at = strchr(at + 1, ' ');
		if (!at)
			r = -EBADMSG;
	}
	if (r == 0)
		*ret_value = strtoull(at, NULL, 10);
	return r;
}

char proc_stat_state(const char *path)
{
	char text[STAT_MAX];
	const char *at;

	return read_stat(path, text, &at) == 0 ? at[1] : '\0';
}

pid_t proc_parent(pid_t pid)
{
	uint64_t parent;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_number(path, FIELD_PARENT, &parent) == 0 ? (pid_t)parent : 0;
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
