#define _GNU_SOURCE
#include "target/sharers.h"

#include "target/inject.h"
#include "target/process.h"
#include "arch/resident.h"
#include "base/fd.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define LINE_MAX_BYTES 256
#define SINCE_MAX 4096                 /* numbers tried one by one; past that all processes are looked at */
#define GIVEN_BEFORE 256               /* and so many that were given before the look: who has one is there only some time later */
#define LOOKS 4                        /* at sizes that change meanwhile */

static const unsigned proof_pages[] = { 37, 11 };

static pid_t last_pid_given(void)
{
	char *text, *last;
	pid_t pid = 0;

	if (file_read_text("/proc/loadavg", LINE_MAX_BYTES, &text, NULL) < 0)
		return 0;
	last = strrchr(text, ' ');
	if (last)
		pid = (pid_t)strtol(last, NULL, 10);
	free(text);
	return pid;
}

/* In pages; everybody may read that.  0: there is none. */
static unsigned long memory_size(pid_t pid)
{
	char path[48], *text;
	unsigned long pages;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (file_read_text(path, LINE_MAX_BYTES, &text, NULL) < 0)
		return 0;
	pages = strtoul(text, NULL, 10);
	free(text);
	return pages;
}

/* While neither changes; when the target's own does all the time, it is as good as equal. */
static bool has_same_size(const struct target *target, pid_t pid)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		unsigned long before = memory_size(target->memory_tid), size = memory_size(pid);

		if (size == 0)
			return false;
		if (memory_size(target->memory_tid) == before)
			return size == before;
	}
	return true;
}

static bool is_noted(const struct sharers *sharers, pid_t pid)
{
	for (size_t i = 0; i < sharers->found.count; i++)
		if (sharers->found.items[i] == pid)
			return true;
	for (size_t i = 0; i < sharers->suspects.count; i++)
		if (sharers->suspects.items[i] == pid)
			return true;
	return false;
}

static int note(struct sharers *sharers, bool suspect, pid_t pid)
{
	pid_t *slot;

	if (is_noted(sharers, pid))
		return 0;
	slot = suspect ? vec_push(&sharers->suspects) : vec_push(&sharers->found);
	if (!slot)
		return -ENOMEM;
	*slot = pid;
	return 0;
}

static bool is_own_thread(const struct target *target, pid_t pid)
{
	const struct task *task = task_find(pid);

	return task && task->target == target && !task->guest;
}

static int look_at(const struct target *target, struct sharers *sharers, pid_t pid)
{
	long r;

	if (is_own_thread(target, pid))
		return 0;
	r = syscall(SYS_kcmp, target->memory_tid, pid, KCMP_VM, 0, 0);
	/* Its own threads are among the numbers that are tried. */
	if (r == 0)
		return proc_thread_group(pid) == target->pid ? 0 : note(sharers, false, pid);
	if (r < 0 && errno == EPERM && has_same_size(target, pid))
		return note(sharers, true, pid);
	return 0;
}

static int look_at_all(const struct target *target, struct sharers *sharers)
{
	DIR *proc = opendir("/proc");
	pid_t pid;
	int r = 0;

	if (!proc)
		return -errno;
	while (r == 0 && (r = proc_next(proc, &pid)) > 0)
		r = pid != target->pid ? look_at(target, sharers, pid) : 0;
	closedir(proc);
	return r;
}

int sharers_look(const struct target *target, struct sharers *sharers)
{
	sharers->found.count = sharers->suspects.count = 0;
	sharers->last_pid = last_pid_given();
	return look_at_all(target, sharers);
}

/* Numbers are given upwards, and begin again at the end. */
int sharers_look_again(const struct target *target, struct sharers *sharers)
{
	pid_t since = sharers->last_pid, last = last_pid_given();
	int r = 0;

	if (since == 0 || last < since || last - since > SINCE_MAX)
		return sharers_look(target, sharers);
	for (pid_t pid = since > GIVEN_BEFORE ? since - GIVEN_BEFORE + 1 : 1; r == 0 && pid <= last; pid++) {
		if (pid != target->pid)
			r = look_at(target, sharers, pid);
	}
	sharers->last_pid = last;
	return r;
}

bool sharers_has_left(const struct target *target, pid_t pid)
{
	return process_thread_is_dead(pid, pid) || syscall(SYS_kcmp, target->memory_tid, pid, KCMP_VM, 0, 0) > 0;
}

void sharers_fini(struct sharers *sharers)
{
	vec_fini(&sharers->found);
	vec_fini(&sharers->suspects);
}

/* --- suspects --- */

static int64_t call(struct target *target, const struct arch_stub_call *stub_call)
{
	struct task *task = inject_find_task(target);
	int64_t result;
	int r = task ? inject_syscall(task, target->stub, stub_call, &result) : -EAGAIN;

	return r < 0 ? r : result;
}

static bool grows_with(struct target *target, pid_t pid, unsigned pages)
{
	const struct arch_stub_call map = {
		.number = SYS_mmap, .data_arg = -1,
		.args = { 0, (uint64_t)pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0 },
	};
	unsigned long before = memory_size(pid), with;
	int64_t at = call(target, &map);
	struct arch_stub_call unmap = {
		.number = SYS_munmap, .data_arg = -1, .args = { (uint64_t)at, (uint64_t)pages * PAGE },
	};

	if (at < 0 && at > -PAGE)
		return false;
	with = memory_size(pid);
	call(target, &unmap);
	return with == before + pages && memory_size(pid) == before;
}

pid_t sharers_prove(struct target *target, const struct sharers *sharers)
{
	for (size_t i = 0; i < sharers->suspects.count; i++) {
		pid_t pid = sharers->suspects.items[i];

		if (memory_size(pid) == memory_size(target->memory_tid) && grows_with(target, pid, proof_pages[0]) &&
		    grows_with(target, pid, proof_pages[1]))
			return pid;
	}
	return 0;
}
