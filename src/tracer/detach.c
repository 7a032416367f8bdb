/* The end of a session: for good, or for a while. */
#include "tracer/session.h"

static void on_let_go(void *context, struct task *task)
{
	struct session *session = context;

	engine_task_gone(session->engine, task);
}

bool session_left_to_root(const struct session *session)
{
	return session->target->left_filtered && session->gives_up_rights;
}

bool session_left_something(const struct session *session)
{
	const struct target *target = session->target;

	return target->left_in_copy || (!session->ended && (target->left_something || session_left_to_root(session)));
}

bool session_detach(struct session *session, const char **ret_text)
{
	struct target *target = session->target;
	bool clean;

	*ret_text = NULL;
	session->ended = session->exit_status != -1;
	if (target->tasks.count == 0)
		return true;
	target->copy_made = NULL;
	clean = target_undo(target, ret_text);
	engine_ring_end(session->engine);
	session->ended = target_has_ended(target);
	target_let_go(target, on_let_go, session);
	session->leaving = true;
	if (clean || !session_left_to_root(session))
		return clean;
	session_fail(session->link, 0, target->pid, FAILURE_INTERNAL, 0,
		     "its seccomp filter might kill it for a system call of ours: what stays in it is taken out by root");
	*ret_text = NULL;
	return true;
}

static void on_set_aside(void *context, struct task *task)
{
	struct session *session = context;

	engine_task_gone(session->engine, task);
	heap_thread_gone(session->heap, task->tid);
}

bool session_set_aside(struct session *session, const char **ret_text)
{
	struct target *target = session->target;
	bool clean, held = target->tasks.count > 0;

	target->copy_made = NULL;
	clean = target_undo(target, ret_text);
	engine_read_last(session->engine);
	engine_ring_end(session->engine);
	/* Nothing of it is held either where another tracer has it. */
	session->ended = held ? target_has_ended(target) : session->exit_status != -1;
	target_let_go(target, on_set_aside, session);
	session->leaving = session->set_aside = true;
	return clean;
}
