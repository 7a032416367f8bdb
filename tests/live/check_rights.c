/* Programs with more rights than who starts them keep these, whoever of their family is traced. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PRIVILEGED "tests/victims/privileged"
#define RIGHTS 41
#define LAST_MS 20000
#define WAYS 10            /* in which the victim executes it each time */

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

enum traced { ALONE, WITH_CHILDREN, WITHOUT_PTRACE };

static void attach(struct tool *tool, pid_t pid, enum traced traced)
{
	static const char *const options[] = { [ALONE] = "--hold", [WITH_CHILDREN] = "--follow-forks", [WITHOUT_PTRACE] = "--release" };

	tool_out(tool, "attach", pid_text(pid), options[traced], NULL);
}

static void run_children(enum rights rights, enum traced traced)
{
	const char *program = copy_with(rights);
	struct tool *tool = tool_start_ordinary();
	struct subject *parent = victim_start_ordinary(PRIVILEGED, program, NULL);
	struct state *before = state_take(parent->pid);

	/* It does not only seem so: untraced they have the rights, or this folder gives none. */
	subject_command(parent, 'g');
	if (subject_tally(parent, "good") == 0)
		live_skip("programs get no rights in %s (nosuid?)", live_folder());
	attach(tool, parent->pid, traced);
	for (int i = 0; i < 3; i++)
		subject_command(parent, 'g');
	require_equal(subject_tally(parent, "runs"), 4 * WAYS);
	require_equal(subject_tally(parent, "good"), 4 * WAYS);
	require_nothing_unknown(tool_status(tool, parent->pid), 0);
	tool_end(tool, parent, before);
}

static void children_that_are_not_followed_keep_their_rights(void)
{
	run_children(SET_UID, ALONE);
}

static void followed_children_keep_their_rights(void)
{
	run_children(SET_UID, WITH_CHILDREN);
}

/* It is seized for each of them. */
static void children_of_a_process_without_ptrace_keep_their_rights(void)
{
	run_children(SET_UID, WITHOUT_PTRACE);
}

static void programs_with_capabilities_keep_them(void)
{
	run_children(CAPABILITY, ALONE);
}

static void followed_programs_with_capabilities_keep_them(void)
{
	run_children(CAPABILITY, WITH_CHILDREN);
}

/* A script with a set-uid interpreter: the kernel gives the script none, and the interpreter its own. */
static const char *script_for(const char *program)
{
	const char *path = live_text("%s/script", live_folder());
	FILE *f = fopen(path, "w");

	require(f != NULL);
	fprintf(f, "#!%s\n", program);
	fclose(f);
	require_equal(chmod(path, 0755), 0);
	return path;
}

static int end_untraced(const char *program, const char *way)
{
	struct subject *self = victim_start_ordinary(PRIVILEGED, program, way, NULL);

	subject_send(self, 'q');
	return subject_wait(self);
}

struct last {
	struct tool *tool;
	const char *name, *or_name;
};

/* The daemon reads it when the process is let go already. */
static bool last_is_kept(void *context)
{
	const struct last *last = context;
	const char *names = tool_out(last->tool, "snapshots", NULL);

	return strstr(names, last->name) != NULL || (last->or_name && strstr(names, last->or_name) != NULL);
}

/* forks_before: and has just forked. */
static void by_itself_as(const char *program, const char *way, enum traced traced, bool forks_before)
{
	struct tool *tool = tool_start_ordinary();
	struct subject *self = victim_start_ordinary(PRIVILEGED, program, way, NULL);
	struct last last = { .tool = tool };

	subject_command(self, 'g');
	if (subject_tally(self, "good") == 0)
		live_skip("programs get no rights in %s (nosuid?)", live_folder());
	attach(tool, self->pid, traced);
	if (forks_before)
		subject_command(self, 'g');
	subject_send(self, 'q');
	require_equal(subject_wait(self), end_untraced(program, way));
	last.name = strcmp(way, "exec") ? "exec" : "detach";
	/* Without ptrace its end may be seen before it is seen that it is another program; nobody saw it being executed. */
	last.or_name = traced == WITHOUT_PTRACE ? "exit" : NULL;
	require(live_wait(last_is_kept, &last, LAST_MS));
	tool_end_daemon(tool, SIGTERM);
}

static void by_itself(const char *program, const char *way)
{
	by_itself_as(program, way, ALONE, false);
}

static void the_process_itself_keeps_them(void)
{
	by_itself(copy_with(SET_UID), "exec");
}

static void the_process_itself_keeps_them_without_ptrace(void)
{
	by_itself_as(copy_with(SET_UID), "exec", WITHOUT_PTRACE, false);
}

/* For the fork it was seized, and would be for a second. */
static void a_process_without_ptrace_that_has_just_forked_keeps_them(void)
{
	const char *program = copy_with(SET_UID);

	for (unsigned i = 0; i < live_rounds(2, 50); i++)
		by_itself_as(program, "exec", WITHOUT_PTRACE, true);
}

/* The process is seized since its handlers have come in the midst of records; its children, who have its memory until they have executed the
 * program, are not. */
static void children_of_handlers_without_ptrace_keep_them(void)
{
	const char *hits = live_text("%u", live_rounds(300, 15000));
	struct tool *tool = tool_start_ordinary();
	struct subject *v = victim_start_ordinary("tests/victims/interrupted", "--threads", "4", "--hits", hits, copy_with(SET_UID), NULL);
	struct state *before = state_take(v->pid);

	attach(tool, v->pid, WITHOUT_PTRACE);
	subject_command(v, 'v');
	require_at_least(subject_tally(v, "hits"), atoi(hits));
	require_equal(subject_tally(v, "good"), subject_tally(v, "hits"));
	tool_end(tool, v, before);
}

/* Not seen before the exec. */
static void who_needs_no_libc_for_it_keeps_them(void)
{
	const char *program = copy_with(SET_UID);
	unsigned rounds = live_rounds(1, 100);

	require_equal(end_untraced(program, "raw"), RIGHTS << 8);
	for (unsigned i = 0; i < rounds; i++) {
		by_itself(program, "raw");
		by_itself(program, "descriptor");
		by_itself_as(program, "raw", WITHOUT_PTRACE, false);
		by_itself_as(program, "descriptor", WITHOUT_PTRACE, false);
	}
	live_survey("exec of a set-uid program by no function of libc's", rounds, 0, 4 * rounds, 4 * rounds);
}

/* Its interpreter gets an argument, so it is the victim itself: what counts is that it has rights. */
static void a_scripts_interpreter_keeps_them(void)
{
	const char *program = copy_with(SET_UID), *script = script_for(program);
	struct tool *tool = tool_start_ordinary();
	struct subject *self = victim_start_ordinary(PRIVILEGED, script, "raw", NULL);

	tool_attach(tool, self->pid);
	subject_send(self, 'q');
	require_text(subject_line(self), "R");
	require_equal(status_number(self->pid, "TracerPid", 10), 0);
	require_at_least(status_number(self->pid, "CapEff", 16), 1);
	subject_quit(self);
}

/* --- nobody sees that there were two of them --- */

#define FILE_SPACE 65536

/* A file of /proc/PID, NULs as newlines; of `status` what does not count time and memory, or what all
 * processes of the user have queued (SigQ). */
static const char *proc_text(pid_t pid, const char *name)
{
	static char buffer[FILE_SPACE], kept[FILE_SPACE];
	int fd = open(live_text("/proc/%d/%s", pid, name), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer) - 1);
	size_t len = 0;

	require(n > 0);
	close(fd);
	for (ssize_t i = 0; i < n; i++)
		buffer[i] = buffer[i] ? buffer[i] : '\n';
	buffer[n] = '\0';
	if (strcmp(name, "status"))
		return live_text("%s", buffer);
	for (char *line = strtok(buffer, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strncmp(line, "SigQ", 4))
			continue;
		if (!strncmp(line, "Sig", 3) || !strncmp(line, "Shd", 3) || !strncmp(line, "Cap", 3) ||
		    !strncmp(line, "Uid", 3) || !strncmp(line, "Gid", 3) || !strncmp(line, "Groups", 6) ||
		    !strncmp(line, "Name", 4) || !strncmp(line, "NoNew", 5) || !strncmp(line, "Seccomp", 7) ||
		    !strncmp(line, "FDSize", 6) || !strncmp(line, "Threads", 7) || !strncmp(line, "Umask", 5))
			len += (size_t)snprintf(kept + len, sizeof(kept) - len, "%s\n", line);
	}
	return live_text("%s", kept);
}

/* AT_SECURE, and the name that the program was executed by. */
static const char *secure_and_name(pid_t pid)
{
	unsigned long vector[64] = { 0 }, secure = 2, name = 0;
	char text[256] = "";
	int fd = open(live_text("/proc/%d/auxv", pid), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, vector, sizeof(vector));

	require(n > 0);
	close(fd);
	for (size_t i = 0; i + 1 < (size_t)n / sizeof(vector[0]); i += 2) {
		secure = vector[i] == AT_SECURE ? vector[i + 1] : secure;
		name = vector[i] == AT_EXECFN ? vector[i + 1] : name;
	}
	fd = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	require(pread(fd, text, sizeof(text) - 1, (off_t)name) > 0);
	close(fd);
	return live_text("secure %lu name %s", secure, text);
}

static struct subject *executed_raw(struct tool *tool, const char *program)
{
	struct subject *execer = victim_start_ordinary("tests/victims/execer", "--to", program, "--raw", NULL);

	if (tool)
		tool_attach(tool, execer->pid);
	subject_send(execer, 'g');
	require_text(subject_line(execer), "R");
	require_equal(status_number(execer->pid, "TracerPid", 10), 0);
	return execer;
}

static void it_is_as_if_it_had_been_executed_once(void)
{
	static const char *const files[] = { "cmdline", "environ", "comm", "status", "limits", "personality", "cgroup",
					     "oom_score_adj", "coredump_filter" };
	const char *program = copy_with(SET_UID), *execer = public_copy("tests/victims/execer");
	struct subject *untraced, *traced;
	size_t compared = 0;

	/* One that stays. */
	require_equal(unlink(program), 0);
	require_equal(rename(execer, program), 0);
	require_equal(chmod(program, 04755), 0);
	untraced = executed_raw(NULL, program);
	traced = executed_raw(tool_start_ordinary(), program);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *expected = proc_text(untraced->pid, files[i]), *found = proc_text(traced->pid, files[i]);

		if (strcmp(found, expected))
			live_fail("%s is '%s' and should be '%s'", files[i], found, expected);
		compared += strlen(found);
	}
	require_text(secure_and_name(untraced->pid), "secure 1");
	require_text(secure_and_name(traced->pid), secure_and_name(untraced->pid));
	text_require_intact(traced->pid);
	require_at_least((long long)compared, 1000);
	live_note("%zu bytes of nine files compared", compared);
	subject_quit(untraced);
	subject_quit(traced);
}

/* The command of a run is executed by its client, before there is anything to see it by. */
static void a_command_of_run_has_them(void)
{
	const char *program = copy_with(SET_UID);
	struct tool *tool = tool_start_ordinary();

	require_equal(end_untraced(program, "raw"), RIGHTS << 8);
	require_equal(tool_try(tool, "run", "--", program, NULL).status, RIGHTS);
}

static const struct live_case cases[] = {
	LIVE_CASE(children_that_are_not_followed_keep_their_rights),
	LIVE_CASE(followed_children_keep_their_rights),
	LIVE_CASE(children_of_a_process_without_ptrace_keep_their_rights),
	LIVE_CASE(programs_with_capabilities_keep_them),
	LIVE_CASE(followed_programs_with_capabilities_keep_them),
	LIVE_CASE(the_process_itself_keeps_them),
	LIVE_CASE(the_process_itself_keeps_them_without_ptrace),
	LIVE_CASE(a_process_without_ptrace_that_has_just_forked_keeps_them),
	LIVE_CASE(children_of_handlers_without_ptrace_keep_them),
	LIVE_CASE(who_needs_no_libc_for_it_keeps_them),
	LIVE_CASE(a_scripts_interpreter_keeps_them),
	LIVE_CASE(it_is_as_if_it_had_been_executed_once),
	LIVE_CASE(a_command_of_run_has_them),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
