/* Subscribe: what happens is told to all who may know of it, in order, and nobody waits for who does not listen. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "base/sanitized.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char all_call[] = "{\"method\":\"org.allocwatch.Tracer.Subscribe\",\"more\":true}";

/* The next message, to be freed. */
static json_t *next_message(int sock)
{
	char *answer = raw_receive(sock);
	json_t *message;

	ck_assert_ptr_nonnull(answer);
	message = json_loads(answer, 0, NULL);
	ck_assert_ptr_nonnull(message);
	free(answer);
	return message;
}

/* The next event, to be freed. */
static json_t *next_event(int sock)
{
	json_t *message = next_message(sock), *event;

	ck_assert_msg(!json_object_get(message, "error"), "%s", json_dumps(message, 0));
	event = json_incref(member(member(message, "parameters"), "event"));
	ck_assert_int_gt(number_of(event, "time"), 0);
	json_decref(message);
	return event;
}

/* The next event is of this kind and process (0: of none); to be freed. */
static json_t *expect(int sock, const char *kind, pid_t pid)
{
	json_t *event = next_event(sock);

	ck_assert_str_eq(text_of(event, "kind"), kind);
	if (pid == 0)
		ck_assert_ptr_null(json_object_get(event, "pid"));
	else
		ck_assert_int_eq(number_of(event, "pid"), pid);
	return event;
}

static void see(int sock, const char *kind, pid_t pid)
{
	json_decref(expect(sock, kind, pid));
}

static void see_snapshot(int sock, pid_t pid, const char *id, const char *name)
{
	json_t *event = expect(sock, "snapshot", pid), *info = member(event, "snapshot");

	ck_assert_str_eq(text_of(info, "id"), id);
	ck_assert_str_eq(text_of(info, "name"), name);
	ck_assert_int_eq(number_of(info, "size"), 350);
	json_decref(event);
}

static void see_limit(int sock, pid_t pid, const char *limit)
{
	json_t *event = expect(sock, "limit", pid);

	ck_assert_str_eq(text_of(event, "limit"), limit);
	ck_assert_uint_gt(strlen(text_of(event, "message")), 10);
	json_decref(event);
}

static int subscribe_to_all(void)
{
	int sock = raw_connect();

	raw_send(sock, all_call, sizeof(all_call));
	see(sock, "subscribed", 0);
	return sock;
}

static int subscribe_to(pid_t pid)
{
	int sock = raw_connect();
	char call[128];

	snprintf(call, sizeof(call), "{\"method\":\"org.allocwatch.Tracer.Subscribe\",\"more\":true,"
				     "\"parameters\":{\"pid\":%d}}", (int)pid);
	raw_send(sock, call, strlen(call) + 1);
	see(sock, "subscribed", 0);
	return sock;
}

START_TEST(what_happens_is_told_in_order)
{
	pid_t first = target_start(), second = target_start();
	json_t *event;
	int sock;

	daemon_start_default();
	sock = subscribe_to_all();
	attach_ok(first);
	take(first, "a");
	attach_ok(second);
	ok("Detach", pid_of(second));
	target_exit(first, 0);
	event = expect(sock, "attached", first);
	ck_assert_uint_gt(strlen(text_of(event, "command")), 0);
	json_decref(event);
	see_snapshot(sock, first, "s1", "a");
	see(sock, "attached", second);
	see(sock, "detached", second);
	see_snapshot(sock, first, "s2", "exit");
	event = expect(sock, "exited", first);
	ck_assert_int_eq(number_of(event, "exit_status"), 7 << 8);
	ck_assert_str_eq(text_of(event, "last_snapshot"), "s2");
	json_decref(event);
	close(sock);
}
END_TEST

START_TEST(the_stream_of_a_process_has_its_events_only_and_ends_with_it)
{
	pid_t one = target_start(), other = target_start();
	json_t *message;
	int sock;

	daemon_start_default();
	attach_ok(one);
	sock = subscribe_to(one);
	attach_ok(other);
	take(other, "");
	take(one, "mine");
	ok("Detach", pid_of(other));
	target_exit(one, 0);
	see_snapshot(sock, one, "s2", "mine");
	see_snapshot(sock, one, "s3", "exit");
	message = next_message(sock);
	ck_assert_str_eq(text_of(member(member(message, "parameters"), "event"), "kind"), "exited");
	ck_assert(!json_is_true(json_object_get(message, "continues")));
	json_decref(message);
	/* The connection goes on. */
	raw_send(sock, all_call, sizeof(all_call));
	see(sock, "subscribed", 0);
	close(sock);
}
END_TEST

START_TEST(a_tracer_that_dies_is_told)
{
	pid_t pid = target_start();
	int sock;

	daemon_start_default();
	tracer_mode("die-at-status");
	attach_ok(pid);
	sock = subscribe_to_all();
	fails("GetStatus", pid_of(pid), "Failed");
	see(sock, "lost", pid);
	/* That was all: what the daemon does with the rest of it is nobody's news. */
	ok("Detach", pid_of(pid));
	tracer_mode("");
	attach_ok(pid);
	see(sock, "attached", pid);
	close(sock);
}
END_TEST

START_TEST(limits_are_told)
{
	pid_t one = target_start(), other = target_start();
	int sock, of_one;

	daemon_start((const char *const[]){ "--no-state", "--max-sessions", "1", "--max-snapshots", "1", NULL });
	attach_ok(one);
	sock = subscribe_to_all();
	of_one = subscribe_to(one);
	fails("Attach", pid_of(other), "LimitReached");
	see_limit(sock, other, "sessions");
	take(one, "");
	see_snapshot(sock, one, "s1", "");
	fails("TakeSnapshot", pid_of(one), "LimitReached");
	see_limit(sock, one, "snapshots");
	target_exit(one, 0);
	/* Its last one finds no room either. */
	see_limit(sock, one, "snapshots");
	see(sock, "exited", one);
	see_snapshot(of_one, one, "s1", "");
	see_limit(of_one, one, "snapshots");
	see_limit(of_one, one, "snapshots");
	see(of_one, "exited", one);
	close(sock);
	close(of_one);
}
END_TEST

START_TEST(a_refused_client_and_what_makes_way_are_told)
{
	pid_t ended = target_start(), pid = target_start();
	int sock, refused, again;

	daemon_start((const char *const[]){ "--no-state", "--max-clients", "4", "--max-snapshots", "1", NULL });
	attach_ok(ended);
	sock = subscribe_to_all();
	target_exit(ended, 0);
	see_snapshot(sock, ended, "s1", "exit");
	see(sock, "exited", ended);
	attach_ok(pid);
	json_decref(call_ok("Statistics", snap("s1")));       /* it has its names by now */
	take(pid, "");
	see(sock, "attached", pid);
	see_limit(sock, ended, "snapshots");
	see_snapshot(sock, pid, "s2", "");
	for (int i = 0; i < 2; i++)
		raw_connect();
	refused = raw_connect();
	free(raw_receive(refused));
	see_limit(sock, 0, "clients");
	/* Once in a while: who is refused again and again drives out nothing else. */
	again = raw_connect();
	free(raw_receive(again));
	target_exit(pid, 0);
	see_limit(sock, pid, "snapshots");
	see(sock, "exited", pid);
	close(sock);
	close(refused);
	close(again);
}
END_TEST

#define FLOOD 3000
/* AddressSanitizer keeps for a while what was freed. */
#define GROWTH_MAX ((SANITIZED ? 256u : 4u) << 20)

/* An attach that is refused is an event. */
static void make_events(pid_t refused, int count)
{
	for (int i = 0; i < count; i++)
		fails("Attach", pid_of(refused), "LimitReached");
}

START_TEST(who_does_not_listen_is_told_how_much_was_missed)
{
	pid_t one = target_start(), other = target_start();
	json_int_t seen = 0, missed = 0;
	size_t before;
	int slow, quick, of_one;

	daemon_start((const char *const[]){ "--no-state", "--max-sessions", "1", NULL });
	attach_ok(one);
	slow = subscribe_to_all();
	quick = subscribe_to_all();
	of_one = subscribe_to(one);
	before = resident_bytes(test_daemon);
	for (int i = 0; i < FLOOD; i++) {
		make_events(other, 1);
		see_limit(quick, other, "sessions");
	}
	ck_assert_uint_lt(resident_bytes(test_daemon), before + GROWTH_MAX);
	while (missed == 0) {
		json_t *event = next_event(slow);

		if (strcmp(text_of(event, "kind"), "missed") == 0)
			missed = number_of(event, "count");
		else
			seen++;
		json_decref(event);
	}
	ck_assert_int_eq(seen + missed, FLOOD);
	ck_assert_int_gt(seen, 128);
	/* It goes on from there. */
	take(one, "after");
	see_snapshot(slow, one, "s1", "after");
	see_snapshot(of_one, one, "s1", "after");
	close(slow);
	close(quick);
	close(of_one);
}
END_TEST

START_TEST(the_end_of_a_process_is_told_to_who_has_not_listened)
{
	pid_t pid = target_start();
	json_t *message;
	bool more = true;
	int sock, missed = 0, seen = 0;

	daemon_start((const char *const[]){ "--no-state", "--max-snapshots", "1", NULL });
	attach_ok(pid);
	take(pid, "");
	sock = subscribe_to(pid);
	for (int i = 0; i < FLOOD / 3; i++)
		fails("TakeSnapshot", pid_of(pid), "LimitReached");
	target_exit(pid, 0);
	json_decref(call_ok("WaitGone", pid_of(pid)));
	while (more) {
		const json_t *event;

		message = next_message(sock);
		event = member(member(message, "parameters"), "event");
		more = json_is_true(json_object_get(message, "continues"));
		if (strcmp(text_of(event, "kind"), "missed") == 0)
			missed = (int)number_of(event, "count");
		else
			seen++;
		if (!more)
			ck_assert_str_eq(text_of(event, "kind"), "exited");
		json_decref(message);
	}
	ck_assert_int_gt(missed, 0);
	/* Each refusal, the last snapshot's, and the end. */
	ck_assert_int_eq(seen + missed, FLOOD / 3 + 2);
	close(sock);
}
END_TEST

START_TEST(hundreds_subscribe_and_calls_are_still_served)
{
	enum { SUBSCRIBERS = 300 };
	pid_t pid = target_start();
	int socks[SUBSCRIBERS];
	json_t *message;

	daemon_start((const char *const[]){ "--no-state", "--max-clients", "400", NULL });
	for (int i = 0; i < SUBSCRIBERS; i++)
		socks[i] = subscribe_to_all();
	attach_ok(pid);
	for (int i = 0; i < SUBSCRIBERS; i++)
		see(socks[i], "attached", pid);
	/* One more of them would leave too few for others. */
	close(socks[0]);
	socks[0] = subscribe_to_all();
	{
		int more = raw_connect();

		raw_send(more, all_call, sizeof(all_call));
		message = next_message(more);
		ck_assert_str_eq(text_of(message, "error"), "org.allocwatch.Tracer.LimitReached");
		ck_assert_str_eq(text_of(member(message, "parameters"), "limit"), "subscribers");
		json_decref(message);
		close(more);
	}
	ok("Detach", pid_of(pid));
	for (int i = 0; i < SUBSCRIBERS; i++) {
		see(socks[i], "detached", pid);
		close(socks[i]);
	}
	ok("List", json_object());
}
END_TEST

START_TEST(what_cannot_be_subscribed_to_is_refused)
{
	static const char oneway[] = "{\"method\":\"org.allocwatch.Tracer.Subscribe\",\"more\":true,\"oneway\":true}";
	json_t *reply = NULL, *error = NULL, *parameters = pid_of(getpid());
	int sock;

	daemon_start_default();
	fails("Subscribe", json_object(), "org.varlink.service.ExpectedMore");
	ck_assert_int_eq(varlink_client_begin(test_client, "Subscribe", parameters, true), 0);
	while (varlink_client_take(test_client, &reply, &error) == -EAGAIN)
		;
	ck_assert_str_eq(text_of(error, "error"), "org.allocwatch.Tracer.NotTraced");
	json_decref(error);
	json_decref(parameters);
	sock = raw_connect();
	raw_send(sock, oneway, sizeof(oneway));
	raw_send(sock, all_call, sizeof(all_call));
	see(sock, "subscribed", 0);
	close(sock);
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "subscribe");

	tcase_add_test(t, what_happens_is_told_in_order);
	tcase_add_test(t, the_stream_of_a_process_has_its_events_only_and_ends_with_it);
	tcase_add_test(t, a_tracer_that_dies_is_told);
	tcase_add_test(t, limits_are_told);
	tcase_add_test(t, a_refused_client_and_what_makes_way_are_told);
	tcase_add_test(t, who_does_not_listen_is_told_how_much_was_missed);
	tcase_add_test(t, the_end_of_a_process_is_told_to_who_has_not_listened);
	tcase_add_test(t, hundreds_subscribe_and_calls_are_still_served);
	tcase_add_test(t, what_cannot_be_subscribed_to_is_refused);
}

int main(void)
{
	return fixture_run("daemon_subscribe", add_tests);
}
