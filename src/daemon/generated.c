#include "daemon/generated.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file may be written as soon as the process is there, and the clock of files is coarse. */
#define SLACK_NS NSEC_PER_SEC

void generated_init(struct generated *generated)
{
	*generated = (struct generated){ .fds = { -1, -1 } };
}

void generated_fini(struct generated *generated)
{
	for (int i = 0; i < GENERATED_KINDS; i++)
		fd_close(&generated->fds[i]);
	free(generated->dump_path);
	generated->dump_path = NULL;
}

/* --- the process --- */

static uint64_t real_time(uint64_t ticks)
{
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK), since_boot = ticks / per_second * NSEC_PER_SEC +
			      ticks % per_second * (NSEC_PER_SEC / per_second);

	return clock_realtime_ns() - clock_read_ns(CLOCK_BOOTTIME) + since_boot;
}

void generated_look(struct generated *generated, int pid, uint64_t start_ticks)
{
	unsigned long pids[PROC_NAMESPACES_MAX] = { 0 }, uids[2];
	const struct status_field fields[] = { { "\nNSpid:", 10, pids, PROC_NAMESPACES_MAX }, { "\nUid:", 10, uids, 2 } };
	uint64_t ticks;

	if (proc_status_fields(pid, fields, 2) < 0 || proc_start_time(pid, &ticks) < 0 || ticks != start_ticks)
		return;
	generated->pid = pid;
	generated->inner_pid = (int)pids[proc_innermost(pids)];
	generated->uid = (uid_t)uids[1];
	generated->started_ns = real_time(ticks);
}

void generated_note_mapping(struct generated *generated, const char *path)
{
	const char *name = strrchr(path, '/');
	char wanted[32], *copy;

	snprintf(wanted, sizeof(wanted), "/jit-%d.dump", generated->inner_pid);
	if (path[0] != '/' || generated->pid == 0 || strcmp(name, wanted) != 0)
		return;
	copy = strdup(path);
	if (!copy)
		return;
	free(generated->dump_path);
	generated->dump_path = copy;
}

/* --- its files --- */

enum generated_kind generated_place_kind(unsigned place)
{
	return place / 2 == GENERATED_DUMP ? GENERATED_DUMP : GENERATED_MAP;
}

/* Through the process itself; and where its own number is the one that others know, as the path says: then it may be gone. */
int generated_place(const struct generated *generated, unsigned place, char *path, size_t space,
		    enum generated_kind *ret_kind)
{
	enum generated_kind kind = generated_place_kind(place);
	char map[48], root[32] = "";
	const char *file = map;

	if (generated->pid == 0 || place >= GENERATED_PLACES)
		return -ENOSPC;
	if (kind == GENERATED_DUMP && !generated->dump_path)
		return -ENOENT;
	if (place % 2 == 1 && generated->inner_pid != generated->pid)
		return -ENOENT;
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", generated->inner_pid);
	if (kind == GENERATED_DUMP)
		file = generated->dump_path;
	if (place % 2 == 0)
		snprintf(root, sizeof(root), "/proc/%d/root", generated->pid);
	if ((size_t)snprintf(path, space, "%s%s", root, file) >= space)
		return -ENOENT;
	*ret_kind = kind;
	return 0;
}

static bool is_of_process(const struct generated *generated, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid != generated->uid && st.st_uid != 0))
		return false;
	return (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec + SLACK_NS >=
	       generated->started_ns;
}

bool generated_take(struct generated *generated, enum generated_kind kind, int fd)
{
	if (!is_of_process(generated, fd)) {
		fd_close(&fd);
		return false;
	}
	fd_close(&generated->fds[kind]);
	generated->fds[kind] = fd;
	return true;
}
