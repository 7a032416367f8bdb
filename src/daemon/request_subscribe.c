/* Subscribe. */
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"

/* The process that is meant, which must be traced.  False: the call is answered. */
static bool find_meant(struct call *call, const struct session **ret_session)
{
	int pid = param_pid(call->parameters, "pid", 0);

	*ret_session = pid == 0 ? NULL : permit_session(call, pid);
	if (pid == 0 || (*ret_session && session_state(*ret_session) == SESSION_TRACING))
		return true;
	fail_no_session(call, pid, *ret_session);
	return false;
}

void handle_subscribe(struct call *call)
{
	struct events *events = call->daemon->events;
	size_t max = SUBSCRIBERS_OF(call->daemon->limits.clients);
	const struct session *session;

	if (!call->more || call->oneway)
		call_error(call, "org.varlink.service.ExpectedMore", NULL);
	else if (events_subscribers(events) >= max)
		fail_limit(call, "subscribers", "%zu clients have subscribed already, and more are not allowed; "
						"allocwatchd --max-clients raises the limit", max);
	else if (find_meant(call, &session) && events_subscribe(events, call, session) < 0)
		fail_memory(call);
}
