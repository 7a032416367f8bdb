/* ListMismatches: frees that should not have been, each with the traceback of the free, and where there is one, of the
 * allocation. */
#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"
#include "model/traceback.h"
#include "varlink/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked {
	struct call *call;
	int pid;
	struct wire_misuses found;
};

static struct call *end_asked(struct asked *asked)
{
	struct call *call = asked->call;

	free(asked);
	return call;
}

/* null where there is none: which trace it is, is the tracer's word. */
static json_t *encode_traceback(const struct snapshot *snapshot, uint32_t trace)
{
	const struct traceback_options options = { 0 };
	struct traceback traceback;
	json_t *json;

	if (trace >= snapshot->traces.count)
		return json_null();
	if (traceback_make(snapshot, snapshot->traces.items[trace].stack, &options, &traceback) < 0)
		return NULL;
	json = codec_traceback(&traceback);
	traceback_fini(&traceback);
	return json;
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static json_t *encode_misuse(const struct wire_misuses *found, uint32_t i, const struct snapshot *snapshot)
{
	char address[24];

	snprintf(address, sizeof(address), "0x%" PRIx64, found->misuse[i].address);
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "kind",
			 misuse_kind_name((enum misuse_kind)found->misuse[i].kind), "address", address,
			 "size", (json_int_t)found->misuse[i].size, "count", (json_int_t)found->misuse[i].count,
			 "thread", (json_int_t)found->misuse[i].thread,
			 "made_by", text_or_null(form_maker(found->misuse[i].made_form)),
			 "freed_by", text_or_null(form_freer(found->misuse[i].freed_forms)),
			 "freed", encode_traceback(snapshot, found->misuse[i].freed_trace),
			 "made", encode_traceback(snapshot, found->misuse[i].made_trace));
}

static json_t *encode_misuses(const struct wire_misuses *found, const struct snapshot *snapshot)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < found->count; i++) {
		if (json_array_append_new(list, encode_misuse(found, i, snapshot)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void on_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct asked *asked = context;
	int pid = asked->pid;

	if (!snapshot)
		fail(end_asked(asked), "the wrong frees of process %d cannot be read (%s): %s", pid, strerror(-error), reason);
}

static void on_named(void *context, struct snapshot *snapshot)
{
	struct asked *asked = context;
	json_t *list = encode_misuses(&asked->found, snapshot);
	json_int_t more = asked->found.more > INT64_MAX ? INT64_MAX : (json_int_t)asked->found.more;

	snapshot_put(snapshot);
	call_reply(end_asked(asked), json_pack("{s:o, s:I}", "mismatches", list, "more", more));
}

static void on_misuses(void *context, const struct answer *answer)
{
	const struct intake_steps steps = { .context = context, .read = on_read, .named = on_named };
	struct asked *asked = context;
	struct daemon *daemon = asked->call->daemon;
	struct session *session = permit_session(asked->call, asked->pid);
	const char *reason;
	int pid = asked->pid, r;

	if (answer->error < 0 || !session) {
		fail_answer(end_asked(asked), pid, answer);
		return;
	}
	asked->found = *(const struct wire_misuses *)answer->message;
	if (asked->found.count == 0) {
		call_reply(end_asked(asked), json_pack("{s:[], s:i}", "mismatches", "more", 0));
		return;
	}
	r = intake_start(daemon->intakes, answer->fd, session_modules(session), pid, session_start_time(session), &steps,
			 &reason);
	if (r == -ENOSPC || r == -E2BIG)
		fail_limit(end_asked(asked), "snapshots", "%s; try again", reason);
	else if (r < 0)
		fail(end_asked(asked), "the wrong frees of process %d cannot be read: %s", pid, reason);
}

void handle_list_mismatches(struct call *call)
{
	struct wire_head message = { .type = WIRE_MISUSES };
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);
	struct asked *asked;

	if (!session || !session_knows(session)) {
		fail_no_session(call, pid, session);
		return;
	}
	asked = calloc(1, sizeof(*asked));
	if (!asked) {
		fail_memory(call);
		return;
	}
	asked->call = call;
	asked->pid = pid;
	session_ask(session, &message, sizeof(message), WIRE_MISUSES_REPLY, REQUEST_TIMEOUT_US, on_misuses, asked);
}
