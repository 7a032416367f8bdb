/* How the daemon begins and ends. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(sigterm_lets_all_targets_go)
{
	daemon_start_default();
	for (int i = 0; i < 20; i++)
		attach_ok(target_start());
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	ck_assert_int_eq(tracer_notes("detached"), 20);
	ck_assert_int_eq(access(test_socket, F_OK), -1);
}
END_TEST

static bool eof_noted(void *context)
{
	(void)context;
	return tracer_notes("eof") == 3;
}

START_TEST(tracers_notice_that_the_daemon_was_killed)
{
	daemon_start_default();
	for (int i = 0; i < 3; i++)
		attach_ok(target_start());
	kill(test_daemon, SIGKILL);
	ck_assert_int_eq(daemon_wait(), -SIGKILL);
	wait_until(eof_noted, NULL, "the tracers see the end of their socket");
	/* What it left is no obstacle. */
	daemon_start_default();
	ok("List", json_object());
}
END_TEST

START_TEST(a_second_daemon_on_the_socket_is_refused)
{
	pid_t first;

	daemon_start_default();
	first = test_daemon;
	test_daemon = fork();
	if (test_daemon == 0) {
		execl("/proc/self/exe", "check_daemon", "--second", test_socket, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(daemon_wait(), 1);
	daemon_log_must_hold("another daemon runs on");
	test_daemon = first;
	ok("List", json_object());
}
END_TEST

START_TEST(an_idle_daemon_leaves_and_a_busy_one_stays)
{
	pid_t pid = target_start();

	daemon_start((const char *const[]){ "--no-state", "--idle-exit", "1", NULL });
	attach_ok(pid);
	varlink_client_close(test_client);
	test_client = NULL;
	poll(NULL, 0, 2500);       /* longer than the second that an idle one would stay */
	ck_assert_int_eq(waitpid(test_daemon, NULL, WNOHANG), 0);
	ck_assert_int_eq(varlink_client_open(test_socket, &test_client), 0);
	ok("Detach", pid_of(pid));
	varlink_client_close(test_client);
	test_client = NULL;
	ck_assert_int_eq(daemon_wait(), 0);
	daemon_log_must_hold("leaving");
}
END_TEST

START_TEST(a_path_that_is_no_stale_socket_is_left_alone)
{
	char path[256];
	FILE *file = fopen(test_socket, "w");
	int status;
	pid_t pid;

	fputs("precious", file);
	fclose(file);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "check_daemon", "--second", test_socket, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	daemon_log_must_hold("is there and is no socket");
	snprintf(path, sizeof(path), "%s", test_socket);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

/* `check_daemon --second SOCKET`: what becomes a further daemon. */
static void become_second(const char *socket)
{
	const char *slash = strrchr(socket, '/');

	snprintf(test_folder, sizeof(test_folder), "%.*s", (int)(slash - socket), socket);
	snprintf(test_socket, sizeof(test_socket), "%s", socket);
	daemon_exec((const char *const[]){ "--no-state", NULL });
}

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "beginning and end");

	tcase_add_test(t, sigterm_lets_all_targets_go);
	tcase_add_test(t, tracers_notice_that_the_daemon_was_killed);
	tcase_add_test(t, a_second_daemon_on_the_socket_is_refused);
	tcase_add_test(t, an_idle_daemon_leaves_and_a_busy_one_stays);
	tcase_add_test(t, a_path_that_is_no_stale_socket_is_left_alone);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--second") == 0)
		become_second(argv[2]);
	return fixture_run("daemon_life", add_tests);
}
