/* TakeSnapshot, ListSnapshots, RemoveSnapshots, GetSnapshot. */
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"
#include "daemon/resolve.h"
#include "model/snapshot_name.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- TakeSnapshot --- */

struct taking {
	struct daemon *daemon;
	struct call *call;             /* NULL once it is answered */
	int pid;
	struct kept *kept;             /* NULL: it was not kept */
};

static void fail_full(struct call *call, int pid, uint64_t start_time)
{
	char *full = snapshots_full(call->daemon->snapshots, permit_owner(call));
	const char *why = full ? full : snapshots_memory_full;

	events_limit(call->daemon->events, permit_owner(call), pid, start_time, "snapshots", why);
	fail_limit(call, "snapshots", "%s; 'allocwatch rm' makes room", why);
	free(full);
}

/* The call is answered as soon as the snapshot is safe: names are on their way. */
static void on_taken_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct taking *taking = context;
	struct call *call = taking->call;
	uint64_t start_time;
	int pid = taking->pid, r;

	taking->call = NULL;
	if (!snapshot) {
		free(taking);
		fail(call, "the snapshot of process %d cannot be read (%s): %s", pid, strerror(-error), reason);
		return;
	}
	start_time = snapshot->start_time;
	r = snapshots_keep(taking->daemon->snapshots, snapshot, param_text(call->parameters, "name", ""),
			   permit_owner(call), &taking->kept);
	if (r == -ENOSPC)
		fail_full(call, pid, start_time);
	else if (r < 0)
		fail_memory(call);
	else
		call_reply(call, json_pack("{s:o}", "snapshot", kept_info(taking->kept)));
}

static void on_taken_named(void *context, struct snapshot *snapshot)
{
	struct taking *taking = context;

	if (taking->kept)
		snapshots_named(taking->daemon->snapshots, taking->kept);
	snapshot_put(snapshot);
	free(taking);
}

static void on_taken(void *context, const struct answer *answer)
{
	const struct intake_steps steps = { .context = context, .read = on_taken_read, .named = on_taken_named };
	struct taking *taking = context;
	struct session *session = permit_session(taking->call, taking->pid);
	struct call *call = taking->call;
	const char *reason;
	int pid = taking->pid, r;

	if (answer->error < 0 || !session) {
		free(taking);
		fail_answer(call, pid, answer);
		return;
	}
	r = intake_start(taking->daemon->intakes, answer->fd, session_modules(session), pid,
			 session_start_time(session), &steps, &reason);
	if (r == 0)
		return;
	free(taking);
	if (r == -ENOSPC || r == -E2BIG)
		fail_limit(call, "snapshots", "%s; try again", reason);
	else
		fail(call, "the snapshot of process %d cannot be read: %s", pid, reason);
}

static void ask_for_snapshot(struct call *call, int pid, struct session *session)
{
	struct wire_snapshot_request message = { .head.type = WIRE_SNAPSHOT };
	struct taking *taking = calloc(1, sizeof(*taking));

	if (!taking) {
		fail_memory(call);
		return;
	}
	taking->daemon = call->daemon;
	taking->call = call;
	taking->pid = pid;
	message.with_blocks = param_bool(call->parameters, "blocks");
	session_ask(session, &message.head, sizeof(message), WIRE_SNAPSHOT_READY, SNAPSHOT_TIMEOUT_US, on_taken,
		    taking);
}

/* Ids must go on where the last daemon's ended, so the state folder is looked through first. */
static void take_when_listed(void *context)
{
	struct call *call = context;
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);

	if (session && session_knows(session))
		ask_for_snapshot(call, pid, session);
	else
		fail_no_session(call, pid, session);
}

void handle_take_snapshot(struct call *call)
{
	const char *name = param_text(call->parameters, "name", "");

	if (*name && !snapshot_name_may_be_given(name))
		fail_invalid_parameter(call, "name");
	else
		snapshots_when_listed(call->daemon->snapshots, take_when_listed, call);
}

/* --- ListSnapshots, RemoveSnapshots --- */

static void list_when_listed(void *context)
{
	struct call *call = context;
	struct snapshots *snapshots = call->daemon->snapshots;
	char *full = snapshots_full(snapshots, permit_owner(call));

	call_reply(call, json_pack("{s:o, s:o}", "snapshots",
				   snapshots_list(snapshots, permit_viewer(call), param_pid(call->parameters, "pid", 0)), "full",
				   full ? json_string(full) : json_null()));
	free(full);
}

void handle_list_snapshots(struct call *call)
{
	snapshots_when_listed(call->daemon->snapshots, list_when_listed, call);
}

static void remove_when_listed(void *context)
{
	struct call *call = context;
	struct snapshots *snapshots = call->daemon->snapshots;
	const json_t *ids = json_object_get(call->parameters, "ids");

	/* All or none. */
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const char *id = json_string_value(json_array_get(ids, i));

		if (!snapshots_by_id(snapshots, permit_viewer(call), id)) {
			fail_no_such_snapshot(call, id, "no snapshot %s is kept", id);
			return;
		}
	}
	for (size_t i = 0; i < json_array_size(ids); i++) {
		struct kept *kept = snapshots_by_id(snapshots, permit_viewer(call),
						    json_string_value(json_array_get(ids, i)));

		if (kept)       /* an id may have been given twice */
			snapshots_remove(snapshots, kept);
	}
	call_reply(call, json_object());
}

void handle_remove_snapshots(struct call *call)
{
	snapshots_when_listed(call->daemon->snapshots, remove_when_listed, call);
}

/* --- GetSnapshot --- */

static void end_stream(struct call *call)
{
	codec_snapshot_writer_free(call->context);
	call->context = NULL;
	call->pull = NULL;
	call->abandoned = NULL;
}

static void on_reader_gone(struct call *call)
{
	end_stream(call);
	call_drop(call);
}

static void send_piece(struct call *call)
{
	bool last;
	json_t *tables = codec_snapshot_writer_next(call->context, &last);
	json_t *reply = tables ? json_pack("{s:o}", "tables", tables) : NULL;

	if (!reply) {
		end_stream(call);
		fail_memory(call);
	} else if (last) {
		end_stream(call);
		call_reply(call, reply);
	} else if (!call->more) {
		json_decref(reply);
		end_stream(call);
		call_error(call, "org.varlink.service.ExpectedMore", NULL);
	} else if (call_reply_part(call, reply) < 0) {
		end_stream(call);
		fail_memory(call);
	}
}

static void on_got(void *context, struct snapshot *snapshot)
{
	struct call *call = context;

	if (!snapshot)
		return;
	call->context = codec_snapshot_writer_new(snapshot);
	snapshot_put(snapshot);
	if (!call->context) {
		fail_memory(call);
		return;
	}
	if (!call->conn) {
		on_reader_gone(call);
		return;
	}
	call->pull = send_piece;
	call->abandoned = on_reader_gone;
	send_piece(call);
}

void handle_get_snapshot(struct call *call)
{
	resolve_snapshot(call, param_text(call->parameters, "snapshot", ""), on_got, call);
}
