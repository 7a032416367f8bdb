#include "target/handlers.h"

#include "target/jumps.h"
#include "target/ptrace.h"
#include "target/resident.h"
#include "target/stacks.h"
#include "arch/arch.h"

#include <string.h>

#define LOOK_BYTES 16384               /* of a handler's stack */
#define CHUNK_BYTES 1024
#define NESTED_MAX 8
#define FRAMES_MAX 64                  /* that are looked at on one stack */

static bool is_restorer(struct target *target, raddr at)
{
	uint8_t code[ARCH_RESTORER_SIZE];

	return module_map_find(&target->modules, at) && target_read(target, at, code, sizeof(code)) == 0 &&
	       arch_is_restorer(code);
}

static bool read_frame(struct target *target, raddr at, struct arch_sigframe *ret_frame)
{
	uint8_t bytes[ARCH_SIGFRAME_SIZE];

	return target_read(target, at, bytes, sizeof(bytes)) == 0 && arch_parse_sigframe(bytes, at, ret_frame);
}

/* Among `count` words that were read at `at`, with one of the `firsts` first ones as its own first. */
static bool find_in_words(struct target *target, raddr at, const uint64_t *words, size_t count, size_t firsts,
			  struct arch_sigframe *ret_frame, raddr *ret_at)
{
	for (size_t i = 0; i < firsts; i++) {
		if (!arch_may_be_sigframe(words + i, count - i) || !is_restorer(target, words[i]) || !read_frame(target, at + i * 8, ret_frame))
			continue;
		*ret_at = at + i * 8;
		return true;
	}
	return false;
}

/* Where the stack ends before its bounds would have it. */
static bool find_in_chunks(struct target *target, raddr at, raddr end, struct arch_sigframe *ret_frame, raddr *ret_at)
{
	uint64_t words[CHUNK_BYTES / 8];

	while (at < end) {
		size_t length = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;

		if (target_read(target, at, words, length) < 0)
			return false;
		if (find_in_words(target, at, words, length / 8, length / 8, ret_frame, ret_at))
			return true;
		at += length;
	}
	return false;
}

/* How many of the words in these bytes a frame may begin with: where the stack is known to end a frame has ended, too. */
static size_t first_words(size_t length)
{
	if (length == LOOK_BYTES)
		return LOOK_BYTES / 8;
	return length < ARCH_SIGFRAME_SIZE ? 0 : (length - ARCH_SIGFRAME_SIZE) / 8 + 1;
}

/* The next one at or above `sp`. */
static bool find_frame(struct target *target, raddr sp, raddr thread_pointer, struct arch_sigframe *ret_frame, raddr *ret_at)
{
	raddr at = (sp + 7) & ~(raddr)7;
	size_t length = stack_look_length(at, thread_pointer, LOOK_BYTES), firsts = first_words(length);
	uint64_t words[LOOK_BYTES / 8];

	if (firsts == 0)
		return false;
	if (target_read(target, at, words, length) == 0)
		return find_in_words(target, at, words, length / 8, firsts, ret_frame, ret_at);
	return find_in_chunks(target, at, at + length, ret_frame, ret_at);
}

bool task_mask_outside(struct task *task, uint64_t *ret_mask)
{
	struct user_regs_struct regs;
	struct arch_sigframe frame;
	unsigned nested = 0;
	raddr sp, at;

	if (task_getregs(task, &regs) < 0)
		return false;
	for (sp = arch_sp(&regs); nested < NESTED_MAX && find_frame(task->target, sp, arch_thread_pointer(&regs), &frame, &at); nested++) {
		*ret_mask = frame.mask;
		sp = frame.sp;
	}
	return nested > 0;
}

bool task_handler_begins(struct target *target, raddr sp, struct arch_sigframe *ret_frame)
{
	raddr restorer;

	return target_read(target, sp, &restorer, sizeof(restorer)) == 0 && is_restorer(target, restorer) &&
	       read_frame(target, sp, ret_frame);
}

/* Stubs and the handler end by themselves. */
static bool move_out(struct target *target, raddr frame_at, raddr pc)
{
	raddr out = resident_resume(target, pc);

	return out != pc && target_write(target, frame_at + ARCH_SIGFRAME_PC, &out, sizeof(out)) == 0;
}

static bool is_in_handler(struct task *task, raddr at)
{
	const struct target *target = task->target;

	return !target->is_in_handler || target->is_in_handler(target->context, task, at);
}

bool task_returns_inside(struct task *task)
{
	struct user_regs_struct regs;
	struct arch_sigframe frame;
	raddr sp, at;

	if (task->is_frameless || task_getregs(task, &regs) < 0)
		return false;
	sp = arch_sp(&regs);
	for (unsigned nested = 0; nested < NESTED_MAX && find_frame(task->target, sp, arch_thread_pointer(&regs), &frame, &at); nested++) {
		if (resident_contains(task->target, frame.pc) && is_in_handler(task, at) &&
		    !move_out(task->target, at, frame.pc))
			return true;
		sp = frame.sp;
	}
	return false;
}

/* One behind the other; what is none may hide what is one. */
static bool has_frame_to_record(struct target *target, raddr sp, raddr thread_pointer, raddr *ret_other)
{
	struct arch_sigframe frame;
	raddr start = sp, at;

	*ret_other = 0;
	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		if (!find_frame(target, sp, thread_pointer, &frame, &at))
			return false;
		if (jumps_frame_is_in_record(target, at))
			return true;
		if (frame.sp - start >= LOOK_BYTES)
			*ret_other = frame.sp;
		sp = at + 8;
	}
	return true;
}

bool task_may_return_to_record(struct task *task)
{
	struct user_regs_struct regs;
	raddr sp, other;

	if (task_getregs(task, &regs) < 0)
		return false;
	sp = arch_sp(&regs);
	for (unsigned stacks = 0; sp != 0 && stacks < NESTED_MAX; stacks++, sp = other) {
		if (has_frame_to_record(task->target, sp, arch_thread_pointer(&regs), &other))
			return true;
	}
	return false;
}

static void note_frameless(void *context, struct task *task, const struct target_part *part)
{
	struct target *target = context;
	struct arch_sigframe frame;
	raddr at;

	task->is_frameless = task->regs_known && part->is_there &&
			     !find_in_words(target, part->at, part->buf, part->len / 8, first_words(part->len), &frame, &at);
}

void target_look_for_frames(struct target *target)
{
	stacks_show(target, LOOK_BYTES, NULL, note_frameless, target);
}
