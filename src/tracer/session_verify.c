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

void session_verify(struct session *session)
{
	uint64_t orphans;
	unsigned missing;

	if (session->released)
		return;
	orphans = engine_counters(session->engine).orphans;
	missing = bp_verify(session->target, true) + jumps_verify(session->target);

	action_check(session->target);
	tell_of_handler(session);

	/* A uprobe set on the byte of an entry after ours takes its stops, and the byte does not show it: what does is
	 * returns that no call belongs to.  A few come from calls that were under way at the attach. */
	if (orphans != session->orphans_seen &&
	    (orphans > ORPHANS_PER_TASK * (uint64_t)session->tasks_at_attach || foreign_uprobes(session)))
		missing++;
	session->orphans_seen = orphans;
	session->probe_gaps += missing;
	if (missing == 0 || session->uprobes_told)
		return;
	session->uprobes_told = true;
	session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
		     "another tool (uprobes of perf or bpftrace?) has taken the place of breakpoints: calls were missed "
		     "there, and answers are not exact from now on");
}
