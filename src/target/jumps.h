/* The ring engine's part of a target: jumps over some of its instructions, the code that they lead to (arch/ring_code.h), and the
 * mapping of the ring that this writes to.
 *
 * All of it comes while every thread is held, and goes likewise: the bytes under the jumps first, the code when no
 * thread is in it or comes back to it.  Until then a copy of the process has it all as well, switched off. */
#ifndef ALLOCWATCH_TARGET_JUMPS_H
#define ALLOCWATCH_TARGET_JUMPS_H

#include "arch/ring_code.h"
#include "target/stacks.h"
#include "target/target.h"

#include <stdbool.h>

#define JUMP_AREAS_MAX 64

struct jump {
	uint32_t module;
	bool planted;
	bool was_planted;              /* at some time: a copy of the memory may have it still */
	bool gone;                     /* with its object */
	bool overwritten;              /* when it was last looked at */
	bool exposed;                  /* a debugger's breakpoint behind its first byte would change where it leads */
	uint8_t text[ARCH_WINDOW_MAX]; /* what stood there */
	raddr pad;                     /* it leads there, and that to the site; 0: to the site */
	struct ring_site site;
};

/* Stretches of code of which it is to be known whether a handler comes back to them. */
struct jump_range {
	raddr start, end;
};

/* Maps a ring: `control` bytes, and behind them `data` bytes twice; in a copy of a process that has one, in the place of the other's,
 * which is of the same size.  *ret_fd is the memfd, the caller's; it is the process's
 * own, which cannot get one of ours.  0, -EAGAIN: no thread can make the calls; or negative errno. */
int jumps_map_ring(struct target *target, uint64_t control, uint64_t data, int *ret_fd);

/* What the held threads may come back to in these ranges: saved pcs, and whatever else looks like one on the newest
 * JUMP_STACK_LOOK bytes of their stacks.  Each stack is read once while its thread stands, however often and for which ranges of the same
 * object's code that is asked.  -EBUSY: not all threads are held; -E2BIG: more than JUMP_WORDS_MAX words look like that; -ENOMEM. */
#define JUMP_STACK_LOOK STACK_LOOK_MAX
#define JUMP_WORDS_MAX (4u << 20)
struct jump_words {
	VEC_OF(raddr) words;
};
int jumps_look_at_stacks(struct target *target, const struct jump_range *ranges, size_t count, struct jump_words *ret);
/* Before that, when not all are held yet: it is done by then for those that are. */
void jumps_look_ahead(struct target *target, const struct jump_range *ranges, size_t count);
void jump_words_fini(struct jump_words *words);

/* Writes the code for a window, whose number is that of the jump.  `covered`: bytes of `text` that the jump and the window lie
 * over.  0 with the number; -EBUSY: something else stands in memory, or a thread may come back to the midst of it; -ENOTSUP with
 * *ret_reason: it cannot be moved; -ENOSPC. */
int jumps_add(struct target *target, struct ring_window *window, uint32_t module, const struct jump_words *words,
	      uint32_t *ret_number, const char **ret_reason);
/* Plants all that are prepared, moves threads that stand in their windows, and switches the code on. */
int jumps_plant(struct target *target);
/* How many are not there, or not as they were made, and were when this was last asked: another tool has put something of its own
 * into them, or the program has.  Where nothing is told of calls, as at the loader's hook, they are not among them. */
unsigned jumps_verify(struct target *target);
/* How many are exposed. */
size_t jumps_exposed(const struct target *target);
/* Takes all jumps out.  How many could not be. */
unsigned jumps_restore(struct target *target);
/* The same in a copy, where more may stand than is known to. */
unsigned jumps_restore_copy(struct target *copy);
/* What is recorded goes to the ring that is mapped now: a copy has its jumps, and had none.  0 or negative errno. */
int jumps_switch_on(struct target *target);
/* Nothing is written to the ring any more, and nobody waits for room in it. */
void jumps_switch_off(struct target *target);
/* An object has gone, and its jumps with it. */
void jumps_drop_module(struct target *target, uint32_t module);

/* Whether a held thread is in the code, or will come back to it. */
bool jumps_await(struct task *task);
bool jumps_contain(const struct target *target, raddr pc);
/* The place in the text that a pc in the code stands for; other pcs come back as they are. */
raddr jumps_origin(const struct target *target, raddr pc);
/* Where a thread that stands in the code goes on without it; while the jump is there it stays. */
raddr jumps_leave(const struct target *target, raddr pc);
/* A held thread that was stopped while a record of its was written is put to before that, or behind it; so no handler of a signal
 * comes in between, nor can it be left half-written. */
void jumps_settle(struct task *task);
/* The same, but whoever has written a record that is waited for, as at the loader's hook, waits on. */
void jumps_settle_but_waiting(struct task *task);
/* Whether it still is in the midst of one: what that takes could not be read. */
bool jumps_is_in_record(struct task *task);
/* Registers of a frame in the midst of one become what they would be put to; stack: to read what it has there. */
void jumps_leave_record(const struct target *target, struct arch_regs *regs, const struct reader *stack);
/* The frame of a signal at `at` brings back registers that are in the midst of a record: they are put to before it, or behind it, and what
 * was reserved becomes a void record.  The handler is running, which the caller knows.  1; 0: they are elsewhere; -EBADMSG: there is no
 * frame; -EIO: what it takes could not be read; or what writing gave. */
int jumps_settle_frame(struct target *target, raddr at);
/* Whether that would be 1 or -EIO. */
bool jumps_frame_is_in_record(struct target *target, raddr at);
/* A stop that was looked at is of a fault in our code, which has read its stack beyond what is there: the program has made a hole in it.
 * The stop is reaped, the thread settled, and nothing of the kind is read in the process from then on.  False: it is no such stop. */
bool jumps_mend_fault(struct task *task, const struct stop *stop);
/* Whether it was stopped at the end of a step of one instruction, by its own trap flag, that the program without jumps would not have
 * done; asked before it is settled. */
bool jumps_is_extra_step(struct task *task);
/* A held thread that was settled stands before a record: its number, and the thread's registers there.  *ret_again: so it did at its
 * last such stop, and has not come any further. */
bool jumps_stands_before_record(struct task *task, uint32_t *ret_number, struct user_regs_struct *ret_regs, bool *ret_again);
/* And that is at a function's return: behind it the pc is its caller's. */
bool jumps_is_return(const struct target *target, uint32_t number);
/* It goes on at the jump itself when nothing of the window has run yet: there who unwinds its stack knows where it is. */
void jumps_show_origin(struct task *task, uint32_t number);
/* It does not write that record, and goes on behind it; behind_return: and behind a plain return instruction, as when it is settled. */
void jumps_pass_record(struct task *task, uint32_t number, bool behind_return);
/* Puts the original bytes into a copy of the target's memory. */
void jumps_hide(const struct target *target, raddr at, void *buf, size_t len);

/* Unmaps code and ring.  The jumps are out, and no thread is in the code.  `task` makes the calls. */
int jumps_remove(struct target *target, struct task *task);
/* The memory is gone, or all was removed. */
void jumps_forget(struct target *target);
/* Takes over what a tracer that died has left, as if this one had put it there.  0, also when there is nothing; -EBADMSG: what
 * stands there is not what this version leaves. */
int jumps_adopt(struct target *target);

#endif
