#define _GNU_SOURCE
#include "target/resident.h"

#include "target/action.h"
#include "target/attach.h"
#include "target/faults.h"
#include "target/inject.h"
#include "target/jumps.h"
#include "target/masks.h"
#include "target/process.h"
#include "target/resident_area.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- the handler --- */

/* A guest without CLONE_SIGHAND has dispositions of its own. */
static bool has_own_actions(const struct target *target, const struct task *task)
{
	return task->guest && task->stopped && !stop_is_end(task->stop.kind) &&
	       syscall(SYS_kcmp, target->memory_tid, task->tid, KCMP_SIGHAND, 0, 0) != 0;
}

/* Those that are there already; later ones inherit it. */
static void install_in_guests(struct target *target, const struct kernel_sigaction *ours)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (has_own_actions(target, task) && inject_make_ready(task) == 0)
			action_set(task, ours);
	}
}

int resident_install_handler(struct target *target)
{
	struct task *task = inject_find_task(target);
	struct kernel_sigaction old, ours;
	int r;

	if (!task)
		return -EAGAIN;
	r = action_get(task, &old);
	if (r < 0)
		return r;
	/* One that an earlier tracer could not take back leads nowhere once our code is gone: never to be set again. */
	ours = action_ours(target);
	if (old.handler == ours.handler && old.restorer == ours.restorer)
		old = (struct kernel_sigaction){ .handler = 0 };
	r = action_note(target, &old);
	if (r < 0)
		return r;
	ours = action_ours(target);
	/* Even when nobody has seen it done: at the end it is asked which one is there. */
	target->handler_installed = true;
	r = action_set(task, &ours);
	if (r < 0)
		return r;
	target->handler_lost = target->handler_replaced = false;
	target->ask_for_faults = true;
	faults_serve(task);
	install_in_guests(target, &ours);
	return 0;
}

/* --- going away --- */

/* The program may have set an action of its own since: that one stays.  One that the kernel reset, because
 * SIGTRAP came to a thread that blocked it, still has our restorer. */
static int restore_action(struct target *target, struct task *task)
{
	const uint64_t restorer = target->areas->start + resident_code().restorer;
	struct kernel_sigaction old, now;
	int r = action_get(task, &now);

	if (r < 0 || now.restorer != restorer)
		return r;
	memcpy(&old, target->old_action, sizeof(old));
	return action_set(task, &old);
}

/* What is left in the process then needs none. */
int resident_return_handler(struct target *target)
{
	struct task *task = inject_find_task(target);
	int r = target->handler_installed ? -EAGAIN : 0;

	if (r < 0 && task)
		r = restore_action(target, task);
	if (r == 0)
		target->handler_installed = false;
	return r;
}

static int restore_guests(struct target *target)
{
	int failed = 0;

	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		int r;

		if (!has_own_actions(target, task))
			continue;
		r = inject_make_ready(task);
		if (r == 0)
			r = restore_action(target, task);
		if (r < 0 && r != -ESRCH)
			failed = r;
	}
	return failed;
}

/* The chain goes on behind it before it goes: who heals must be able to follow it.  What is known here stays: it may be
 * another's, of which this is a copy. */
static int take_out(struct target *target, struct task *task, const struct resident_area *area)
{
	raddr next = area->next ? area->next->start : 0;
	int r = resident_note_begun(target, area->start);

	if (r == 0)
		r = target_write(target, target->areas->start + offsetof(struct resident_header, next_area), &next,
				 sizeof(next));
	if (r < 0)
		return r;
	r = area->injected ? (task ? resident_area_unmap(task, area) : -ESRCH) : resident_area_clear(target, area, false);
	return r < 0 ? r : resident_note_begun(target, 0);
}

static int restore_actions(struct target *target, struct task *task)
{
	int failed = 0, r;

	if (task)
		faults_serve(task);
	if (target->handler_installed)
		failed = task ? restore_action(target, task) : -EAGAIN;
	r = restore_guests(target);
	return failed < 0 ? failed : r;
}

static int remove_code(struct target *target, struct task *task)
{
	/* There is one such note, which is taken for each area below. */
	int r = task ? resident_remove_begun(target, task) : 0;

	/* What cannot be taken out now is noted in the main area as begun: who heals finds it there, and the rest. */
	for (struct resident_area *area = target->areas->next; r == 0 && area; area = area->next)
		r = take_out(target, task, area);
	if (r == 0)
		r = masks_remove(target, task);
	return r < 0 ? r : resident_area_clear(target, target->areas, true);
}

/* The process has unmapped the object in whose unused bytes our code stood. */
static bool is_taken_away(struct target *target)
{
	uint8_t byte;
	int r = target->areas ? target_read(target, target->areas->start, &byte, 1) : 0;

	return r == -EFAULT;
}

int resident_keep_stub(struct target *target)
{
	uint8_t byte;

	if (!is_taken_away(target) || target_read(target, target->stub, &byte, 1) == 0)
		return 0;
	return resident_move_stub(target);
}

/* What is left then is elsewhere, and the action, which leads to nothing. */
static int remove_rest(struct target *target, struct task *task)
{
	static const uint8_t zeros[STUB_SPACE];
	int r = resident_keep_stub(target), failed = 0;

	if (r == 0 && target->handler_installed)
		r = task ? restore_action(target, task) : -EAGAIN;
	if (r == 0)
		r = restore_guests(target);
	if (r < 0)
		return r;
	for (struct resident_area *area = target->areas->next; area; area = area->next) {
		r = area->injected ? resident_area_unmap(task, area) : resident_area_clear(target, area, false);
		if (r < 0)
			failed = r;
	}
	r = masks_remove(target, task);
	if (r == 0)
		r = target_write(target, target->stub, zeros, sizeof(zeros));
	return failed < 0 ? failed : r;
}

int resident_remove(struct target *target)
{
	int r;

	if (!target->areas)
		return 0;
	if (is_taken_away(target)) {
		r = remove_rest(target, inject_find_task(target));
	} else {
		/* With the handler still set its code must stay.  A signal that was in the way of our calls has led a
		 * thread into it. */
		r = restore_actions(target, inject_find_task(target));
		if (r == 0 && !target_leave_resident(target))
			r = -EBUSY;
		if (r == 0)
			r = remove_code(target, inject_find_task(target));
	}
	if (r == 0) {
		target->handler_installed = false;
		resident_forget(target);
	}
	return r;
}

int resident_remove_copy(struct target *copy, struct task *task)
{
	int r = copy->areas ? restore_actions(copy, task) : 0;

	return r == 0 && copy->areas ? remove_code(copy, task) : r;
}

/* The copy may be older than what is known: a fork that has just returned began before the int3s were taken out. */
unsigned bp_restore_copy(struct target *copy)
{
	unsigned left = 0;

	for (size_t i = 0; i < copy->breakpoints.count; i++) {
		const struct breakpoint *bp = copy->breakpoints.items[i];
		uint8_t there;

		if (bp->was_planted && target_read_surely(copy, bp->address, &there, 1) == 0 && there == ARCH_BREAKPOINT_BYTE)
			left += target_write(copy, bp->address, &bp->original, 1) < 0;
	}
	return left;
}

void resident_forget(struct target *target)
{
	jumps_forget(target);
	while (target->areas) {
		struct resident_area *area = target->areas;

		target->areas = area->next;
		resident_area_free(area);
	}
	target->stub = 0;
	masks_drop(target);
	target->handler_installed = false;
}

bool resident_is_safe(struct target *target, const char **ret_reason)
{
	const uint64_t bit = 1ULL << (SIGTRAP - 1);

	*ret_reason = NULL;
	if (!target->handler_installed) {
		*ret_reason = "nothing is planted yet";
		return true;
	}
	if (target->handler_replaced)
		*ret_reason = "the program has set a SIGTRAP handler of its own by a system call, in place of ours; detach, and "
			      "attach again, to have it behind ours";
	if (is_taken_away(target))
		*ret_reason = "the program has unmapped the object that the SIGTRAP handler stood in";
	for (size_t i = 0; i < target->tasks.count; i++) {
		uint64_t blocked, ignored, caught;

		if (process_signal_masks(target->tasks.items[i]->tid, &blocked, &ignored, &caught) < 0)
			continue;
		if (blocked & bit)
			*ret_reason = "a thread blocks SIGTRAP";
		else if (ignored & bit)
			*ret_reason = "the program ignores SIGTRAP";
		else if (!(caught & bit))
			*ret_reason = "the program has reset SIGTRAP's disposition";
	}
	return *ret_reason == NULL;
}
