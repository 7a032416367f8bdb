#define _GNU_SOURCE
#include "target/jumps.h"

#include "target/jumps_private.h"

#include "target/handlers.h"
#include "target/inject.h"
#include "target/ptrace.h"
#include "target/resident_area.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REACH ((raddr)1 << 31)
#define SITE_ALIGN 16u
#define INT3 0xcc
#define HANDLERS_MAX 64                    /* of signals that come to one thread while it makes our calls */

/* --- calls of the target --- */

int jumps_call(struct task *task, const struct arch_stub_call *call, int64_t *ret_result)
{
	int r = inject_syscall(task, task->target->stub, call, ret_result);

	if (r < 0)
		return r;
	return *ret_result < 0 && *ret_result > -4096 ? (int)*ret_result : 0;
}

int jumps_call_plain(struct task *task, uint64_t number, uint64_t a, uint64_t b, uint64_t c)
{
	const struct arch_stub_call made = { .number = number, .args = { a, b, c }, .data_arg = -1 };
	int64_t result;

	return jumps_call(task, &made, &result);
}

/* --- areas --- */

static int write_header(struct target *target, const struct jump_area *area)
{
	struct ring_code_header header = { .ring = target->ring, .ring_size = target->ring_size, .notes = area->notes };

	memcpy(header.magic, RING_CODE_MAGIC, RING_CODE_MAGIC_SIZE);
	return target_write(target, area->start, &header, sizeof(header));
}

int jumps_add_area(struct target *target, raddr start, struct jump_area **ret_area)
{
	struct jump_area *area = calloc(1, sizeof(*area));

	if (!area)
		return -ENOMEM;
	area->start = start;
	area->used = ring_code().sites;
	area->next = target->jump_areas;
	target->jump_areas = area;
	*ret_area = area;
	return 0;
}

/* Its magic stands there before it is two mappings: who heals knows it by that, or as begun. */
static int map_area(struct target *target, raddr near, struct jump_area **ret_area)
{
	struct task *task = inject_find_task(target);
	struct ring_code code = ring_code();
	raddr start;
	int r;

	if (!task)
		return -EAGAIN;
	r = resident_map(target, task, near, RING_CODE_SIZE + JUMPS_PAGE, PROT_READ | PROT_EXEC, &start);
	if (r == -ETIMEDOUT)
		resident_begun(target, &target->area_lost);
	if (r == 0)
		r = jumps_add_area(target, start, ret_area);
	if (r == 0)
		r = write_header(target, *ret_area);
	if (r == 0)
		r = resident_note_begun(target, 0);
	if (r == 0)
		r = target_write(target, start + sizeof(struct ring_code_header), code.bytes, code.length);
	if (r == 0)
		r = jumps_call_plain(task, SYS_mprotect, start + RING_CODE_SIZE, JUMPS_PAGE, PROT_READ | PROT_WRITE);
	if (r == 0)
		r = jumps_call_plain(task, SYS_madvise, start + RING_CODE_SIZE, JUMPS_PAGE, MADV_WIPEONFORK);
	return r;
}

static bool has_room(const struct jump_area *area)
{
	return area->used + RING_SITE_MAX + (area->notes + 1) * sizeof(struct ring_code_note) <= RING_CODE_SIZE;
}

static bool is_in_reach(const struct jump_area *area, raddr address)
{
	raddr distance = address > area->start ? address - area->start : area->start - address;

	return distance < REACH - 2 * RING_CODE_SIZE;
}

static int area_for(struct target *target, raddr address, struct jump_area **ret_area)
{
	unsigned count = 0;

	for (struct jump_area *area = target->jump_areas; area; area = area->next, count++) {
		if (!has_room(area) || !is_in_reach(area, address))
			continue;
		*ret_area = area;
		return 0;
	}
	return count < JUMP_AREAS_MAX ? map_area(target, address, ret_area) : -ENOSPC;
}

const struct jump_area *jumps_area_at(const struct target *target, raddr pc)
{
	const struct jump_area *area = target->jump_areas;

	while (area && pc - area->start >= RING_CODE_SIZE)
		area = area->next;
	return area;
}

/* --- sites --- */

static uint32_t covered_by(uint32_t length)
{
	return length < ARCH_JUMP_SIZE ? ARCH_JUMP_SIZE : length;
}

static bool is_awaited(const struct jump_words *words, const struct ring_window *window)
{
	for (size_t i = 0; i < words->words.count; i++) {
		raddr word = words->words.items[i];

		if (word > window->address && word - window->address < window->length)
			return true;
	}
	return false;
}

/* The last one. */
static raddr note_of(const struct jump_area *area)
{
	return area->start + RING_CODE_SIZE - area->notes * sizeof(struct ring_code_note);
}

static int write_note(struct target *target, struct jump_area *area, const struct ring_window *window, raddr site)
{
	struct ring_code_note note = {
		.window = window->address, .site = site, .number = window->number, .length = (uint8_t)window->length,
		.record = (uint8_t)window->record, .is_return = window->is_return, .hands_on = window->hands_on,
		.allocates = window->allocates, .resizes = window->resizes, .sampled = window->sampled, .told = window->told,
		.old_argument = window->old_argument, .described = window->described,
		.size_argument = window->size_argument, .count_argument = window->count_argument,
		.words_below = (uint8_t)(window->sp_below / 8), .waits = (uint8_t)window->waits,
		.unmaps = (uint8_t)window->unmaps, .stored = window->stored,
	};
	int r;

	memcpy(note.text, window->text, covered_by(window->length));
	r = target_write(target, note_of(area) - sizeof(note), &note, sizeof(note));
	if (r < 0)
		return r;
	area->notes++;
	return write_header(target, area);
}

static int put_site(struct target *target, struct jump_area *area, const struct ring_window *window, struct ring_site *ret,
		    const char **ret_reason)
{
	raddr at = area->start + ((area->used + SITE_ALIGN - 1) & ~(SITE_ALIGN - 1));
	uint8_t code[RING_SITE_MAX];
	int r = ring_site_build(window, area->start, at, code, ret, ret_reason);

	if (r == 0)
		r = target_write(target, at, code, ret->length);
	if (r == 0)
		r = write_note(target, area, window, at);
	if (r == 0)
		area->used = (uint32_t)(at - area->start) + ret->length;
	return r;
}

static int check_memory(struct target *target, const struct ring_window *window)
{
	uint8_t there[ARCH_WINDOW_MAX];
	uint32_t covered = covered_by(window->length);
	int r = target_read_surely(target, window->address, there, covered);

	return r < 0 ? r : memcmp(there, window->text, covered) == 0 ? 0 : -EBUSY;
}

int jumps_add(struct target *target, struct ring_window *window, uint32_t module, const struct jump_words *words,
	      uint32_t *ret_number, const char **ret_reason)
{
	struct jump_area *area = NULL;
	struct jump *jump;
	int r = check_memory(target, window);

	if (r == 0 && is_awaited(words, window))
		r = -EBUSY;
	if (r == 0)
		r = area_for(target, window->address, &area);
	if (r < 0)
		return r;
	jump = vec_push(&target->jumps);
	target->text_changes++;
	if (!jump)
		return -ENOMEM;
	*jump = (struct jump){ .module = module };
	memcpy(jump->text, window->text, covered_by(window->length));
	window->number = (uint32_t)target->jumps.count - 1;
	r = put_site(target, area, window, &jump->site, ret_reason);
	if (r < 0) {
		target->jumps.count--;
		return r;
	}
	jumps_spare(target, jump, note_of(area) + offsetof(struct ring_code_note, pad));
	*ret_number = window->number;
	return 0;
}

/* --- planting --- */

static void jump_bytes(const struct jump *jump, uint8_t bytes[ARCH_JUMP_SIZE])
{
	/* It reaches: that was seen when the way back was made, and a pad's place is chosen so. */
	arch_put_jump(jump->site.window, jump->pad != 0 ? jump->pad : jump->site.at, bytes);
}

static bool is_to_plant(const struct jump *jump)
{
	return !jump->planted && !jump->was_planted && !jump->gone;
}

/* In whose window a pc is, of those to be planted. */
static const struct jump *jump_to_plant_at(const struct target *target, raddr pc)
{
	for (size_t i = 0; i < target->jumps.count; i++) {
		const struct jump *jump = &target->jumps.items[i];

		if (is_to_plant(jump) && pc - jump->site.window < jump->site.window_length)
			return jump;
	}
	return NULL;
}

/* Where it goes on that is at this pc now: in a site, or where it is.  0 or -EBUSY. */
static int enter_site(const struct target *target, raddr *pc)
{
	const struct jump *jump = jump_to_plant_at(target, *pc);

	if (jump)
		*pc = ring_site_enter(&jump->site, *pc);
	return *pc == ARCH_NOWHERE ? -EBUSY : 0;
}

/* A signal that came while the thread made our calls was delivered, and its handler, which has run no instruction yet, goes back to
 * where the thread was found: that no look at its stack has seen.  One frame directly upon another, when there were several. */
static int enter_site_later(struct target *target, raddr sp)
{
	struct arch_sigframe frame;
	int r = 0;

	for (unsigned i = 0; r == 0 && task_handler_begins(target, sp, &frame); i++) {
		raddr pc = frame.pc;

		if (i == HANDLERS_MAX)
			return -EBUSY;

		r = enter_site(target, &pc);
		if (r == 0 && pc != frame.pc)
			r = target_write(target, sp + ARCH_SIGFRAME_PC, &pc, sizeof(pc));
		sp = frame.sp;
	}
	return r;
}

static int enter_site_of(struct target *target, struct task *task)
{
	struct user_regs_struct regs;
	bool stood = task->is_looked_at;
	raddr pc;
	int r;

	if (!task->stopped || stop_is_end(task->stop.kind) || task_getregs(task, &regs) < 0)
		return 0;
	pc = arch_pc(&regs);
	r = enter_site(target, &pc);
	if (r == 0 && pc != arch_pc(&regs))
		r = ptrace_set_pc(task->tid, pc) < 0 ? -ESRCH : 0;
	/* Without a call of ours no signal was delivered since its stack was looked at. */
	return r < 0 || stood ? r : enter_site_later(target, arch_sp(&regs));
}

/* Each thread is looked at once, however many jumps there are: there may be thousands of both.  A site does the same as what
 * its jump will replace. */
static int enter_sites(struct target *target)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < target->tasks.count; i++)
		r = enter_site_of(target, target->tasks.items[i]);
	return r;
}

static int switch_to(struct target *target, raddr ring)
{
	const struct ring_switch value = { .ring = ring };
	int failed = 0;

	for (const struct jump_area *area = target->jump_areas; area; area = area->next) {
		int r = target_write(target, area->start + RING_CODE_SIZE, &value, sizeof(value));

		if (r < 0)
			failed = r;
	}
	return failed;
}

int jumps_plant(struct target *target)
{
	int r = switch_to(target, target->ring);

	if (r == 0)
		r = enter_sites(target);
	for (size_t i = 0; r == 0 && i < target->jumps.count; i++) {
		struct jump *jump = &target->jumps.items[i];
		uint8_t bytes[ARCH_JUMP_SIZE];

		if (!is_to_plant(jump))
			continue;
		jump_bytes(jump, bytes);
		jump->planted = jump->was_planted = true;
		r = target_write(target, jump->site.window, bytes, sizeof(bytes));
	}
	return r;
}

/* 1: it is ours, 0: it is not there. */
static int is_there(struct target *target, const struct jump *jump)
{
	uint8_t bytes[ARCH_JUMP_SIZE], there[ARCH_JUMP_SIZE];
	int r = target_read_surely(target, jump->site.window, there, sizeof(there));

	jump_bytes(jump, bytes);
	return r < 0 ? r : memcmp(there, bytes, sizeof(bytes)) == 0;
}

unsigned jumps_verify(struct target *target)
{
	unsigned missing = 0;

	for (size_t i = 0; i < target->jumps.count; i++) {
		struct jump *jump = &target->jumps.items[i];
		bool overwritten = jump->planted && is_there(target, jump) == 0;

		missing += overwritten && !jump->overwritten && !jump->site.waits && !jump->site.unmaps;
		jump->overwritten = overwritten;
	}
	return missing;
}

/* What is to stand there without the jump.  Where another tool has put an int3 (perf a uprobe, a debugger that was killed) that stays, and
 * what of the jump is left goes: it would be found there when the int3 goes.  False: nothing of it is there. */
static bool without_jump(const struct jump *jump, uint8_t there[ARCH_JUMP_SIZE])
{
	uint8_t ours[ARCH_JUMP_SIZE];

	jump_bytes(jump, ours);
	for (size_t i = 0; i < ARCH_JUMP_SIZE; i++) {
		if (there[i] == ours[i])
			there[i] = jump->text[i];
		else if (there[i] != INT3)
			return false;
	}
	return true;
}

static bool restore(struct target *target, const struct jump *jump)
{
	uint8_t bytes[ARCH_JUMP_SIZE];

	return target_read_surely(target, jump->site.window, bytes, sizeof(bytes)) < 0 || !without_jump(jump, bytes) ||
	       target_write(target, jump->site.window, bytes, sizeof(bytes)) == 0;
}

unsigned jumps_restore(struct target *target)
{
	unsigned left = 0;

	for (size_t i = 0; i < target->jumps.count; i++) {
		struct jump *jump = &target->jumps.items[i];

		if (!jump->planted)
			continue;
		if (restore(target, jump))
			jump->planted = false;
		else
			left++;
	}
	return left;
}

unsigned jumps_restore_copy(struct target *copy)
{
	unsigned left = 0;

	for (size_t i = 0; i < copy->jumps.count; i++)
		left += copy->jumps.items[i].was_planted && !restore(copy, &copy->jumps.items[i]);
	return left;
}

int jumps_switch_on(struct target *target)
{
	return switch_to(target, target->ring);
}

void jumps_switch_off(struct target *target)
{
	if (target->jump_areas)
		switch_to(target, 0);
}

void jumps_drop_module(struct target *target, uint32_t module)
{
	for (size_t i = 0; i < target->jumps.count; i++) {
		struct jump *jump = &target->jumps.items[i];

		if (jump->module != module)
			continue;
		jump->planted = jump->was_planted = false;
		jump->gone = true;
	}
}

/* --- where a pc is --- */

bool jumps_contain(const struct target *target, raddr pc)
{
	return jumps_area_at(target, pc) != NULL || jumps_pads_contain(target, pc);
}

bool jumps_await(struct task *task)
{
	struct user_regs_struct regs;

	if (!task->stopped)
		return true;
	if (stop_is_end(task->stop.kind) || task_getregs(task, &regs) < 0)
		return false;
	return jumps_contain(task->target, arch_pc(&regs)) || task_returns_inside(task);
}

static const struct jump *jump_at(const struct target *target, raddr pc)
{
	if (!jumps_contain(target, pc))
		return NULL;
	for (size_t i = 0; i < target->jumps.count; i++) {
		const struct jump *jump = &target->jumps.items[i];

		if (pc - jump->site.at < jump->site.length || (pc == jump->pad && !jump->gone))
			return jump;
	}
	return NULL;
}

raddr jumps_origin(const struct target *target, raddr pc)
{
	const struct jump *jump = jump_at(target, pc);
	raddr origin = jump ? ring_site_leave(&jump->site, pc) : pc;

	if (jump && pc == jump->pad)
		return jump->site.window;
	return origin == ARCH_NOWHERE ? pc : origin;
}

raddr jumps_leave(const struct target *target, raddr pc)
{
	const struct jump *jump = jump_at(target, pc);

	return jump && !jump->planted ? jumps_origin(target, pc) : pc;
}

void jumps_hide(const struct target *target, raddr at, void *buf, size_t len)
{
	uint8_t *bytes = buf;

	for (size_t i = 0; i < target->jumps.count; i++) {
		const struct jump *jump = &target->jumps.items[i];

		if (!jump->planted || jump->site.window + ARCH_JUMP_SIZE <= at || jump->site.window >= at + len)
			continue;
		for (size_t k = 0; k < ARCH_JUMP_SIZE; k++) {
			if (jump->site.window + k - at < len)
				bytes[jump->site.window + k - at] = jump->text[k];
		}
	}
}

/* --- going --- */

int jumps_remove(struct target *target, struct task *task)
{
	int failed = 0;

	if (!target->jump_areas && target->ring == 0 && !jumps_descriptor_is_begun(target) && target->area_lost == 0)
		return 0;
	if (!task)
		return -EAGAIN;
	if (target->ring_lost)
		failed = jumps_find_ring(target);
	if (failed == 0 && jumps_descriptor_is_begun(target))
		failed = jumps_close_descriptor(target, task);
	if (failed == 0 && target->area_lost != 0)
		failed = resident_remove_unlinked(target, task, target->area_lost);
	/* It is the areas' notes that tell where pads are. */
	if (failed == 0)
		failed = jumps_remove_pads(target, task);
	if (failed < 0)
		return failed;
	for (const struct jump_area *area = target->jump_areas; area; area = area->next) {
		int r = resident_unmap(task, area->start, RING_CODE_SIZE + JUMPS_PAGE);

		if (r < 0)
			failed = r;
	}
	if (failed == 0 && target->ring != 0)
		failed = resident_unmap(task, target->ring, target->ring_size);
	return failed;
}

void jumps_forget(struct target *target)
{
	while (target->jump_areas) {
		struct jump_area *area = target->jump_areas;

		target->jump_areas = area->next;
		free(area);
	}
	jumps_forget_pads(target);
	vec_fini(&target->jumps);
	vec_fini(&target->code_words);
	vec_fini(&target->code_ranges);
	target->ring = target->ring_size = target->area_lost = 0;
	target->ring_lost = false;
}
