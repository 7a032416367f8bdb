#define _GNU_SOURCE
/* The areas of resident code: where they may lie, what slots they hold, where a pc in them belongs. */
#include "target/resident_area.h"

#include "target/inject.h"
#include "target/jumps.h"
#include "target/process.h"
#include "target/resident.h"

#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096ULL
#define STEPS 64
#define PLACES (2 * (STEPS - 1))
#define LOW_END (4u << 20)
#define FIELD_START_BRK 47                 /* in /proc/PID/stat */
#define REACH (1ULL << 30)                 /* how far from its instructions an injected area may lie; rel32
					    * reaches twice as far, the object itself has a size */

/* --- places --- */

static bool is_zero(struct target *target, raddr start, raddr end)
{
	uint8_t bytes[PAGE];

	if (end - start > sizeof(bytes) || target_read(target, start, bytes, end - start) < 0)
		return false;
	for (size_t i = 0; i < end - start; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

/* An object that dlclose never takes away: the program, the loader, libc. */
static bool is_permanent(const struct target *target, uint32_t module, const char *exe)
{
	const char *path = target->modules.modules.items[module].path;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	static const char *const prefixes[] = { "libc.so", "libc-2", "ld-linux", "ld-2", "ld-musl", "libc.musl" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return strcmp(exe, path) == 0;
}

static struct module_slack *biggest_slack(struct target *target)
{
	struct module_slack *best = NULL;
	char exe[4096];

	process_exe(target->memory_tid, exe, sizeof(exe));
	for (size_t i = 0; i < target->slacks.count; i++) {
		struct module_slack *slack = &target->slacks.items[i];

		if (!slack->used && is_permanent(target, slack->module, exe) &&
		    (!best || slack->end - slack->start > best->end - best->start) &&
		    is_zero(target, slack->start, slack->end))
			best = slack;
	}
	return best;
}

static struct module_slack *slack_of(struct target *target, uint32_t module)
{
	for (size_t i = 0; i < target->slacks.count; i++) {
		struct module_slack *slack = &target->slacks.items[i];

		if (!slack->used && slack->module == module && is_zero(target, slack->start, slack->end))
			return slack;
	}
	return NULL;
}

/* --- areas --- */

void resident_area_free(struct resident_area *area)
{
	if (!area)
		return;
	free(area->entries);
	free(area->slots);
	free(area->slot_used);
	free(area);
}

int resident_area_new(raddr start, uint32_t size, bool is_main, struct resident_area **ret_area)
{
	struct resident_area *area = calloc(1, sizeof(*area));
	int r;

	if (!area)
		return -ENOMEM;
	area->start = start;
	r = resident_layout(size, is_main, &area->header);
	if (r == 0) {
		area->entries = calloc(area->header.entry_capacity, sizeof(*area->entries));
		area->slots = calloc(area->header.entry_capacity, sizeof(*area->slots));
		area->slot_used = calloc(area->header.entry_capacity, 1);
		if (!area->entries || !area->slots || !area->slot_used)
			r = -ENOMEM;
	}
	if (r < 0) {
		resident_area_free(area);
		return r;
	}
	*ret_area = area;
	return 0;
}

int resident_area_write_header(struct target *target, const struct resident_area *area)
{
	return target_write(target, area->start, &area->header, sizeof(area->header));
}

/* Before it is made, and while it is not linked.  A copy's is not noted here: its header is its own. */
int resident_note_begun(struct target *target, raddr at)
{
	return target_write(target, target->areas->start + offsetof(struct resident_header, begun), &at, sizeof(at));
}

int resident_area_clear(struct target *target, const struct resident_area *area, bool with_stub)
{
	static const uint8_t zeros[PAGE];
	uint64_t length = area->header.area_size + (with_stub ? STUB_SPACE : 0);

	return target_write(target, area->start, zeros, length < sizeof(zeros) ? length : sizeof(zeros));
}

int resident_unmap(struct task *task, raddr start, uint64_t size)
{
	const struct arch_stub_call call = { .number = SYS_munmap, .args = { start, size }, .data_arg = -1 };
	int64_t result;
	int r = inject_syscall(task, task->target->stub, &call, &result);

	return r < 0 ? r : (int)result;
}

int resident_area_unmap(struct task *task, const struct resident_area *area)
{
	return resident_unmap(task, area->start, INJECTED_SIZE);
}

static int link_to(struct target *target, struct resident_area *last, raddr next)
{
	last->header.next_area = next;
	return target_write(target, last->start + offsetof(struct resident_header, next_area), &next, sizeof(next));
}

/* The area's own bytes first, then the link to it.  When that fails nothing of it is left, and it is freed. */
static int append_area(struct target *target, struct resident_area *area)
{
	struct resident_area *last = target->areas;
	int r = resident_area_write_header(target, area);
	struct task *task;

	while (last && last->next)
		last = last->next;
	if (r == 0 && last)
		r = link_to(target, last, area->start);
	if (r == 0) {
		*(last ? &last->next : &target->areas) = area;
		return 0;
	}
	if (last)
		link_to(target, last, 0);
	task = area->injected ? inject_find_task(target) : NULL;
	if (task)
		resident_area_unmap(task, area);
	else
		resident_area_clear(target, area, !last);
	resident_area_free(area);
	return r;
}

int resident_move_stub(struct target *target)
{
	struct module_slack *slack = biggest_slack(target);

	if (!slack || slack->end - slack->start < STUB_SPACE)
		return -ENOSPC;
	target->stub = slack->end - STUB_SPACE;
	return 0;
}

int resident_prepare(struct target *target)
{
	struct module_slack *slack = biggest_slack(target);
	struct resident_code code = resident_code();
	struct resident_area *area;
	int r;

	if (!slack || slack->end - slack->start < STUB_SPACE)
		return -ENOSPC;
	target->stub = slack->end - STUB_SPACE;
	slack->used = true;
	r = resident_area_new(slack->start, (uint32_t)(target->stub - slack->start), true, &area);
	if (r < 0)
		return r;
	area->module = slack->module;
	/* First of all what it is found by, should this process die. */
	r = append_area(target, area);
	if (r < 0)
		return r;
	r = target_write(target, area->start + code.handler, code.bytes, code.length);
	if (r < 0) {
		resident_area_clear(target, area, true);       /* a part of it may stand there */
		target->areas = NULL;
		resident_area_free(area);
	}
	return r;
}

/* --- slots --- */

static raddr slot_address(const struct resident_area *area, uint32_t slot)
{
	return area->start + area->header.slots_offset + (uint64_t)slot * ARCH_SLOT_SIZE;
}

static int write_entry(struct target *target, struct resident_area *area, uint32_t index)
{
	raddr at = area->start + area->header.table_offset + (uint64_t)index * sizeof(struct resident_entry);

	return target_write(target, at, &area->entries[index], sizeof(area->entries[index]));
}

static int write_count(struct target *target, struct resident_area *area)
{
	return target_write(target, area->start + offsetof(struct resident_header, entry_count),
			    &area->header.entry_count, sizeof(area->header.entry_count));
}

static struct resident_entry entry_of(const struct breakpoint *bp)
{
	struct resident_entry entry = { .breakpoint = bp->address, .slot = bp->slot };

	_Static_assert(sizeof(entry.text) == sizeof(bp->text), "the text of a breakpoint");
	memcpy(entry.text, bp->text, sizeof(entry.text));
	entry.text_len = (uint8_t)bp->text_len;
	return entry;
}

/* Puts the copy into an area; -ENOTSUP: it cannot be moved there, -ENOSPC: the area is full. */
static int put_in_area(struct target *target, struct resident_area *area, struct breakpoint *bp,
		       const char **ret_reason)
{
	uint32_t slot = 0, length, jump, index = area->header.entry_count;
	uint8_t code[ARCH_SLOT_SIZE];
	int r;

	if (index == area->header.entry_capacity)
		return -ENOSPC;
	while (area->slot_used[slot])
		slot++;
	r = arch_displace(bp->text, bp->text_len, bp->address, slot_address(area, slot), code, &length, &jump,
			  ret_reason);
	if (r < 0)
		return r;
	r = target_write(target, slot_address(area, slot), code, length);
	if (r < 0)
		return r;
	bp->slot = slot_address(area, slot);
	area->entries[index] = entry_of(bp);
	area->slots[index] = slot;
	r = write_entry(target, area, index);
	if (r < 0)
		return r;
	area->header.entry_count++;
	r = write_count(target, area);
	if (r < 0) {
		area->header.entry_count--;
		return r;
	}
	area->slot_used[slot] = 1;
	return 0;
}

/* brk fails where anything is in its way, and there are programs that have no other memory. */
static bool has_heap_above(const struct target *target, raddr base)
{
	char path[32];
	uint64_t start;

	snprintf(path, sizeof(path), "/proc/%d/stat", target->memory_tid);
	return proc_stat_number(path, FIELD_START_BRK, &start) == 0 && start >= base && start - base < 2 * REACH;
}

/* Of a program that is not loaded anywhere there is less below than that: the same share of what there is. */
static raddr below_at(raddr base, raddr step)
{
	return base >= REACH ? base - step * (REACH / STEPS) : base / STEPS * (STEPS - step) & ~(raddr)(PAGE - 1);
}

/* The nearest first, above and below in turn. */
static raddr place_near(raddr base, unsigned i)
{
	raddr step = i / 2 + 1;

	return i % 2 ? below_at(base, step) : base + step * (REACH / STEPS);
}

/* Below, or else as far above as can be. */
static raddr place_beside_heap(raddr base, unsigned i)
{
	return i < PLACES / 2 ? below_at(base, i + 1) : base + (PLACES - i) * (REACH / STEPS);
}

/* vm.mmap_min_addr, or a security module's. */
static bool is_low(raddr at)
{
	return at < LOW_END;
}

static bool is_refusal(int64_t result)
{
	return result == -EPERM || result == -EACCES;
}

int resident_map(struct target *target, struct task *task, raddr near, uint64_t size, int protection,
		 raddr *ret_start)
{
	struct arch_stub_call call = {
		.number = SYS_mmap,
		.args = { 0, size, (uint64_t)protection,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, (uint64_t)-1, 0 },
		.data_arg = -1,
	};
	raddr base = near & ~(PAGE - 1);
	bool heap_is_above = has_heap_above(target, base);

	for (unsigned i = 0; i < PLACES; i++) {
		int64_t result;
		int r;

		call.args[0] = heap_is_above ? place_beside_heap(base, i) : place_near(base, i);
		r = resident_note_begun(target, call.args[0]);
		if (r == 0)
			r = inject_syscall(task, target->stub, &call, &result);
		if (r < 0)
			return r;
		if (result == (int64_t)call.args[0]) {
			*ret_start = call.args[0];
			return 0;
		}
		/* What is there is the program's own, and is not to be taken for ours. */
		r = resident_note_begun(target, 0);
		if (r < 0)
			return r;
		if (result != -EEXIST && result != -ENOMEM && result != -EINVAL && !(is_low(call.args[0]) && is_refusal(result)))
			return result < 0 ? (int)result : -ENOSPC;
	}
	return -ENOSPC;
}

static int injected_area(struct target *target, raddr near, struct resident_area **ret_area)
{
	struct task *task = inject_find_task(target);
	struct resident_area *area;
	int r;

	if (!task)
		return -ENOSPC;
	r = resident_area_new(0, INJECTED_SIZE, false, &area);
	if (r < 0)
		return r;
	r = resident_map(target, task, near, INJECTED_SIZE, PROT_READ | PROT_EXEC, &area->start);
	if (r < 0) {
		resident_area_free(area);
		return r;
	}
	area->injected = true;
	area->module = MODULE_NONE;
	r = append_area(target, area);
	if (r < 0)
		return r;
	resident_note_begun(target, 0);
	*ret_area = area;
	return 0;
}

static int area_for(struct target *target, const struct breakpoint *bp, struct resident_area **ret_area)
{
	struct module_slack *slack = slack_of(target, bp->module);
	struct resident_area *area;
	int r;

	if (!slack || resident_area_new(slack->start, (uint32_t)(slack->end - slack->start), false, &area) < 0)
		return injected_area(target, bp->address, ret_area);
	area->module = bp->module;
	slack->used = true;
	resident_note_begun(target, area->start);
	r = append_area(target, area);
	if (r < 0)
		return r;
	resident_note_begun(target, 0);
	*ret_area = area;
	return 0;
}

int resident_add_slot(struct target *target, struct breakpoint *bp, const char **ret_reason)
{
	struct resident_area *area;
	int r;

	/* Areas in another object's slack would go with it. */
	for (area = target->areas; area; area = area->next) {
		if (area != target->areas && !area->injected && area->module != bp->module)
			continue;
		r = put_in_area(target, area, bp, ret_reason);
		if (r != -ENOSPC && r != -ENOTSUP)
			return r;
	}
	for (unsigned tries = 0; tries < 2; tries++) {
		r = area_for(target, bp, &area);
		if (r < 0) {
			*ret_reason = "no room for the displaced instruction within its reach";
			return r;
		}
		r = put_in_area(target, area, bp, ret_reason);
		if (r != -ENOSPC)
			return r;
	}
	return r;
}

void resident_drop_slot(struct target *target, struct breakpoint *bp)
{
	for (struct resident_area *area = target->areas; area; area = area->next) {
		uint32_t last = area->header.entry_count - 1;

		for (uint32_t i = 0; i < area->header.entry_count; i++) {
			struct resident_entry moved = area->entries[last];

			if (area->entries[i].slot != bp->slot)
				continue;
			area->slot_used[area->slots[i]] = 0;
			/* In the order that the handler can bear: no breakpoint, slot, breakpoint. */
			area->entries[i].breakpoint = 0;
			write_entry(target, area, i);
			area->entries[i] = moved;
			area->entries[i].breakpoint = 0;
			write_entry(target, area, i);
			area->entries[i].breakpoint = moved.breakpoint;
			write_entry(target, area, i);
			area->slots[i] = area->slots[last];
			area->header.entry_count--;
			write_count(target, area);
			return;
		}
	}
}

void resident_drop_module(struct target *target, uint32_t module)
{
	struct resident_area **link = &target->areas;

	while (*link) {
		struct resident_area *area = *link, *before = target->areas;

		if (area == target->areas || area->injected || area->module != module) {
			link = &area->next;
			continue;
		}
		while (before->next != area)
			before = before->next;
		before->header.next_area = area->next ? area->next->start : 0;
		target_write(target, before->start + offsetof(struct resident_header, next_area),
			     &before->header.next_area, sizeof(before->header.next_area));
		*link = area->next;
		resident_area_free(area);
	}
}

/* --- where a pc is --- */

static const struct resident_area *area_at(const struct target *target, raddr pc)
{
	const struct resident_area *area = target->areas;

	while (area && !(pc >= area->start && pc - area->start < area->header.area_size))
		area = area->next;
	return area;
}

bool resident_contains(const struct target *target, raddr pc)
{
	/* A thread is in a stub, at rest, when the tracer that sent it there has died. */
	return area_at(target, pc) != NULL || jumps_contain(target, pc) || (target->stub != 0 && pc - target->stub < STUB_SPACE);
}

raddr resident_resume(const struct target *target, raddr pc)
{
	const struct resident_area *area = area_at(target, pc);

	if (!area)
		return jumps_leave(target, pc);
	if (pc < area->start + area->header.slots_offset)
		return pc;
	for (uint32_t i = 0; i < area->header.entry_count; i++) {
		const struct resident_entry *entry = &area->entries[i];
		const struct breakpoint *bp;
		raddr original;

		if (pc < entry->slot || pc - entry->slot >= ARCH_SLOT_SIZE)
			continue;
		bp = bp_find(target, entry->breakpoint);
		if (!bp)
			return pc;
		original = arch_slot_resume(bp->text, bp->text_len, bp->address, bp->slot, pc);
		return original == ARCH_NOWHERE ? pc : original;
	}
	return pc;
}

void resident_translate(void *context, struct arch_regs *regs, const struct reader *stack)
{
	raddr *pc = &regs->reg[ARCH_DWARF_PC];

	jumps_leave_record(context, regs, stack);
	*pc = jumps_origin(context, resident_resume(context, *pc));
}
