#include "target/stacks.h"

#include <stddef.h>

#define STACKS_AT_ONCE 64
#define WORDS_AT_ONCE (2 * STACK_LOOK_MAX / 8)

/* Some that are read together. */
struct stacks {
	struct task *tasks[STACKS_AT_ONCE];
	struct target_part parts[STACKS_AT_ONCE];
	size_t count, words_used;
	uint64_t words[WORDS_AT_ONCE];
};

size_t stack_look_length(raddr at, raddr thread_pointer, size_t most)
{
	return thread_pointer > at && thread_pointer - at < most ? (thread_pointer - at) & ~(raddr)7 : most;
}

static bool has_room(const struct stacks *stacks, size_t length)
{
	return stacks->count < STACKS_AT_ONCE && stacks->words_used + length / 8 <= WORDS_AT_ONCE;
}

static void add(struct stacks *stacks, struct task *task, raddr at, size_t length)
{
	stacks->tasks[stacks->count] = task;
	stacks->parts[stacks->count++] = (struct target_part){ .at = at, .buf = stacks->words + stacks->words_used, .len = length };
	stacks->words_used += length / 8;
}

static void show(struct target *target, struct stacks *stacks, stack_shown *shown, void *context)
{
	target_read_parts(target, stacks->parts, stacks->count);
	for (size_t i = 0; i < stacks->count; i++)
		shown(context, stacks->tasks[i], &stacks->parts[i]);
	stacks->count = stacks->words_used = 0;
}

void stacks_show(struct target *target, size_t most, bool (*wanted)(const struct task *task), stack_shown *shown, void *context)
{
	static struct stacks stacks;

	stacks.count = stacks.words_used = 0;
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		struct user_regs_struct regs;
		size_t length;
		raddr at;

		if (!task->stopped || stop_is_end(task->stop.kind) || (wanted && !wanted(task)) || task_getregs(task, &regs) < 0)
			continue;
		at = arch_sp(&regs) & ~(raddr)7;
		length = stack_look_length(at, arch_thread_pointer(&regs), most);
		if (!has_room(&stacks, length))
			show(target, &stacks, shown, context);
		add(&stacks, task, at, length);
	}
	show(target, &stacks, shown, context);
}
