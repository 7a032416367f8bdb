/* Yama's modes, 0 to 3: who may attach in each, what the refusals say, and that nothing is lost or left where the tracer may
 * do less than elsewhere: after an exec, in children, at a detach, when a tracer dies.
 *
 * Runs as root in the machine that tests/yama/vm boots.  Each case sets the mode that its name begins with; mode 3 can never
 * be left again, so those come last. */
#include "live.h"
#include "state.h"
#include "steps.h"
#include "subject.h"
#include "tool.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a user --- */

static void own_process(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = start_watched(ORDINARY_UID, NULL);
	if (scope == 0)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

static void own_process_that_names_anybody(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = start_watched(ORDINARY_UID, NULL);
	name_tracer(victim, -1);
	if (scope < 2)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

static void own_process_that_names_the_daemon(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = start_watched(ORDINARY_UID, NULL);
	name_tracer(victim, tool_daemon(tool));
	if (scope < 2)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

static void own_process_that_names_another(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = start_watched(ORDINARY_UID, NULL);
	name_tracer(victim, victim->pid);
	if (scope == 0)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

/* The tracer becomes the user before it looks: no more is allowed than by the user's own daemon. */
static void own_process_by_the_systems_daemon(int scope)
{
	struct tool *system, *tool;
	struct subject *victim;

	set_scope(scope);
	system = tool_start_system(NULL, NULL);
	tool = tool_of_user(system, ORDINARY_UID);
	victim = start_watched(ORDINARY_UID, NULL);
	if (scope == 1)
		name_tracer(victim, tool_daemon(system));
	if (scope < 2)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

/* The daemon is its parent, but the tracer, which the daemon starts, is not. */
static void child_of_the_daemon(int scope)
{
	const char *wrapper[] = { "sh", "-c", NULL, "sh", NULL };
	const char *fifo, *out, *victim;
	char text[32] = "";
	struct tool *tool;
	pid_t child;
	int in, fd;

	set_scope(scope);
	fifo = live_text("%s/in", live_folder());
	out = live_text("%s/child", live_folder());
	victim = public_copy(WATCHED);
	require(mkfifo(fifo, 0600) == 0 && chmod(fifo, 0666) == 0);
	fd = open(out, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	in = open(fifo, O_RDWR | O_CLOEXEC);
	require(in >= 0 && fd >= 0 && fchmod(fd, 0666) == 0);
	wrapper[2] = live_text("%s <%s >/dev/null & echo $! >%s; exec \"$@\"", victim, fifo, out);
	tool = tool_start_ordinary_wrapped(wrapper);
	require(pread(fd, text, sizeof(text) - 1, 0) > 1);
	child = atoi(text);
	require_equal(status_number(child, "PPid", 10), tool_daemon(tool));
	if (scope == 0) {
		tool_attach(tool, child);
		tool_detach(tool, child);
	} else {
		require_refusal(tool_try(tool, "attach", pid_text(child), NULL), reasons[scope], remedies[scope]);
	}
	require_equal(status_number(child, "TracerPid", 10), 0);
	require(write(in, "tq", 2) == 2);
}

static void command_of_run(int scope)
{
	struct tool *tool;
	struct subject *client;
	pid_t pid;

	set_scope(scope);
	tool = tool_start_ordinary();
	if (scope > 1) {
		struct tool_run refused = tool_try(tool, "run", "--", public_copy(WATCHED), NULL);

		require_refusal(refused, reasons[scope], remedies[scope]);
		return;
	}
	client = start_by_run(tool, NULL, WATCHED);
	subject_command(client, 'f');
	pid = (pid_t)subject_tally(client, "pid");
	require_equal(subject_tally(client, "status"), CHILD_GOOD);
	work(tool, client, pid, 0);
	require_healed_when_its_tracer_dies(pid);
	tool_attach(tool, pid);
	subject_command(client, 'g');
	tool_detach(tool, pid);
	require_unharmed(pid, NULL);
	require_same_process(client, pid);
	subject_quit(client);
}

static void followed_children(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = victim_start_ordinary(FORKER, NULL);
	if (scope == 0) {
		tool_out(tool, "attach", "--follow-forks", pid_text(victim->pid), NULL);
		require_followed(tool, victim);
		tool_detach(tool, victim->pid);
		require_unharmed(victim->pid, NULL);
	} else {
		require_refusal(tool_try(tool, "attach", "--follow-forks", pid_text(victim->pid), NULL), reasons[scope],
				remedies[scope]);
	}
	subject_quit(victim);
}

static void followed_children_of_run(int scope)
{
	struct tool *tool;
	struct subject *client;

	set_scope(scope);
	tool = tool_start_ordinary();
	client = start_by_run(tool, "--follow-forks", FORKER);
	require_followed(tool, client);
	require_followed(tool, client);
	subject_quit(client);
}

static void own_process_by_a_tracer_with_the_capability(int scope)
{
	struct tool *tool;
	struct subject *victim;
	const char *const argv[] = { "setcap", "cap_sys_ptrace+ep", public_copy("src/allocwatch-tracer"), NULL };

	set_scope(scope);
	require_equal(subject_wait(subject_start(geteuid(), argv)), 0);
	tool = tool_start_ordinary();
	victim = start_watched(ORDINARY_UID, NULL);
	if (scope == 3) {
		require_refused(tool, victim, scope);
		return;
	}
	require_all_but_healing(tool, victim);
	tool_attach(tool, victim->pid);
	require_healed_when_its_tracer_dies(victim->pid);
	subject_quit(victim);
}

static void own_process_in_a_user_namespace(int scope)
{
	static const char *const inside[] = { "unshare", "--user", "--map-root-user", NULL };
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = start_watched(ORDINARY_UID, inside);
	if (scope < 3)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

/* Where other rules refuse, too, they are named: the kernel asks them first. */
static void another_users_process(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_ordinary();
	victim = start_watched(0, NULL);
	require_refusal(tool_try(tool, "attach", pid_text(victim->pid), NULL), "runs as uid 0 and you are uid",
			"as that user or as root");
	require_same_process(victim, victim->pid);
	subject_quit(victim);
}

static void undumpable_process(int scope)
{
	struct tool *tool;
	struct subject *hammer;

	set_scope(scope);
	tool = tool_start_ordinary();
	hammer = victim_start_ordinary("tests/victims/hammer", "--undumpable", NULL);
	require_refusal(tool_try(tool, "attach", pid_text(hammer->pid), NULL), "yours but not dumpable", "as root");
	subject_quit(hammer);
}

/* --- root --- */

static void roots_own_process(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start();
	victim = start_watched(0, NULL);
	if (scope < 3)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

/* Its tracer becomes that user. */
static void users_process_by_root(int scope)
{
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start();
	victim = start_watched(ORDINARY_UID, NULL);
	if (scope == 3) {
		require_refused(tool, victim, scope);
		return;
	}
	tool_attach(tool, victim->pid);
	require_equal(status_number(tool_tracer(victim->pid), "CapEff", 16), 0);
	require_equal(status_number(tool_tracer(victim->pid), "Uid", 10), ORDINARY_UID);
	tool_detach(tool, victim->pid);
	require_traced(tool, victim);
}

static void users_process_by_a_service_with_few_rights(int scope)
{
	static const char *const unit[] = { "setpriv", "--bounding-set",
					    "-all,+sys_ptrace,+dac_read_search,+dac_override,+checkpoint_restore,+setuid,+setgid,"
					    "+setpcap,+sys_admin,+kill", NULL };
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_wrapped(unit);
	victim = start_watched(ORDINARY_UID, NULL);
	if (scope < 3)
		require_traced(tool, victim);
	else
		require_refused(tool, victim, scope);
}

static void followed_children_of_a_user_by_root(int scope)
{
	struct tool *tool;
	struct subject *forker;

	set_scope(scope);
	tool = tool_start();
	forker = victim_start_ordinary(FORKER, NULL);
	if (scope < 3) {
		tool_out(tool, "attach", "--follow-forks", pid_text(forker->pid), NULL);
		require_followed(tool, forker);
		require_followed(tool, forker);
		tool_detach(tool, forker->pid);
		require_unharmed(forker->pid, NULL);
	} else {
		require_refusal(tool_try(tool, "attach", "--follow-forks", pid_text(forker->pid), NULL), reasons[3],
				remedies[3]);
	}
	subject_quit(forker);
}

static void root_without_the_capability(int scope)
{
	static const char *const lacking[] = { "setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-all", NULL };
	struct tool *tool;
	struct subject *victim;

	set_scope(scope);
	tool = tool_start_wrapped(lacking);
	victim = start_watched(0, lacking);
	if (scope == 0) {
		require_traced(tool, victim);
	} else if (scope < 3) {
		require_refusal(tool_try(tool, "attach", pid_text(victim->pid), NULL), "root has no CAP_SYS_PTRACE here",
				"where it has that capability");
		require_same_process(victim, victim->pid);
		subject_quit(victim);
	} else {
		require_refused(tool, victim, scope);
	}
}

/* --- a mode that comes while something is traced --- */

/* In mode 3 nobody but the process itself can look at its text. */
static void go_on(struct tool *tool, struct subject *victim)
{
	work(tool, victim, victim->pid, 1);
	tool_detach(tool, victim->pid);
	require_same_process(victim, victim->pid);
	subject_quit(victim);
}

static void rises(int from, int to)
{
	struct tool *user = NULL, *root, *third;
	struct subject *own = NULL, *roots, *users, *killed;
	pid_t pid;

	set_scope(from);
	root = tool_start();
	third = tool_start_named("third");
	roots = start_watched(0, NULL);
	users = start_watched(ORDINARY_UID, NULL);
	killed = start_watched(ORDINARY_UID, NULL);
	tool_attach(root, roots->pid);
	tool_attach(root, users->pid);
	tool_attach(third, killed->pid);
	if (from < 2) {
		user = tool_start_ordinary();
		own = start_watched(ORDINARY_UID, NULL);
		name_tracer(own, -1);
		tool_attach(user, own->pid);
		subject_command(own, 'g');
	}
	subject_command(roots, 'g');
	subject_command(users, 'g');
	set_scope(to);
	if (own)
		go_on(user, own);
	go_on(root, roots);
	go_on(root, users);

	pid = killed->pid;
	kill(tool_tracer(pid), SIGKILL);
	subject_command(killed, 'g');
	require(to < 3 ? live_wait(is_healed, &pid, WAIT_MS) : status_number(pid, "TracerPid", 10) == 0);
	if (to == 3) {
		struct tool_run heal = { 0 };
		const char *const argv[] = { live_text("%s/src/allocwatchd", live_build()), "--heal", pid_text(pid), NULL };

		heal.status = WEXITSTATUS(subject_wait(subject_start(0, argv)));
		require_equal(heal.status, 1);
	}
	for (int i = 0; i < 5; i++)
		subject_command(killed, 'g');
	require_equal(subject_tally(killed, "blocks"), 6);
	subject_quit(killed);
}

#define IN_SCOPE(scope, what) \
	static void scope_##scope##_##what(void) \
	{ \
		what(scope); \
	}
#define FOR_EACH(X, scope) \
	X(scope, own_process) \
	X(scope, own_process_that_names_anybody) \
	X(scope, own_process_that_names_the_daemon) \
	X(scope, own_process_that_names_another) \
	X(scope, own_process_by_the_systems_daemon) \
	X(scope, child_of_the_daemon) \
	X(scope, command_of_run) \
	X(scope, followed_children) \
	X(scope, own_process_by_a_tracer_with_the_capability) \
	X(scope, own_process_in_a_user_namespace) \
	X(scope, another_users_process) \
	X(scope, undumpable_process) \
	X(scope, roots_own_process) \
	X(scope, users_process_by_root) \
	X(scope, users_process_by_a_service_with_few_rights) \
	X(scope, followed_children_of_a_user_by_root) \
	X(scope, root_without_the_capability)
#define ENTRY(scope, what) LIVE_CASE(scope_##scope##_##what),

FOR_EACH(IN_SCOPE, 0)
FOR_EACH(IN_SCOPE, 1)
FOR_EACH(IN_SCOPE, 2)
FOR_EACH(IN_SCOPE, 3)
IN_SCOPE(0, followed_children_of_run)
IN_SCOPE(1, followed_children_of_run)

static void scope_1_that_becomes_2(void)
{
	rises(1, 2);
}

static void scope_2_that_becomes_3(void)
{
	rises(2, 3);
}

static const struct live_case cases[] = {
	FOR_EACH(ENTRY, 0)
	ENTRY(0, followed_children_of_run)
	FOR_EACH(ENTRY, 1)
	ENTRY(1, followed_children_of_run)
	LIVE_CASE(scope_1_that_becomes_2),
	FOR_EACH(ENTRY, 2)
	LIVE_CASE(scope_2_that_becomes_3),
	FOR_EACH(ENTRY, 3)
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
