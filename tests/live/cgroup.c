#include "cgroup.h"

#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOX "allocwatch-test-"

const char *cgroup_own(const char *mount, const char *prefix)
{
	FILE *file = fopen("/proc/self/cgroup", "r");
	const char *found = NULL;
	char line[1024];

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *at = strstr(line, prefix);

		line[strcspn(line, "\n")] = '\0';
		if (at && (at == line || *prefix == ':') && strstr(at + strlen(prefix), "/.."))
			continue;
		if (at && (at == line || *prefix == ':'))
			found = live_text("%s%s", mount, at + strlen(prefix));
	}
	if (file)
		fclose(file);
	return found;
}

bool cgroup_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

/* What cases that failed have left: their processes are gone. */
static void remove_old_boxes(const char *parent)
{
	glob_t found;

	if (glob(live_text("%s/" BOX "*", parent), 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			if (kill(atoi(strrchr(found.gl_pathv[i], '-') + 1), 0) < 0)
				rmdir(found.gl_pathv[i]);
		}
		globfree(&found);
	}
}

const char *cgroup_make(const char *parent)
{
	const char *box = live_text("%s/" BOX "%d", parent, getpid());

	remove_old_boxes(parent);
	if (mkdir(box, 0755))
		live_skip("no cgroup can be made here: %s: %s", box, strerror(errno));
	return box;
}

const char *cgroup_make_memory_2(void)
{
	const char *parent = "/sys/fs/cgroup", *box;

	if (system("grep -qsw memory /sys/fs/cgroup/cgroup.controllers") != 0)
		return NULL;
	(void)cgroup_write(live_text("%s/cgroup.subtree_control", parent), "+memory");
	box = cgroup_make(parent);
	if (access(live_text("%s/memory.max", box), W_OK) == 0)
		return box;
	rmdir(box);
	return NULL;
}

const char *cgroup_make_memory(long bytes, bool with_swap)
{
	const char *box = cgroup_make_memory_2(), *parent;

	if (box) {
		require(cgroup_write(live_text("%s/memory.max", box), live_text("%ld", bytes)));
		(void)cgroup_write(live_text("%s/memory.swap.max", box), "0");
		return box;
	}
	parent = cgroup_own("/sys/fs/cgroup/memory", ":memory:");
	if (!parent)
		live_skip("there is no memory controller for cgroups made here");
	box = cgroup_make(parent);
	if (!cgroup_write(live_text("%s/memory.limit_in_bytes", box), live_text("%ld", bytes))) {
		rmdir(box);
		live_skip("a cgroup's memory cannot be limited here: %s", strerror(errno));
	}
	if (with_swap)
		(void)cgroup_write(live_text("%s/memory.memsw.limit_in_bytes", box), live_text("%ld", bytes));
	return box;
}

void cgroup_move(const char *box, pid_t pid)
{
	if (!cgroup_write(live_text("%s/cgroup.procs", box), live_text("%d", pid)))
		live_fail("%s: %s", box, strerror(errno));
}

static bool is_removed(void *box)
{
	return rmdir(box) == 0 || errno == ENOENT;
}

/* Processes in it have just ended. */
void cgroup_remove(const char *box)
{
	require(live_wait(is_removed, (void *)box, 10000));
}
