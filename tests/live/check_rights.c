/* Programs with more rights than who starts them keep these, whoever of their family is traced. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PRIVILEGED "tests/victims/privileged"
#define RIGHTS 41
#define WAYS 5             /* in which the victim executes it each time */

enum rights { SET_UID, CAPABILITY };

/* A copy of the victim that belongs to root, set-uid or with a capability. */
static const char *copy_with(enum rights rights)
{
	/* struct vfs_cap_data of <linux/capability.h>, version 2: CAP_CHOWN, effective. */
	static const uint32_t capabilities[5] = { 0x02000001, 1 };
	const char *from = live_text("%s/" PRIVILEGED, live_build()), *to = live_text("%s/set-uid", live_folder());
	char buffer[65536];
	ssize_t n;
	int in, out;

	if (geteuid() != 0)
		live_skip("making a set-uid program of another user needs root");
	in = open(from, O_RDONLY);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	require(in >= 0 && out >= 0);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		require(write(out, buffer, (size_t)n) == n);
	require_equal(n, 0);
	if (rights == SET_UID)
		require_equal(fchmod(out, 04755), 0);
	else if (fsetxattr(out, "security.capability", capabilities, sizeof(capabilities), 0) < 0)
		live_skip("files in %s cannot have capabilities: %s", live_folder(), strerror(errno));
	close(in);
	close(out);
	return to;
}

static void run_children(enum rights rights, bool follow)
{
	const char *program = copy_with(rights);
	struct tool *tool = tool_start_ordinary();
	struct subject *parent = victim_start_ordinary(PRIVILEGED, program, NULL);
	struct state *before = state_take(parent->pid);

	/* It does not only seem so: untraced they have the rights, or this folder gives none. */
	subject_command(parent, 'g');
	if (subject_tally(parent, "good") == 0)
		live_skip("programs get no rights in %s (nosuid?)", live_folder());
	tool_out(tool, "attach", pid_text(parent->pid), follow ? "--follow-forks" : NULL, NULL);
	for (int i = 0; i < 3; i++)
		subject_command(parent, 'g');
	require_equal(subject_tally(parent, "runs"), 4 * WAYS);
	require_equal(subject_tally(parent, "good"), 4 * WAYS);
	require_nothing_unknown(tool_status(tool, parent->pid), 0);
	tool_end(tool, parent, before);
}

static void children_that_are_not_followed_keep_their_rights(void)
{
	run_children(SET_UID, false);
}

static void followed_children_keep_their_rights(void)
{
	run_children(SET_UID, true);
}

static void programs_with_capabilities_keep_them(void)
{
	run_children(CAPABILITY, false);
}

static void followed_programs_with_capabilities_keep_them(void)
{
	run_children(CAPABILITY, true);
}

static void the_process_itself_keeps_them(void)
{
	const char *program = copy_with(SET_UID);
	struct tool *tool = tool_start_ordinary();
	struct subject *self = victim_start_ordinary(PRIVILEGED, program, "exec", NULL);
	int status;

	subject_command(self, 'g');
	if (subject_tally(self, "good") == 0)
		live_skip("programs get no rights in %s (nosuid?)", live_folder());
	tool_attach(tool, self->pid);
	subject_send(self, 'q');
	status = subject_wait(self);
	require(WIFEXITED(status));
	require_equal(WEXITSTATUS(status), RIGHTS);
	require(strstr(tool_out(tool, "snapshots", NULL), "detach") != NULL);
}

static const struct live_case cases[] = {
	LIVE_CASE(children_that_are_not_followed_keep_their_rights),
	LIVE_CASE(followed_children_keep_their_rights),
	LIVE_CASE(programs_with_capabilities_keep_them),
	LIVE_CASE(followed_programs_with_capabilities_keep_them),
	LIVE_CASE(the_process_itself_keeps_them),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
