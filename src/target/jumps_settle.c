#define _GNU_SOURCE
/* Threads that are stopped in the code that writes records. */
#include "target/jumps.h"

#include "target/faults.h"
#include "target/jumps_private.h"
#include "target/ptrace.h"

#include "arch/sigframe.h"
#include "arch/syscall.h"
#include "ring/layout.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#define WORDS (RING_CODE_BELOW + RING_CODE_WORDS)

/* What is near the end of its stack is read as far as it is there. */
static void read_words(const struct reader *stack, raddr sp, uint64_t words[WORDS])
{
	raddr start = sp - RING_CODE_BELOW * sizeof(words[0]);

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = 0;
	if (reader_read(stack, start, words, WORDS * sizeof(words[0])) == 0)
		return;
	for (unsigned i = 0; i < WORDS; i++) {
		if (reader_u64(stack, start + i * sizeof(words[0]), &words[i]) == 0)
			continue;
		words[i] = 0;
		if (i >= RING_CODE_BELOW)
			return;
	}
}

/* What it has reserved says of itself that it is nothing, and the reader passes it.  Where the reader has not waited for it others may
 * have written there since. */
static void make_void(struct target *target, const struct ring_unfinished *unfinished)
{
	uint64_t size = (target->ring_size - RING_CONTROL_SIZE) / 2, key, tail, mark;
	raddr at = target->ring + RING_CONTROL_SIZE + (unfinished->position & (size - 1));
	struct ring_head head;

	if (target_read(target, target->ring + offsetof(struct ring_control, key), &key, sizeof(key)) < 0 ||
	    target_read(target, target->ring + offsetof(struct ring_control, tail), &tail, sizeof(tail)) < 0 ||
	    unfinished->position - tail >= size || target_read(target, at, &head, sizeof(head)) < 0)
		return;
	mark = unfinished->position ^ key;
	if (head.mark != (mark | RING_OPEN))
		head.length = unfinished->length;
	head.site = RING_VOID;
	head.mark = 0;
	if (target_write(target, at, &head, sizeof(head)) < 0)
		return;
	head.mark = mark | RING_COMMITTED;
	target_write(target, at, &head.mark, sizeof(head.mark));
}

static const struct jump *jump_with_back(const struct target *target, uint64_t word)
{
	for (size_t i = 0; i < target->jumps.count; i++) {
		if (ring_site_back(&target->jumps.items[i].site) == word)
			return &target->jumps.items[i];
	}
	return NULL;
}

static const struct jump *jump_at(const struct target *target, raddr pc)
{
	for (size_t i = 0; i < target->jumps.count; i++) {
		const struct ring_site *site = &target->jumps.items[i].site;

		if (pc - site->at < site->length)
			return &target->jumps.items[i];
	}
	return NULL;
}

/* The site that it is in, or that has called the routine that it is in: the nearest return address says it, for what older
 * calls have left may stand further out. */
static const struct jump *find_site(const struct target *target, raddr pc, const uint64_t *words, unsigned *ret_at)
{
	const struct jump *jump = jump_at(target, pc);

	*ret_at = 0;
	if (jump)
		return jump;
	while (*ret_at < RING_CODE_WORDS && !jump_with_back(target, words[*ret_at]))
		++*ret_at;
	return *ret_at < RING_CODE_WORDS ? jump_with_back(target, words[*ret_at]) : NULL;
}

/* Registers in our code.  waits_on: whoever has written a record that is waited for stays where it is.  0: they do not change; 1; -EIO:
 * they are in the midst of a record, and what is needed cannot be read. */
static int settle(const struct target *target, const struct reader *stack, const struct jump_area *area, bool waits_on,
		  struct user_regs_struct *regs, struct ring_unfinished *ret)
{
	struct user_regs_struct settled = *regs;
	uint64_t words[WORDS];
	const struct jump *jump;
	enum ring_progress progress;
	unsigned at;

	read_words(stack, arch_sp(regs), words);
	jump = find_site(target, arch_pc(regs), words + RING_CODE_BELOW, &at);
	if (!jump)
		return -EIO;
	progress = ring_site_settle(&jump->site, area->start, words, at, &settled, ret);
	if (progress == RING_ELSEWHERE)
		return jump_at(target, arch_pc(regs)) ? 0 : -EIO;
	if (progress == RING_WRITTEN && waits_on && jump->site.waits != RING_WAITS_NOT)
		return 0;
	/* It may stand right behind it already. */
	if (arch_pc(&settled) == arch_pc(regs) && arch_sp(&settled) == arch_sp(regs))
		return 0;
	*regs = settled;
	return 1;
}

static void settle_task(struct task *task, bool waits_on)
{
	struct ring_unfinished unfinished = { .reserved = false };
	struct target *target = task->target;
	const struct reader stack = target_reader(target);
	const struct jump_area *area;
	struct user_regs_struct regs;

	if (!target->jump_areas || task_getregs(task, &regs) < 0)
		return;
	area = jumps_area_at(target, arch_pc(&regs));
	if (!area || settle(target, &stack, area, waits_on, &regs, &unfinished) <= 0)
		return;
	/* Where it waited in a call, that is not begun again. */
	syscall_forget(&regs);
	/* First the thread: it may be killed, and then what it has reserved is passed as of the dead. */
	if (ptrace_setregs(task->tid, &regs) == 0 && unfinished.reserved && target->ring != 0)
		make_void(target, &unfinished);
}

void jumps_settle(struct task *task)
{
	settle_task(task, false);
}

void jumps_settle_but_waiting(struct task *task)
{
	settle_task(task, true);
}

bool jumps_is_in_record(struct task *task)
{
	const struct reader stack = target_reader(task->target);
	struct ring_unfinished unfinished;
	const struct jump_area *area;
	struct user_regs_struct regs;

	if (task_getregs(task, &regs) < 0)
		return false;
	area = jumps_area_at(task->target, arch_pc(&regs));
	return area && settle(task->target, &stack, area, true, &regs, &unfinished) != 0;
}

void jumps_leave_record(const struct target *target, struct arch_regs *regs, const struct reader *stack)
{
	const struct jump_area *area = jumps_area_at(target, regs->reg[ARCH_DWARF_PC]);
	struct ring_unfinished unfinished;
	struct user_regs_struct user;

	if (!area)
		return;
	arch_regs_to_user(regs, &user);
	if (settle(target, stack, area, false, &user, &unfinished) > 0)
		arch_regs_from_user(&user, regs);
}

/* --- who comes back to it from a handler --- */

/* What a frame brings back, and where that would be put to.  1; 0: nowhere else; -EBADMSG: this is no frame; -EIO, as settle(). */
static int settle_in_frame(struct target *target, raddr at, uint8_t bytes[ARCH_SIGFRAME_SIZE], struct user_regs_struct *ret_regs,
			   struct ring_unfinished *ret)
{
	const struct reader stack = target_reader(target);
	const struct jump_area *area;
	struct arch_sigframe frame;
	int r = target_read(target, at, bytes, ARCH_SIGFRAME_SIZE);

	if (r < 0 || !arch_parse_sigframe(bytes, at, &frame))
		return -EBADMSG;
	area = jumps_area_at(target, frame.pc);
	*ret_regs = (struct user_regs_struct){ .cs = 0 };
	arch_sigframe_get_user(bytes, ret_regs);
	return area ? settle(target, &stack, area, true, ret_regs, ret) : 0;
}

int jumps_settle_frame(struct target *target, raddr at)
{
	struct ring_unfinished unfinished = { .reserved = false };
	uint8_t bytes[ARCH_SIGFRAME_SIZE];
	struct user_regs_struct regs;
	int r = settle_in_frame(target, at, bytes, &regs, &unfinished);

	if (r <= 0)
		return r;
	arch_sigframe_put_user(&regs, bytes);
	r = target_write(target, at + ARCH_SIGFRAME_USER, bytes + ARCH_SIGFRAME_USER, ARCH_SIGFRAME_USER_SIZE);
	if (r == 0 && unfinished.reserved && target->ring != 0)
		make_void(target, &unfinished);
	return r < 0 ? r : 1;
}

bool jumps_frame_is_in_record(struct target *target, raddr at)
{
	struct ring_unfinished unfinished;
	uint8_t bytes[ARCH_SIGFRAME_SIZE];
	struct user_regs_struct regs;
	int r = settle_in_frame(target, at, bytes, &regs, &unfinished);

	return r == 1 || r == -EIO;
}

/* What is read there lies above the stack pointer, and in no memory of ours.  Below it a stack has come to its end, which the program is
 * to hear of. */
static bool is_of_stack(const struct target *target, const siginfo_t *info, raddr sp)
{
	raddr at = (uintptr_t)info->si_addr;

	return info->si_code > 0 && info->si_code < SI_KERNEL && at >= sp && at - target->ring >= target->ring_size;
}

static bool is_in_routine(const struct target *target, pid_t tid, struct user_regs_struct *ret_regs)
{
	return ptrace_getregs(tid, ret_regs) == 0 && jumps_area_at(target, arch_pc(ret_regs)) && !jump_at(target, arch_pc(ret_regs));
}

bool jumps_mend_fault(struct task *task, const struct stop *stop)
{
	static const uint32_t yes = 1;
	struct target *target = task->target;
	struct user_regs_struct regs;
	siginfo_t info;

	if (stop->kind != STOP_SIGNAL || (stop->sig != SIGSEGV && stop->sig != SIGBUS) || !target->jump_areas ||
	    !is_in_routine(target, task->tid, &regs) || ptrace_getsiginfo(task->tid, &info) < 0 ||
	    !is_of_stack(target, &info, arch_sp(&regs)) ||
	    target_write(target, target->ring + offsetof(struct ring_control, has_holes), &yes, sizeof(yes)) < 0)
		return false;
	jumps_settle(task);
	if (is_in_routine(target, task->tid, &regs))
		return false;
	stop_reap(task->tid);
	faults_note(task, stop->sig);
	return true;
}

bool jumps_is_extra_step(struct task *task)
{
	const struct target *target = task->target;
	const struct jump *jump;
	struct user_regs_struct regs;
	bool extra;
	raddr pc;
	int code;

	if (!target->jump_areas || ptrace_getregs(task->tid, &regs) < 0 || !jumps_contain(target, arch_pc(&regs)) ||
	    ptrace_signal_code(task->tid, &code) < 0 || code != TRAP_TRACE)
		return false;
	pc = arch_pc(&regs);
	jump = jump_at(target, pc);
	extra = !jump || ring_site_is_extra_step(&jump->site, &regs);
	if (arch_pc(&regs) != pc)
		ptrace_set_pc(task->tid, arch_pc(&regs));
	return extra;
}

bool jumps_stands_before_record(struct task *task, uint32_t *ret_number, struct user_regs_struct *ret_regs, bool *ret_again)
{
	const struct target *target = task->target;
	const struct jump *jump;

	if (!target->jump_areas || ptrace_getregs(task->tid, ret_regs) < 0 || !jumps_area_at(target, arch_pc(ret_regs)))
		return false;
	jump = jump_at(target, arch_pc(ret_regs));
	if (!jump || arch_pc(ret_regs) != ring_site_before(&jump->site))
		return false;
	*ret_again = task->before_record == arch_pc(ret_regs) && task->before_record_sp == arch_sp(ret_regs);
	*ret_number = (uint32_t)(jump - target->jumps.items);
	task->before_record = arch_pc(ret_regs);
	task->before_record_sp = arch_sp(ret_regs);
	return true;
}

bool jumps_is_return(const struct target *target, uint32_t number)
{
	return target->jumps.items[number].site.is_return;
}

void jumps_show_origin(struct task *task, uint32_t number)
{
	const struct jump *jump = &task->target->jumps.items[number];

	if (jump->planted && !jump->overwritten && jump->site.record == 0)
		ptrace_set_pc(task->tid, jump->site.window);
}

void jumps_pass_record(struct task *task, uint32_t number, bool behind_return)
{
	const struct ring_site *site = &task->target->jumps.items[number].site;
	struct user_regs_struct regs;
	uint64_t caller = 0;

	if (ptrace_getregs(task->tid, &regs) < 0 ||
	    (behind_return && target_read(task->target, arch_sp(&regs), &caller, sizeof(caller)) < 0))
		return;
	ring_site_pass(site, caller, &regs);
	ptrace_setregs(task->tid, &regs);
	task->before_record = task->before_record_sp = 0;
}
