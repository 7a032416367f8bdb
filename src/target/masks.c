#include "target/masks.h"

#include "target/inject.h"
#include "target/ptrace.h"
#include "target/resident_area.h"
#include "arch/arch.h"
#include "arch/resident.h"

#include "base/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MASK_AT(target, index) ((target)->masks + sizeof(struct resident_masks) + \
				(uint64_t)(index) * sizeof(struct resident_mask))

/* --- the mapping --- */

static int write_head(struct target *target)
{
	struct resident_masks head = { .pid = (uint32_t)target->pid, .start_time = (uint32_t)target->start_time,
				       .count = target->mask_count };

	memcpy(head.magic, RESIDENT_MAGIC, sizeof(head.magic));
	return target_write(target, target->masks, &head, sizeof(head));
}

/* Its head first, then the link to it. */
static int map(struct target *target)
{
	struct task *task = inject_find_task(target);
	raddr at;
	int r = task ? resident_map(target, task, target->areas->start, RESIDENT_MASKS_SIZE, PROT_READ, &at) : -EAGAIN;

	if (r < 0)
		return r;
	target->masks = at;
	target->mask_count = 0;
	r = write_head(target);
	target->areas->header.masks = target->masks;
	if (r == 0)
		r = resident_area_write_header(target, target->areas);
	if (r < 0) {
		resident_unmap(task, target->masks, RESIDENT_MASKS_SIZE);
		target->masks = target->areas->header.masks = 0;
	}
	resident_note_begun(target, 0);
	return r;
}

int masks_remove(struct target *target, struct task *task)
{
	int r;

	if (target->masks == 0)
		return 0;
	/* The link to it goes with the header; by its magic it is known until then. */
	r = task ? resident_unmap(task, target->masks, RESIDENT_MASKS_SIZE) : -EAGAIN;
	if (r == 0)
		target->masks = 0;
	return r;
}

void masks_drop(struct target *target)
{
	target->masks = 0;
	target->mask_count = 0;
	target->masks_refused = false;
	vec_fini(&target->mask_places);
	for (size_t i = 0; i < target->tasks.count; i++)
		target->tasks.items[i]->mask_note = 0;
}

/* --- noting --- */

/* One that a thread has left which ended, else a new one; RESIDENT_MASKS_MAX: none. */
static uint32_t find_place(const struct target *target)
{
	if (target->mask_places.count > 0)
		return target->mask_places.items[target->mask_places.count - 1];
	return target->mask_count;
}

static void take_place(struct target *target, uint32_t place)
{
	if (target->mask_places.count > 0) {
		target->mask_places.count--;
	} else {
		target->mask_count = place + 1;
		write_head(target);
	}
}

static bool has_mapping(struct target *target)
{
	if (target->masks == 0 && !target->masks_refused)
		target->masks_refused = map(target) < 0;
	return target->masks != 0;
}

static int describe(struct task *task, struct resident_mask *ret)
{
	struct user_regs_struct regs;
	uint64_t start_time;
	int r = task_getregs(task, &regs);

	if (r == 0)
		r = proc_start_time(task->tid, &start_time);
	if (r == 0)
		*ret = (struct resident_mask){ (uint32_t)task->tid, (uint32_t)start_time, arch_thread_pointer(&regs) };
	return r;
}

void masks_note(struct task *task)
{
	struct target *target = task->target;
	struct resident_mask mask;
	uint32_t place;

	if (!target->areas || task->mask_note != 0 || !has_mapping(target))
		return;
	place = find_place(target);
	if (place == RESIDENT_MASKS_MAX || describe(task, &mask) < 0 ||
	    target_write(target, MASK_AT(target, place), &mask, sizeof(mask)) < 0)
		return;
	task->mask_note = place + 1;
	take_place(target, place);
}

/* Not by a thread: it may have other memory by now. */
void masks_forget(struct task *task)
{
	static const struct resident_mask none;
	struct target *target = task->target;

	uint32_t place = task->mask_note - 1, *slot;

	if (task->mask_note == 0)
		return;
	task->mask_note = 0;
	if (target->masks == 0 || !target->mem_writable ||
	    target_write(target, MASK_AT(target, place), &none, sizeof(none)) < 0)
		return;
	slot = vec_push(&target->mask_places);
	if (slot)
		*slot = place;
}

void masks_begin_again(struct target *target, raddr at)
{
	masks_drop(target);
	target->masks = at;
	if (at != 0)
		write_head(target);
}

/* --- a dead tracer's --- */

struct notes {
	struct resident_masks head;
	struct resident_mask *items;   /* by tid */
};

static int by_tid(const void *a, const void *b)
{
	const struct resident_mask *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int read_notes(struct target *target, raddr at, struct notes *ret)
{
	struct notes notes;
	int r = at != 0 && at % 4096 == 0 ? target_read(target, at, &notes.head, sizeof(notes.head)) : -ENOENT;

	if (r < 0)
		return r;
	if (memcmp(notes.head.magic, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE) != 0 ||
	    notes.head.count > RESIDENT_MASKS_MAX)
		return -ENOENT;
	notes.items = calloc(notes.head.count + 1, sizeof(*notes.items));
	if (!notes.items)
		return -ENOMEM;
	r = target_read(target, at + sizeof(struct resident_masks), notes.items,
			notes.head.count * sizeof(*notes.items));
	if (r < 0) {
		free(notes.items);
		return r;
	}
	qsort(notes.items, notes.head.count, sizeof(*notes.items), by_tid);
	*ret = notes;
	return 0;
}

static bool is_start(pid_t tid, uint32_t start_time)
{
	uint64_t now;

	return proc_start_time(tid, &now) == 0 && (uint32_t)now == start_time;
}

/* A thread that ended may have left a note beside that of another one with its number. */
static bool is_noted(const struct notes *notes, const struct task *task)
{
	const struct resident_mask key = { .tid = (uint32_t)task->tid };
	const struct resident_mask *found = bsearch(&key, notes->items, notes->head.count, sizeof(key), by_tid);
	const struct resident_mask *end = notes->items + notes->head.count;

	while (found && found > notes->items && found[-1].tid == key.tid)
		found--;
	for (; found && found < end && found->tid == key.tid; found++) {
		if (is_start(task->tid, found->start_time))
			return true;
	}
	return false;
}

/* Of a copy it is the first thread that a noted one has made, by fork. */
static bool is_copy_of_noted(const struct notes *notes, struct task *task)
{
	struct user_regs_struct regs;

	if (task_getregs(task, &regs) < 0)
		return false;
	for (uint32_t i = 0; i < notes->head.count; i++) {
		if (notes->items[i].tid != 0 && notes->items[i].thread_pointer == arch_thread_pointer(&regs))
			return true;
	}
	return false;
}

static bool is_the_noted_process(const struct target *target, const struct notes *notes)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if ((uint32_t)target->tasks.items[i]->tid == notes->head.pid)
			return is_start((pid_t)notes->head.pid, notes->head.start_time);
	}
	return false;
}

void masks_adopt(struct target *target, raddr at)
{
	struct notes notes;
	bool original;

	if (read_notes(target, at, &notes) < 0)
		return;
	target->masks = at;
	target->mask_count = notes.head.count;
	original = is_the_noted_process(target, &notes);
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (!task->stopped || stop_is_end(task->stop.kind))
			continue;
		if (original ? is_noted(&notes, task) : task->tid == target->pid && is_copy_of_noted(&notes, task))
			task->masked = task->sigtrap_was_blocked = true;
	}
	free(notes.items);
}
