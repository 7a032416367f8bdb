/* Attach, Detach, WaitGone, Clear, ResetPeak. */
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/failures.h"
#include "daemon/log.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"
#include "daemon/sampling.h"
#include "model/domain_names.h"
#include "model/engine_kind.h"
#include "model/filter.h"
#include "model/sampling.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOMAINS_DEFAULT (1u << DOMAIN_MALLOC)

/* A question about one process, while its tracer thinks. */
struct asked {
	struct call *call;
	int pid;
};

static struct asked *asked_new(struct call *call, int pid)
{
	struct asked *asked = calloc(1, sizeof(*asked));

	if (!asked) {
		fail_memory(call);
		return NULL;
	}
	asked->call = call;
	asked->pid = pid;
	return asked;
}

/* Ends the life of `asked` and gives the call. */
static struct call *asked_end(struct asked *asked, int *ret_pid)
{
	struct call *call = asked->call;

	*ret_pid = asked->pid;
	free(asked);
	return call;
}

/* NULL: the call is answered. */
static struct session *find_traced(struct call *call, int pid)
{
	struct session *session = permit_session(call, pid);

	if (!session)
		fail_no_session(call, pid, NULL);
	else if (session_state(session) == SESSION_LOST)
		fail_not_traced(call, pid, "process %d is no longer traced: its tracer has died; "
					   "'allocwatch attach %d' starts anew", pid, pid);
	else if (session_state(session) == SESSION_ENDING)
		fail_ended(call, pid);
	else
		return session;
	return NULL;
}

/* --- Attach --- */

/* Those of the configuration, and what the client describes; false: the call is answered. */
static bool take_allocators(struct call *call, struct wire_attach *message)
{
	const json_t *list = json_object_get(call->parameters, "allocators");
	struct allocators allocators = call->daemon->allocators;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		char *reason = NULL;
		int r = allocators_add(&allocators, text, &reason);

		if (r == -E2BIG)
			fail_limit(call, "allocators", "the allocator '%.80s' %s", text, reason);
		else if (r == -EINVAL)
			fail_query(call, "the allocator '%.80s' %s", text, reason);
		else if (r < 0)
			fail_memory(call);
		free(reason);
		if (r < 0)
			return false;
	}
	memcpy(message->allocators, allocators.list, sizeof(message->allocators));
	return true;
}

/* False: the call is answered. */
static bool take_sampling(struct call *call, struct wire_attach *message)
{
	const char *reason;

	if (!json_is_integer(json_object_get(call->parameters, "sample_bytes"))) {
		sampling_by_default(message, call->daemon->sample_bytes);
		return true;
	}
	message->sample_bytes = param_count(call->parameters, "sample_bytes", 0);
	reason = message->sample_bytes > 0 ? sampling_refusal(message) : NULL;
	if (reason)
		fail_query(call, "samples cannot be had: %s; ask without --sample-bytes, or without that", reason);
	return !reason;
}

/* What the configuration wants is done where it can be. */
static enum ptrace_wish take_wish(const struct call *call, uint8_t *ret_release_or_fail)
{
	*ret_release_or_fail = param_bool(call->parameters, "release");
	if (*ret_release_or_fail)
		return PTRACE_RELEASE;
	return param_bool(call->parameters, "hold") ? PTRACE_HOLD : (enum ptrace_wish)call->daemon->ptrace;
}

/* What the client asks for, as the tracer's message; false: the call is answered. */
static bool take_attach(struct call *call, struct wire_attach *message)
{
	const char *domains = param_text(call->parameters, "domains", NULL);
	const char *name = param_text(call->parameters, "engine", NULL);
	int engine = name ? engine_kind_by_name(name) : (int)call->daemon->engine;
	uint32_t readers = param_count(call->parameters, "ring_readers", call->daemon->ring_readers);

	message->frames_limit = param_count(call->parameters, "frames", FRAMES_LIMIT_DEFAULT);
	message->domains = domains ? domain_list_parse(domains) : DOMAINS_DEFAULT;
	message->follow_forks = param_bool(call->parameters, "follow_forks");
	message->ptrace = (uint8_t)take_wish(call, &message->release_or_fail);
	message->from_exec = param_bool(call->parameters, "wait_for_exec");
	message->engine = (uint8_t)engine;
	message->ring_wait_ms = param_count(call->parameters, "ring_wait_ms", call->daemon->ring_wait_ms);
	message->ring_readers = (uint8_t)readers;
	if (message->frames_limit == 0 || message->frames_limit > FRAMES_LIMIT_MAX)
		fail_invalid_parameter(call, "frames");
	else if (message->domains == 0)
		fail_invalid_parameter(call, "domains");
	else if (engine < 0 || (name && message->release_or_fail && engine == ENGINE_INT3))
		fail_invalid_parameter(call, "engine");
	else if (message->release_or_fail && (message->follow_forks || message->from_exec))
		fail_invalid_parameter(call, "release");
	else if (message->release_or_fail && param_bool(call->parameters, "hold"))
		fail_invalid_parameter(call, "hold");
	else if (message->ring_wait_ms > CODEC_RING_WAIT_MS_MAX)
		fail_invalid_parameter(call, "ring_wait_ms");
	else if (readers > CODEC_RING_READERS_MAX)
		fail_invalid_parameter(call, "ring_readers");
	else if (param_count(call->parameters, "sample_bytes", 0) > SAMPLE_BYTES_MAX)
		fail_invalid_parameter(call, "sample_bytes");
	else
		return take_allocators(call, message) && take_sampling(call, message);
	return false;
}

static void on_attached(void *context, const struct answer *answer)
{
	const struct wire_attached *attached = (const struct wire_attached *)answer->message;
	int pid;
	struct call *call = asked_end(context, &pid);

	if (answer->error < 0) {
		fail_answer(call, pid, answer);
		return;
	}
	log_info("process %d: traced, %u tasks, %u probes", pid, attached->tasks, attached->probes);
	if (attached->warning[0])
		log_warning("process %d: %s", pid, attached->warning);
	call_reply(call, json_pack("{s:i, s:I, s:I, s:b, s:o, s:o}", "pid", pid, "tasks", (json_int_t)attached->tasks, "probes",
				   (json_int_t)attached->probes, "released", attached->released != 0, "hold_reason",
				   attached->hold_reason[0] ? codec_bytes(attached->hold_reason) : json_null(), "warning",
				   attached->warning[0] ? codec_bytes(attached->warning) : json_null()));
}

/* A number below zero from process_open(). */
static void fail_open(struct call *call, int pid, int r, bool zombie, int leader)
{
	if (r == -EINVAL)
		fail_no_such_process(call, pid, "%d is a thread of process %d; attach to that", pid, leader);
	else if (r == -ESRCH && zombie)
		fail_no_such_process(call, pid, "process %d has ended and only waits for its parent", pid);
	else if (r == -ESRCH)
		fail_no_such_process(call, pid, "there is no process %d", pid);
	else
		fail(call, "process %d cannot be looked at: %s", pid, strerror(-r));
}

static void tell_limit(const struct call *call, int pid, int r)
{
	char text[128];

	snprintf(text, sizeof(text), "process %d is not traced: as many are traced already as %s", pid,
		 r == -ENOSPC ? "are allowed" : "one user may have traced here");
	events_limit(call->daemon->events, permit_owner(call), pid, 0, "sessions", text);
}

static void fail_start(struct call *call, int pid, int r)
{
	if (r == -ENOSPC || r == -EDQUOT)
		tell_limit(call, pid, r);
	if (r == -ENOSPC)
		fail_limit(call, "sessions", "%zu processes are traced already, and more are not allowed; "
					     "allocwatchd --max-sessions raises the limit",
			   sessions_live_count(call->daemon->sessions));
	else if (r == -EDQUOT)
		fail_limit(call, "sessions", "as many of your processes are traced already as one user may have traced "
					     "here; detach from one of them");
	else
		fail(call, "no tracer can be started for process %d: %s", pid, strerror(-r));
}

/* The session of a process that had this number before, whosever it was.  True: the call is answered. */
static bool is_of_another_process(struct call *call, int pid, struct session *session, uint64_t start_time)
{
	if (session_start_time(session) == start_time)
		return false;
	if (session_state(session) == SESSION_KEPT || session_state(session) == SESSION_LOST) {
		session_forget(session);
		return false;
	}
	/* Its last snapshot may be on its way. */
	fail(call, "the process that had the number %d before is just being seen off; try again", pid);
	return true;
}

/* True: the process is traced here, or may not be; the call is answered. */
static bool is_traced_here(struct call *call, int pid, uint64_t start_time)
{
	struct session *session = sessions_find(call->daemon->sessions, pid);

	if (session && is_of_another_process(call, pid, session, start_time))
		return true;
	session = sessions_find(call->daemon->sessions, pid);
	if (!session)
		return false;
	if (!permit_sees(call, session_owner(session))) {
		/* That it is traced is no secret. */
		fail_not_permitted(call, pid, "it is traced here for another user", "ask as that user or as root", 0);
		return true;
	}
	if (session_state(session) == SESSION_LOST) {
		session_forget(session);
		return false;
	}
	if (session_state(session) == SESSION_KEPT)
		return false;
	fail_already_traced(call, pid, "process %d is %s by this daemon already", pid,
			    session_state(session) == SESSION_ATTACHING ? "being attached" : "traced");
	return true;
}

void handle_attach(struct call *call)
{
	struct wire_attach message = { 0 };
	int pid = param_pid(call->parameters, "pid", 0), leader = 0, r;
	struct process process;
	struct session *kept;
	struct asked *asked;
	bool zombie = false;

	if (!take_attach(call, &message))
		return;
	if (call->daemon->stopping) {
		fail(call, "the daemon is ending; try again");
		return;
	}
	if (pid == getpid()) {
		fail_not_permitted(call, pid, "it is this daemon, which would wait for itself",
				   "let a daemon of another user trace it", 0);
		return;
	}
	r = process_open(pid, &process, &zombie, &leader);
	if (r < 0) {
		fail_open(call, pid, r, zombie, leader);
		return;
	}
	if (is_traced_here(call, pid, process.start_time) || !(asked = asked_new(call, pid))) {
		close(process.pidfd);
		return;
	}
	kept = permit_session(call, pid);
	if (kept) {
		close(process.pidfd);
		session_resume(kept, &message, on_attached, asked);
		return;
	}
	permit_name_owner(call, &message);
	r = session_attach(call->daemon->sessions, pid, &process, permit_owner(call), &message, on_attached, asked);
	if (r < 0)
		fail_start(asked_end(asked, &pid), pid, r);
}

/* --- Detach --- */

static void on_detached(void *context, const struct answer *answer)
{
	const struct wire_detached *detached = (const struct wire_detached *)answer->message;
	int pid;
	struct call *call = asked_end(context, &pid);

	if (answer->error < 0) {
		fail_answer(call, pid, answer);
		return;
	}
	if (!detached->clean)
		log_warning("process %d: something was left behind: %s", pid, detached->text);
	call_reply(call, json_pack("{s:b, s:o}", "clean", detached->clean, "message",
				   detached->text[0] ? codec_bytes(detached->text) : json_null()));
}

void handle_detach(struct call *call)
{
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);
	struct asked *asked;

	if (session && session_state(session) == SESSION_LOST) {
		session_forget(session);
		call_reply(call, json_pack("{s:b, s:s}", "clean", 0, "message",
					   "its tracer had died before; the kernel has detached it"));
		return;
	}
	if (session && session_state(session) == SESSION_ATTACHING) {
		session_abandon(session);
		call_reply(call, json_pack("{s:b, s:s}", "clean", 1, "message", "the attach was given up"));
		return;
	}
	session = find_traced(call, pid);
	if (!session)
		return;
	asked = asked_new(call, pid);
	if (asked && param_bool(call->parameters, "keep"))
		session_set_aside(session, on_detached, asked);
	else if (asked)
		session_detach(session, on_detached, asked);
}

/* --- WaitGone --- */

static void reply_ending(struct call *call, const struct ending *ending)
{
	bool known = ending->exited && ending->wait_status != -1;

	if (ending->error < 0)
		fail(call, "process %d is no longer traced: its tracer has died", ending->pid);
	else
		call_reply(call, json_pack("{s:o, s:o, s:o}", "exit_status",
					   known ? json_integer(ending->wait_status) : json_null(), "snapshot",
					   ending->snapshot[0] ? json_string(ending->snapshot) : json_null(), "reason",
					   ending->reason[0] ? codec_bytes(ending->reason) : json_null()));
}

static void on_ending(void *context, const struct ending *ending)
{
	reply_ending(context, ending);
}

static void on_waiter_gone(struct call *call)
{
	struct session *session = permit_session(call, param_pid(call->parameters, "pid", 0));

	if (session)
		session_wait_cancel(session, call);
	call_drop(call);
}

void handle_wait_gone(struct call *call)
{
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);
	const struct ending *ending = sessions_ending(call->daemon->sessions, pid);

	if (session && session_state(session) == SESSION_LOST) {
		fail(call, "process %d is no longer traced: its tracer has died", pid);
	} else if (session && session_wait(session, on_ending, call) == 0) {
		call->abandoned = on_waiter_gone;
	} else if (session) {
		fail_limit(call, "clients", "too many clients wait for the end of process %d", pid);
	} else if (ending && permit_sees(call, ending->owner)) {
		reply_ending(call, ending);
	} else {
		fail_not_traced(call, pid, "process %d is not traced", pid);
	}
}

/* --- Clear, ResetPeak --- */

static void on_done(void *context, const struct answer *answer)
{
	int pid;
	struct call *call = asked_end(context, &pid);

	if (answer->error < 0)
		fail_answer(call, pid, answer);
	else
		call_reply(call, json_object());
}

static void ask_simple(struct call *call, enum wire_type type)
{
	struct wire_head message = { .type = type };
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = find_traced(call, pid);
	struct asked *asked;

	if (!session)
		return;
	if (session_state(session) == SESSION_ATTACHING) {
		fail_not_traced(call, pid, "process %d is just being attached; try again", pid);
		return;
	}
	asked = asked_new(call, pid);
	if (asked)
		session_ask(session, &message, sizeof(message), WIRE_DONE, REQUEST_TIMEOUT_US, on_done, asked);
}

void handle_clear(struct call *call)
{
	ask_simple(call, WIRE_CLEAR);
}

void handle_reset_peak(struct call *call)
{
	ask_simple(call, WIRE_RESET_PEAK);
}
