/* List and GetStatus. */
#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"
#include "model/engine_kind.h"
#include "model/filter.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>

/* --- List: all tracers are asked, and those that do not answer are shown by their last figures --- */

struct listing {
	struct call *call;
	size_t waiting;      /* answers that are still to come, and one for the asking itself */
};

static json_t *encode_target(const struct session *session)
{
	const struct heap_counters *counters = &session_status(session)->counters;

	return json_pack("{s:i, s:o, s:o, s:s, s:I, s:I, s:I}", "pid", session_pid(session), "command",
			 codec_bytes(session_command(session)), "exe", codec_bytes(session_exe(session)), "state",
			 session_state_name(session), "since", (json_int_t)session_since_ns(session), "live_bytes",
			 (json_int_t)counters->live_bytes, "blocks", (json_int_t)counters->live_blocks);
}

static json_t *encode_targets(const struct call *call)
{
	const struct sessions *sessions = call->daemon->sessions;
	json_t *list = json_array();

	for (size_t i = 0; list && i < sessions_count(sessions); i++) {
		const struct session *session = sessions_get(sessions, i);

		if (!permit_sees(call, session_owner(session)))
			continue;
		if (json_array_append_new(list, encode_target(session)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void one_less(struct listing *listing)
{
	struct call *call = listing->call;

	if (--listing->waiting > 0)
		return;
	free(listing);
	call_reply(call, json_pack("{s:o, s:o, s:o}", "daemon", codec_bytes(call->daemon->address), "targets",
				   encode_targets(call), "watched", watches_names(call->daemon->watches, permit_sees_rules(call))));
}

/* The figures are the session's by now. */
static void on_listed_status(void *context, const struct answer *answer)
{
	(void)answer;
	one_less(context);
}

void handle_list(struct call *call)
{
	struct sessions *sessions = call->daemon->sessions;
	struct listing *listing = calloc(1, sizeof(*listing));

	if (!listing) {
		fail_memory(call);
		return;
	}
	listing->call = call;
	listing->waiting = 1;
	/* Asking takes nobody out of the list: what is lost is found out by the event loop. */
	for (size_t i = 0; i < sessions_count(sessions); i++) {
		struct session *session = sessions_get(sessions, i);
		struct wire_head message = { .type = WIRE_STATUS };

		if (!session_knows(session) || !permit_sees(call, session_owner(session)))
			continue;
		listing->waiting++;
		session_ask(session, &message, sizeof(message), WIRE_STATUS_REPLY, LIST_TIMEOUT_US,
			    on_listed_status, listing);
	}
	one_less(listing);
}

/* --- GetStatus --- */

static int add_domain(json_t *domains, uint32_t number, uint64_t live_bytes, uint64_t live_blocks)
{
	char text[DOMAIN_TEXT_MAX];
	const char *name = domain_name(number, text);

	if (live_blocks == 0)
		return 0;
	return json_object_set_new(domains, name, json_pack("{s:s, s:I, s:I}", "name", name, "live_bytes", (json_int_t)live_bytes,
							    "blocks", (json_int_t)live_blocks));
}

static json_t *encode_domains(const struct wire_status *status)
{
	json_t *domains = json_object();
	int r = domains ? 0 : -1;

	for (uint32_t i = 0; r == 0 && i < WIRE_DOMAINS; i++)
		r = add_domain(domains, i, status->domains[i].live_bytes, status->domains[i].live_blocks);
	for (unsigned i = 0; r == 0 && i < WIRE_ALLOCATORS_MAX; i++)
		r = add_domain(domains, status->user_domains[i].domain, status->user_domains[i].live_bytes,
			       status->user_domains[i].live_blocks);
	if (r == 0)
		return domains;
	json_decref(domains);
	return NULL;
}

static json_t *encode_unknown(const struct wire_status *status)
{
	const struct heap_counters *c = &status->counters;
	const struct snapshot_unknown unknown = {
		.unknown_frees = c->unknown_frees, .before_attach_frees = c->before_attach_frees,
		.after_clear_frees = c->after_clear_frees, .lost_events = c->lost_events,
		.truncated_stacks = status->truncated_stacks, .probe_gaps = status->probe_gaps,
	};

	return codec_unknown(&unknown);
}

static json_t *encode_status(const struct daemon *daemon, const struct session *session)
{
	const struct wire_status *s = session_status(session);
	size_t naming = intakes_naming(daemon->intakes, session_pid(session), session_start_time(session));

	return json_pack("{s:i, s:s, s:s, s:o, s:o*, s:o*, s:o*, s:o*, s:b, s:o, s:b, s:o*, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, "
			 "s:I, s:o*, s:o}",
			 "pid", session_pid(session), "state", session_state_name(session), "engine",
			 engine_kinds[s->engine], "engine_reason",
			 s->engine_reason[0] ? codec_bytes(s->engine_reason) : json_null(),
			 "ring_wait_ms", s->ring_wait_ms ? json_integer((json_int_t)s->ring_wait_ms) : NULL,
			 "ring_waits", s->ring_wait_ms ? json_integer((json_int_t)s->ring_waits) : NULL,
			 "ring_readers", s->ring_wait_ms ? json_integer((json_int_t)s->ring_readers) : NULL,
			 "ring_stacks_ahead", s->ring_stacks_ahead ? json_integer((json_int_t)s->ring_stacks_ahead) : NULL,
			 "released", s->released, "hold_reason", s->hold_reason[0] ? codec_bytes(s->hold_reason) : json_null(),
			 "exact", s->exact,
			 "sample_bytes", s->sample_bytes ? json_integer((json_int_t)s->sample_bytes) : NULL,
			 "crash_safe", s->crash_safe, "crash_safe_reason",
			 s->crash_unsafe_reason[0] ? codec_bytes(s->crash_unsafe_reason) : json_null(),
			 "frames_limit", (json_int_t)s->frames_limit,
			 "traced_current", (json_int_t)s->counters.live_bytes,
			 "traced_peak", (json_int_t)s->counters.peak_bytes,
			 "blocks", (json_int_t)s->counters.live_blocks,
			 "allocations", (json_int_t)s->counters.allocations,
			 "frees", (json_int_t)s->counters.frees, "domains", encode_domains(s),
			 "pending_calls", (json_int_t)s->pending_calls,
			 "tracer_memory", (json_int_t)s->tracer_memory,
			 "longest_stop_us", (json_int_t)s->longest_stop_us,
			 "children_not_followed", (json_int_t)session_not_followed(session), "naming",
			 naming ? json_integer((json_int_t)naming) : NULL, "unknown",
			 encode_unknown(s));
}

static void reply_status(struct call *call, const struct session *session)
{
	call_reply(call, json_pack("{s:o}", "status", encode_status(call->daemon, session)));
}

static void on_status(void *context, const struct answer *answer)
{
	struct call *call = context;
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);

	if (answer->error < 0 || !session)
		fail_answer(call, pid, answer);
	else
		reply_status(call, session);
}

void handle_get_status(struct call *call)
{
	struct wire_head message = { .type = WIRE_STATUS };
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);

	if (!session)
		fail_no_session(call, pid, NULL);
	else if (session_knows(session))
		session_ask(session, &message, sizeof(message), WIRE_STATUS_REPLY, REQUEST_TIMEOUT_US, on_status,
			    call);
	else
		reply_status(call, session);        /* the last known figures, and the state says so */
}
