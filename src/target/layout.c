#include "target/layout.h"

#include "target/maps.h"
#include "target/ptrace.h"

#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define LOOK_BYTES 2048u               /* behind the thread pointer: glibc 2.17 to 2.41 have both below 1,800 */
#define DATA_MAX (1u << 20)            /* of a thread's own data, which lies at the end of its stack's memory */

static bool read_registers(const struct task *task, struct user_regs_struct *regs)
{
	return task->stopped && !task->guest && !stop_is_end(task->stop.kind) && ptrace_getregs(task->tid, regs) == 0;
}

/* As much as there is: the first thread's data may be the last of its C library's (musl). */
static bool read_thread(struct task *task, uint8_t bytes[LOOK_BYTES], struct user_regs_struct *regs)
{
	uint64_t pointer, to_page_end;

	if (!read_registers(task, regs))
		return false;
	pointer = arch_thread_pointer(regs);
	to_page_end = PAGE - pointer % PAGE;
	if (target_read(task->target, pointer, bytes, LOOK_BYTES) == 0)
		return true;
	memset(bytes, 0, LOOK_BYTES);
	return to_page_end < LOOK_BYTES && target_read(task->target, pointer, bytes, to_page_end) == 0;
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

/* Keeps what holds for this thread, too. */
static void narrow(bool candidates[LOOK_BYTES / 4], const uint8_t *bytes, pid_t tid)
{
	for (uint32_t i = 0; i < LOOK_BYTES / 4; i++)
		candidates[i] &= word32(bytes, i * 4) == (uint32_t)tid;
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

static void look_for_main_stack(const struct target *target, struct thread_layout *layout)
{
	struct map_line map;
	char path[64], *text, *cursor;

	snprintf(path, sizeof(path), "/proc/%d/maps", target->memory_tid);
	if (file_read_text(path, MAPS_TEXT_MAX, &text, NULL) < 0)
		return;
	cursor = text;
	while (maps_next(&cursor, &map)) {
		if (strcmp(map.path, "[stack]") != 0)
			continue;
		layout->main_stack = map.start;
		layout->main_stack_end = map.end;
	}
	free(text);
}

void thread_layout_look(struct target *target, struct thread_layout *ret_layout)
{
	struct thread_layout layout = { 0 };
	bool candidates[LOOK_BYTES / 4];
	uint8_t bytes[LOOK_BYTES];
	bool seen = false;

	memset(candidates, true, sizeof(candidates));
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		struct user_regs_struct regs;

		if (!read_registers(task, &regs))
			continue;
		layout.has_pointer |= arch_thread_pointer(&regs) != 0;
		if (!read_thread(task, bytes, &regs))
			continue;
		seen = true;
		narrow(candidates, bytes, task->tid);
		look_for_stack(bytes, &regs, &layout);
	}
	for (uint32_t i = 0; seen && !layout.has_tid && i < LOOK_BYTES / 4; i++) {
		layout.has_tid = candidates[i];
		layout.tid = i * 4;
	}
	look_for_main_stack(target, &layout);
	*ret_layout = layout;
}

void thread_layout_look_at(struct task *task, struct thread_layout *layout)
{
	uint8_t bytes[LOOK_BYTES];
	struct user_regs_struct regs;

	if (layout->stack == 0 && read_thread(task, bytes, &regs))
		look_for_stack(bytes, &regs, layout);
}
