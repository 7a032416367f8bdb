/* Whether a process is let go of ptrace, or why it is held. */
#include "tracer/release.h"

enum hold_reason release_refusal(const struct session *session)
{
	const struct target *target = session->target;

	if (!engine_has_ring(session->engine))
		return HOLD_ENGINE;
	if (session->described.mappings)
		return HOLD_MAPPINGS;
	if (session->described.operators)
		return HOLD_OPERATORS;
	if (target->mem_fd < 0)
		return HOLD_MEMORY;
	return target_holds_all(target) ? HOLD_NOT : HOLD_WAITS;
}

void release_take_wish(struct session *session, const struct wire_attach *request)
{
	session->ptrace = request->ptrace;
	session->release_or_fail = request->release_or_fail;
	session->hold = release_known_hold(session);
	session->alone = session->hold == HOLD_NOT;
}

enum hold_reason release_known_hold(const struct session *session)
{
	/* Refused, and told, when that is seen. */
	if (session->release_or_fail)
		return HOLD_NOT;
	if (!session->wants_ring || session_engine_reason(session))
		return HOLD_ENGINE;
	if (session->follows)
		return HOLD_FORKS;
	if (session->described.mappings)
		return HOLD_MAPPINGS;
	if (session->described.operators)
		return HOLD_OPERATORS;
	if (session->ptrace == PTRACE_HOLD)
		return HOLD_ASKED;
	return session->ptrace == PTRACE_AUTO && session->target->filtered ? HOLD_FILTER : HOLD_NOT;
}

int release_look_at_plan(struct session *session)
{
	if (!session->alone)
		return 0;
	session->hold = release_known_hold(session);
	if (session->hold == HOLD_NOT && session->ptrace == PTRACE_AUTO && engine_lacks_room(session->engine))
		session->hold = HOLD_PLACES;
	session->alone = session->hold == HOLD_NOT;
	return session->alone ? 0 : session_replace_engine(session);
}

/* What would be given up. */
static enum hold_reason find_loss(const struct session *session)
{
	if (engine_unwatched(session->engine) > 0)
		return HOLD_PLACES;
	if (session->loader_unwatched)
		return HOLD_LOADER;
	if (session->execs_unwatched)
		return HOLD_EXEC;
	if (session->target->filtered)
		return HOLD_FILTER;
	return target_has_guests(session->target) ? HOLD_SHARED : HOLD_NOT;
}

int release_decide(struct session *session)
{
	if (!session->alone || session->release_due)
		return 0;
	session->hold = release_refusal(session);
	if (session->hold == HOLD_NOT && session->ptrace == PTRACE_AUTO)
		session->hold = find_loss(session);
	return session->hold == HOLD_NOT ? 0 : release_refrain(session);
}
