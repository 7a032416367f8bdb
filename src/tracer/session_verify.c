/* Once a second: whether what was planted is still there, and still ours. */
#include "tracer/session.h"

#include "tracer/foreign.h"

#include "target/action.h"
#include "target/bp.h"
#include "target/jumps.h"
#include "target/resident.h"

/* Once, each time that it happens. */
static void tell_of_handler(struct session *session)
{
	const char *reason;

	if (session->target->handler_replaced && !session->handler_told && !resident_is_safe(session->target, &reason))
		session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
			     "it would not outlive its tracer: %s", reason);
	session->handler_told = session->target->handler_replaced;
}

/* Places that are not as they were when they were looked at before. */
struct missing {
	unsigned jumps, breakpoints;
	bool entries;                  /* returns came that no call belongs to */
};

/* A uprobe set on the byte of an entry after ours takes its stops, and the byte does not show it: what does is returns that no call belongs
 * to.  A few come from calls that were under way at the attach. */
static bool entries_are_missed(struct session *session)
{
	uint64_t orphans = engine_counters(session->engine).orphans;
	bool missed = orphans != session->orphans_seen &&
		      (orphans > ORPHANS_PER_TASK * (uint64_t)session->tasks_at_attach || foreign_uprobes(session));

	session->orphans_seen = orphans;
	return missed;
}

static struct missing look(struct session *session)
{
	struct missing missing = { .jumps = jumps_verify(session->target) };

	engine_look_for_filters(session->engine);
	engine_look_for_holes(session->engine);
	if (session->released)
		return missing;
	missing.breakpoints = bp_verify(session->target, true);
	action_check(session->target);
	tell_of_handler(session);
	missing.entries = entries_are_missed(session);
	return missing;
}

void session_verify(struct session *session)
{
	struct missing missing = look(session);
	unsigned count = missing.jumps + missing.breakpoints + missing.entries;

	session->probe_gaps += count;
	if (count == 0 || session->uprobes_told)
		return;
	session->uprobes_told = true;
	session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
		     "another tool (uprobes of perf or bpftrace?), or the program itself, has taken the place of breakpoints or jumps "
		     "(%u jumps, %u breakpoints%s): calls were missed there, and answers are not exact from now on",
		     missing.jumps, missing.breakpoints, missing.entries ? ", and returns came without their calls" : "");
}
