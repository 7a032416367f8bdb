/* Metrics: on the daemon's socket, and by HTTP. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef WITH_HTTP
#define WITH_HTTP 0
#endif
#define ANSWER_MAX (1u << 20)
#define GET "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

static char answer[ANSWER_MAX];
static const char *http_path = "http";

static const char *path_of(const char *name)
{
	static char paths[4][256];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", test_folder, name);
	return path;
}

static void configure(const char *listen, const char *rest)
{
	FILE *file;

	mkdir(path_of("allocwatch"), 0755);
	file = fopen(path_of("allocwatch/allocwatchd.conf"), "w");
	fprintf(file, "[Metrics]\nListen=%s\n%s", listen, rest);
	fclose(file);
	chmod(path_of("allocwatch/allocwatchd.conf"), 0644);
}

static void must_hold(const char *part)
{
	ck_assert_msg(strstr(answer, part) != NULL, "\"%s\" is not in\n%.3000s", part, answer);
}

static unsigned count(const char *part)
{
	unsigned number = 0;

	for (const char *at = answer; (at = strstr(at, part)); at += strlen(part))
		number++;
	return number;
}

/* --- on the socket --- */

static void ask(const char *format)
{
	json_t *reply = call_ok("Metrics", format ? json_pack("{s:s}", "format", format) : json_object());

	snprintf(answer, sizeof(answer), "%s", text_of(reply, "text"));
	json_decref(reply);
}

START_TEST(what_status_tells_is_told_and_the_lines_that_hold_the_memory)
{
	char line[256];
	pid_t pid = target_start();
	json_t *reply;

	daemon_start_default();
	attach_ok(pid);
	ask(NULL);
	reply = call_ok("GetStatus", pid_of(pid));
	snprintf(line, sizeof(line), "allocwatch_live_bytes{pid=\"%d\",program=\"fake\"} %lld\n", pid,
		 (long long)number_of(member(reply, "status"), "traced_current"));
	must_hold(line);
	snprintf(line, sizeof(line), "allocwatch_held_seconds_total{pid=\"%d\",program=\"fake\"} 0.004200\n", pid);
	must_hold(line);
	snprintf(line, sizeof(line), "allocwatch_group_live_bytes{pid=\"%d\",program=\"fake\",file=\"", pid);
	must_hold(line);
	must_hold("fake_tracer.c\",line=\"");
	must_hold("allocwatch_clients 1\n");
	ck_assert_str_eq(answer + strlen(answer) - 6, "# EOF\n");
	json_decref(reply);
	ask("prometheus");
	must_hold("# TYPE allocwatch_allocations_total counter\n");
	json_decref(call_fails("Metrics", json_pack("{s:s}", "format", "x"), "org.varlink.service.InvalidParameter"));
}
END_TEST

START_TEST(a_process_is_asked_for_a_snapshot_no_sooner_than_it_may)
{
	pid_t pid = target_start();

	daemon_start((const char *const[]){ "--no-state", "--metrics-interval", "1h", NULL });
	attach_ok(pid);
	for (int i = 0; i < 20; i++)
		ask(NULL);
	ck_assert_int_eq(tracer_notes("snapshot"), 1);
	ck_assert_uint_ge(count("allocwatch_group_live_bytes{"), 1);
	ck_assert_uint_eq(kept_count(), 0);
}
END_TEST

START_TEST(a_kept_snapshot_that_is_new_enough_serves)
{
	pid_t pid = target_start();

	daemon_start_default();
	attach_ok(pid);
	take(pid, "mine");
	ck_assert_int_eq(tracer_notes("snapshot"), 1);
	ask(NULL);
	ck_assert_uint_ge(count("allocwatch_group_live_bytes{"), 1);
	ck_assert_int_eq(tracer_notes("snapshot"), 1);
	must_hold("allocwatch_snapshots 1\n");
}
END_TEST

START_TEST(no_lines_are_told_when_none_are_wanted)
{
	daemon_start((const char *const[]){ "--no-state", "--metrics-groups", "0", NULL });
	attach_ok(target_start());
	ask(NULL);
	ck_assert_uint_eq(count("allocwatch_group_live_bytes{"), 0);
	ck_assert_uint_eq(count("allocwatch_live_bytes{"), 1);
	ck_assert_int_eq(tracer_notes("snapshot"), 0);
}
END_TEST

static int add_piece(void *context, json_t *reply)
{
	strcat(answer, text_of(reply, "text"));
	(*(int *)context)++;
	return 0;
}

START_TEST(many_processes_come_in_a_stream)
{
	json_t *error = NULL;
	int pieces = 0;

	daemon_start((const char *const[]){ "--no-state", "--metrics-groups", "1", NULL });
	for (int i = 0; i < 30; i++)
		attach_ok(target_start());
	answer[0] = '\0';
	ck_assert_int_eq(varlink_client_stream(test_client, "Metrics", NULL, add_piece, &pieces, &error), 0);
	ck_assert_int_ge(pieces, 1);
	ck_assert_uint_eq(count("allocwatch_live_bytes{"), 30);
	ck_assert_uint_eq(count("allocwatch_group_live_bytes{"), 30);
	ck_assert_uint_eq(count("# TYPE allocwatch_live_bytes"), 1);
}
END_TEST

/* The end of each is the end of a line. */
static int add_whole_piece(void *context, json_t *reply)
{
	const char *text = text_of(reply, "text");

	ck_assert_int_eq(text[strlen(text) - 1], '\n');
	return add_piece(context, reply);
}

START_TEST(what_does_not_fit_into_a_message_comes_in_pieces)
{
	json_t *error = NULL;
	int pieces = 0;

	daemon_start((const char *const[]){ "--no-state", "--max-sessions", "220", "--metrics-groups", "3", NULL });
	for (int i = 0; i < 200; i++)
		attach_ok(target_start());
	answer[0] = '\0';
	ck_assert_int_eq(varlink_client_stream(test_client, "Metrics", NULL, add_whole_piece, &pieces, &error), 0);
	ck_assert_int_ge(pieces, 2);
	ck_assert_uint_eq(count("allocwatch_live_bytes{"), 200);
	ck_assert_uint_eq(count("# TYPE allocwatch_live_bytes"), 1);
	ck_assert_str_eq(answer + strlen(answer) - strlen("\n# EOF\n"), "\n# EOF\n");
	/* Without a stream it is refused, with the remedy. */
	error = call_fails("Metrics", json_object(), "LimitReached");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "ask for a stream"));
	json_decref(error);
}
END_TEST

START_TEST(a_daemon_that_leaves_in_the_middle_leaves_nothing_behind)
{
	daemon_start_default();
	for (int i = 0; i < 10; i++)
		attach_ok(target_start());
	ck_assert_int_eq(varlink_client_begin(test_client, "Metrics", NULL, false), 0);
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
}
END_TEST

/* --- by HTTP --- */

static int http_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = TEST_DEADLINE_S };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	int flags = fcntl(sock, F_GETFL), r;

	strcpy(address.sun_path, path_of(http_path));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* A full queue is no reason to wait. */
	fcntl(sock, F_SETFL, flags | O_NONBLOCK);
	r = connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : sock;
	fcntl(sock, F_SETFL, flags);
	if (r < 0)
		close(sock);
	return r;
}

/* Reads all there is until the server closes. */
static void http_read(int sock)
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(sock, answer + len, sizeof(answer) - len - 1, 0)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	close(sock);
}

static void http(const char *request)
{
	int sock = http_connect();

	ck_assert_int_ge(sock, 0);
	raw_send(sock, request, strlen(request));
	http_read(sock);
}

static void start_http(void)
{
	daemon_start((const char *const[]){ "--no-state", "--metrics-listen", path_of(http_path), NULL });
	daemon_log_must_hold("metrics are served at");
}

START_TEST(http_serves_the_page_in_the_format_that_is_asked_for)
{
	char *body;

	start_http();
	attach_ok(target_start());
	http("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain\r\n\r\n");
	must_hold("HTTP/1.1 200 OK\r\n");
	must_hold("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
	must_hold("Connection: close\r\n");
	body = strstr(answer, "\r\n\r\n") + 4;
	ck_assert_str_eq(body + strlen(body) - 6, "# EOF\n");
	must_hold("allocwatch_targets 1\n");
	http(GET);
	must_hold("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	must_hold("# TYPE allocwatch_allocations_total counter\n");
	http("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	must_hold("HTTP/1.1 200 OK\r\n");
	ck_assert_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}
END_TEST

START_TEST(http_refuses_what_is_not_there_and_cannot_be_done)
{
	start_http();
	http("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	must_hold("HTTP/1.1 404 ");
	http("GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n");
	must_hold("HTTP/1.1 404 ");
	http("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nx");
	must_hold("HTTP/1.1 405 ");
	must_hold("Allow: GET, HEAD\r\n");
	http("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	must_hold("HTTP/1.1 405 ");
	http("nonsense\r\n\r\n");
	ck_assert_ptr_null(strstr(answer, "200 OK"));
	ok("List", json_object());
}
END_TEST

static bool gets_in(void *context)
{
	int sock = http_connect();
	ssize_t n = -1;
	char byte;

	(void)context;
	if (sock >= 0 && send(sock, GET, strlen(GET), MSG_NOSIGNAL) == (ssize_t)strlen(GET)) {
		struct pollfd pollfd = { .fd = sock, .events = POLLIN };

		if (poll(&pollfd, 1, 500) == 1)
			n = recv(sock, &byte, 1, 0);
	}
	if (sock >= 0)
		close(sock);
	return n == 1;
}

START_TEST(connections_are_few_and_hold_nobody_else)
{
	int socks[64];
	char *large = malloc(100000);

	start_http();
	attach_ok(target_start());
	for (int i = 0; i < 64; i++) {
		socks[i] = http_connect();
		if (socks[i] >= 0)
			send(socks[i], "GET /metrics HTT", 16, MSG_NOSIGNAL);
	}
	/* The daemon's own socket does not notice. */
	for (int i = 0; i < 50; i++)
		ok("List", json_object());
	ck_assert_int_eq(gets_in(NULL), 0);
	for (int i = 0; i < 64; i++) {
		if (socks[i] >= 0)
			close(socks[i]);
	}
	wait_until(gets_in, NULL, "there is room again");
	/* A request whose head has no end. */
	memset(large, 'x', 100000);
	memcpy(large, "GET /metrics HTTP/1.1\r\nX: ", 26);
	socks[0] = http_connect();
	send(socks[0], large, 100000, MSG_NOSIGNAL);
	http_read(socks[0]);
	ck_assert_ptr_null(strstr(answer, "200 OK"));
	free(large);
	wait_until(gets_in, NULL, "it serves");
}
END_TEST

START_TEST(clients_that_leave_and_a_flood_are_one_question_to_the_tracer)
{
	int socks[12];

	start_http();
	attach_ok(target_start());
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 12; i++) {
			socks[i] = http_connect();
			ck_assert_int_ge(socks[i], 0);
			raw_send(socks[i], GET, strlen(GET));
		}
		for (int i = 0; i < 12; i += 2)
			close(socks[i]);
		for (int i = 1; i < 12; i += 2) {
			http_read(socks[i]);
			must_hold("allocwatch_targets 1\n");
		}
	}
	ck_assert_int_eq(tracer_notes("snapshot"), 1);
}
END_TEST

static void reload_until(const char *what)
{
	kill(test_daemon, SIGHUP);
	daemon_log_must_hold(what);
}

START_TEST(a_reload_moves_the_listener_or_leaves_it_where_it_is)
{
	configure(path_of("http"), "");
	daemon_start_default();
	daemon_log_must_hold("metrics are served at");
	http(GET);
	must_hold("200 OK");
	configure(path_of("missing/http"), "[Daemon]\nMaxSessions=1\n");
	reload_until("metrics cannot be served at");
	daemon_log_must_hold("the configuration cannot be put in force, and the old one stays");
	http(GET);
	must_hold("200 OK");
	attach_ok(target_start());
	attach_ok(target_start());
	configure(path_of("other"), "");
	reload_until("other\n");
	http_path = "other";
	wait_until(gets_in, NULL, "it serves there");
	ck_assert_int_ne(access(path_of("http"), F_OK), 0);
	configure("none", "");
	kill(test_daemon, SIGHUP);
	daemon_log_must_hold("Listen= has changed");
	for (int i = 0; i < 1000 && access(path_of("other"), F_OK) == 0; i++)
		poll(NULL, 0, 10);
	ck_assert_int_ne(access(path_of("other"), F_OK), 0);
	ok("List", json_object());
}
END_TEST

/* A listener on this address of the machine itself; port 0: any, which is written there. */
static int listen_on_port(uint32_t host, in_port_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = *port, .sin_addr = { htonl(host) } };
	socklen_t len = sizeof(address);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(sock, 8), 0);
	ck_assert_int_eq(getsockname(sock, (struct sockaddr *)&address, &len), 0);
	*port = address.sin_port;
	return sock;
}

static bool port_answers(in_port_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = port,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool answers = connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0;

	close(sock);
	return answers;
}

START_TEST(a_reload_moves_the_listener_to_an_address_that_holds_the_old_one)
{
	in_port_t port = 0;
	int other;
	char text[64], told[128];

	close(listen_on_port(INADDR_LOOPBACK, &port));
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(port));
	configure(text, "");
	daemon_start_default();
	daemon_log_must_hold("metrics are served at 127.0.0.1");
	other = listen_on_port(INADDR_LOOPBACK + 1, &port);
	snprintf(text, sizeof(text), "0.0.0.0:%u", ntohs(port));
	configure(text, "");
	snprintf(told, sizeof(told), "metrics cannot be served at %s: %s", text, strerror(EADDRINUSE));
	reload_until(told);
	ck_assert(port_answers(port));
	close(other);
	snprintf(told, sizeof(told), "metrics are served at %s", text);
	reload_until(told);
	ck_assert(port_answers(port));
}
END_TEST

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(sock, 8), 0);
	return sock;
}

/* As a TCP socket of the host's for a service without a network.  Index 1: clients are listened to elsewhere, and what was handed
 * over for them is left alone. */
START_TEST(the_service_manager_can_hand_over_the_listener)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = TEST_DEADLINE_S };
	socklen_t len = sizeof(address);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), own = listen_at(test_socket), sock;
	char path[160];

	ck_assert_int_eq(bind(tcp, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(tcp, 8), 0);
	ck_assert_int_eq(getsockname(tcp, (struct sockaddr *)&address, &len), 0);
	strcpy(path, test_socket);
	test_daemon = fork();
	if (test_daemon == 0) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "2", 1);
		setenv("LISTEN_FDNAMES", "metrics:allocwatchd.socket", 1);
		tcp = fcntl(tcp, F_DUPFD, 20);
		own = fcntl(own, F_DUPFD, 20);
		dup2(tcp, 3);
		dup2(own, 4);
		if (_i == 0)
			test_socket[0] = '\0';
		else
			strcat(test_socket, ".other");
		daemon_exec((const char *const[]){ "--no-state", NULL });
	}
	close(tcp);
	close(own);
	daemon_log_must_hold("metrics are served at the socket that was handed over");
	if (_i == 1)
		strcat(path, ".other");
	ck_assert_int_eq(varlink_client_open(path, &test_client), 0);
	ok("List", json_object());
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ck_assert_int_eq(connect(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	raw_send(sock, GET, strlen(GET));
	http_read(sock);
	must_hold("200 OK");
}
END_TEST

START_TEST(addresses_are_checked_before_they_are_used)
{
	static const char *const wrong[] = { "localhost:1", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "[::1]", "::1:5",
					     "0:", ":1", "relative/path", "1.2.3:4" };
	char text[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		test_daemon = fork();
		if (test_daemon == 0)
			daemon_exec((const char *const[]){ "--no-state", "--metrics-listen", wrong[i], NULL });
		ck_assert_int_eq(daemon_wait(), 2);
		snprintf(text, sizeof(text), "--metrics-listen wants an address such as 127.0.0.1:9772 or [::1]:9772, a path, "
			 "or none, not '%s'", wrong[i]);
		daemon_log_must_hold(text);
	}
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "metrics");

	tcase_add_test(t, what_status_tells_is_told_and_the_lines_that_hold_the_memory);
	tcase_add_test(t, a_process_is_asked_for_a_snapshot_no_sooner_than_it_may);
	tcase_add_test(t, a_kept_snapshot_that_is_new_enough_serves);
	tcase_add_test(t, no_lines_are_told_when_none_are_wanted);
	tcase_add_test(t, many_processes_come_in_a_stream);
	tcase_add_test(t, what_does_not_fit_into_a_message_comes_in_pieces);
	tcase_add_test(t, a_daemon_that_leaves_in_the_middle_leaves_nothing_behind);
	if (WITH_HTTP) {
		tcase_add_test(t, http_serves_the_page_in_the_format_that_is_asked_for);
		tcase_add_test(t, http_refuses_what_is_not_there_and_cannot_be_done);
		tcase_add_test(t, connections_are_few_and_hold_nobody_else);
		tcase_add_test(t, clients_that_leave_and_a_flood_are_one_question_to_the_tracer);
		tcase_add_test(t, a_reload_moves_the_listener_or_leaves_it_where_it_is);
	tcase_add_test(t, a_reload_moves_the_listener_to_an_address_that_holds_the_old_one);
		tcase_add_loop_test(t, the_service_manager_can_hand_over_the_listener, 0, 2);
	}
	tcase_add_test(t, addresses_are_checked_before_they_are_used);
}

int main(void)
{
	return fixture_run("daemon_metrics", add_tests);
}
