#include "client.h"

#include "live.h"
#include "tool.h"

#include <string.h>

struct varlink_client *client_of(struct tool *tool)
{
	struct varlink_client *client;

	require_equal(varlink_client_open(tool_socket(tool), &client), 0);
	return client;
}

json_t *client_call(struct varlink_client *client, const char *method, json_t *parameters, const char **ret_limit)
{
	json_t *reply = NULL, *error = NULL;
	int r = varlink_client_call(client, method, parameters, &reply, &error);

	json_decref(parameters);
	if (r == 0)
		return reply;
	if (!error || strcmp(json_text(error, "error"), "org.allocwatch.Tracer.LimitReached") != 0)
		live_fail("%s: %s", method, error ? json_dumps(error, 0) : strerror(-r));
	if (ret_limit)
		*ret_limit = live_text("%s: %s", json_text(error, "parameters.limit"),
				       json_text(error, "parameters.message"));
	json_decref(error);
	return NULL;
}
