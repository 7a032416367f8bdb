#include "client.h"

#include "live.h"
#include "tool.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define EVENT_MS 60000

struct varlink_client *client_of(struct tool *tool)
{
	struct varlink_client *client;

	require_equal(varlink_client_open(tool_socket(tool), &client), 0);
	return client;
}

/* Who connects is who asks from then on. */
struct varlink_client *client_of_user(struct tool *tool, uid_t uid)
{
	struct varlink_client *client;

	require_equal(setegid(uid), 0);
	require_equal(seteuid(uid), 0);
	client = client_of(tool);
	require_equal(seteuid(0), 0);
	require_equal(setegid(0), 0);
	return client;
}

void client_subscribe(struct varlink_client *client, pid_t pid)
{
	json_t *parameters = pid ? json_pack("{s:i}", "pid", (int)pid) : json_object(), *event;

	require_equal(varlink_client_begin(client, "Subscribe", parameters, true), 0);
	json_decref(parameters);
	event = client_event(client);
	require_text(json_text(event, "kind"), "subscribed");
	json_decref(event);
}

json_t *client_event(struct varlink_client *client)
{
	struct pollfd fd = { varlink_client_descriptor(client), POLLIN, 0 };
	json_t *reply = NULL, *error = NULL, *event;
	int r;

	while ((r = varlink_client_take(client, &reply, &error)) == -EAGAIN) {
		if (poll(&fd, 1, EVENT_MS) != 1)
			live_fail("no event comes");
	}
	if (r < 0)
		live_fail("no event but %s", error ? json_dumps(error, 0) : strerror(-r));
	event = json_incref(json_object_get(reply, "event"));
	json_decref(reply);
	return event;
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
