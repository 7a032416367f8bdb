/* contrib/python/allocwatch.py on a native process: the examples that tracemalloc is taught with. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void run_with(const char *python, struct tool *tool, struct subject *subject)
{
	const char *command = live_text(
		"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=%s/contrib/python ALLOCWATCH=%s/src/allocwatch ALLOCWATCH_SOCKET=%s "
		"ALLOCWATCH_PID=%d %s %s/tests/live/seeds/run %d %d %d %s/contrib/sample/leaky.c",
		live_source(), live_build(), tool_socket(tool), (int)subject->pid, python, live_source(),
		(int)subject->pid, subject->to, subject->from, live_source());

	if (system(command) != 0)
		live_fail("the examples do not run under %s", python);
}

static void the_examples_run_with_only_their_import_changed(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("contrib/sample/leaky", "--commands", NULL);
	struct state *before = state_take(subject->pid);

	/* the examples give it its commands */
	fcntl(subject->to, F_SETFD, 0);
	fcntl(subject->from, F_SETFD, 0);
	run_with("/usr/bin/python3", tool, subject);
	tool_attach(tool, subject->pid);
	tool_end(tool, subject, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(the_examples_run_with_only_their_import_changed),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
