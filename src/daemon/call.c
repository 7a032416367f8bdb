#include "daemon/call.h"

#include "daemon/conn.h"
#include "varlink/framing.h"
#include "varlink/interface.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_NAME_MAX 128

void call_drop(struct call *call)
{
	if (call->conn)
		conn_end(call->conn);
	json_decref(call->parameters);
	free(call);
}

/* Takes over message; NULL: no memory. */
static int send_message(struct call *call, json_t *message)
{
	char *text;
	size_t len;
	int r;

	if (!message)
		return -ENOMEM;
	r = varlink_encode(message, &text, &len);
	json_decref(message);
	if (r < 0)
		return r;
	return conn_send(call->conn, text, len);
}

static int send_reply(struct call *call, json_t *parameters, bool continues)
{
	if (!call->conn || call->oneway) {
		json_decref(parameters);
		return call->conn ? 0 : -EPIPE;
	}
	if (continues)
		return send_message(call, json_pack("{s:o, s:b}", "parameters", parameters, "continues", 1));
	return send_message(call, json_pack("{s:o}", "parameters", parameters));
}

int call_reply_part(struct call *call, json_t *parameters)
{
	return send_reply(call, parameters, true);
}

int call_try_reply(struct call *call, json_t *parameters)
{
	int r = send_reply(call, parameters, false);

	if (r == -EMSGSIZE)
		return r;
	if (r == -ENOMEM)
		call_error(call, "Failed", json_pack("{s:s}", "message", "the daemon is out of memory"));
	else
		call_drop(call);
	return 0;
}

void call_reply(struct call *call, json_t *parameters)
{
	if (call_try_reply(call, parameters) < 0)
		call_error(call, "LimitReached",
			   json_pack("{s:s, s:s}", "limit", "message size", "message",
				     "the answer does not fit into a message of 1 MiB"));
}

void call_error(struct call *call, const char *error, json_t *parameters)
{
	char name[ERROR_NAME_MAX];

	if (!call->conn || call->oneway) {
		json_decref(parameters);
		call_drop(call);
		return;
	}
	if (strchr(error, '.'))
		snprintf(name, sizeof(name), "%s", error);
	else
		snprintf(name, sizeof(name), VARLINK_OWN_INTERFACE ".%s", error);
	if (!parameters)
		parameters = json_object();
	/* Without memory even for this, silence would leave the client waiting for ever. */
	if (send_message(call, json_pack("{s:s, s:o}", "error", name, "parameters", parameters)) < 0 &&
	    call->conn)
		conn_close_after_output(call->conn);
	call_drop(call);
}
