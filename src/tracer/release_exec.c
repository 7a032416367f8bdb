/* Programs that a process executes which is traced without ptrace.
 *
 * Who is about to execute one by the C library's function waits until the process is seized (engine_watch_execs); then the exec is seen
 * as ever, and the new program is let go again when its libraries are there.  An exec that was not seen so, of who makes the system call
 * itself, has a filter, or waited in vain, is noticed by the old memory being gone. */
#include "tracer/release.h"

#include "tracer/guard.h"

#include "target/attach.h"
#include "target/bp.h"
#include "target/handlers.h"
#include "target/ptrace.h"
#include "target/resident.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXEC_MS 1000                   /* that an exec may take from its beginning to its event, before it is taken for one that failed */

bool release_wants_exec(struct session *session, pid_t tid, raddr function, const uint64_t args[3])
{
	enum guard_exec exec = guard_judge_exec(session, tid, function, args);

	/* Who makes processes all the time stays seized. */
	if (session->exec_deadline_ns != 0)
		session->exec_deadline_ns = clock_monotonic_ns() + EXEC_MS * NSEC_PER_MSEC;
	/* What others execute beside it says nothing of it. */
	if (exec == GUARD_EXEC_GAINS_RIGHTS)
		session->gains_rights = tid;
	else if (session->gains_rights == tid)
		session->gains_rights = 0;
	if (session->released) {
		session->exec_due |= exec == GUARD_EXEC_ORDINARY;
		return exec == GUARD_EXEC_ORDINARY;
	}
	session->exec_seen |= exec == GUARD_EXEC_ORDINARY;
	/* A guest has the thread data of its parent, and so its number, by which its records call it; it is stopped at the system call
	 * itself. */
	if (exec != GUARD_EXEC_GAINS_RIGHTS || target_has_guests(session->target))
		return false;
	session->rights_due = true;
	return true;
}

bool release_for_rights(struct session *session)
{
	bool let_go = release_again(session);

	session->rights_due = false;
	engine_let_waiting_go(session->engine);
	return let_go;
}

static void await_exec(struct session *session)
{
	session->exec_due = session->exec_seen = false;
	session->exec_deadline_ns = clock_monotonic_ns() + EXEC_MS * NSEC_PER_MSEC;
}

/* Who has loaded an allocator waits until that is watched. */
void release_let_waiting_go(struct session *session)
{
	session->exec_due = false;
	if (!session->watch_due)
		engine_let_waiting_go(session->engine);
}

int release_seize_for_exec(struct session *session)
{
	int r;

	session->exec_due = false;
	r = release_end(session);
	engine_let_waiting_go(session->engine);
	if (r == 0)
		await_exec(session);
	return r;
}

/* Who waited to execute was put behind that when it was seized, its record having been read before, or since. */
bool release_unless_exec(struct session *session)
{
	if (session->exec_due || session->exec_seen || target_executed(session->target)) {
		await_exec(session);
		release_let_waiting_go(session);
		return false;
	}
	release_let_go_again(session);
	return true;
}

bool release_exec_failed(const struct session *session)
{
	return session->exec_deadline_ns != 0 && !session->leaving && clock_passed(session->exec_deadline_ns);
}

bool release_again(struct session *session)
{
	target_stop_all(session->target);
	if (target_executed(session->target))
		return false;
	session->exec_deadline_ns = 0;
	release_let_go_again(session);
	return true;
}

int release_refrain(struct session *session)
{
	struct target *target = session->target;
	const char *text;
	int r;

	session->alone = session->release_due = false;
	if (!target_undo(target, &text))
		return -EBUSY;
	engine_ring_end(session->engine);
	for (size_t i = 0; i < target->tasks.count; i++)
		target->tasks.items[i]->masked = false;
	r = session_renew_engine(session);
	return r < 0 ? r : session_plant(session);
}

static void tell_refusal(struct session *session)
{
	if (session->ptrace != PTRACE_RELEASE)
		return;
	session_fail(session->link, 0, session->target->pid, FAILURE_UNSUPPORTED, 0,
		     "the program that it executes is traced with ptrace: %s",
		     hold_text(session, session->hold));
}

/* Planted or not, what it has now is what it keeps. */
static int decide(struct session *session)
{
	int r = release_decide(session);

	if (r >= 0 && session->hold != HOLD_NOT)
		tell_refusal(session);
	return r;
}

static int look_at_program(struct session *session)
{
	struct target *target = session->target;
	bool changed;
	int r = session_begin_tables(session, false);

	if (r == 0 && session_is_foreign(target->memory_tid))
		r = -ENOTSUP;
	if (r == 0)
		r = target_scan_modules(target, &changed);
	return r == 0 ? session_add_modules(session) : r;
}

int release_attach_anew(struct session *session)
{
	const char *text;
	int r;

	if (session->gains_rights > 0 && guard_may_have_rights(session->target->pid))
		return -ECANCELED;
	session->gains_rights = 0;
	session_forget_program(session, NULL);
	session->target->memory_tid = session->target->pid;
	r = look_at_program(session);
	if (r == 0)
		r = session_seize(session);
	if (r >= 0)
		r = decide(session);
	if (r < 0) {
		session_detach(session, &text);
		return r;
	}
	session->probe_gaps++;
	session_name(session);
	session_send_program(session, WIRE_EXECED, 0);
	return 0;
}

static int take_out_hook(struct session *session)
{
	struct target *target = session->target;
	int r;

	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped)
			task_leave_resident(target->tasks.items[i]);
	}
	r = bp_take_out(target, session->loader_hook);
	if (r == 0)
		session->loader_hook = NULL;
	return r;
}

bool release_begin_program(struct session *session)
{
	int r;

	session->maps_change = true;
	r = session_look_at_objects(session);
	session->maps_change = false;
	if (r < 0 || !engine_may_begin(session->engine))
		return false;
	session->release_due = false;
	target_stop_all(session->target);
	r = take_out_hook(session);
	if (r == 0)
		r = session_plant_engine(session);
	r = r < 0 ? release_refrain(session) : decide(session);
	if (r >= 0 && session->alone) {
		release_begin(session);
		return true;
	}
	if (r < 0 && r != -ESRCH)
		session->modules_failed = true;
	return false;
}
