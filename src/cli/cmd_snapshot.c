#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/tracing.h"

#include "export/printable.h"

#include <stdio.h>
#include <string.h>

static json_t *snapshot_parameters(const struct options *options, pid_t pid)
{
	json_t *parameters = json_pack("{s:i, s:s*}", "pid", (int)pid, "name", options->name);

	if (parameters && options_have(options, OPTION(BLOCKS)) &&
	    json_object_set_new(parameters, "blocks", json_true()) < 0) {
		json_decref(parameters);
		return NULL;
	}
	return parameters;
}

int cmd_snapshot(const struct options *options, int argc, char **argv)
{
	char what[64];
	struct session session;
	json_t *reply, *info;
	pid_t pid;
	int r = tracing_pid("snapshot", argv[0], &pid);

	(void)argc;
	if (r != EXIT_DONE)
		return r;
	r = session_open(options, &session);
	if (r != EXIT_DONE)
		return r;
	snprintf(what, sizeof(what), "cannot take a snapshot of %d", (int)pid);
	progress("taking a snapshot of %d", (int)pid);
	r = session_call(&session, what, "TakeSnapshot", snapshot_parameters(options, pid), &reply);
	progress_clear();
	session_close(&session);
	if (r != EXIT_DONE)
		return r;
	info = json_object_get(reply, "snapshot");
	if (options_have(options, OPTION(JSON))) {
		r = show_json(json_incref(info));
	} else {
		printable_write(stdout, answer_text(info, "id"), strlen(answer_text(info, "id")), false);
		putchar('\n');
		r = show_finish();
	}
	json_decref(reply);
	return r;
}
