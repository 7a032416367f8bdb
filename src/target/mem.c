#define _GNU_SOURCE
#include "target/bp.h"
#include "target/jumps.h"
#include "target/ptrace.h"
#include "target/target.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS_AT_ONCE 64

static int read_mem_file(const struct target *target, raddr at, void *buf, size_t len)
{
	ssize_t n = pread(target->mem_fd, buf, len, (off_t)at);

	if (n < 0)
		return errno == EIO ? -EFAULT : -errno;
	if (n == 0)
		return -ESRCH;              /* /proc/PID/mem reads 0 once the memory is gone */
	return (size_t)n == len ? 0 : -EFAULT;
}

static int read_vm(const struct target *target, raddr at, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)at, len };
	ssize_t n = process_vm_readv(target->memory_tid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* What our being the tracer gives by itself, whatever else is asked for: a word at a time, through a thread that is
 * held. */
static int read_by_word(const struct target *target, raddr at, void *buf, size_t len)
{
	const struct task *task = target_stopped_task(target);

	return task ? ptrace_peek(task->tid, at, buf, len) : -EAGAIN;
}

/* Nobody sees our own int3s and jumps. */
static void hide_ours(const struct target *target, raddr at, void *buf, size_t len)
{
	bp_hide(target, at, buf, len);
	if (target->jumps.count > 0)
		jumps_hide(target, at, buf, len);
}

/* Not one of whom only a record says that there is such a thread. */
static void choose_living(struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->unlisted) {
			target->memory_tid = target->tasks.items[i]->tid;
			return;
		}
	}
}

int target_read(struct target *target, raddr at, void *buf, size_t len)
{
	int r = read_vm(target, at, buf, len);

	/* The thread that was asked may have ended while others live (pthread_exit of the main one); a process
	 * that is not dumpable refuses process_vm_readv to a tracer without capabilities, and so does Yama in its
	 * modes 2 and 3; a filter on us may forbid the call.  The open file knows none of that. */
	if (r == -ESRCH)
		choose_living(target);
	if (r == -EPERM || r == -ESRCH || r == -ENOSYS || r == -EACCES)
		r = target->mem_fd >= 0 ? read_mem_file(target, at, buf, len) : read_by_word(target, at, buf, len);
	if (r == 0)
		hide_ours(target, at, buf, len);
	return r;
}

/* How many of the first ones, read by one call; the one behind them may not be there. */
static size_t read_first(struct target *target, struct target_part *parts, size_t count)
{
	struct iovec local[PARTS_AT_ONCE], remote[PARTS_AT_ONCE];
	size_t whole = 0;
	ssize_t n;

	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){ parts[i].buf, parts[i].len };
		remote[i] = (struct iovec){ (void *)(uintptr_t)parts[i].at, parts[i].len };
	}
	n = process_vm_readv(target->memory_tid, local, count, remote, count, 0);
	for (; whole < count && n >= (ssize_t)parts[whole].len; whole++) {
		n -= (ssize_t)parts[whole].len;
		parts[whole].is_there = true;
		hide_ours(target, parts[whole].at, parts[whole].buf, parts[whole].len);
	}
	return whole;
}

void target_read_parts(struct target *target, struct target_part *parts, size_t count)
{
	size_t done = 0;

	while (done < count) {
		size_t left = count - done, at_once = left < PARTS_AT_ONCE ? left : PARTS_AT_ONCE;
		size_t whole = read_first(target, parts + done, at_once);
		struct target_part *next = &parts[done + whole];

		done += whole;
		if (whole == at_once)
			continue;
		/* By all the ways that there are. */
		next->is_there = target_read(target, next->at, next->buf, next->len) == 0;
		done++;
	}
}

int target_read_surely(struct target *target, raddr at, void *buf, size_t len)
{
	int r = read_vm(target, at, buf, len);

	if (r < 0 && target->mem_fd >= 0)
		r = read_mem_file(target, at, buf, len);
	return r < 0 ? read_by_word(target, at, buf, len) : r;
}

/* Whatever refuses that: words may be written all the same. */
static int write_mem_file(const struct target *target, raddr *at, const uint8_t **data, size_t *len)
{
	while (*len > 0) {
		ssize_t n = pwrite(target->mem_fd, *data, *len, (off_t)*at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return -ESRCH;              /* the memory is gone */
		if (n < 0)
			return -errno;
		*at += (size_t)n;
		*data += n;
		*len -= (size_t)n;
	}
	return 0;
}

int target_write(struct target *target, raddr at, const void *bytes, size_t len)
{
	const uint8_t *data = bytes;
	struct task *task;

	if (target->mem_writable) {
		int r = write_mem_file(target, &at, &data, &len);

		if (r == 0 || r == -ESRCH)
			return r;
	}
	task = target_stopped_task(target);
	return task ? ptrace_poke(task->tid, at, data, len) : -ESRCH;
}

static int read_for_reader(void *context, raddr at, void *buf, size_t len)
{
	return target_read(context, at, buf, len);
}

struct reader target_reader(struct target *target)
{
	return (struct reader){ .read = read_for_reader, .context = target };
}
