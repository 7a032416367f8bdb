#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/list_file.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/tracing.h"

#include <string.h>

int cmd_snapshots(const struct options *options, int argc, char **argv)
{
	struct session session;
	json_t *reply;
	pid_t pid = 0;
	int r;

	if (argc > 0 && strchr(argv[0], '/'))
		return list_file(options, argv[0], store_describe);
	r = argc > 0 ? tracing_pid("snapshots", argv[0], &pid) : EXIT_DONE;
	if (r != EXIT_DONE)
		return r;
	r = session_open_kept(options, &session);
	if (r != EXIT_DONE)
		return r;
	r = session_call(&session, "cannot list the kept snapshots", "ListSnapshots",
			 argc > 0 ? json_pack("{s:i}", "pid", (int)pid) : json_object(), &reply);
	session_close(&session);
	if (r != EXIT_DONE)
		return r;
	if (options_have(options, OPTION(JSON)))
		return show_json(reply);
	r = answer_print_snapshots(json_object_get(reply, "snapshots")) < 0 ? fail_memory() : show_finish();
	if (*answer_text(reply, "full"))
		note("no more snapshots are kept: %s; 'allocwatch rm' makes room", answer_text(reply, "full"));
	json_decref(reply);
	return r;
}
