/* Metrics: what a monitoring system wants to know, as a text. */
#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/metrics.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of one message: JSON needs up to two bytes for one of these. */
#define PIECE_BYTES (256u << 10)

struct telling {
	struct call *call;
	char *text;
	size_t len, told;
};

static void telling_free(struct telling *telling)
{
	free(telling->text);
	free(telling);
}

/* At the end of a line: no character is cut in two. */
static size_t piece_of(const struct telling *telling)
{
	size_t rest = telling->len - telling->told, len = PIECE_BYTES;

	if (rest <= PIECE_BYTES)
		return rest;
	while (len > 0 && telling->text[telling->told + len - 1] != '\n')
		len--;
	return len;
}

static json_t *make_piece(const struct telling *telling, size_t len)
{
	return json_pack("{s:s%}", "text", telling->text + telling->told, len);
}

static void on_reader_gone(struct call *call)
{
	telling_free(call->context);
	call->context = NULL;
	call->pull = NULL;
	call->abandoned = NULL;
	call_drop(call);
}

static void send_piece(struct call *call)
{
	struct telling *telling = call->context;
	size_t len = piece_of(telling);
	json_t *piece = make_piece(telling, len);

	telling->told += len;
	if (piece && telling->told < telling->len && call_reply_part(call, piece) == 0)
		return;
	call->pull = NULL;
	call->abandoned = NULL;
	if (piece && telling->told == telling->len)
		call_reply(call, piece);
	else
		fail_memory(call);
	telling_free(telling);
}

static void on_made(void *context, char *text, size_t len)
{
	struct call *call = context;
	struct telling *telling = text ? calloc(1, sizeof(*telling)) : NULL;

	if (!telling) {
		free(text);
		fail_memory(call);
		return;
	}
	*telling = (struct telling){ .call = call, .text = text, .len = len };
	if (!call->more && len > PIECE_BYTES) {
		telling_free(telling);
		fail_limit(call, "message size", "the text has %zu bytes, more than fit into a message; ask for a stream",
			   len);
		return;
	}
	call->context = telling;
	if (!call->conn) {
		on_reader_gone(call);
		return;
	}
	call->pull = send_piece;
	call->abandoned = on_reader_gone;
	send_piece(call);
}

void handle_metrics(struct call *call)
{
	const struct metrics_viewer viewer = { .uid = call->peer.uid, .all = call->peer.uid == 0,
					       .sees_roots = permit_viewer(call).sees_roots };
	enum openmetrics_format format;

	if (openmetrics_format_parse(param_text(call->parameters, "format", "openmetrics"), &format) < 0)
		fail_invalid_parameter(call, "format");
	else
		metrics_collect(call->daemon->metrics, viewer, format, on_made, call);
}
