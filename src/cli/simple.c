#include "cli/simple.h"

#include "cli/failure.h"
#include "cli/show.h"
#include "cli/tracing.h"

int simple_call(const struct options *options, const char *command, const char *pid_text, const char *method,
		const char *what)
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
	r = session_call(&session, line, method, json_pack("{s:i}", "pid", (int)pid), NULL);
	session_close(&session);
	if (r == EXIT_DONE && options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:i}", "pid", (int)pid));
	return r;
}
