#include "target/target.h"

#include "target/bp.h"
#include "target/process.h"
#include "target/resident.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_proc(pid_t pid, const char *file, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

int target_reopen_memory(struct target *target)
{
	int mem = open_proc(target->memory_tid, "mem", O_RDWR), maps;
	bool writable = mem >= 0;

	if (mem == -EACCES || mem == -EPERM)
		mem = open_proc(target->memory_tid, "mem", O_RDONLY);
	if (mem < 0)
		return mem;
	maps = open_proc(target->memory_tid, "maps", O_RDONLY);
	if (maps < 0) {
		close(mem);
		return maps;
	}
	fd_close(&target->mem_fd);
	fd_close(&target->maps_fd);
	target->mem_fd = mem;
	target->maps_fd = maps;
	target->mem_writable = writable;
	return 0;
}

int target_new(pid_t pid, struct target **ret_target)
{
	struct target *target = calloc(1, sizeof(*target));
	int r;

	if (!target)
		return -ENOMEM;
	target->pid = pid;
	target->memory_tid = process_living_thread(pid);
	target->pid_fd = target->mem_fd = target->maps_fd = -1;
	process_filters(pid, &target->filtered, &target->all_filtered);
	module_map_init(&target->modules);
	target->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (target->pid_fd < 0)
		/* EINVAL: the number of a thread that leads no group. */
		r = errno == EINVAL ? -ESRCH : -errno;
	else
		r = process_start_time(pid, &target->start_time);
	if (r == 0)
		r = target_reopen_memory(target);
	if (r < 0) {
		target_free(target);
		return r;
	}
	*ret_target = target;
	return 0;
}

void target_free(struct target *target)
{
	if (!target)
		return;
	while (target->tasks.count > 0)
		task_remove(target->tasks.items[target->tasks.count - 1]);
	vec_fini(&target->tasks);
	bp_drop_all(target);
	vec_fini(&target->breakpoints);
	resident_forget(target);
	for (size_t i = 0; i < target->module_fds.count; i++)
		fd_close(&target->module_fds.items[i]);
	vec_fini(&target->module_fds);
	vec_fini(&target->slacks);
	module_map_fini(&target->modules);
	fd_close(&target->mem_fd);
	fd_close(&target->maps_fd);
	fd_close(&target->pid_fd);
	free(target);
}
