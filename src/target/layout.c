#include "target/layout.h"

#include "target/maps.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define LOOK_BYTES 2048u               /* behind the thread pointer: glibc 2.17 to 2.41 have both below 1,800 */
#define LOOK_WORDS (LOOK_BYTES / 4)
#define DATA_MAX (1u << 20)            /* of a thread's own data, which lies at the end of its stack's memory */
#define THREADS_AT_ONCE 32
#define TELLING_NUMBER 4096            /* a smaller one, as in a container, may be any other word's value, too */
/* glibc, nptl/descr.h: behind the number, at 16, the struct robust_list_head (linux/futex.h), whose futex_offset is that of a
 * pthread_mutex_t on 64-bit machines. */
#define GLIBC_FUTEX_OFFSET_AT 24
#define GLIBC_FUTEX_OFFSET ((uint64_t)-32)
/* musl from 1.1.22 on, src/internal/pthread_impl.h: the threads are a ring of which each knows both neighbours. */
#define MUSL_PREVIOUS 16
#define MUSL_NEXT 24
#define MUSL_NUMBER 48
#define MUSL_NUMBER_ONCE 56            /* there was a second canary before it */

/* Distances at which all threads that were looked at have their number. */
struct candidates {
	uint32_t offsets[LOOK_WORDS];
	size_t count;
	size_t by_library;             /* one that is where a C library that is known keeps it; `count`: none is */
	unsigned threads;              /* that were looked at */
	pid_t largest;                 /* number of theirs */
};

/* What was found so far. */
struct layout_look {
	struct candidates candidates;
	struct thread_layout layout;
};

/* Some threads, and what stands behind their thread pointers. */
struct looks {
	struct task *tasks[THREADS_AT_ONCE];
	struct user_regs_struct regs[THREADS_AT_ONCE];
	struct target_part parts[THREADS_AT_ONCE];
	uint8_t bytes[THREADS_AT_ONCE][LOOK_BYTES];
	size_t count;
};

static bool read_registers(struct task *task, struct user_regs_struct *regs)
{
	return task->stopped && !task->guest && !stop_is_end(task->stop.kind) && task_getregs(task, regs) == 0;
}

/* As much as there is: the first thread's data may be the last of its C library's (musl). */
static bool read_up_to_page_end(struct target *target, raddr pointer, uint8_t bytes[LOOK_BYTES])
{
	uint64_t length = PAGE - pointer % PAGE;

	memset(bytes, 0, LOOK_BYTES);
	return length < LOOK_BYTES && target_read(target, pointer, bytes, length) == 0;
}

static uint32_t word32(const uint8_t *bytes, uint32_t at)
{
	uint32_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static uint64_t word64(const uint8_t *bytes, uint32_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static void all_candidates(struct candidates *candidates)
{
	*candidates = (struct candidates){ .count = 0 };
	for (; candidates->count < LOOK_WORDS; candidates->count++)
		candidates->offsets[candidates->count] = (uint32_t)candidates->count * 4;
}

static bool is_in_musls_ring(struct target *target, const uint8_t *bytes, raddr pointer)
{
	raddr previous = word64(bytes, MUSL_PREVIOUS), next = word64(bytes, MUSL_NEXT), back[2];

	return word64(bytes, 0) == pointer && target_read(target, previous + MUSL_NEXT, &back[0], sizeof(back[0])) == 0 &&
	       target_read(target, next + MUSL_PREVIOUS, &back[1], sizeof(back[1])) == 0 && back[0] == pointer &&
	       back[1] == pointer;
}

static bool is_glibcs(const uint8_t *bytes, uint32_t at)
{
	return at % 8 == 0 && at + GLIBC_FUTEX_OFFSET_AT + 8 <= LOOK_BYTES &&
	       word64(bytes, at + GLIBC_FUTEX_OFFSET_AT) == GLIBC_FUTEX_OFFSET;
}

static bool is_librarys(struct target *target, const uint8_t *bytes, uint32_t at, raddr pointer)
{
	return is_glibcs(bytes, at) ||
	       ((at == MUSL_NUMBER || at == MUSL_NUMBER_ONCE) && is_in_musls_ring(target, bytes, pointer));
}

/* Keeps what holds for this thread, too. */
static void narrow(struct candidates *candidates, const uint8_t *bytes, const struct task *task, raddr pointer)
{
	size_t kept = 0, by_library = SIZE_MAX;

	if (task->own_number == 0)
		return;
	for (size_t i = 0; i < candidates->count; i++) {
		uint32_t at = candidates->offsets[i];

		if (word32(bytes, at) != (uint32_t)task->own_number)
			continue;
		if (by_library == SIZE_MAX && is_librarys(task->target, bytes, at, pointer))
			by_library = kept;
		candidates->offsets[kept++] = at;
	}
	candidates->count = kept;
	candidates->by_library = by_library < kept ? by_library : kept;
	candidates->threads++;
	candidates->largest = task->own_number > candidates->largest ? task->own_number : candidates->largest;
}

/* 1 is the number of who is alone in a container, and stands at many places. */
static void choose(const struct candidates *candidates, struct thread_layout *layout)
{
	bool is_telling = candidates->threads > 1 || candidates->largest >= TELLING_NUMBER;

	if (candidates->threads == 0 || candidates->count == 0)
		return;
	layout->has_tid = candidates->by_library < candidates->count || is_telling;
	layout->tid = candidates->offsets[candidates->by_library < candidates->count ? candidates->by_library : 0];
}

/* Address and size of the memory that holds stack and data stand side by side. */
static bool is_stack(const uint8_t *bytes, uint32_t at, raddr sp, raddr pointer)
{
	uint64_t start = word64(bytes, at), size = word64(bytes, at + 8);

	return start != 0 && start % PAGE == 0 && size % PAGE == 0 && start < sp && sp < pointer &&
	       size > pointer - start && size - (pointer - start) <= DATA_MAX;
}

static void look_for_stack(const uint8_t *bytes, const struct user_regs_struct *regs, struct thread_layout *layout)
{
	for (uint32_t at = 0; layout->stack == 0 && at + 16 <= LOOK_BYTES; at += 8) {
		if (is_stack(bytes, at, arch_sp(regs), arch_thread_pointer(regs)))
			layout->stack = at;
	}
}

/* False: there is no room for more. */
static bool add_look(struct looks *looks, struct task *task, const struct user_regs_struct *regs)
{
	size_t i = looks->count++;

	looks->tasks[i] = task;
	looks->regs[i] = *regs;
	looks->parts[i] = (struct target_part){ arch_thread_pointer(regs), looks->bytes[i], LOOK_BYTES, false };
	return looks->count < THREADS_AT_ONCE;
}

static void look(struct target *target, struct looks *looks, struct layout_look *found)
{
	target_read_parts(target, looks->parts, looks->count);
	for (size_t i = 0; i < looks->count; i++) {
		const struct target_part *part = &looks->parts[i];

		if (!part->is_there && !read_up_to_page_end(target, part->at, part->buf))
			continue;
		narrow(&found->candidates, looks->bytes[i], looks->tasks[i], part->at);
		look_for_stack(looks->bytes[i], &looks->regs[i], &found->layout);
	}
	looks->count = 0;
}

static void begin(struct layout_look *found)
{
	found->layout = (struct thread_layout){ .stack = 0 };
	all_candidates(&found->candidates);
}

static bool is_new(const struct task *task)
{
	return !task->layout_seen;
}

/* At those that are wanted (NULL: at all). */
static void look_at_held(struct target *target, bool (*wanted)(const struct task *task), struct layout_look *found)
{
	struct looks looks;

	looks.count = 0;
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		struct user_regs_struct regs;

		if ((wanted && !wanted(task)) || !read_registers(task, &regs))
			continue;
		task->layout_seen = wanted && task->regs_known;
		found->layout.has_pointer |= arch_thread_pointer(&regs) != 0;
		if (!add_look(&looks, task, &regs))
			look(target, &looks, found);
	}
	look(target, &looks, found);
}

static void end(const struct target *target, const struct layout_look *found, struct thread_layout *ret_layout)
{
	struct thread_layout layout = found->layout;

	layout.main_stack = target->main_stack;
	choose(&found->candidates, &layout);
	*ret_layout = layout;
}

void thread_layout_look(struct target *target, struct thread_layout *ret_layout)
{
	struct layout_look found;

	begin(&found);
	look_at_held(target, NULL, &found);
	end(target, &found, ret_layout);
}

void thread_layout_look_ahead(struct target *target, struct layout_look **look)
{
	if (!*look) {
		*look = malloc(sizeof(**look));
		if (!*look)
			return;
		begin(*look);
		for (size_t i = 0; i < target->tasks.count; i++)
			target->tasks.items[i]->layout_seen = false;
	}
	look_at_held(target, is_new, *look);
}

void thread_layout_look_last(struct target *target, struct layout_look **look, struct thread_layout *ret_layout)
{
	if (!*look) {
		thread_layout_look(target, ret_layout);
		return;
	}
	look_at_held(target, is_new, *look);
	end(target, *look, ret_layout);
	thread_layout_forget(look);
}

void thread_layout_forget(struct layout_look **look)
{
	free(*look);
	*look = NULL;
}

void thread_layout_look_at(struct task *task, struct thread_layout *layout)
{
	uint8_t bytes[LOOK_BYTES];
	struct user_regs_struct regs;

	if (layout->stack != 0 || !read_registers(task, &regs))
		return;
	if (target_read(task->target, arch_thread_pointer(&regs), bytes, LOOK_BYTES) == 0 ||
	    read_up_to_page_end(task->target, arch_thread_pointer(&regs), bytes))
		look_for_stack(bytes, &regs, layout);
}

struct stack_bounds thread_layout_main_stack(const struct target *target)
{
	struct stack_bounds bounds = { 0, 0 };
	struct map_line map;
	struct maps maps;

	if (maps_of(target, &maps) < 0)
		return bounds;
	while (maps_next(&maps.cursor, &map)) {
		if (strcmp(map.path, "[stack]") == 0)
			bounds = (struct stack_bounds){ map.start, map.end };
	}
	maps_close(&maps);
	return bounds;
}
