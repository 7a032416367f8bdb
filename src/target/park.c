#include "target/park.h"

#include "target/attach.h"
#include "target/ptrace.h"
#include "arch/arch.h"
#include "arch/resident.h"
#include "arch/syscall.h"

#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#define TAKE_DEADLINE_MS 1500          /* before it goes on by itself */
#define STUB_MAX (ARCH_STUB_MAX + sizeof(struct park_data))

struct park_data {
	struct timespec timeout;
	uint64_t mask;
};

_Static_assert(sizeof(struct park_data) == PARK_DATA, "room for a parking stub");

static int build(raddr stub, const struct user_regs_struct *regs, uint8_t code[STUB_MAX], struct arch_stub *ret)
{
	const struct park_data data = { .timeout = { .tv_sec = PARK_SECONDS }, .mask = ~0ULL };
	struct arch_stub_call call = {
		.number = SYS_ppoll,
		.args = { 0, 0, 0, stub, sizeof(data.mask), 0 },
		.data = &data, .data_length = sizeof(data), .data_arg = 2,
	};
	uint32_t length;
	int r = arch_build_stub(stub, &call, regs, code, STUB_MAX, ret);

	if (r < 0)
		return r;
	/* Now that it is known where the data comes to lie; its length does not depend on the arguments. */
	length = ret->length;
	call.args[3] = stub + length - sizeof(data) + offsetof(struct park_data, mask);
	r = arch_build_stub(stub, &call, regs, code, STUB_MAX, ret);
	return r == 0 && ret->length != length ? -ENOSPC : r;
}

int park_leave(pid_t tid, raddr stub, raddr note, struct parking *ret_parking)
{
	const uint64_t until_ns = clock_monotonic_ns() + PARK_SECONDS * NSEC_PER_SEC;
	struct parking parking = { .tid = tid, .stub = stub, .note = note };
	struct user_regs_struct regs, found;
	uint8_t code[STUB_MAX];
	struct arch_stub made;
	int r = ptrace_getregs(tid, &found);

	if (r < 0)
		return r;
	parking.regs = found;
	syscall_settle(&parking.regs);
	r = build(stub, &parking.regs, code, &made);
	if (r == 0)
		r = ptrace_poke(tid, stub, code, made.length);
	if (r == 0 && note != 0)
		r = ptrace_poke(tid, note, &until_ns, sizeof(until_ns));
	if (r < 0)
		return r;
	regs = found;
	arch_set_pc(&regs, stub);
	syscall_forget(&regs);
	r = ptrace_setregs(tid, &regs);
	if (r < 0)
		return r;
	r = ptrace_detach(tid, 0);
	if (r < 0) {
		ptrace_setregs(tid, &found);
		return r;
	}
	parking.length = made.length;
	*ret_parking = parking;
	return 0;
}

/* Until then it has run no instruction of its own, and stands before the one in `regs`. */
static int require_parked(struct task *task, const struct parking *parking)
{
	struct user_regs_struct regs;
	int r = task_getregs(task, &regs);

	if (r < 0)
		return r;
	return arch_pc(&regs) >= parking->stub && arch_pc(&regs) < parking->stub + parking->length ? 0 : -ETIMEDOUT;
}

int park_take(struct target *target, const struct parking *parking, struct task **ret_task)
{
	uint64_t deadline_ns = clock_monotonic_ns() + TAKE_DEADLINE_MS * NSEC_PER_MSEC;
	const uint8_t zeros[STUB_MAX] = { 0 };
	struct task *task;
	int r = task_add(target, parking->tid, &task);

	if (r < 0)
		return r;
	r = ptrace_seize(parking->tid);
	if (r == 0)
		r = ptrace_interrupt(parking->tid);
	if (r == 0) {
		task->interrupt_due = true;
		r = task_wait(task, deadline_ns);
	}
	/* A busy machine may have kept this process from a processor for longer than the other one waits. */
	if (r == 0 && (r = require_parked(task, parking)) == -ETIMEDOUT)
		task_detach(task);
	if (r == 0)
		r = ptrace_setregs(parking->tid, &parking->regs);
	if (r == 0)
		r = ptrace_poke(parking->tid, parking->stub, zeros, parking->length);
	if (r == 0 && parking->note != 0)
		r = ptrace_poke(parking->tid, parking->note, zeros, sizeof(uint64_t));
	if (r < 0) {
		task_remove(task);
		return r;
	}
	/* Nothing of its own was broken off. */
	if (task->stop.kind == STOP_INTERRUPTED)
		task->stop.kind = STOP_NONE;
	*ret_task = task;
	return 0;
}
