/* Snapshots that are kept, found, compared and outlive their process and daemon. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "daemon/limits.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_snapshot_is_kept_and_read_back_with_names)
{
	pid_t pid = target_start();
	struct snapshot *snapshot;
	json_t *reply, *info;

	daemon_start_default();
	attach_ok(pid);
	reply = call_ok("TakeSnapshot", json_pack("{s:i, s:s, s:b}", "pid", (int)pid, "name", "before", "blocks", 1));
	info = member(reply, "snapshot");
	ck_assert_str_eq(text_of(info, "id"), "s1");
	ck_assert_str_eq(text_of(info, "name"), "before");
	ck_assert_int_eq(number_of(info, "pid"), pid);
	ck_assert_int_eq(number_of(info, "size"), 350);
	ck_assert_int_eq(number_of(info, "count"), 3);
	json_decref(reply);
	snapshot = get_snapshot("s1");
	ck_assert_str_eq(snapshot->id, "s1");
	ck_assert_str_eq(snapshot->name, "before");
	ck_assert_str_eq(snapshot->command, "fake \xff target");
	ck_assert_uint_eq(live_bytes(snapshot), 350);
	ck_assert_uint_eq(snapshot->blocks.count, 3);
	ck_assert(snapshot->symbolized);
	ck_assert(names_function(snapshot, "fake_allocation_site"));
	snapshot_put(snapshot);
	ck_assert_uint_eq(kept_count(), 1);
	ok("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s1"));
	ck_assert_uint_eq(kept_count(), 0);
	fails("GetSnapshot", snap("s1"), "NoSuchSnapshot");
}
END_TEST

START_TEST(the_newest_of_one_name_wins_and_the_older_keeps_its_id)
{
	pid_t pid = target_start();
	struct snapshot *snapshot;
	char name[64];

	daemon_start_default();
	tracer_mode("growing");
	attach_ok(pid);
	ck_assert_str_eq(take(pid, "x"), "s1");
	ck_assert_str_eq(take(pid, "x"), "s2");
	snprintf(name, sizeof(name), "%d:x", (int)pid);
	snapshot = get_snapshot(name);
	ck_assert_str_eq(snapshot->id, "s2");
	snapshot_put(snapshot);
	snapshot = get_snapshot("s1");
	ck_assert_uint_eq(live_bytes(snapshot), 350 + 4096);
	snapshot_put(snapshot);
}
END_TEST

START_TEST(a_pid_means_a_fresh_snapshot_that_is_not_kept)
{
	pid_t pid = target_start();
	struct snapshot *snapshot;
	char name[32];

	daemon_start_default();
	tracer_mode("growing");
	attach_ok(pid);
	take(pid, "");
	snprintf(name, sizeof(name), "%d", (int)pid);
	snapshot = get_snapshot(name);
	ck_assert_ptr_null(snapshot->id);
	ck_assert_uint_eq(live_bytes(snapshot), 350 + 2 * 4096);
	snapshot_put(snapshot);
	ck_assert_uint_eq(kept_count(), 1);
	ok("Detach", pid_of(pid));
	snapshot = get_snapshot(name);
	ck_assert_str_eq(snapshot->id, "s1");
	snapshot_put(snapshot);
}
END_TEST

START_TEST(names_that_name_nothing_are_refused)
{
	static const char *const none[] = { "s1", "s", "17:x", "4294967297", "", ":", "0", "x", "1:2:3", "s1:x",
					    "../../etc/passwd", "s18446744073709551616" };
	static const char *const bad_names[] = { "a b", "a/b", "a:b", "\xc3\xa9", "exit", "exec", "detach",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	pid_t pid = target_start();

	daemon_start_default();
	attach_ok(pid);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		fails("GetSnapshot", snap(none[i]), "NoSuchSnapshot");
	fails("GetSnapshot", snap("1"), "NotTraced");
	for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++)
		fails("TakeSnapshot", json_pack("{s:i, s:s}", "pid", (int)pid, "name", bad_names[i]),
		      "org.varlink.service.InvalidParameter");
	fails("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s1"), "NoSuchSnapshot");
	ck_assert_uint_eq(kept_count(), 0);
}
END_TEST

START_TEST(a_removal_is_all_or_nothing)
{
	pid_t pid = target_start();

	daemon_start_default();
	attach_ok(pid);
	take(pid, "");
	take(pid, "");
	fails("RemoveSnapshots", json_pack("{s:[s,s]}", "ids", "s1", "s3"), "NoSuchSnapshot");
	ck_assert_uint_eq(kept_count(), 2);
	ok("RemoveSnapshots", json_pack("{s:[s,s,s]}", "ids", "s1", "s2", "s1"));
	ck_assert_uint_eq(kept_count(), 0);
	ck_assert_str_eq(take(pid, ""), "s3");
}
END_TEST

START_TEST(a_target_that_ends_leaves_its_last_snapshot)
{
	pid_t pid = target_start();
	struct snapshot *snapshot;
	json_t *reply;
	char name[32];

	daemon_start_default();
	attach_ok(pid);
	target_exit(pid, 5);
	reply = call_ok("WaitGone", pid_of(pid));
	ck_assert_int_eq(number_of(reply, "exit_status"), 7 << 8);
	ck_assert_str_eq(text_of(reply, "snapshot"), "s1");
	json_decref(reply);
	snprintf(name, sizeof(name), "%d:exit", (int)pid);
	snapshot = get_snapshot(name);
	ck_assert_uint_eq(live_bytes(snapshot), 350);
	ck_assert(names_function(snapshot, "fake_allocation_site"));
	snapshot_put(snapshot);
	/* Also for who asks only now. */
	reply = call_ok("WaitGone", pid_of(pid));
	ck_assert_str_eq(text_of(reply, "snapshot"), "s1");
	json_decref(reply);
	snprintf(name, sizeof(name), "%d", (int)pid);
	snapshot_put(get_snapshot(name));
}
END_TEST

START_TEST(a_request_that_came_too_late_costs_no_last_snapshot)
{
	pid_t pid = target_start();
	json_t *reply;

	daemon_start_default();
	tracer_mode("deaf-at-exit");
	attach_ok(pid);
	target_exit(pid, 0);
	/* Its tracer waits for a request and leaves without reading it. */
	wait_for_state(pid, "");
	reply = call_ok("WaitGone", pid_of(pid));
	ck_assert_str_eq(text_of(reply, "snapshot"), "s1");
	json_decref(reply);
}
END_TEST

START_TEST(who_waits_for_the_end_is_told_at_the_end)
{
	static const char format[] = "{\"method\":\"org.allocwatch.Tracer.WaitGone\",\"parameters\":{\"pid\":%d}}";
	pid_t pid = target_start();
	int socks[10], gone;
	char call[128];

	daemon_start_default();
	attach_ok(pid);
	snprintf(call, sizeof(call), format, (int)pid);
	gone = raw_connect();
	raw_send(gone, call, strlen(call) + 1);
	for (int i = 0; i < 10; i++) {
		socks[i] = raw_connect();
		raw_send(socks[i], call, strlen(call) + 1);
	}
	close(gone);
	ok("GetStatus", pid_of(pid));
	target_exit(pid, 0);
	for (int i = 0; i < 10; i++) {
		char *answer = raw_receive(socks[i]);

		ck_assert_ptr_nonnull(answer);
		ck_assert_ptr_nonnull(strstr(answer, "\"snapshot\":\"s1\""));
		free(answer);
		close(socks[i]);
	}
}
END_TEST

START_TEST(a_detach_ends_the_waiting_without_a_status)
{
	static const char format[] = "{\"method\":\"org.allocwatch.Tracer.WaitGone\",\"parameters\":{\"pid\":%d}}";
	pid_t pid = target_start();
	char call[128], *answer;
	int sock;

	daemon_start_default();
	attach_ok(pid);
	sock = raw_connect();
	snprintf(call, sizeof(call), format, (int)pid);
	raw_send(sock, call, strlen(call) + 1);
	ok("Detach", pid_of(pid));
	answer = raw_receive(sock);
	ck_assert_ptr_nonnull(answer);
	ck_assert_ptr_nonnull(strstr(answer, "\"exit_status\":null"));
	free(answer);
	close(sock);
}
END_TEST

START_TEST(exit_snapshots_make_way_and_asked_ones_do_not)
{
	pid_t ended = target_start(), pid = target_start();
	json_t *error, *reply;

	daemon_start((const char *const[]){ "--no-state", "--max-snapshots", "2", NULL });
	attach_ok(ended);
	target_exit(ended, 0);
	json_decref(call_ok("WaitGone", pid_of(ended)));
	attach_ok(pid);
	ck_assert_str_eq(take(pid, "a"), "s2");
	json_decref(call_ok("Statistics", snap("s1")));       /* it has its names by now */
	ck_assert_str_eq(take(pid, "b"), "s3");
	reply = call_ok("ListSnapshots", json_object());
	ck_assert_uint_eq(json_array_size(member(reply, "snapshots")), 2);
	ck_assert_str_eq(text_of(json_array_get(member(reply, "snapshots"), 0), "id"), "s2");
	json_decref(reply);
	error = call_fails("TakeSnapshot", pid_of(pid), "LimitReached");
	ck_assert_str_eq(text_of(error, "limit"), "snapshots");
	json_decref(error);
	ok("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s2"));
	ck_assert_str_eq(take(pid, "c"), "s4");
}
END_TEST

START_TEST(snapshots_outlive_the_daemon)
{
	const char *options[] = { "--state", NULL, NULL };
	pid_t pid = target_start();
	struct snapshot *snapshot;
	char state[128], damaged[160];
	json_t *reply;
	FILE *file;

	snprintf(state, sizeof(state), "%s/a/b/state", test_folder);
	options[1] = state;
	daemon_start(options);
	attach_ok(pid);
	take(pid, "one");
	take(pid, "two");
	take(pid, "three");
	ok("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s3"));
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	snprintf(damaged, sizeof(damaged), "%s/s2.allocwatch", state);
	ck_assert_int_eq(truncate(damaged, 1000), 0);
	snprintf(damaged, sizeof(damaged), "%s/s9.allocwatch", state);
	file = fopen(damaged, "w");
	fputs("no database", file);
	fclose(file);

	daemon_start(options);
	reply = call_ok("ListSnapshots", json_object());
	ck_assert_uint_eq(json_array_size(member(reply, "snapshots")), 1);
	ck_assert_str_eq(text_of(json_array_get(member(reply, "snapshots"), 0), "name"), "one");
	json_decref(reply);
	snapshot = get_snapshot("s1");
	ck_assert_uint_eq(live_bytes(snapshot), 350);
	ck_assert(names_function(snapshot, "fake_allocation_site"));
	snapshot_put(snapshot);
	ck_assert_int_eq(access(damaged, F_OK), 0);
	daemon_log_must_hold("is left alone");
	attach_ok(pid);
	ck_assert_str_eq(take(pid, ""), "s10");
	ok("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s1"));
	snprintf(damaged, sizeof(damaged), "%s/s1.allocwatch", state);
	ck_assert_int_eq(access(damaged, F_OK), -1);
}
END_TEST

START_TEST(files_over_the_limit_are_refused)
{
	const char *options[] = { "--state", NULL, "--max-disk", "1", NULL };
	pid_t pid = target_start();
	json_t *error;
	char state[128];

	snprintf(state, sizeof(state), "%s/state", test_folder);
	options[1] = state;
	daemon_start(options);
	tracer_mode("big");
	attach_ok(pid);
	take(pid, "");
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	daemon_start(options);
	attach_ok(pid);
	error = call_fails("TakeSnapshot", pid_of(pid), "LimitReached");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "disk"));
	json_decref(error);
	ok("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s1"));
	ck_assert_str_eq(take(pid, ""), "s2");
}
END_TEST

/* As on a full disk: where each file shall be there is a folder. */
START_TEST(of_snapshots_that_cannot_be_written_some_are_told_and_the_rest_counted)
{
	pid_t pid = target_start();
	char state[128], path[160], told[64];

	snprintf(state, sizeof(state), "%s/state", test_folder);
	daemon_start((const char *const[]){ "--state", state, NULL });
	attach_ok(pid);
	for (int i = 1; i <= SNAPSHOT_LOG_LINES_MAX + 3; i++) {
		snprintf(path, sizeof(path), "%s/s%d.allocwatch", state, i);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		take(pid, "");
		snprintf(told, sizeof(told), "snapshot s%d is kept in memory only", i);
		/* Two are written at a time: the next one must not be told first. */
		if (i <= SNAPSHOT_LOG_LINES_MAX)
			daemon_log_must_hold(told);
	}
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	snprintf(told, sizeof(told), "snapshot s%d is kept in memory only", SNAPSHOT_LOG_LINES_MAX + 1);
	ck_assert(!daemon_log_holds(told));
	daemon_log_must_hold("3 further snapshots were kept in memory only");
}
END_TEST

START_TEST(a_folder_that_others_can_write_to_is_not_used)
{
	const char *options[] = { "--state", NULL, NULL };
	char state[128];

	snprintf(state, sizeof(state), "%s/state", test_folder);
	options[1] = state;
	ck_assert_int_eq(mkdir(state, 0700), 0);
	ck_assert_int_eq(chmod(state, 0770), 0);
	daemon_start(options);
	daemon_log_must_hold("others may write to");
	ck_assert_uint_eq(kept_count(), 0);
}
END_TEST

START_TEST(a_second_daemon_keeps_its_hands_off_the_state)
{
	const char *options[] = { "--state", NULL, NULL };
	pid_t pid = target_start(), first;
	char state[128];

	snprintf(state, sizeof(state), "%s/state", test_folder);
	options[1] = state;
	daemon_start(options);
	attach_ok(pid);
	take(pid, "");
	first = test_daemon;
	snprintf(test_socket, sizeof(test_socket), "%s/second", test_folder);
	daemon_start(options);
	daemon_log_must_hold("another daemon uses");
	ck_assert_uint_eq(kept_count(), 0);
	kill(first, SIGTERM);
	ck_assert_int_eq(waitpid(first, NULL, 0), first);
}
END_TEST



START_TEST(statistics_group_and_total)
{
	pid_t pid = target_start();
	json_t *reply, *row;

	daemon_start_default();
	attach_ok(pid);
	take(pid, "");
	reply = call_ok("Statistics", json_pack("{s:s, s:{s:s}}", "snapshot", "s1", "query", "key", "domain"));
	ck_assert_int_eq(number_of(member(reply, "total"), "size"), 350);
	ck_assert_int_eq(number_of(reply, "rows"), 2);
	row = json_array_get(member(reply, "statistics"), 0);
	ck_assert_str_eq(text_of(row, "domain"), "malloc");
	ck_assert_int_eq(number_of(row, "size"), 300);
	ck_assert_int_eq(number_of(row, "count"), 2);
	ck_assert(json_is_true(member(reply, "exact")));
	json_decref(reply);
	fails("Statistics", json_pack("{s:s, s:{s:s}}", "snapshot", "s1", "query", "key", "colour"), "InvalidQuery");
	fails("Statistics", json_pack("{s:s, s:{s:s, s:b}}", "snapshot", "s1", "query", "key", "traceback",
				      "cumulative", 1), "InvalidQuery");
	fails("Statistics", json_pack("{s:s, s:{s:[s]}}", "snapshot", "s1", "query", "filters", "+@domain=nonsense"),
	      "InvalidQuery");
}
END_TEST

START_TEST(two_snapshots_are_compared)
{
	pid_t pid = target_start();
	json_t *reply;
	char name[32];

	daemon_start_default();
	tracer_mode("growing");
	attach_ok(pid);
	take(pid, "a");
	snprintf(name, sizeof(name), "%d", (int)pid);
	reply = call_ok("Compare", json_pack("{s:s, s:s}", "old", "s1", "new", name));
	ck_assert_int_eq(number_of(member(reply, "total"), "size_diff"), 4096);
	ck_assert_int_eq(number_of(member(reply, "total"), "count_diff"), 1);
	json_decref(reply);
	reply = call_ok("Compare", json_pack("{s:s, s:s}", "old", "s1", "new", "s1"));
	ck_assert_int_eq(number_of(member(reply, "total"), "size_diff"), 0);
	json_decref(reply);
	fails("Compare", json_pack("{s:s, s:s}", "old", "s1", "new", "s2"), "NoSuchSnapshot");
	fails("Compare", json_pack("{s:s, s:s}", "old", "s2", "new", "s1"), "NoSuchSnapshot");
}
END_TEST

/* {"snapshots": [s1, ... sN, and one more]} */
static json_t *trend_of(int kept, const char *more)
{
	json_t *names = json_array();
	char name[32];

	for (int i = 1; i <= kept; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		json_array_append_new(names, json_string(name));
	}
	if (more)
		json_array_append_new(names, json_string(more));
	return json_pack("{s:o}", "snapshots", names);
}

static json_t *with_query(json_t *parameters, json_t *query)
{
	json_object_set_new(parameters, "query", query);
	return parameters;
}

START_TEST(a_trend_has_the_sizes_of_each_snapshot)
{
	pid_t pid = target_start();
	json_t *reply, *row, *sizes;
	char name[32];

	daemon_start_default();
	tracer_mode("growing");
	attach_ok(pid);
	for (int i = 0; i < 3; i++)
		take(pid, "");
	snprintf(name, sizeof(name), "%d", (int)pid);
	reply = call_ok("Trend", with_query(trend_of(3, name), json_pack("{s:s}", "key", "domain")));
	ck_assert_int_eq(number_of(member(reply, "total"), "size"), 350 + 4 * 4096);
	ck_assert_int_eq(number_of(member(reply, "total"), "count"), 3 + 4);
	ck_assert_int_eq(number_of(reply, "rows"), 2);
	ck_assert(json_is_true(member(reply, "exact")));
	row = json_array_get(member(reply, "statistics"), 0);
	ck_assert_str_eq(text_of(row, "domain"), "malloc");
	sizes = member(row, "sizes");
	ck_assert_uint_eq(json_array_size(sizes), 4);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(json_integer_value(json_array_get(sizes, (size_t)i)), 300 + (i + 1) * 4096);
	ck_assert(json_real_value(member(row, "steadiness")) == 1.0);
	ck_assert(json_real_value(member(row, "growth_per_hour")) > 4096);
	row = json_array_get(member(reply, "statistics"), 1);
	ck_assert_str_eq(text_of(row, "domain"), "new");
	ck_assert(json_real_value(member(row, "growth_per_hour")) == 0.0);
	json_decref(reply);
	fails("Trend", trend_of(2, NULL), "InvalidQuery");
	fails("Trend", trend_of(3, "s1"), "InvalidQuery");
	fails("Trend", trend_of(3, "s9"), "NoSuchSnapshot");
	fails("Trend", trend_of(3, "1"), "NotTraced");
	fails("Trend", with_query(trend_of(3, NULL), json_pack("{s:b}", "churn", 1)), "InvalidQuery");
	fails("Trend", with_query(trend_of(3, NULL), json_pack("{s:b}", "born", 1)), "InvalidQuery");
	fails("Trend", with_query(trend_of(3, NULL), json_pack("{s:b}", "histogram", 1)), "InvalidQuery");
	fails("Trend", with_query(trend_of(3, NULL), json_pack("{s:s}", "sort", "growth")), "InvalidQuery");
	fails("Trend", with_query(trend_of(3, NULL), json_pack("{s:s}", "key", "thread")), "InvalidQuery");
	fails("Trend", json_pack("{s:s}", "snapshots", "s1"), "org.varlink.service.InvalidParameter");
	fails("Trend", json_object(), "org.varlink.service.InvalidParameter");
}
END_TEST

START_TEST(snapshots_of_a_trend_are_limited_in_number_and_bytes)
{
	const char *const options[] = { "--no-state", "--max-memory", "32", NULL };
	pid_t pid = target_start(), small = target_start();
	json_t *error, *names = json_array();

	daemon_start(options);
	tracer_mode("big");
	attach_ok(pid);
	for (int i = 0; i < 3; i++)
		take(pid, "");
	error = call_fails("Trend", trend_of(101, NULL), "LimitReached");
	ck_assert_str_eq(text_of(error, "limit"), "trend snapshots");
	json_decref(error);
	for (int i = 0; i < 3; i++) {
		error = call_fails("Trend", trend_of(3, NULL), "LimitReached");
		ck_assert_str_eq(text_of(error, "limit"), "memory");
		ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "of a trend"));
		json_decref(error);
	}
	/* What was held is given back, after an answer and after an error. */
	tracer_mode("");
	attach_ok(small);
	for (int i = 0; i < 3; i++)
		json_array_append_new(names, json_string(take(small, "")));
	json_decref(call_ok("Trend", json_pack("{s:O}", "snapshots", names)));
	while (json_array_size(names) < 100)
		json_array_append(names, json_array_get(names, 0));
	for (int i = 0; i < 20; i++)
		fails("Trend", json_pack("{s:O}", "snapshots", names), "InvalidQuery");
	json_decref(names);
}
END_TEST

static int count_rows(void *context, json_t *reply)
{
	*(size_t *)context += json_array_size(member(reply, "statistics"));
	return 0;
}

START_TEST(a_trend_is_streamed_whole)
{
	json_t *parameters = with_query(trend_of(4, NULL), json_pack("{s:s}", "key", "traceback")), *error = NULL;
	pid_t pid = target_start();
	size_t rows = 0;
	json_t *reply;

	daemon_start_default();
	tracer_mode("big");
	attach_ok(pid);
	for (int i = 0; i < 4; i++)
		take(pid, "");
	ck_assert_int_eq(varlink_client_stream(test_client, "Trend", parameters, count_rows, &rows, &error), 0);
	ck_assert_uint_eq(rows, 30002);
	reply = call_ok("Trend", parameters);
	ck_assert_uint_eq(json_array_size(member(reply, "statistics")), 100);
	ck_assert_int_eq(number_of(reply, "rows"), 30002);
	json_decref(reply);
}
END_TEST

START_TEST(blocks_of_any_age_have_their_ages)
{
	pid_t pid = target_start();
	json_t *reply;
	char name[32];

	daemon_start_default();
	attach_ok(pid);
	snprintf(name, sizeof(name), "%d", (int)pid);
	reply = call_ok("Statistics", json_pack("{s:s, s:{s:i}}", "snapshot", name, "query", "older_than_ms", 0));
	ck_assert_ptr_nonnull(json_object_get(json_array_get(member(reply, "statistics"), 0), "oldest_seconds"));
	json_decref(reply);
	/* as long as the client's --older-than */
	reply = call_ok("Statistics", json_pack("{s:s, s:{s:I}}", "snapshot", name, "query", "older_than_ms",
						(json_int_t)100 * 365 * 24 * 3600 * 1000));
	ck_assert_int_eq(number_of(reply, "rows"), 0);
	json_decref(reply);
	fails("Statistics", json_pack("{s:s, s:{s:I}}", "snapshot", name, "query", "older_than_ms",
				      (json_int_t)101 * 365 * 24 * 3600 * 1000), "org.varlink.service.InvalidParameter");
}
END_TEST

struct sum {
	size_t replies, rows;
	json_int_t size, total_rows;
};

static int add_up(void *context, json_t *reply)
{
	struct sum *sum = context;
	json_t *row;
	size_t i;

	sum->replies++;
	sum->total_rows = number_of(reply, "rows");
	json_array_foreach(member(reply, "statistics"), i, row) {
		sum->rows++;
		sum->size += number_of(row, "size");
	}
	return 0;
}

START_TEST(many_rows_are_bounded_in_a_message_and_streamed_whole)
{
	json_t *parameters = json_pack("{s:s, s:{s:s}}", "snapshot", "s1", "query", "key", "traceback");
	json_t *reply, *error = NULL;
	pid_t pid = target_start();
	struct sum sum = { 0 };

	daemon_start_default();
	tracer_mode("big");
	attach_ok(pid);
	take(pid, "");
	reply = call_ok("Statistics", json_incref(parameters));
	ck_assert_uint_eq(json_array_size(member(reply, "statistics")), 100);
	ck_assert_int_eq(number_of(reply, "rows"), 30002);
	json_decref(reply);
	ck_assert_int_eq(varlink_client_stream(test_client, "Statistics", parameters, add_up, &sum, &error), 0);
	ck_assert_uint_eq(sum.rows, 30002);
	ck_assert_int_eq(sum.size, 350 + 30000 * 64);
	ck_assert_int_eq(sum.total_rows, 30002);
	ck_assert_uint_gt(sum.replies, 50);
	json_decref(parameters);
	error = call_fails("Statistics", json_pack("{s:s, s:{s:s, s:i}}", "snapshot", "s1", "query", "key", "traceback",
						   "limit", 0), "LimitReached");
	ck_assert_str_eq(text_of(error, "limit"), "message size");
	json_decref(error);
}
END_TEST

START_TEST(a_block_is_found_with_its_traceback)
{
	pid_t pid = target_start();
	json_t *reply, *block;

	daemon_start_default();
	attach_ok(pid);
	reply = call_ok("FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", "0x10010"));
	ck_assert_uint_eq(json_array_size(member(reply, "blocks")), 1);
	block = json_array_get(member(reply, "blocks"), 0);
	ck_assert_str_eq(text_of(block, "address"), "0x10000");
	ck_assert_int_eq(number_of(block, "size"), 100);
	ck_assert_uint_gt(json_array_size(member(block, "traceback")), 0);
	json_decref(reply);
	reply = call_ok("FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", "65536"));
	ck_assert_uint_eq(json_array_size(member(reply, "blocks")), 1);
	json_decref(reply);
	reply = call_ok("FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", "0x1"));
	ck_assert_uint_eq(json_array_size(member(reply, "blocks")), 0);
	json_decref(reply);
	fails("FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", "0xzz"),
	      "org.varlink.service.InvalidParameter");
	fails("FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", "0x10000000000000000"),
	      "org.varlink.service.InvalidParameter");
}
END_TEST

START_TEST(a_block_of_a_trace_that_is_not_there_is_left_out)
{
	pid_t pid = target_start();
	json_t *reply;

	daemon_start_default();
	tracer_mode("bad-trace");
	attach_ok(pid);
	reply = call_ok("FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", "0x10010"));
	ck_assert_uint_eq(json_array_size(member(reply, "blocks")), 0);
	json_decref(reply);
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "snapshots");

	tcase_add_test(t, a_snapshot_is_kept_and_read_back_with_names);
	tcase_add_test(t, the_newest_of_one_name_wins_and_the_older_keeps_its_id);
	tcase_add_test(t, a_pid_means_a_fresh_snapshot_that_is_not_kept);
	tcase_add_test(t, names_that_name_nothing_are_refused);
	tcase_add_test(t, a_removal_is_all_or_nothing);
	tcase_add_test(t, a_target_that_ends_leaves_its_last_snapshot);
	tcase_add_test(t, a_request_that_came_too_late_costs_no_last_snapshot);
	tcase_add_test(t, who_waits_for_the_end_is_told_at_the_end);
	tcase_add_test(t, a_detach_ends_the_waiting_without_a_status);
	tcase_add_test(t, exit_snapshots_make_way_and_asked_ones_do_not);
	tcase_add_test(t, snapshots_outlive_the_daemon);
	tcase_add_test(t, files_over_the_limit_are_refused);
	tcase_add_test(t, of_snapshots_that_cannot_be_written_some_are_told_and_the_rest_counted);
	tcase_add_test(t, a_folder_that_others_can_write_to_is_not_used);
	tcase_add_test(t, a_second_daemon_keeps_its_hands_off_the_state);

	t = fixture_case(suite, "statistics");
	tcase_add_test(t, statistics_group_and_total);
	tcase_add_test(t, two_snapshots_are_compared);
	tcase_add_test(t, a_trend_has_the_sizes_of_each_snapshot);
	tcase_add_test(t, snapshots_of_a_trend_are_limited_in_number_and_bytes);
	tcase_add_test(t, a_trend_is_streamed_whole);
	tcase_add_test(t, blocks_of_any_age_have_their_ages);
	tcase_add_test(t, many_rows_are_bounded_in_a_message_and_streamed_whole);
	tcase_add_test(t, a_block_is_found_with_its_traceback);
	tcase_add_test(t, a_block_of_a_trace_that_is_not_there_is_left_out);
}

int main(void)
{
	return fixture_run("daemon_snapshots", add_tests);
}
