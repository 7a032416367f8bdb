/* How the daemon begins and ends. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
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

START_TEST(a_second_sigterm_waits_for_nobody)
{
	tracer_mode("stay");
	daemon_start_default();
	attach_ok(target_start());
	kill(test_daemon, SIGTERM);
	wait_until(is_noted, (void *)"detached", "the first one has its effect");
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	daemon_log_must_hold("leaving at once");
	ck_assert(!daemon_log_holds("is killed"));
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

/* --- under a service manager --- */

struct manager {
	int sock;
	char text[8192];       /* all that it was told */
};

static bool was_told(struct manager *manager, const char *what)
{
	size_t len = strlen(manager->text);
	ssize_t n = recv(manager->sock, manager->text + len, sizeof(manager->text) - len - 2, MSG_DONTWAIT);

	if (n > 0) {
		manager->text[len + (size_t)n] = '\n';
		manager->text[len + (size_t)n + 1] = '\0';
	}
	return strstr(manager->text, what) != NULL;
}

static struct manager manager;

static bool is_told(void *what)
{
	return was_told(&manager, what);
}

static int listen_at(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(sock, 8), 0);
	return sock;
}

static void start_as_a_service(int listener)
{
	test_daemon = fork();
	if (test_daemon == 0) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "1", 1);
		setenv("WATCHDOG_PID", pid, 1);
		setenv("WATCHDOG_USEC", "500000", 1);
		if (listener == 3)
			fcntl(3, F_SETFD, 0);
		else
			dup2(listener, 3);
		test_socket[0] = '\0';
		daemon_exec((const char *const[]){ "--no-state", NULL });
	}
	close(listener);
}

START_TEST(as_a_service_it_takes_the_socket_and_tells_how_it_is)
{
	char notify[128];
	json_t *reply;

	snprintf(notify, sizeof(notify), "%s/notify", test_folder);
	manager.sock = listen_at(notify, SOCK_DGRAM);
	setenv("NOTIFY_SOCKET", notify, 1);
	start_as_a_service(listen_at(test_socket, SOCK_STREAM));
	wait_until(is_told, (void *)"READY=1", "READY=1");
	ck_assert_int_eq(varlink_client_open(test_socket, &test_client), 0);
	reply = call_ok("List", json_object());
	ck_assert_str_eq(text_of(reply, "daemon"), test_socket);
	json_decref(reply);
	attach_ok(target_start());
	wait_until(is_told, (void *)"STATUS=1 processes traced, 1 clients, 0 snapshots kept", "STATUS");
	wait_until(is_told, (void *)"WATCHDOG=1", "WATCHDOG=1");
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	wait_until(is_told, (void *)"STOPPING=1", "STOPPING=1");
	/* The socket is the manager's. */
	ck_assert_int_eq(access(test_socket, F_OK), 0);
	close(manager.sock);
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
	tcase_add_test(t, a_second_sigterm_waits_for_nobody);
	tcase_add_test(t, tracers_notice_that_the_daemon_was_killed);
	tcase_add_test(t, a_second_daemon_on_the_socket_is_refused);
	tcase_add_test(t, as_a_service_it_takes_the_socket_and_tells_how_it_is);
	tcase_add_test(t, an_idle_daemon_leaves_and_a_busy_one_stays);
	tcase_add_test(t, a_path_that_is_no_stale_socket_is_left_alone);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--second") == 0)
		become_second(argv[2]);
	return fixture_run("daemon_life", add_tests);
}
