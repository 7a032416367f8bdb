/* FindBlock: the blocks that hold an address, each with the traceback that allocated it. */
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

struct search {
	struct call *call;
	int pid;
	struct wire_blocks found;
};

/* "0x..." or decimal; false: neither. */
static bool parse_address(const char *text, uint64_t *ret_address)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	size_t len = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

	if (len == 0 || digits[len] != '\0')
		return false;
	errno = 0;
	*ret_address = strtoull(digits, NULL, hex ? 16 : 10);
	return errno == 0;
}

static struct call *end_search(struct search *search)
{
	struct call *call = search->call;

	free(search);
	return call;
}

static json_t *encode_with(const struct wire_blocks *found, uint32_t i, const struct traceback *traceback)
{
	const char *truncated = traceback->truncated ? truncation_text(traceback->truncated) : NULL;
	char address[24], domain[DOMAIN_TEXT_MAX];

	snprintf(address, sizeof(address), "0x%" PRIx64, found->block[i].address);
	return json_pack("{s:s, s:I, s:s, s:f, s:I, s:o, s:I, s:s*}", "address", address, "size",
			 (json_int_t)found->block[i].size, "domain", domain_name(found->block[i].domain, domain),
			 "age_seconds", (double)found->block[i].age_ns / 1e9,
			 "thread", (json_int_t)found->block[i].thread, "traceback", codec_traceback(traceback),
			 "total_frames", (json_int_t)traceback->total_frames, "truncated", truncated);
}

static json_t *encode_block(const struct wire_blocks *found, uint32_t i, const struct snapshot *snapshot)
{
	const struct snapshot_trace *trace = &snapshot->traces.items[found->block[i].trace];
	const struct traceback_options options = { 0 };
	struct traceback traceback;
	json_t *json;

	if (traceback_make(snapshot, trace->stack, &options, &traceback) < 0)
		return NULL;
	json = encode_with(found, i, &traceback);
	traceback_fini(&traceback);
	return json;
}

/* Which trace belongs to a block is the tracer's word. */
static json_t *encode_blocks(const struct wire_blocks *found, const struct snapshot *snapshot)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < found->count; i++) {
		if (found->block[i].trace >= snapshot->traces.count)
			continue;
		if (json_array_append_new(list, encode_block(found, i, snapshot)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void on_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct search *search = context;
	int pid = search->pid;

	if (!snapshot)
		fail(end_search(search), "the blocks of process %d cannot be read (%s): %s", pid, strerror(-error),
		     reason);
}

static void on_named(void *context, struct snapshot *snapshot)
{
	struct search *search = context;
	json_t *blocks = encode_blocks(&search->found, snapshot);

	snapshot_put(snapshot);
	call_reply(end_search(search), json_pack("{s:o}", "blocks", blocks));
}

static void on_blocks(void *context, const struct answer *answer)
{
	const struct intake_steps steps = { .context = context, .read = on_read, .named = on_named };
	struct search *search = context;
	struct daemon *daemon = search->call->daemon;
	struct session *session = permit_session(search->call, search->pid);
	const char *reason;
	int pid = search->pid, r;

	if (answer->error < 0 || !session) {
		fail_answer(end_search(search), pid, answer);
		return;
	}
	search->found = *(const struct wire_blocks *)answer->message;
	if (search->found.count == 0) {
		call_reply(end_search(search), json_pack("{s:[]}", "blocks"));
		return;
	}
	r = intake_start(daemon->intakes, answer->fd, session_modules(session), pid, session_start_time(session),
			 &steps, &reason);
	if (r == -ENOSPC || r == -E2BIG)
		fail_limit(end_search(search), "snapshots", "%s; try again", reason);
	else if (r < 0)
		fail(end_search(search), "the blocks of process %d cannot be read: %s", pid, reason);
}

void handle_find_block(struct call *call)
{
	struct wire_block_request message = { .head.type = WIRE_BLOCK };
	int pid = param_pid(call->parameters, "pid", 0);
	struct session *session = permit_session(call, pid);
	struct search *search;

	if (!parse_address(param_text(call->parameters, "address", ""), &message.address)) {
		fail_invalid_parameter(call, "address");
		return;
	}
	if (!session || !session_knows(session)) {
		fail_no_session(call, pid, session);
		return;
	}
	search = calloc(1, sizeof(*search));
	if (!search) {
		fail_memory(call);
		return;
	}
	search->call = call;
	search->pid = pid;
	session_ask(session, &message.head, sizeof(message), WIRE_BLOCKS, REQUEST_TIMEOUT_US, on_blocks, search);
}
