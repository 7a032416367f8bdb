#include "cli/simple.h"

#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/tracing.h"

int simple_ask(const struct options *options, const char *command, const char *pid_text, const char *method,
	       const char *what, pid_t *ret_pid, json_t **ret_reply)
{
	char line[128];
	struct session session;
	pid_t pid;
	int r = tracing_pid(command, pid_text, &pid);

	if (r != EXIT_DONE)
		return r;
	r = session_open(options, &session);
	if (r != EXIT_DONE)
		return r;
	snprintf(line, sizeof(line), "%s %d", what, (int)pid);
	r = session_call(&session, line, method, json_pack("{s:i}", "pid", (int)pid), ret_reply);
	session_close(&session);
	if (r == EXIT_DONE)
		*ret_pid = pid;
	return r;
}

int simple_call(const struct options *options, const char *command, const char *pid_text, const char *method,
		const char *what)
{
	pid_t pid;
	int r = simple_ask(options, command, pid_text, method, what, &pid, NULL);

	if (r == EXIT_DONE && options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:i}", "pid", (int)pid));
	return r;
}
