#include "target/target.h"

#include "target/access.h"
#include "target/bp.h"
#include "target/process.h"
#include "target/resident.h"
#include "target/rights.h"

#include "base/fd.h"
#include "base/proc.h"

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

static int open_as_we_are(pid_t pid, bool *ret_writable)
{
	int fd = open_proc(pid, "mem", O_RDWR);

	*ret_writable = fd >= 0;
	return fd == -EACCES || fd == -EPERM ? open_proc(pid, "mem", O_RDONLY) : fd;
}

int target_open_memory(pid_t pid, bool *ret_writable)
{
	int fd = open_as_we_are(pid, ret_writable);

	if ((fd == -EACCES || fd == -EPERM) && rights_raise_for(pid)) {
		fd = open_as_we_are(pid, ret_writable);
		rights_lower();
	}
	return fd;
}

/* Of those who may look at a process Yama lets some, in its mode 3 all, not open its memory; its tracer has another way to
 * that.  Where Yama is not the reason, the refusal is meant. */
static bool is_only_yama(const struct target *target, int error)
{
	return (error == -EACCES || error == -EPERM) && target->tasks.count > 0 && access_yama_scope() > 0;
}

int target_reopen_memory(struct target *target)
{
	bool writable;
	int mem = target_open_memory(target->memory_tid, &writable), maps;

	if (mem < 0 && !is_only_yama(target, mem))
		return mem;
	/* Asks the ordinary rules. */
	maps = open_proc(target->memory_tid, "maps", O_RDONLY);
	if (maps < 0) {
		fd_close(&mem);
		return maps;
	}
	fd_close(&target->mem_fd);
	fd_close(&target->maps_fd);
	target->mem_fd = mem >= 0 ? mem : -1;
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
		r = proc_start_time(pid, &target->start_time);
	target->namespace_level = proc_namespace_level(pid);
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
	mapped_files_look_done(&target->files);
	vec_fini(&target->slacks);
	module_map_fini(&target->modules);
	fd_close(&target->mem_fd);
	fd_close(&target->maps_fd);
	fd_close(&target->pid_fd);
	free(target);
}
