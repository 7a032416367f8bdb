#include "target/awaited.h"

#include "target/process.h"

#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <stdio.h>

/* The kernel lists threads in the same order each time. */
static const struct awaited_thread *find(const struct awaited_threads *threads, pid_t tid, size_t guess)
{
	if (guess < threads->items.count && threads->items.items[guess].tid == tid)
		return &threads->items.items[guess];
	for (size_t i = 0; i < threads->items.count; i++) {
		if (threads->items.items[i].tid == tid)
			return &threads->items.items[i];
	}
	return NULL;
}

/* Where the kernel does not tell how long one ran, it is taken to have.  is_writer: it is in the midst of the record, so that what it
 * waits for in the kernel, without end to it (D), is a page and not another's exec. */
static bool is_able(pid_t pid, bool is_writer, const struct awaited_thread *before, const struct awaited_thread *now)
{
	char state = process_thread_state(pid, now->tid);

	if (state == 'R')
		return now->ran_ns == 0 || now->ran_ns != before->ran_ns;
	return state != 't' && state != 'T' && !(is_writer && state == 'D');
}

/* before: NULL at the first look.  Whoever was not there then has no part in it. */
static void look_at(pid_t pid, pid_t tid, bool is_writer, const struct awaited_threads *before, struct awaited_threads *now)
{
	const struct awaited_thread *old = before ? find(before, tid, now->items.count) : NULL;
	struct awaited_thread *thread;
	char path[64];

	if ((before && !old) || now->items.count >= AWAITED_THREADS_MAX)
		return;
	thread = vec_push(&now->items);
	if (!thread)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	thread->tid = tid;
	thread->ran_ns = proc_schedstat_ran_ns(path);
	thread->looks = old ? old->looks + is_able(pid, is_writer, old, thread) : 0;
}

static void look_at_all(pid_t pid, const struct awaited_threads *before, struct awaited_threads *now)
{
	char path[64];
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && proc_next(dir, &tid) > 0)
		look_at(pid, tid, false, before, now);
	if (dir)
		closedir(dir);
}

/* Who had a processor just once may have lost it at once.  Who is stopped is dealt with by whoever serves stops. */
static void note_starved(pid_t tid, const struct awaited_threads *before, struct awaited_threads *now)
{
	const struct awaited_thread *old = before ? find(before, tid, now->items.count) : NULL;
	struct awaited_thread *thread, found = { .tid = tid };
	char state = process_thread_state(tid, tid), path[64];

	if (before ? !old || state == 't' || state == 'T' : state != 'R' || now->items.count >= AWAITED_THREADS_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	found.ran_ns = proc_schedstat_ran_ns(path);
	found.looks = old ? old->looks + is_able(tid, true, old, &found) : 0;
	thread = found.looks < AWAITED_BRIEFLY_LOOKS ? vec_push(&now->items) : NULL;
	if (thread)
		*thread = found;
}

bool awaited_starves(struct awaited *awaited, const struct target *target)
{
	bool first = awaited->looked_ns == 0;
	uint64_t now_ns = clock_monotonic_ns();
	struct awaited_threads now = { 0 };

	if (!first && now_ns - awaited->looked_ns < AWAITED_STARVED_PAUSE_MS * NSEC_PER_MSEC)
		return awaited->threads.items.count > 0;
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->stopped && target->tasks.items[i]->tid > 0)
			note_starved(target->tasks.items[i]->tid, first ? NULL : &awaited->threads, &now);
	}
	awaited->looked_ns = now_ns;
	vec_fini(&awaited->threads.items);
	awaited->threads = now;
	return now.items.count > 0;
}

static bool all_were_able(const struct awaited_threads *threads, unsigned looks)
{
	for (size_t i = 0; i < threads->items.count; i++) {
		if (threads->items.items[i].looks < looks)
			return false;
	}
	return true;
}

static bool look_once_more(struct awaited *awaited, pid_t pid, pid_t tid, unsigned looks, uint64_t pause_ns)
{
	bool first = awaited->looked_ns == 0 || awaited->tid != tid;
	uint64_t now_ns = clock_monotonic_ns();
	struct awaited_threads now = { 0 };

	/* Looks count, not time: of that this process may have had as little as the threads. */
	if (!first && now_ns - awaited->looked_ns < pause_ns)
		return false;
	awaited->looked_ns = now_ns;
	awaited->tid = tid;
	if (tid > 0)
		look_at(pid, tid, true, first ? NULL : &awaited->threads, &now);
	else
		look_at_all(pid, first ? NULL : &awaited->threads, &now);
	vec_fini(&awaited->threads.items);
	awaited->threads = now;
	return !first && all_were_able(&now, looks);
}

bool awaited_in_vain(struct awaited *awaited, pid_t pid, pid_t tid)
{
	return look_once_more(awaited, pid, tid, AWAITED_LOOKS, AWAITED_PAUSE_MS * NSEC_PER_MSEC);
}

bool awaited_briefly(struct awaited *awaited, pid_t pid, pid_t tid)
{
	return look_once_more(awaited, pid, tid, AWAITED_BRIEFLY_LOOKS, AWAITED_BRIEFLY_PAUSE_US * NSEC_PER_USEC);
}

void awaited_end(struct awaited *awaited)
{
	vec_fini(&awaited->threads.items);
	awaited->looked_ns = 0;
}
