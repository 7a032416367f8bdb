/* Attach, detach, and tracers that die and lie. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "base/proc.h"

#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_target_is_attached_shown_and_let_go)
{
	pid_t pid = target_start();
	json_t *reply, *status, *target;

	daemon_start_default();
	attach_ok(pid);
	reply = call_ok("List", json_object());
	ck_assert_str_eq(text_of(reply, "daemon"), test_socket);
	ck_assert_uint_eq(json_array_size(member(reply, "targets")), 1);
	target = json_array_get(member(reply, "targets"), 0);
	ck_assert_int_eq(number_of(target, "pid"), pid);
	ck_assert_str_eq(text_of(target, "state"), "tracing");
	ck_assert_str_eq(text_of(target, "command"), "fake \\xff target");
	ck_assert_int_eq(number_of(target, "live_bytes"), 350);
	ck_assert_int_eq(number_of(target, "blocks"), 3);
	json_decref(reply);
	reply = call_ok("GetStatus", pid_of(pid));
	status = member(reply, "status");
	ck_assert_str_eq(text_of(status, "engine"), "int3");
	ck_assert_int_eq(number_of(status, "frames_limit"), 25);
	ck_assert_int_eq(number_of(status, "traced_current"), 350);
	ck_assert_int_eq(number_of(status, "longest_stop_us"), 42);
	ck_assert_int_eq(number_of(member(member(status, "domains"), "malloc"), "live_bytes"), 300);
	ck_assert_int_eq(number_of(member(status, "unknown"), "unknown_frees"), 0);
	json_decref(reply);
	ok("Clear", pid_of(pid));
	ok("ResetPeak", pid_of(pid));
	reply = call_ok("Detach", pid_of(pid));
	ck_assert(json_is_true(member(reply, "clean")));
	json_decref(reply);
	ck_assert_str_eq(state_of(pid), "");
	ck_assert_int_eq(tracer_notes("detached"), 1);
	fails("Detach", pid_of(pid), "NotTraced");
	fails("GetStatus", pid_of(pid), "NotTraced");
	fails("Clear", pid_of(pid), "NotTraced");
}
END_TEST

START_TEST(an_unclean_detach_is_told)
{
	pid_t pid = target_start();
	json_t *reply;

	tracer_mode("unclean");
	daemon_start_default();
	attach_ok(pid);
	reply = call_ok("Detach", pid_of(pid));
	ck_assert(json_is_false(member(reply, "clean")));
	ck_assert_str_eq(text_of(reply, "message"), "a handler was left");
	json_decref(reply);
}
END_TEST

static bool one_is_not_followed(void *context)
{
	json_t *reply = call_ok("GetStatus", pid_of(*(pid_t *)context));
	bool is_told = number_of(member(reply, "status"), "children_not_followed") == 1;

	json_decref(reply);
	return is_told;
}

/* It was heard of, and then went on by itself. */
START_TEST(a_child_whose_tracer_ends_before_it_has_it_counts_as_not_followed)
{
	pid_t pid = target_start(), child = target_start();
	char mode[32], line[96];

	snprintf(mode, sizeof(mode), "follow %d", child);
	tracer_mode(mode);
	daemon_start_default();
	attach_ok(pid);
	wait_until(is_noted, (void *)"heard for a child", "the child's tracer");
	wait_until(one_is_not_followed, &pid, "a child that is not followed");
	ck_assert_str_eq(state_of(child), "");
	snprintf(line, sizeof(line), "process %d: its child %d is not followed: its tracer could not take it", pid, child);
	daemon_log_must_hold(line);
}
END_TEST

START_TEST(a_stopped_target_is_shown_as_stopped)
{
	pid_t pid = target_start();

	tracer_mode("stopped");
	daemon_start_default();
	attach_ok(pid);
	ck_assert_str_eq(state_of(pid), "stopped");
}
END_TEST

START_TEST(refusals_become_typed_errors)
{
	static const struct { const char *mode, *error; } cases[] = {
		{ "no-such-process", "NoSuchProcess" }, { "not-permitted", "NotPermitted" },
		{ "unsupported", "Unsupported" },	{ "no-allocator", "NoAllocator" },
		{ "gone", "NoSuchProcess" },		{ "limit", "LimitReached" },
		{ "internal", "Failed" },
	};
	pid_t pid = target_start();
	json_t *error;

	daemon_start_default();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tracer_mode(cases[i].mode);
		error = call_fails("Attach", pid_of(pid), cases[i].error);
		ck_assert_uint_gt(strlen(text_of(error, "message")), 0);
		if (strcmp(cases[i].mode, "not-permitted") == 0) {
			ck_assert_str_eq(text_of(error, "reason"), "it is traced by gdb (77)");
			ck_assert_str_eq(text_of(error, "remedy"), "end that");
			ck_assert_int_eq(number_of(error, "tracer_pid"), 77);
		}
		json_decref(error);
		ck_assert_str_eq(state_of(pid), "");
	}
	tracer_mode("");
	attach_ok(pid);
}
END_TEST

static pid_t zombie(void)
{
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static void *wait_in_thread(void *context)
{
	int *tid_and_pipe = context;
	char byte;

	__atomic_store_n(&tid_and_pipe[0], gettid(), __ATOMIC_RELEASE);
	if (read(tid_and_pipe[1], &byte, 1) < 0)
		abort();
	return NULL;
}

static bool has_tid(void *context)
{
	return __atomic_load_n((int *)context, __ATOMIC_ACQUIRE) != 0;
}

START_TEST(what_is_no_process_is_told_apart)
{
	int ends[2], tid_and_pipe[2] = { 0 };
	pid_t dead = zombie();
	pthread_t thread;
	json_t *error;

	daemon_start_default();
	error = call_fails("Attach", pid_of(dead), "NoSuchProcess");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "only waits for its parent"));
	json_decref(error);
	waitpid(dead, NULL, 0);
	error = call_fails("Attach", pid_of(dead), "NoSuchProcess");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "there is no process"));
	json_decref(error);
	ck_assert_int_eq(pipe(ends), 0);
	tid_and_pipe[1] = ends[0];
	pthread_create(&thread, NULL, wait_in_thread, tid_and_pipe);
	wait_until(has_tid, tid_and_pipe, "the thread runs");
	error = call_fails("Attach", pid_of(tid_and_pipe[0]), "NoSuchProcess");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "is a thread of process"));
	json_decref(error);
	close(ends[1]);
	pthread_join(thread, NULL);
	error = call_fails("Attach", pid_of(test_daemon), "NotPermitted");
	json_decref(error);
}
END_TEST

START_TEST(a_second_attach_is_refused)
{
	pid_t pid = target_start();

	daemon_start_default();
	attach_ok(pid);
	fails("Attach", pid_of(pid), "AlreadyTraced");
	ok("Detach", pid_of(pid));
	attach_ok(pid);
}
END_TEST

START_TEST(more_sessions_than_the_limit_are_refused)
{
	pid_t first = target_start(), second = target_start(), third = target_start();
	json_t *error;

	daemon_start((const char *const[]){ "--no-state", "--max-sessions", "2", NULL });
	attach_ok(first);
	attach_ok(second);
	error = call_fails("Attach", pid_of(third), "LimitReached");
	ck_assert_str_eq(text_of(error, "limit"), "sessions");
	json_decref(error);
	ok("Detach", pid_of(first));
	attach_ok(third);
}
END_TEST

START_TEST(a_hanging_attach_holds_nobody_and_can_be_given_up)
{
	static const char attach_format[] = "{\"method\":\"org.allocwatch.Tracer.Attach\",\"parameters\":{\"pid\":%d}}";
	pid_t pid = target_start(), other = target_start();
	char call[128], *answer;
	int sock;

	daemon_start_default();
	tracer_mode("hang-at-attach");
	sock = raw_connect();
	snprintf(call, sizeof(call), attach_format, (int)pid);
	raw_send(sock, call, strlen(call) + 1);
	wait_until(is_noted, (void *)"hanging", "the tracer hangs");
	ck_assert_str_eq(state_of(pid), "attaching");
	tracer_mode("");
	attach_ok(other);
	fails("Attach", pid_of(pid), "AlreadyTraced");
	fails("TakeSnapshot", pid_of(pid), "NotTraced");
	fails("Clear", pid_of(pid), "NotTraced");
	ok("Detach", pid_of(pid));
	answer = raw_receive(sock);
	ck_assert_ptr_nonnull(answer);
	ck_assert_ptr_nonnull(strstr(answer, "NotTraced"));
	free(answer);
	close(sock);
	attach_ok(pid);
}
END_TEST



static const struct {
	const char *mode, *method;
	bool attached;              /* the attach itself is answered */
} deaths[] = {
	{ "die-at-start", "Attach", false },	     { "die-at-attach", "Attach", false },
	{ "nonsense-at-attach", "Attach", false },   { "die-at-status", "GetStatus", true },
	{ "die-at-snapshot", "TakeSnapshot", true }, { "die-at-clear", "Clear", true },
	{ "die-at-clear", "ResetPeak", true },	     { "die-at-detach", "Detach", true },
	{ "bad-length", "TakeSnapshot", true },	     { "bad-type", "GetStatus", true },
	{ "wrong-direction", "Clear", true },	     { "too-long", "TakeSnapshot", true },
	{ "short", "GetStatus", true },		     { "endless-text", "Clear", true },
	{ "random-bytes", "TakeSnapshot", true },
};

START_TEST(a_tracer_that_dies_or_lies_costs_its_session_only)
{
	pid_t pid = target_start(), other = target_start();

	daemon_start_default();
	attach_ok(other);
	tracer_mode(deaths[_i].mode);
	if (deaths[_i].attached)
		attach_ok(pid);
	fails(deaths[_i].method, pid_of(pid), "Failed");
	ck_assert_str_eq(state_of(pid), deaths[_i].attached ? "lost" : "");
	if (deaths[_i].attached) {
		fails("TakeSnapshot", pid_of(pid), "NotTraced");
		fails("WaitGone", pid_of(pid), "Failed");
	}
	ck_assert_str_eq(state_of(other), "tracing");
	ok("TakeSnapshot", pid_of(other));
	tracer_mode("");
	attach_ok(pid);
	ck_assert_str_eq(state_of(pid), "tracing");
}
END_TEST

START_TEST(a_tracer_that_dies_when_nobody_asks_is_noticed)
{
	pid_t pid = target_start();

	daemon_start_default();
	tracer_mode("die-when-attached");
	call_any("Attach", pid_of(pid));
	wait_for_state(pid, "lost");
	daemon_log_must_hold("was killed by signal 9");
	ok("Detach", pid_of(pid));
	ck_assert_str_eq(state_of(pid), "");
	tracer_mode("die-when-attached");
	call_any("Attach", pid_of(pid));
	wait_for_state(pid, "lost");
	target_exit(pid, 0);
	wait_for_state(pid, "");
}
END_TEST

static const struct {
	const char *mode, *told, *told_when_busy;      /* on a machine where it hardly runs */
} stuck[] = {
	{ "stuck-stopped", "is stopped", NULL },
	{ "stuck-in-a-loop", "is busy with something that does not end", "is too slow, or gets no time on a CPU" },
	{ "stuck-asleep", "waits for something that does not come", NULL },
	{ "stuck-after-work", "waits for something that does not come", NULL },
};

START_TEST(a_stuck_tracer_is_killed_and_its_target_healed)
{
	pid_t pid = target_start(), other = target_start();

	daemon_start_default();
	attach_ok(other);
	tracer_mode(stuck[_i].mode);
	attach_ok(pid);
	fails("GetStatus", pid_of(pid), "Failed");
	wait_for_state(pid, "lost");
	daemon_log_must_hold("was killed by signal 9");
	if (!stuck[_i].told_when_busy || !daemon_log_holds(stuck[_i].told_when_busy))
		daemon_log_must_hold(stuck[_i].told);
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	ck_assert_str_eq(state_of(other), "tracing");
}
END_TEST

START_TEST(a_tracer_that_gets_no_cpu_is_not_taken_for_stuck)
{
	pid_t pid = target_start();

	daemon_start_default();
	tracer_mode("starved");
	attach_ok(pid);
	json_decref(call_ok("GetStatus", pid_of(pid)));
	ck_assert_str_eq(state_of(pid), "tracing");
}
END_TEST

START_TEST(a_death_of_the_tracer_is_told_to_who_waits)
{
	static const char format[] = "{\"method\":\"org.allocwatch.Tracer.WaitGone\",\"parameters\":{\"pid\":%d}}";
	pid_t pid = target_start();
	char call[128], *answer;
	int sock;

	daemon_start_default();
	tracer_mode("die-at-status");
	attach_ok(pid);
	sock = raw_connect();
	snprintf(call, sizeof(call), format, (int)pid);
	raw_send(sock, call, strlen(call) + 1);
	fails("GetStatus", pid_of(pid), "Failed");
	answer = raw_receive(sock);
	ck_assert_ptr_nonnull(answer);
	ck_assert_ptr_nonnull(strstr(answer, "org.allocwatch.Tracer.Failed"));
	free(answer);
	close(sock);
}
END_TEST

static const char *const bad_images[] = { "unsealed-image", "no-image", "empty-image", "garbage-image",
					  "cut-image", "huge-image", "other-pid-image" };

START_TEST(a_bad_image_is_refused_and_nothing_is_kept)
{
	pid_t pid = target_start();
	bool too_large = strcmp(bad_images[_i], "huge-image") == 0;

	daemon_start_default();
	tracer_mode(bad_images[_i]);
	attach_ok(pid);
	fails("TakeSnapshot", pid_of(pid), too_large ? "LimitReached" : "Failed");
	ck_assert_uint_eq(kept_count(), 0);
	target_exit(pid, 3);
	wait_for_state(pid, "");
	daemon_log_must_hold("its exit snapshot is lost");
	ck_assert_uint_eq(kept_count(), 0);
}
END_TEST

static bool exec_is_kept(void *context)
{
	(void)context;
	return kept_count() > 1;
}

START_TEST(a_wrong_answer_is_an_error_and_tracing_goes_on)
{
	pid_t pid = target_start();

	daemon_start_default();
	tracer_mode("wrong-answer");
	attach_ok(pid);
	fails("TakeSnapshot", pid_of(pid), "Failed");
	ck_assert_str_eq(state_of(pid), "tracing");
}
END_TEST

static size_t open_files(pid_t pid)
{
	char path[64];
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static bool few_files(void *context)
{
	(void)context;
	return open_files(test_daemon) < 100;
}

START_TEST(a_tracer_cannot_fill_the_log)
{
	pid_t pid = target_start();
	struct stat st;
	char log[128];

	daemon_start_default();
	tracer_mode("log-flood");
	attach_ok(pid);
	ok("GetStatus", pid_of(pid));
	snprintf(log, sizeof(log), "%s/log", test_folder);
	ck_assert_int_eq(stat(log, &st), 0);
	ck_assert_int_gt(st.st_size, 1000);
	ck_assert_int_lt(st.st_size, 100 * 200);
	ck_assert(daemon_log_holds("the same again and again"));
}
END_TEST

START_TEST(a_target_that_execs_without_an_end_drives_out_nobody)
{
	pid_t ended = target_start(), pid = target_start();
	char name[32];

	daemon_start((const char *const[]){ "--no-state", "--max-snapshots", "20", NULL });
	attach_ok(ended);
	target_exit(ended, 0);
	ok("WaitGone", pid_of(ended));
	tracer_mode("exec-flood");
	attach_ok(pid);
	wait_until(exec_is_kept, NULL, "the first of them are kept");
	ok("GetStatus", pid_of(pid));
	ck_assert_uint_le(kept_count(), 1 + 4);
	snprintf(name, sizeof(name), "%d:exec", (int)pid);
	snapshot_put(get_snapshot(name));
	ck_assert_uint_le(kept_count(), 1 + 4);
	snprintf(name, sizeof(name), "%d:exit", (int)ended);
	snapshot_put(get_snapshot(name));
}
END_TEST

START_TEST(a_tracer_that_does_not_leave_is_killed)
{
	daemon_start_default();
	tracer_mode("stay");
	attach_ok(target_start());
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	daemon_log_must_hold("does not leave and is killed");
}
END_TEST

START_TEST(module_files_are_bounded_and_closed_again)
{
	pid_t pid = target_start();

	daemon_start_default();
	tracer_mode("module-flood");
	attach_ok(pid);
	ck_assert_uint_lt(open_files(test_daemon), 4096 + 200);
	ck_assert_uint_gt(open_files(test_daemon), 4000);
	daemon_log_must_hold("too many modules");
	ok("Detach", pid_of(pid));
	wait_until(few_files, NULL, "the files are closed");
}
END_TEST

/* --- tracers that are services --- */

/* The daemon is kept from running until the program has done what it was asked for, and is gone. */
static void keep_daemon_waiting(int sock, const char *program)
{
	struct pollfd asked = { .fd = sock, .events = POLLIN };
	struct ucred daemon;
	socklen_t len = sizeof(daemon);
	pid_t pid;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &daemon, &len) < 0 || poll(&asked, 1, TEST_DEADLINE_S * 1000) <= 0)
		_exit(126);
	kill(daemon.pid, SIGSTOP);
	pid = fork();
	if (pid == 0) {
		dup2(sock, 3);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(sock);
	signal(SIGCHLD, SIG_DFL);
	waitpid(pid, NULL, 0);
	kill(daemon.pid, SIGCONT);
}

static bool daemon_comes_late;

/* What systemd does for allocwatch-tracer.socket: a program for each connection, with that as descriptor 3. */
static void serve(int listener, const char *program)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int sock = accept(listener, NULL, NULL);

		if (sock >= 0 && daemon_comes_late) {
			daemon_comes_late = false;     /* for who stands by */
			keep_daemon_waiting(sock, program);
			continue;
		}
		if (sock >= 0 && fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			dup2(sock, 3);
			execl(program, program, (char *)NULL);
			_exit(127);
		}
		close(sock);
	}
}

static pid_t manager;
static char manager_socket[128];

/* program: beside this one, or a path. */
static void manager_start(const char *program)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char path[4200];
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t n = readlink("/proc/self/exe", path, 4096);

	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, "fake_tracer");
	snprintf(manager_socket, sizeof(manager_socket), "%s/tracers", test_folder);
	ck_assert_uint_lt(strlen(manager_socket), sizeof(address.sun_path));
	memcpy(address.sun_path, manager_socket, strlen(manager_socket) + 1);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 64), 0);
	manager = fork();
	if (manager == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(listener, program ? program : path);
	}
	close(listener);
}

static void manager_end(void)
{
	kill(manager, SIGKILL);
	waitpid(manager, NULL, 0);
}

static void daemon_start_with_services(void)
{
	daemon_start((const char *const[]){ "--no-state", "--tracer-service", manager_socket, NULL });
}

START_TEST(a_tracer_may_be_a_service_that_another_process_starts)
{
	pid_t pid = target_start();

	manager_start(NULL);
	daemon_start_with_services();
	attach_ok(pid);
	ck_assert_str_eq(state_of(pid), "tracing");
	take(pid, "first");
	ok("Detach", pid_of(pid));
	ck_assert_str_eq(state_of(pid), "");
	ck_assert_int_eq(tracer_notes("detached"), 1);
	/* Many at once, too. */
	for (int i = 0; i < 20; i++)
		attach_ok(target_start());
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	ck_assert_int_eq(tracer_notes("detached"), 21);
	manager_end();
}
END_TEST

START_TEST(a_stuck_service_is_killed_and_its_target_healed)
{
	pid_t pid = target_start();

	manager_start(NULL);
	daemon_start_with_services();
	tracer_mode("stuck-asleep");
	attach_ok(pid);
	fails("GetStatus", pid_of(pid), "Failed");
	wait_for_state(pid, "lost");
	daemon_log_must_hold("and is killed");
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	manager_end();
}
END_TEST

/* Index 1: of tracers that are services. */
START_TEST(a_stopped_healer_is_killed_and_another_one_heals)
{
	pid_t pid = target_start();

	if (_i == 1) {
		manager_start(NULL);
		daemon_start_with_services();
	} else {
		daemon_start_default();
	}
	tracer_mode("die-at-status");
	attach_ok(pid);
	tracer_mode("healer-stopped");
	fails("GetStatus", pid_of(pid), "Failed");
	wait_until(is_noted, (void *)"healer stopped", "a healer is stopped");
	tracer_mode("");
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	daemon_log_must_hold("is stopped, and is killed: another one does it");
	if (_i == 1)
		manager_end();
}
END_TEST

START_TEST(what_a_service_refused_is_told_also_when_it_has_ended_before_it_is_heard)
{
	pid_t pid = target_start();
	json_t *error;

	daemon_comes_late = true;
	manager_start(NULL);
	daemon_start_with_services();
	tracer_mode("not-permitted");
	error = call_fails("Attach", pid_of(pid), "NotPermitted");
	ck_assert_str_eq(text_of(error, "remedy"), "end that");
	json_decref(error);
	ck_assert_str_eq(state_of(pid), "");
	ck_assert(!daemon_log_holds("its tracer is lost"));
	ck_assert(!tracer_notes("healed"));
	manager_end();
}
END_TEST

static bool stands_by(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	return n > 0 && strcmp(text + strlen(text) + 1, "--stand-by") == 0;
}

static bool service_stands_by(pid_t pid)
{
	char path[64], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return strcmp(text, "aw-stands-by\n") == 0;
}

/* 0: none. */
static pid_t find_stand_by(void)
{
	pid_t parent = manager ? manager : test_daemon;
	char path[64];
	pid_t found = 0;
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	file = fopen(path, "r");
	while (file && !found && fscanf(file, "%d", &pid) == 1)
		found = (manager ? service_stands_by(pid) : stands_by(pid)) ? pid : 0;
	if (file)
		fclose(file);
	return found;
}

static bool one_stands_by(void *context)
{
	(void)context;
	return find_stand_by() != 0;
}

/* A signal takes effect a moment after it was sent. */
static bool is_out_of_action(void *context)
{
	char path[64], state;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(pid_t *)context);
	state = proc_stat_state(path);
	return state != 'R' && state != 'S' && state != 'D';
}

static void disable_stand_by(int accident)
{
	pid_t pid = find_stand_by();

	kill(pid, accident);
	wait_until(is_out_of_action, &pid, "it is killed, or stopped");
}

static bool none_stands_by(void *context)
{
	return !one_stands_by(context);
}

START_TEST(a_process_stands_by_to_heal_while_something_is_traced)
{
	pid_t first = target_start(), second = target_start();

	daemon_start_default();
	ck_assert_int_eq(find_stand_by(), 0);
	attach_ok(first);
	tracer_mode("die-at-status");
	attach_ok(second);
	wait_until(one_stands_by, NULL, "a process stands by");
	ok("Detach", pid_of(first));
	fails("GetStatus", pid_of(second), "Failed");
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	ck_assert_int_eq(tracer_notes("stand-by"), 1);
}
END_TEST

START_TEST(nobody_stands_by_when_nothing_is_traced)
{
	pid_t pid = target_start();

	daemon_start_default();
	attach_ok(pid);
	wait_until(one_stands_by, NULL, "a process stands by");
	ok("Detach", pid_of(pid));
	wait_until(none_stands_by, NULL, "it has left");
}
END_TEST

static const int accidents[] = { SIGKILL, SIGSTOP };

START_TEST(one_that_stood_by_and_cannot_heal_is_not_waited_for)
{
	pid_t pid = target_start();

	daemon_start_default();
	tracer_mode("die-at-status");
	attach_ok(pid);
	wait_until(one_stands_by, NULL, "a process stands by");
	disable_stand_by(accidents[_i]);
	fails("GetStatus", pid_of(pid), "Failed");
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	ck_assert(!daemon_log_holds("another one does it"));
}
END_TEST

START_TEST(a_service_stands_by_to_heal_while_something_is_traced)
{
	pid_t first = target_start(), second = target_start();

	manager_start(NULL);
	daemon_start_with_services();
	attach_ok(first);
	tracer_mode("die-at-status");
	attach_ok(second);
	wait_until(is_noted, (void *)"service stands by", "a service stands by");
	fails("GetStatus", pid_of(second), "Failed");
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	ck_assert_int_eq(tracer_notes("stand-by"), 1);
	wait_until(one_stands_by, NULL, "another one stands by");
	ok("Detach", pid_of(first));
	wait_until(none_stands_by, NULL, "it has left");
	manager_end();
}
END_TEST

START_TEST(a_service_that_stood_by_leaves_with_the_daemon)
{
	manager_start(NULL);
	daemon_start_with_services();
	attach_ok(target_start());
	wait_until(one_stands_by, NULL, "a service stands by");
	kill(test_daemon, SIGKILL);
	wait_until(none_stands_by, NULL, "it has left");
	daemon_wait();
	manager_end();
}
END_TEST

START_TEST(a_service_that_stood_by_and_cannot_heal_is_not_waited_for)
{
	pid_t pid = target_start();

	manager_start(NULL);
	daemon_start_with_services();
	tracer_mode("die-at-status");
	attach_ok(pid);
	wait_until(one_stands_by, NULL, "a service stands by");
	disable_stand_by(accidents[_i]);
	fails("GetStatus", pid_of(pid), "Failed");
	wait_until(is_noted, (void *)"healed", "what it has left is taken out");
	ck_assert(!daemon_log_holds("another one does it"));
	wait_until(none_stands_by, NULL, "it has left");
	manager_end();
}
END_TEST

START_TEST(a_tracer_that_closes_its_socket_and_stays_is_lost)
{
	pid_t pid = target_start();

	daemon_start_default();
	tracer_mode("closes-its-socket");
	attach_ok(pid);
	fails("GetStatus", pid_of(pid), "Failed");
	wait_for_state(pid, "lost");
	daemon_log_must_hold("it ended or closed its socket");
}
END_TEST

START_TEST(a_service_that_cannot_be_started_is_told)
{
	pid_t pid = target_start();
	json_t *error;

	manager_start("/nonexistent/allocwatch-tracer");
	daemon_start_with_services();
	error = call_fails("Attach", pid_of(pid), "Failed");
	json_decref(error);
	ck_assert_str_eq(state_of(pid), "");
	manager_end();
	/* Nobody listens. */
	error = call_fails("Attach", pid_of(pid), "Failed");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "no tracer can be started"));
	json_decref(error);
	ok("List", json_object());
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "attach");

	tcase_add_test(t, a_target_is_attached_shown_and_let_go);
	tcase_add_test(t, an_unclean_detach_is_told);
	tcase_add_test(t, a_child_whose_tracer_ends_before_it_has_it_counts_as_not_followed);
	tcase_add_test(t, a_stopped_target_is_shown_as_stopped);
	tcase_add_test(t, refusals_become_typed_errors);
	tcase_add_test(t, what_is_no_process_is_told_apart);
	tcase_add_test(t, a_second_attach_is_refused);
	tcase_add_test(t, more_sessions_than_the_limit_are_refused);
	tcase_add_test(t, a_hanging_attach_holds_nobody_and_can_be_given_up);

	t = fixture_case(suite, "tracers");
	tcase_add_loop_test(t, a_tracer_that_dies_or_lies_costs_its_session_only, 0,
			    sizeof(deaths) / sizeof(deaths[0]));
	tcase_add_test(t, a_tracer_that_dies_when_nobody_asks_is_noticed);
	tcase_add_loop_test(t, a_stuck_tracer_is_killed_and_its_target_healed, 0, sizeof(stuck) / sizeof(stuck[0]));
	tcase_add_test(t, a_tracer_that_gets_no_cpu_is_not_taken_for_stuck);
	tcase_add_test(t, a_death_of_the_tracer_is_told_to_who_waits);
	tcase_add_loop_test(t, a_bad_image_is_refused_and_nothing_is_kept, 0,
			    sizeof(bad_images) / sizeof(bad_images[0]));
	tcase_add_test(t, a_wrong_answer_is_an_error_and_tracing_goes_on);
	tcase_add_test(t, a_tracer_cannot_fill_the_log);
	tcase_add_test(t, a_target_that_execs_without_an_end_drives_out_nobody);
	tcase_add_test(t, a_tracer_that_does_not_leave_is_killed);
	tcase_add_test(t, module_files_are_bounded_and_closed_again);
	tcase_add_test(t, a_process_stands_by_to_heal_while_something_is_traced);
	tcase_add_test(t, nobody_stands_by_when_nothing_is_traced);
	tcase_add_loop_test(t, one_that_stood_by_and_cannot_heal_is_not_waited_for, 0,
			    sizeof(accidents) / sizeof(accidents[0]));
	tcase_add_test(t, a_tracer_that_closes_its_socket_and_stays_is_lost);

	t = fixture_case(suite, "services");
	tcase_add_test(t, a_tracer_may_be_a_service_that_another_process_starts);
	tcase_add_test(t, a_stuck_service_is_killed_and_its_target_healed);
	tcase_add_loop_test(t, a_stopped_healer_is_killed_and_another_one_heals, 0, 2);
	tcase_add_test(t, what_a_service_refused_is_told_also_when_it_has_ended_before_it_is_heard);
	tcase_add_test(t, a_service_that_cannot_be_started_is_told);
	tcase_add_test(t, a_service_stands_by_to_heal_while_something_is_traced);
	tcase_add_test(t, a_service_that_stood_by_leaves_with_the_daemon);
	tcase_add_loop_test(t, a_service_that_stood_by_and_cannot_heal_is_not_waited_for, 0,
			    sizeof(accidents) / sizeof(accidents[0]));
}

int main(void)
{
	return fixture_run("daemon_tracers", add_tests);
}
