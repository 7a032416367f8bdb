/* What clients of the daemon get that keep to the rules, and that do not. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "varlink/codec.h"
#include "varlink/framing.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(the_service_describes_itself)
{
	json_t *reply;

	daemon_start_default();
	reply = call_ok("org.varlink.service.GetInfo", json_object());
	ck_assert_str_eq(text_of(reply, "product"), "allocwatchd");
	ck_assert_uint_eq(json_array_size(member(reply, "interfaces")), 2);
	json_decref(reply);
	reply = call_ok("org.varlink.service.GetInterfaceDescription",
			json_pack("{s:s}", "interface", "org.allocwatch.Tracer"));
	ck_assert_ptr_nonnull(strstr(text_of(reply, "description"), "method TakeSnapshot("));
	json_decref(reply);
	fails("org.varlink.service.GetInterfaceDescription", json_pack("{s:s}", "interface", "a.b"),
	      "org.varlink.service.InterfaceNotFound");
}
END_TEST

START_TEST(what_is_unknown_or_wrong_is_told_by_name)
{
	json_t *error;

	daemon_start_default();
	error = call_fails("org.allocwatch.Tracer.NoSuchMethod", json_object(),
			   "org.varlink.service.MethodNotFound");
	ck_assert_str_eq(text_of(error, "method"), "org.allocwatch.Tracer.NoSuchMethod");
	json_decref(error);
	error = call_fails("org.example.More.List", json_object(), "org.varlink.service.InterfaceNotFound");
	ck_assert_str_eq(text_of(error, "interface"), "org.example.More");
	json_decref(error);
	error = call_fails("Attach", json_object(), "org.varlink.service.InvalidParameter");
	ck_assert_str_eq(text_of(error, "parameter"), "pid");
	json_decref(error);
	error = call_fails("Attach", json_pack("{s:i, s:i}", "pid", 1, "frmaes", 3),
			   "org.varlink.service.InvalidParameter");
	ck_assert_str_eq(text_of(error, "parameter"), "frmaes");
	json_decref(error);
	error = call_fails("Statistics", json_pack("{s:s, s:{s:s}}", "snapshot", "s1", "query", "limit", "x"),
			   "org.varlink.service.InvalidParameter");
	ck_assert_str_eq(text_of(error, "parameter"), "limit");
	json_decref(error);
}
END_TEST

/* One method's line of the description: its name, and whether each of its parameters may be left out
 * ("?"). */
static size_t check_method(const char *line)
{
	const char *open = strchr(line, '('), *close = strchr(line, ')'), *at;
	json_t *all_null = json_object(), *reply = NULL, *error = NULL, *unknown;
	char method[64], name[64], type;
	size_t required = 0;
	bool streams;
	int used, r;

	ck_assert(open && close);
	at = open + 1;
	snprintf(method, sizeof(method), "%.*s", (int)(open - line), line);
	while (at < close && sscanf(at, " %63[a-z_]: %c%n", name, &type, &used) == 2) {
		json_object_set_new(all_null, name, json_null());
		required += type != '?';
		at += used;
		at += strcspn(at, ",)");
		at += *at == ',';
	}
	/* Unknown names are complained of before missing ones. */
	unknown = json_deep_copy(all_null);
	json_object_set_new(unknown, "no_such_parameter", json_null());
	r = varlink_client_call(test_client, method, unknown, &reply, &error);
	ck_assert_int_eq(r, -EREMOTEIO);
	ck_assert_str_eq(text_of(member(error, "parameters"), "parameter"), "no_such_parameter");
	json_decref(error);
	json_decref(unknown);
	error = NULL;
	r = varlink_client_call(test_client, method, all_null, &reply, &error);
	streams = strcmp(method, "Subscribe") == 0;
	ck_assert_msg(r == (required > 0 || streams ? -EREMOTEIO : 0), "%s without parameters: %d", method, r);
	if (streams)
		ck_assert_str_eq(text_of(error, "error"), "org.varlink.service.ExpectedMore");
	else if (required > 0)
		ck_assert_str_eq(text_of(error, "error"), "org.varlink.service.InvalidParameter");
	else
		json_decref(reply);
	json_decref(error);
	json_decref(all_null);
	return required;
}

START_TEST(the_description_is_what_is_served)
{
	json_t *reply;
	const char *at;
	size_t methods = 0, required = 0;

	daemon_start_default();
	reply = call_ok("org.varlink.service.GetInterfaceDescription",
			json_pack("{s:s}", "interface", "org.allocwatch.Tracer"));
	for (at = text_of(reply, "description"); (at = strstr(at, "\nmethod ")); methods++) {
		at += strlen("\nmethod ");
		required += check_method(at);
	}
	json_decref(reply);
	ck_assert_uint_eq(methods, 22);
	ck_assert_uint_eq(required, 19);
}
END_TEST

START_TEST(parameters_out_of_range_are_refused)
{
	static const char *const bad[] = {
		"{\"pid\":0}", "{\"pid\":-1}", "{\"pid\":4294967296}", "{\"pid\":\"1\"}", "{\"pid\":1.5}",
		"{\"pid\":null}", "{\"pid\":1,\"frames\":-1}", "{\"pid\":1,\"frames\":0}",
		"{\"pid\":1,\"frames\":100000}", "{\"pid\":1,\"domains\":\"\"}",
		"{\"pid\":1,\"domains\":\"malloc,,new\"}", "{\"pid\":1,\"domains\":\"heap\"}",
		"{\"pid\":1,\"engine\":\"magic\"}", "{\"pid\":1,\"follow_forks\":1}", "{\"pid\":1,\"ring_wait_ms\":3600001}",
		"{\"pid\":1,\"ring_readers\":17}",
		"{\"pid\":1,\"release\":true,\"follow_forks\":true}", "{\"pid\":1,\"release\":true,\"engine\":\"int3\"}",
		"{\"pid\":1,\"release\":true,\"wait_for_exec\":true}", "{\"pid\":1,\"release\":true,\"hold\":true}",
	};

	daemon_start_default();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		fails("Attach", json_loads(bad[i], 0, NULL), "org.varlink.service.InvalidParameter");
}
END_TEST



static const char list_call[] = "{\"method\":\"org.allocwatch.Tracer.List\"}";

START_TEST(hundreds_of_clients_are_answered_and_one_more_is_told_why_not)
{
	enum { CLIENTS = 300 };
	int socks[CLIENTS], answered = 0;
	char *answer;

	daemon_start((const char *const[]){ "--no-state", "--max-clients", "301", NULL });
	for (int i = 0; i < CLIENTS; i++)
		socks[i] = raw_connect();
	for (int i = 0; i < CLIENTS; i++)
		raw_send(socks[i], list_call, sizeof(list_call));
	for (int i = 0; i < CLIENTS; i++) {
		answer = raw_receive(socks[i]);
		ck_assert_ptr_nonnull(answer);
		answered += strstr(answer, "\"targets\"") != NULL;
		free(answer);
	}
	ck_assert_int_eq(answered, CLIENTS);
	/* test_client is the 301st. */
	socks[0] = raw_connect();
	answer = raw_receive(socks[0]);
	ck_assert_ptr_nonnull(answer);
	ck_assert_ptr_nonnull(strstr(answer, "LimitReached"));
	free(answer);
	for (int i = 0; i < CLIENTS; i++)
		close(socks[i]);
}
END_TEST

START_TEST(half_a_message_holds_nobody_and_is_given_up_after_a_while)
{
	struct pollfd fd;
	int half;

	daemon_start_default();
	half = raw_connect();
	raw_send(half, list_call, 10);
	ok("List", json_object());
	fd = (struct pollfd){ .fd = half, .events = POLLIN };
	ck_assert_int_eq(poll(&fd, 1, TEST_DEADLINE_S * 1000), 1);
	ck_assert_ptr_null(raw_receive(half));
	ok("List", json_object());
	close(half);
}
END_TEST

START_TEST(a_message_of_one_mebibyte_passes_and_a_longer_one_ends_its_connection)
{
	size_t len = VARLINK_MESSAGE_MAX;
	char *text = malloc(len + 1), *answer;
	int sock;

	daemon_start_default();
	memset(text, ' ', len + 1);
	memcpy(text, list_call, sizeof(list_call) - 1);
	text[len - 1] = '\0';
	sock = raw_connect();
	raw_send(sock, text, len);
	answer = raw_receive(sock);
	ck_assert_ptr_nonnull(answer);
	free(answer);
	text[len - 1] = ' ';
	text[len] = '\0';
	if (send(sock, text, len + 1, MSG_NOSIGNAL) < 0)
		ck_assert_int_eq(errno, EPIPE);
	ck_assert_ptr_null(raw_receive(sock));
	close(sock);
	ok("List", json_object());
	free(text);
}
END_TEST

START_TEST(a_flooding_client_that_reads_nothing_is_held_back)
{
	size_t sent = 0, before;
	int sock;

	daemon_start_default();
	before = resident_bytes(test_daemon);
	sock = raw_connect();
	ck_assert_int_eq(fcntl(sock, F_SETFL, O_NONBLOCK), 0);
	for (int round = 0; round < 200; round++) {
		ssize_t n = send(sock, list_call, sizeof(list_call), MSG_NOSIGNAL);

		for (; n > 0; n = send(sock, list_call, sizeof(list_call), MSG_NOSIGNAL))
			sent += (size_t)n;
		ok("List", json_object());
	}
	ck_assert_uint_lt(sent, 32u << 20);
	ck_assert_uint_lt(resident_bytes(test_daemon), before + (64u << 20));
	close(sock);
	ok("List", json_object());
}
END_TEST

START_TEST(pipelined_calls_are_answered_in_order)
{
	char call[160];
	int sock;

	daemon_start_default();
	sock = raw_connect();
	for (int i = 0; i < 500; i++) {
		int len = snprintf(call, sizeof(call),
				   "{\"method\":\"org.allocwatch.Tracer.GetStatus\",\"parameters\":{\"pid\":%d}}",
				   1000000 + i);

		raw_send(sock, call, (size_t)len + 1);
	}
	shutdown(sock, SHUT_WR);
	for (int i = 0; i < 500; i++) {
		char *answer = raw_receive(sock);

		ck_assert_ptr_nonnull(answer);
		snprintf(call, sizeof(call), "\"pid\":%d", 1000000 + i);
		ck_assert_ptr_nonnull(strstr(answer, call));
		free(answer);
	}
	ck_assert_ptr_null(raw_receive(sock));
	close(sock);
}
END_TEST

START_TEST(a_slow_reader_of_a_stream_gets_it_all_and_holds_nobody)
{
	static const char call[] = "{\"method\":\"org.allocwatch.Tracer.GetSnapshot\",\"more\":true,"
				   "\"parameters\":{\"snapshot\":\"s1\"}}";
	struct codec_snapshot_reader *reader = codec_snapshot_reader_new();
	pid_t pid = target_start();
	struct snapshot *snapshot;
	const char *reason = "";
	size_t before, replies = 0;
	bool more = true;
	int sock, dead;

	daemon_start_default();
	tracer_mode("big");
	attach_ok(pid);
	take(pid, "");
	snapshot_put(get_snapshot("s1"));
	before = resident_bytes(test_daemon);
	sock = raw_connect();
	dead = raw_connect();
	raw_send(sock, call, sizeof(call));
	raw_send(dead, call, sizeof(call));
	for (int i = 0; i < 100; i++)
		ok("List", json_object());
	ck_assert_uint_lt(resident_bytes(test_daemon), before + (64u << 20));
	close(dead);
	while (more) {
		char *answer = raw_receive(sock);
		json_t *message;

		ck_assert_ptr_nonnull(answer);
		message = json_loads(answer, 0, NULL);
		more = json_is_true(json_object_get(message, "continues"));
		ck_assert_int_eq(codec_snapshot_reader_feed(reader, member(member(message, "parameters"), "tables")),
				 0);
		replies++;
		json_decref(message);
		free(answer);
	}
	ck_assert_uint_gt(replies, 2);
	ck_assert_msg(codec_snapshot_reader_finish(reader, &snapshot, &reason) == 0, "%s", reason);
	ck_assert_uint_eq(live_bytes(snapshot), 350 + 30000 * 64);
	snapshot_put(snapshot);
	codec_snapshot_reader_free(reader);
	close(sock);
	fails("GetSnapshot", snap("s1"), "org.varlink.service.ExpectedMore");
}
END_TEST

START_TEST(oneway_calls_are_done_and_not_answered)
{
	static const char unknown[] = "{\"method\":\"org.nothing.There\",\"oneway\":true}";
	char call[160], *answer;
	pid_t pid = target_start();
	int sock;

	daemon_start_default();
	sock = raw_connect();
	snprintf(call, sizeof(call), "{\"method\":\"org.allocwatch.Tracer.Attach\",\"oneway\":true,"
				     "\"parameters\":{\"pid\":%d}}", (int)pid);
	raw_send(sock, call, strlen(call) + 1);
	raw_send(sock, unknown, sizeof(unknown));
	raw_send(sock, list_call, sizeof(list_call));
	answer = raw_receive(sock);
	ck_assert_ptr_nonnull(answer);
	ck_assert_ptr_nonnull(strstr(answer, "\"tracing\""));
	free(answer);
	close(sock);
	/* Also when the client has left by then. */
	sock = raw_connect();
	snprintf(call, sizeof(call), "{\"method\":\"org.allocwatch.Tracer.Detach\",\"oneway\":true,"
				     "\"parameters\":{\"pid\":%d}}", (int)pid);
	raw_send(sock, call, strlen(call) + 1);
	close(sock);
	wait_for_state(pid, "");
}
END_TEST

START_TEST(upgrades_are_refused)
{
	static const char call[] = "{\"method\":\"org.allocwatch.Tracer.List\",\"upgrade\":true}";
	char *answer;
	int sock;

	daemon_start_default();
	sock = raw_connect();
	raw_send(sock, call, sizeof(call));
	answer = raw_receive(sock);
	ck_assert_ptr_nonnull(answer);
	ck_assert_ptr_nonnull(strstr(answer, "InvalidParameter"));
	free(answer);
	close(sock);
}
END_TEST

START_TEST(what_is_no_varlink_ends_its_connection_only)
{
	static const char *const bad[] = { "GET / HTTP/1.1\r\n\r\n", "", "[]", "{}", "{\"method\":1}", "nonsense",
					   "{\"method\":\"org.allocwatch.Tracer.List\",\"more\":1}",
					   "{\"method\":\"org.allocwatch.Tracer.List\",\"parameters\":[]}" };

	daemon_start_default();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int sock = raw_connect();

		raw_send(sock, bad[i], strlen(bad[i]) + 1);
		ck_assert_ptr_null(raw_receive(sock));
		close(sock);
	}
	ok("List", json_object());
}
END_TEST

START_TEST(random_calls_never_hurt)
{
	static const char *const methods[] = { "Attach", "Detach", "List", "GetStatus", "TakeSnapshot",
		"ListSnapshots", "RemoveSnapshots", "GetSnapshot", "Statistics", "Compare", "FindBlock", "Clear",
		"ResetPeak", "WaitGone" };
	static const char *const names[] = { "pid", "frames", "domains", "name", "blocks", "ids", "snapshot", "query",
					     "old", "new", "address" };
	int succeeded = 0, failed = 0;

	daemon_start_default();
	srandom(3);
	for (int round = 0; round < 3000; round++) {
		json_t *parameters = json_object();

		for (long n = random() % 4; n > 0; n--) {
			json_t *values[] = { json_integer(random() % 3 - 1), json_string("s1"), json_null(),
					     json_true(), json_array(), json_object(), json_string(""),
					     json_integer(1LL << 40), json_real(0.5) };
			size_t count = sizeof(values) / sizeof(values[0]), chosen = (size_t)random() % count;

			json_object_set(parameters, names[(size_t)random() % 11], values[chosen]);
			for (size_t i = 0; i < count; i++)
				json_decref(values[i]);
		}
		/* Not to process 1, which is there. */
		if (json_integer_value(json_object_get(parameters, "pid")) == 1)
			json_object_set_new(parameters, "pid", json_integer(INT32_MAX));
		if (call_any(methods[(size_t)random() % 14], parameters))
			succeeded++;
		else
			failed++;
	}
	ck_assert_int_gt(succeeded, 50);
	ck_assert_int_gt(failed, 1000);
}
END_TEST

START_TEST(another_users_client_is_refused_with_reason_and_remedy)
{
	static const char info_call[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
	int status;
	pid_t pid;

	if (geteuid() != 0)
		return;         /* without root there is no other user to be */
	daemon_start_default();
	ck_assert_int_eq(chmod(test_folder, 0755), 0);
	ck_assert_int_eq(chmod(test_socket, 0666), 0);
	pid = fork();
	if (pid == 0) {
		char *answer, *info;
		int sock;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		sock = raw_connect();
		raw_send(sock, list_call, sizeof(list_call));
		answer = raw_receive(sock);
		raw_send(sock, info_call, sizeof(info_call));
		info = raw_receive(sock);
		if (!answer || !strstr(answer, "NotPermitted") || !strstr(answer, "\"remedy\":\"") || !info ||
		    !strstr(info, "allocwatchd"))
			_exit(1);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "service");

	tcase_add_test(t, the_service_describes_itself);
	tcase_add_test(t, what_is_unknown_or_wrong_is_told_by_name);
	tcase_add_test(t, the_description_is_what_is_served);
	tcase_add_test(t, parameters_out_of_range_are_refused);

	t = fixture_case(suite, "clients");
	tcase_add_test(t, hundreds_of_clients_are_answered_and_one_more_is_told_why_not);
	tcase_add_test(t, half_a_message_holds_nobody_and_is_given_up_after_a_while);
	tcase_add_test(t, a_message_of_one_mebibyte_passes_and_a_longer_one_ends_its_connection);
	tcase_add_test(t, a_flooding_client_that_reads_nothing_is_held_back);
	tcase_add_test(t, pipelined_calls_are_answered_in_order);
	tcase_add_test(t, a_slow_reader_of_a_stream_gets_it_all_and_holds_nobody);
	tcase_add_test(t, oneway_calls_are_done_and_not_answered);
	tcase_add_test(t, upgrades_are_refused);
	tcase_add_test(t, what_is_no_varlink_ends_its_connection_only);
	tcase_add_test(t, random_calls_never_hurt);
	tcase_add_test(t, another_users_client_is_refused_with_reason_and_remedy);
}

int main(void)
{
	return fixture_run("daemon_clients", add_tests);
}
