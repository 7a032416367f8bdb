#define _GNU_SOURCE
/* Threads that are stopped in the code that writes records. */
#include "target/jumps.h"

#include "target/faults.h"
#include "target/jumps_private.h"
#include "target/ptrace.h"

#include "arch/syscall.h"
#include "ring/layout.h"

#include <signal.h>
#include <stddef.h>

#define WORDS (RING_CODE_BELOW + RING_CODE_WORDS)

/* What is near the end of its stack is read as far as it is there. */
static void read_words(struct target *target, raddr sp, uint64_t words[WORDS])
{
	raddr start = sp - RING_CODE_BELOW * sizeof(words[0]);

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = 0;
	if (target_read(target, start, words, WORDS * sizeof(words[0])) == 0)
		return;
	for (unsigned i = 0; i < WORDS; i++) {
		if (target_read(target, start + i * sizeof(words[0]), &words[i], sizeof(words[0])) < 0 && i >= RING_CODE_BELOW)
			return;
	}
}

/* What it has reserved says of itself that it is nothing, and the reader passes it. */
static void make_void(struct target *target, const struct ring_unfinished *unfinished)
{
	uint64_t size = (target->ring_size - RING_CONTROL_SIZE) / 2, key, mark;
	raddr at = target->ring + RING_CONTROL_SIZE + (unfinished->position & (size - 1));
	struct ring_head head;

	if (target_read(target, target->ring + offsetof(struct ring_control, key), &key, sizeof(key)) < 0 ||
	    target_read(target, at, &head, sizeof(head)) < 0)
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
static enum ring_progress settle(struct target *target, const struct jump_area *area, struct user_regs_struct *regs,
				 struct ring_unfinished *ret)
{
	const struct jump *jump = jump_at(target, arch_pc(regs));
	uint64_t all[WORDS], *words = all + RING_CODE_BELOW;
	unsigned at = 0;

	read_words(target, arch_sp(regs), all);
	if (!jump) {
		while (at < RING_CODE_WORDS && !jump_with_back(target, words[at]))
			at++;
		jump = at < RING_CODE_WORDS ? jump_with_back(target, words[at]) : NULL;
	}
	return jump ? ring_site_settle(&jump->site, area->start, all, at, regs, ret) : RING_ELSEWHERE;
}

void jumps_settle(struct task *task)
{
	struct ring_unfinished unfinished = { .reserved = false };
	struct target *target = task->target;
	const struct jump_area *area;
	struct user_regs_struct regs;

	if (!target->jump_areas || task_getregs(task, &regs) < 0)
		return;
	area = jumps_area_at(target, arch_pc(&regs));
	if (!area || settle(target, area, &regs, &unfinished) == RING_ELSEWHERE)
		return;
	/* Where it waited in a call, that is not begun again. */
	syscall_forget(&regs);
	/* First the thread: it may be killed, and then what it has reserved is passed as of the dead. */
	if (ptrace_setregs(task->tid, &regs) == 0 && unfinished.reserved && target->ring != 0)
		make_void(target, &unfinished);
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

	if (!target->jump_areas || ptrace_getregs(task->tid, &regs) < 0 || !jumps_area_at(target, arch_pc(&regs)) ||
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
