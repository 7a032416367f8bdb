/* What `watch --from-start` writes for systemd, and the program that it has started before a service's own. */
#define _GNU_SOURCE
#include "daemon/exec_start.h"
#include "daemon/shim_file.h"
#include "daemon/shims.h"
#include "shim/shim.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- ExecStart= --- */

static void add(struct exec_start *start, unsigned flags, const char *path, const char *const *argv)
{
	struct exec_command *command = vec_push(&start->commands);
	size_t count = 0;

	while (argv[count])
		count++;
	command->path = strdup(path);
	command->flags = flags;
	command->argv = calloc(count + 1, sizeof(*command->argv));
	for (size_t i = 0; i < count; i++)
		command->argv[i] = strdup(argv[i]);
}
#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* What follows the comment. */
static void expect(struct exec_start *start, bool allow_shim, const char *expected)
{
	char *text, *at;

	ck_assert_int_eq(exec_start_drop_in(start, "a.service", "/s", allow_shim, &text), 0);
	at = strstr(text, "\n[Service]\n");
	ck_assert_ptr_nonnull(at);
	ck_assert_str_eq(at + 1, expected);
	free(text);
	exec_start_fini(start);
}

START_TEST(each_command_goes_through_the_shim)
{
	struct exec_start start = { 0 };

	add(&start, 0, "/bin/a", ARGS("/bin/a", "-x"));
	add(&start, 0, "/bin/b", ARGS("other"));
	expect(&start, false, "[Service]\nExecStart=\nExecStart=\"/s\" \"/bin/a\" \"/bin/a\" \"-x\"\n"
			      "ExecStart=\"/s\" \"/bin/b\" \"other\"\n");
}
END_TEST

START_TEST(prefixes_stay)
{
	static const struct {
		const char *word, *prefix;
	} prefixes[] = { { "no-env-expand", ":" }, { "ignore-failure", "-" }, { "privileged", "+" },
			 { "no-setuid", "!" }, { "ambient", "!!" } };
	char expected[128];

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		struct exec_start start = { 0 };
		unsigned flag;

		ck_assert_int_eq(exec_flag_parse(prefixes[i].word, &flag), 0);
		add(&start, flag, "/bin/a", ARGS("a"));
		snprintf(expected, sizeof(expected), "[Service]\nExecStart=\nExecStart=%s\"/s\" \"/bin/a\" \"a\"\n",
			 prefixes[i].prefix);
		expect(&start, false, expected);
	}
}
END_TEST

START_TEST(a_prefix_of_a_later_systemd_is_no_flag)
{
	unsigned flag;

	ck_assert_int_eq(exec_flag_parse("via-shell", &flag), -EINVAL);
}
END_TEST

START_TEST(what_systemd_would_read_otherwise_is_quoted)
{
	struct exec_start start = { 0 };

	add(&start, 0, "/bin/a b", ARGS("a", "", ";", "x  y", "100%n", "q\"\\", "\n\t\x7f", "'", "\xc3\xbc"));
	expect(&start, false, "[Service]\nExecStart=\nExecStart=\"/s\" \"/bin/a b\" \"a\" \"\" \";\" \"x  y\" \"100%%n\" "
			      "\"q\\\"\\\\\" \"\\x0a\\x09\\x7f\" \"'\" \"\xc3\xbc\"\n");
}
END_TEST

/* systemd looks for variables in each argument, and the program's path has become one. */
START_TEST(variables_stay_and_paths_get_none)
{
	struct exec_start start = { 0 };

	add(&start, 0, "/bin/$a", ARGS("$a", "${B}", "$$C"));
	add(&start, EXEC_NO_ENV_EXPAND, "/bin/$a", ARGS("$a"));
	expect(&start, false, "[Service]\nExecStart=\nExecStart=\"/s\" \"/bin/$$a\" \"$a\" \"${B}\" \"$$C\"\n"
			      "ExecStart=:\"/s\" \"/bin/$a\" \"$a\"\n");
}
END_TEST

START_TEST(the_shim_may_be_executed_where_nothing_may)
{
	struct exec_start start = { 0 };

	add(&start, 0, "/bin/a", ARGS("a"));
	expect(&start, true, "[Service]\nExecStart=\nExecStart=\"/s\" \"/bin/a\" \"a\"\nExecPaths=\"/s\"\n");
}
END_TEST

START_TEST(commands_that_are_too_long_are_refused)
{
	struct exec_start start = { 0 };
	char *text = NULL, *argument = malloc(EXEC_START_TEXT_MAX + 1);

	memset(argument, 'x', EXEC_START_TEXT_MAX);
	argument[EXEC_START_TEXT_MAX] = '\0';
	add(&start, 0, "/bin/a", ARGS("a", argument));
	ck_assert_int_eq(exec_start_drop_in(&start, "a.service", "/s", false, &text), -E2BIG);
	ck_assert_ptr_null(text);
	exec_start_fini(&start);
	free(argument);
}
END_TEST

START_TEST(a_shim_that_is_there_is_seen)
{
	struct exec_start start = { 0 };

	add(&start, 0, "/bin/a", ARGS("a"));
	ck_assert(!exec_start_has_shim(&start, "/s"));
	add(&start, 0, "/s", ARGS("/s", "/bin/a", "a"));
	ck_assert(exec_start_has_shim(&start, "/s"));
	exec_start_fini(&start);
}
END_TEST

/* --- the file --- */

static char folder[64];

static void make_folder(void)
{
	strcpy(folder, "/tmp/check_shims.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(a_drop_in_is_everybody_s_to_read_and_goes_with_its_folder)
{
	char path[128], name[160];
	struct stat st;
	mode_t old = umask(0077);

	snprintf(name, sizeof(name), "%s/a.service.d", folder);
	snprintf(path, sizeof(path), "%s/a.service.d/x.conf", folder);
	ck_assert(!shim_file_remove(path));
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(shim_file_write(path, "text"), 0);
	umask(old);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0644);
	ck_assert_int_eq(st.st_size, 4);
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0755);
	ck_assert(shim_file_remove(path));
	ck_assert_int_eq(stat(name, &st), -1);
}
END_TEST

START_TEST(others_drop_ins_stay)
{
	char path[128], other[128];

	snprintf(path, sizeof(path), "%s/a.service.d/x.conf", folder);
	snprintf(other, sizeof(other), "%s/a.service.d/other.conf", folder);
	ck_assert_int_eq(shim_file_write(path, "text"), 0);
	ck_assert_int_eq(shim_file_write(other, "text"), 0);
	ck_assert(shim_file_remove(path));
	ck_assert(shim_file_exists(other));
}
END_TEST

static void touch(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(a_file_that_changes_is_seen_and_our_own_is_not)
{
	char unit[128], own[128], beside[128];
	char *files[] = { unit, own, NULL }, *before, *after;

	snprintf(unit, sizeof(unit), "%s/a.service", folder);
	snprintf(own, sizeof(own), "%s/own.conf", folder);
	snprintf(beside, sizeof(beside), "%s/new", folder);
	touch(unit, "one");
	before = shim_file_fingerprint(files, own);
	touch(own, "anything");
	after = shim_file_fingerprint(files, own);
	ck_assert_str_eq(before, after);
	free(after);
	/* As dpkg does: another file of the same size. */
	touch(beside, "two");
	ck_assert_int_eq(rename(beside, unit), 0);
	after = shim_file_fingerprint(files, own);
	ck_assert_str_ne(before, after);
	free(before);
	free(after);
}
END_TEST

START_TEST(a_shim_that_services_cannot_execute_is_none)
{
	char path[128];

	ck_assert_ptr_null(shim_file_obstacle("/bin/sh"));
	ck_assert_str_eq(shim_file_obstacle("/nowhere/shim"), "is not installed");
	snprintf(path, sizeof(path), "%s/shim", folder);
	touch(path, "");
	ck_assert_int_eq(chmod(path, 0755), 0);
	/* mkdtemp's folder is its owner's. */
	ck_assert_str_eq(shim_file_obstacle(path), "may not be executed by everybody");
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert_int_eq(chmod(path, 0754), 0);
	ck_assert_str_eq(shim_file_obstacle(path), "may not be executed by everybody");
	ck_assert_int_eq(chmod(path, 0755), 0);
	ck_assert_ptr_nonnull(shim_file_obstacle(path));
	ck_assert_str_ne(shim_file_obstacle(path), "may not be executed by everybody");
}
END_TEST

/* --- who asks --- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#define UNIT "allocwatch-check-shims.service"

static sd_event *event;
static struct shims *shims;
static unsigned told;

static void make_shims(void)
{
	told = 0;
	ck_assert_int_ge(sd_event_new(&event), 0);
	ck_assert_int_eq(shims_new(event, &shims), 0);
}

static void free_shims(void)
{
	shims_free(shims);
	sd_event_unref(event);
}

static void count_refusal(void *context, const char *path, const char *refusal)
{
	(void)context;
	ck_assert_ptr_null(path);
	ck_assert_ptr_nonnull(refusal);
	told++;
}

/* One that was just closed, say; nobody has told the daemon yet. */
START_TEST(a_bus_that_takes_no_calls_is_told_after_the_asking)
{
	sd_bus *bus;

	ck_assert_int_ge(sd_bus_new(&bus), 0);
	shims_use_bus(shims, bus, NULL);
	ck_assert_int_eq(shims_put(shims, UNIT, count_refusal, NULL), 0);
	ck_assert_uint_eq(told, 0);
	while (told == 0)
		ck_assert_int_gt(sd_event_run(event, 5000000), 0);
	ck_assert_uint_eq(told, 1);
	ck_assert_ptr_null(shims_path(shims, UNIT));
	shims_use_bus(shims, NULL, "over");
	sd_bus_unref(bus);
}
END_TEST

static void take_out_as_well(void *context, const char *path, const char *refusal)
{
	count_refusal(context, path, refusal);
	shims_take_out(shims, UNIT, NULL, NULL);
}

static void count(void *context, const char *path, const char *refusal)
{
	(void)path;
	ck_assert_ptr_null(refusal);
	++*(unsigned *)context;
}

START_TEST(who_waits_may_take_it_out_when_it_is_taken_out)
{
	unsigned taken_out = 0;

	ck_assert_int_eq(shims_put(shims, UNIT, take_out_as_well, NULL), 0);
	shims_take_out(shims, UNIT, count, &taken_out);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(taken_out, 1);
}
END_TEST

/* --- what systemd says, by a systemd of ours at the other end of a bus --- */

#define SYSTEMD "org.freedesktop.systemd1"
#define OTHER_UNIT "allocwatch-check-other.service"

static sd_bus *systemd, *client;
static sd_bus_message *reload_asked;     /* not answered yet */
static unsigned asked[2];                /* of UNIT, of OTHER_UNIT */

/* UNIT is not there, and OTHER_UNIT is to be read anew. */
static int answer_properties(sd_bus_message *call)
{
	bool of_other = strstr(sd_bus_message_get_path(call), "other") != NULL;
	sd_bus_message *reply;

	asked[of_other]++;
	ck_assert_int_ge(sd_bus_message_new_method_return(call, &reply), 0);
	ck_assert_int_ge(of_other ? sd_bus_message_append(reply, "a{sv}", 1, "NeedDaemonReload", "b", 1)
				  : sd_bus_message_append(reply, "a{sv}", 1, "LoadState", "s", "not-found"), 0);
	ck_assert_int_ge(sd_bus_send(systemd, reply, NULL), 0);
	sd_bus_message_unref(reply);
	return 1;
}

static int on_call(sd_bus_message *call, void *context, sd_bus_error *ret_error)
{
	(void)context;
	(void)ret_error;
	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return answer_properties(call);
	if (!sd_bus_message_is_method_call(call, NULL, "Reload"))
		return 0;
	ck_assert_ptr_null(reload_asked);
	reload_asked = sd_bus_message_ref(call);
	return 1;
}

static sd_bus *bus_on(int fd, bool server)
{
	sd_id128_t id;
	sd_bus *bus;

	ck_assert_int_ge(sd_id128_randomize(&id), 0);
	ck_assert_int_ge(sd_bus_new(&bus), 0);
	ck_assert_int_ge(sd_bus_set_fd(bus, fd, fd), 0);
	if (server)
		ck_assert_int_ge(sd_bus_set_server(bus, true, id), 0);
	ck_assert_int_ge(sd_bus_set_anonymous(bus, true), 0);
	ck_assert_int_ge(sd_bus_start(bus), 0);
	ck_assert_int_ge(sd_bus_attach_event(bus, event, 0), 0);
	return bus;
}

static void make_systemd(void)
{
	int ends[2];

	make_shims();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	systemd = bus_on(ends[0], true);
	ck_assert_int_ge(sd_bus_add_filter(systemd, NULL, on_call, NULL), 0);
	client = bus_on(ends[1], false);
	shims_use_bus(shims, client, NULL);
}

static void free_systemd(void)
{
	free_shims();
	sd_bus_close_unref(client);
	sd_bus_close_unref(systemd);
}

static void run_until(const unsigned *number, unsigned at_least)
{
	uint64_t deadline = now_ms() + 20000;

	while (*number < at_least) {
		ck_assert_uint_lt(now_ms(), deadline);
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
	}
}

static void run_until_reload_is_asked(void)
{
	uint64_t deadline = now_ms() + 20000;

	while (!reload_asked) {
		ck_assert_uint_lt(now_ms(), deadline);
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
	}
}

static void say_that_a_reload_has_ended(void)
{
	sd_bus_message *signal;

	ck_assert_int_ge(sd_bus_message_new_signal(systemd, &signal, "/org/freedesktop/systemd1", SYSTEMD ".Manager", "Reloading"), 0);
	ck_assert_int_ge(sd_bus_message_append(signal, "b", 0), 0);
	ck_assert_int_ge(sd_bus_message_set_sender(signal, SYSTEMD), 0);
	ck_assert_int_ge(sd_bus_send(systemd, signal, NULL), 0);
	sd_bus_message_unref(signal);
}

static void answer_reload(void)
{
	say_that_a_reload_has_ended();
	ck_assert_int_ge(sd_bus_reply_method_return(reload_asked, ""), 0);
	reload_asked = sd_bus_message_unref(reload_asked);
}

/* A unit that comes with a package, whose scripts have systemd read its units just when we have it do so. */
START_TEST(what_others_have_systemd_read_is_seen_also_while_we_wait_for_it)
{
	ck_assert_int_eq(shims_put(shims, UNIT, count_refusal, NULL), 0);
	run_until(&told, 1);
	ck_assert_int_eq(shims_put(shims, OTHER_UNIT, NULL, NULL), 0);
	run_until_reload_is_asked();
	ck_assert_uint_eq(asked[0], 1);
	/* Ours alone says nothing new of what was refused. */
	answer_reload();
	run_until(&asked[1], 2);
	run_until_reload_is_asked();
	ck_assert_uint_eq(asked[0], 1);
	say_that_a_reload_has_ended();
	answer_reload();
	run_until(&asked[0], 2);
	if (reload_asked)
		answer_reload();
}
END_TEST

/* --- the program --- */

#define SHIM "src/" SHIM_NAME

static int go[2];
static FILE *said;

/* A child that waits for go and then executes the shim; what that writes goes to `said`. */
static pid_t start_shim(const char *const *argv, void (*prepare)(void))
{
	pid_t pid;

	said = tmpfile();
	ck_assert_int_eq(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fileno(said), STDOUT_FILENO);
		if (read(go[0], &byte, 1) != 1)
			_exit(99);
		close(go[0]);
		close(go[1]);
		if (prepare)
			prepare();
		execv(SHIM, (char *const *)argv);
		_exit(98);
	}
	return pid;
}

/* Its wait status; *ret_ms: how long it took. */
static int run_shim(pid_t pid, bool traced, uint64_t *ret_ms)
{
	uint64_t begin = now_ms();
	int status;

	if (traced)
		ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	ck_assert_int_eq(write(go[1], "x", 1), 1);
	close(go[0]);
	close(go[1]);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	*ret_ms = now_ms() - begin;
	return status;
}

static void expect_said(const char *expected)
{
	char text[4096] = "";
	size_t n;

	rewind(said);
	n = fread(text, 1, sizeof(text) - 1, said);
	text[n] = '\0';
	fclose(said);
	ck_assert_str_eq(text, expected);
}

START_TEST(one_that_is_traced_executes_the_program_at_once)
{
	pid_t pid = start_shim(ARGS("any", "/bin/sh", "sh", "-c", "echo \"$0 $$ $1\"; exit 7", "", "a  b"), NULL);
	char expected[64];
	uint64_t ms;

	ck_assert_int_eq(run_shim(pid, true, &ms), 7 << 8);
	ck_assert_uint_lt(ms, SHIM_WAIT_MS);
	snprintf(expected, sizeof(expected), " %d a  b\n", (int)pid);
	expect_said(expected);
}
END_TEST

START_TEST(the_program_is_called_what_it_shall_be)
{
	uint64_t ms;

	ck_assert_int_eq(run_shim(start_shim(ARGS("any", "/bin/cat", "its own name", "/proc/self/cmdline"), NULL), true, &ms), 0);
	/* Up to its first NUL. */
	expect_said("its own name");
}
END_TEST

START_TEST(one_that_nobody_traces_goes_on_by_itself)
{
	pid_t pid = start_shim(ARGS("any", "/bin/sh", "sh", "-c", "exit 7"), NULL);
	uint64_t ms;

	ck_assert_int_eq(run_shim(pid, false, &ms), 7 << 8);
	ck_assert_uint_ge(ms, SHIM_WAIT_MS);
	expect_said("");
}
END_TEST

START_TEST(what_cannot_be_executed_ends_as_systemd_says)
{
	uint64_t ms;

	ck_assert_int_eq(run_shim(start_shim(ARGS("any", "/nowhere/at all", "name"), NULL), true, &ms),
			 SHIM_CANNOT_EXECUTE << 8);
	expect_said("");
	ck_assert_int_eq(run_shim(start_shim(ARGS("any"), NULL), true, &ms), SHIM_WRONG_USAGE << 8);
	expect_said("");
}
END_TEST

/* Whoever runs the tests in the background has some ignored; the C library keeps two from signal(). */
static void ignore_no_signal(void)
{
	struct { uint64_t handler, flags, restorer, mask; } usual = { 0 };

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		syscall(SYS_rt_sigaction, sig, &usual, NULL, sizeof(usual.mask));
}

static bool runs_the_shim(pid_t pid)
{
	char path[48], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = '\0';
	fclose(file);
	return strcmp(comm, SHIM_NAME "\n") == 0;
}

/* As allocwatchd(8) says: what it would do just after the exec, before there is a handler. */
START_TEST(a_signal_that_comes_while_it_waits_ends_the_service)
{
	pid_t pid = start_shim(ARGS("any", "/bin/sh", "sh", "-c", "exit 7"), ignore_no_signal);
	uint64_t deadline = now_ms() + 20000;
	int status;

	ck_assert_int_eq(write(go[1], "x", 1), 1);
	close(go[0]);
	close(go[1]);
	while (!runs_the_shim(pid)) {
		ck_assert_uint_lt(now_ms(), deadline);
		poll(NULL, 0, 1);
	}
	ck_assert_int_eq(kill(pid, SIGHUP), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
	fclose(said);
}
END_TEST

static void set_signals(void)
{
	sigset_t set;

	ignore_no_signal();
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGRTMAX);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
}

START_TEST(masks_and_ignored_signals_are_handed_on)
{
	pid_t pid = start_shim(ARGS("any", "/bin/grep", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"), set_signals);
	uint64_t ms;

	ck_assert_int_eq(run_shim(pid, true, &ms), 0);
	expect_said("SigBlk:\t8000000000000001\nSigIgn:\t0000000000001800\n");
}
END_TEST

/* Any other one kills it. */
static void allow_only_its_calls(void)
{
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_openat), ALLOW(SYS_read), ALLOW(SYS_close), ALLOW(SYS_clock_gettime), ALLOW(SYS_clock_nanosleep),
		ALLOW(SYS_execve), ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(97);
}

START_TEST(it_makes_no_other_calls_than_those_that_filters_are_asked_about)
{
	static const char *const calls[] = { SHIM_SYSCALLS };
	uint64_t ms;

	ck_assert_uint_eq(sizeof(calls) / sizeof(calls[0]), 7);
	ck_assert_int_eq(run_shim(start_shim(ARGS("any", "/nowhere", "name"), allow_only_its_calls), true, &ms),
			 SHIM_CANNOT_EXECUTE << 8);
	expect_said("");
}
END_TEST

/* A package is built where that need not be. */
static bool may_trace(void)
{
	pid_t pid = fork();
	bool may;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	may = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return may;
}

int main(void)
{
	Suite *suite = suite_create("shims");
	TCase *texts = tcase_create("texts"), *files = tcase_create("files"), *program = tcase_create("program");
	TCase *asking = tcase_create("asking"), *answers = tcase_create("answers");
	SRunner *runner;
	int failed;

	tcase_add_test(texts, each_command_goes_through_the_shim);
	tcase_add_test(texts, prefixes_stay);
	tcase_add_test(texts, a_prefix_of_a_later_systemd_is_no_flag);
	tcase_add_test(texts, what_systemd_would_read_otherwise_is_quoted);
	tcase_add_test(texts, variables_stay_and_paths_get_none);
	tcase_add_test(texts, the_shim_may_be_executed_where_nothing_may);
	tcase_add_test(texts, commands_that_are_too_long_are_refused);
	tcase_add_test(texts, a_shim_that_is_there_is_seen);
	suite_add_tcase(suite, texts);
	tcase_add_checked_fixture(files, make_folder, remove_folder);
	tcase_add_test(files, a_drop_in_is_everybody_s_to_read_and_goes_with_its_folder);
	tcase_add_test(files, others_drop_ins_stay);
	tcase_add_test(files, a_file_that_changes_is_seen_and_our_own_is_not);
	tcase_add_test(files, a_shim_that_services_cannot_execute_is_none);
	suite_add_tcase(suite, files);
	tcase_add_checked_fixture(asking, make_shims, free_shims);
	tcase_add_test(asking, a_bus_that_takes_no_calls_is_told_after_the_asking);
	tcase_add_test(asking, who_waits_may_take_it_out_when_it_is_taken_out);
	suite_add_tcase(suite, asking);
	tcase_set_timeout(answers, 30);
	tcase_add_checked_fixture(answers, make_systemd, free_systemd);
	tcase_add_test(answers, what_others_have_systemd_read_is_seen_also_while_we_wait_for_it);
	suite_add_tcase(suite, answers);
	tcase_set_timeout(program, 30);
	tcase_add_test(program, one_that_is_traced_executes_the_program_at_once);
	tcase_add_test(program, the_program_is_called_what_it_shall_be);
	tcase_add_test(program, one_that_nobody_traces_goes_on_by_itself);
	tcase_add_test(program, what_cannot_be_executed_ends_as_systemd_says);
	tcase_add_test(program, a_signal_that_comes_while_it_waits_ends_the_service);
	tcase_add_test(program, masks_and_ignored_signals_are_handed_on);
	tcase_add_test(program, it_makes_no_other_calls_than_those_that_filters_are_asked_about);
	if (may_trace())
		suite_add_tcase(suite, program);
	else
		printf("SKIP: the shim itself is not tried: ptrace is not permitted here\n");
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
