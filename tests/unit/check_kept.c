/* Which of the snapshots that the daemon takes by itself make way, and which do not. */
#include "daemon/log_limit.h"
#include "daemon/snapshots.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define PID 4321

static sd_event *event;
static struct work *work;
static struct snapshots *snapshots;
static unsigned went;

static void on_kept(void *context, const struct kept *kept)
{
	(void)context;
	(void)kept;
}

static void on_makes_way(void *context, const struct kept *kept)
{
	(void)context;
	(void)kept;
	went++;
}

static void setup(void)
{
	static const struct snapshots_owner owner = { .kept = on_kept, .makes_way = on_makes_way };
	const struct limits limits = { .snapshots = SNAPSHOTS_MAX, .snapshot_bytes = SNAPSHOT_BYTES_MAX,
				       .file_bytes = FILE_BYTES_MAX };

	went = 0;
	ck_assert_int_eq(sd_event_new(&event), 0);
	ck_assert_int_eq(work_new(event, &work), 0);
	ck_assert_int_eq(snapshots_new(work, NULL, &limits, &owner, &snapshots), 0);
}

static void teardown(void)
{
	snapshots_free(snapshots);
	work_free(work);
	sd_event_unref(event);
}

static void keep(int pid, const char *name)
{
	struct snapshot *snapshot = snapshot_new();
	struct kept *kept;

	ck_assert_ptr_nonnull(snapshot);
	snapshot->pid = pid;
	snapshot->start_time = 77;
	ck_assert_int_eq(snapshots_keep(snapshots, snapshot, name, geteuid(), &kept), 0);
	snapshots_named(snapshots, kept);
	snapshot_put(snapshot);
}

static size_t count(int pid, const char *name)
{
	size_t found = 0;

	for (size_t i = 0; i < snapshots_count(snapshots); i++) {
		struct kept *kept = snapshots_at(snapshots, i);

		found += kept_facts(kept).pid == pid && kept_is_called(kept, name);
	}
	return found;
}

START_TEST(of_alarms_the_newest_are_kept_whatever_their_causes)
{
	keep(PID, "mine");
	keep(PID, "exit");
	for (int i = 0; i < ALARM_SNAPSHOTS_MAX; i++)
		keep(PID, "rss-limit");
	ck_assert_uint_eq(count(PID, "rss-limit"), ALARM_SNAPSHOTS_MAX);
	for (int i = 0; i < 5; i++)
		keep(PID, "memory-oom");
	ck_assert_uint_eq(count(PID, "memory-oom"), 5);
	ck_assert_uint_eq(count(PID, "rss-limit"), ALARM_SNAPSHOTS_MAX - 5);
	ck_assert_uint_eq(count(PID, "mine"), 1);
	ck_assert_uint_eq(count(PID, "exit"), 1);
}
END_TEST

START_TEST(alarms_of_one_process_do_not_drive_out_those_of_another)
{
	keep(PID + 1, "rss-slope");
	for (int i = 0; i < 2 * ALARM_SNAPSHOTS_MAX; i++)
		keep(PID, "rss-slope");
	ck_assert_uint_eq(count(PID, "rss-slope"), ALARM_SNAPSHOTS_MAX);
	ck_assert_uint_eq(count(PID + 1, "rss-slope"), 1);
}
END_TEST

START_TEST(of_ends_the_newest_are_kept)
{
	for (int i = 0; i < 3 * AUTOMATIC_SNAPSHOTS_MAX; i++)
		keep(PID, i % 2 ? "exec" : "detach");
	ck_assert_uint_eq(count(PID, "exec") + count(PID, "detach"), AUTOMATIC_SNAPSHOTS_MAX);
}
END_TEST

START_TEST(a_rules_own_snapshots_and_those_asked_for_are_not_thinned_out)
{
	for (int i = 0; i < 2 * ALARM_SNAPSHOTS_MAX; i++) {
		keep(PID, SNAPSHOT_OF_RULE);
		keep(PID, "mine");
	}
	ck_assert_uint_eq(count(PID, SNAPSHOT_OF_RULE), 2 * ALARM_SNAPSHOTS_MAX);
	ck_assert_uint_eq(count(PID, "mine"), 2 * ALARM_SNAPSHOTS_MAX);
	ck_assert_uint_eq(went, 0);
}
END_TEST

START_TEST(lines_past_the_limit_are_counted_and_told_in_the_next_period)
{
	struct log_limit limit = { 0 };
	uint64_t now = 5 * LOG_PERIOD_NS;

	ck_assert_uint_eq(log_limit_rest(&limit, now), 0);
	ck_assert(log_limit_pass(&limit, 2) && log_limit_pass(&limit, 2));
	ck_assert(!log_limit_pass(&limit, 2) && !log_limit_pass(&limit, 2) && !log_limit_pass(&limit, 2));
	ck_assert_uint_eq(log_limit_rest(&limit, now + LOG_PERIOD_NS - 1), 0);
	ck_assert(!log_limit_pass(&limit, 2));
	ck_assert_uint_eq(log_limit_rest(&limit, now + LOG_PERIOD_NS), 4);
	ck_assert_uint_eq(log_limit_rest(&limit, now + LOG_PERIOD_NS), 0);
	ck_assert(log_limit_pass(&limit, 1) && !log_limit_pass(&limit, 1));
	ck_assert_uint_eq(log_limit_rest(&limit, LOG_AT_THE_END), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kept");
	TCase *tests = tcase_create("kept");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, of_alarms_the_newest_are_kept_whatever_their_causes);
	tcase_add_test(tests, alarms_of_one_process_do_not_drive_out_those_of_another);
	tcase_add_test(tests, of_ends_the_newest_are_kept);
	tcase_add_test(tests, a_rules_own_snapshots_and_those_asked_for_are_not_thinned_out);
	tcase_add_test(tests, lines_past_the_limit_are_counted_and_told_in_the_next_period);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
