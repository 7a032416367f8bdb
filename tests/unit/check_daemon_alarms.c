/* Snapshots that the daemon takes when a process's memory passes a limit: of which processes, by whose limits, and why. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char program[128];

/* A program that nobody else runs: it sleeps, with more than a mebibyte resident. */
static void make_program(void)
{
	char command[400];

	snprintf(program, sizeof(program), "%s/watched program", test_folder);
	snprintf(command, sizeof(command), "cp /bin/sleep '%s'", program);
	ck_assert_int_eq(system(command), 0);
}

static pid_t run(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "1000", (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void end_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void configure(const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/allocwatch", test_folder);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/allocwatch/allocwatchd.conf", test_folder);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(chmod(path, 0644), 0);
}

static void start(void)
{
	char state[128];

	snprintf(state, sizeof(state), "%s/state", test_folder);
	daemon_start((const char *const[]){ "--state", state, NULL });
}

struct wanted {
	pid_t pid;
	const char *name;
};

/* Snapshots of that process by that name. */
static size_t count_of(pid_t pid, const char *name)
{
	json_t *reply = call_ok("ListSnapshots", json_pack("{s:i}", "pid", (int)pid)), *info;
	size_t i, count = 0;

	json_array_foreach(member(reply, "snapshots"), i, info)
		count += strcmp(text_of(info, "name"), name) == 0;
	json_decref(reply);
	return count;
}

static bool is_there(void *context)
{
	const struct wanted *wanted = context;

	return count_of(wanted->pid, wanted->name) > 0;
}

static void require_reason_in_history(const char *name, const char *reason)
{
	json_t *reply = call_ok("GetHistory", json_pack("{s:s}", "who", program)), *info;
	size_t i, found = 0;

	json_array_foreach(member(json_array_get(member(reply, "runs"), 0), "snapshots"), i, info) {
		if (strcmp(text_of(info, "name"), name) == 0 && ++found)
			ck_assert_ptr_nonnull(strstr(text_of(info, "reason"), reason));
	}
	ck_assert_uint_eq(found, 1);
	json_decref(reply);
}

START_TEST(a_rules_limit_that_is_passed_makes_one_snapshot_that_says_why)
{
	struct wanted alarm = { 0, "rss-limit" };
	json_t *reply, *info, *rule;

	make_program();
	start();
	alarm.pid = run(program);
	json_decref(call_ok("Watch", json_pack("{s:s, s:i, s:I, s:I}", "who", program, "every_ms", 3600000, "rss_limit",
					       (json_int_t)4096, "rss_slope", (json_int_t)1 << 30)));
	wait_until(is_there, &alarm, "the limit makes a snapshot");
	require_reason_in_history("rss-limit", "resident memory passed the limit");
	reply = call_ok("ListWatches", json_object());
	rule = json_array_get(member(reply, "watches"), 0);
	ck_assert_int_eq(number_of(rule, "rss_limit"), 4096);
	ck_assert_int_eq(number_of(rule, "rss_slope"), 1 << 30);
	json_decref(reply);
	ck_assert(daemon_log_holds("a snapshot is taken (rss-limit)"));
	/* nobody else may give that name, and what somebody asks for has no such reason */
	fails("TakeSnapshot", json_pack("{s:i, s:s}", "pid", (int)alarm.pid, "name", "rss-limit"),
	      "org.varlink.service.InvalidParameter");
	take(alarm.pid, "mine");
	reply = call_ok("ListSnapshots", pid_of(alarm.pid));
	info = json_array_get(member(reply, "snapshots"), json_array_size(member(reply, "snapshots")) - 1);
	ck_assert_str_eq(text_of(info, "name"), "mine");
	ck_assert(json_is_null(json_object_get(info, "reason")));
	json_decref(reply);
	ck_assert_uint_eq(count_of(alarm.pid, "rss-limit"), 1);
	end_program(alarm.pid);
}
END_TEST

static bool is_sleep(void *context)
{
	return resident_bytes(*(pid_t *)context) > 1 << 20;
}

START_TEST(the_configuration_says_whose_and_when_and_can_be_read_again)
{
	struct wanted watched = { 0, "rss-limit" }, attached = { 0, "rss-limit" };

	make_program();
	configure("[Alarms]\nRssLimit=1M\n");
	start();
	attached.pid = run("/bin/sleep");
	wait_until(is_sleep, &attached.pid, "it has executed its program");
	attach_ok(attached.pid);
	watched.pid = run(program);
	json_decref(call_ok("Watch", json_pack("{s:s, s:i}", "who", program, "every_ms", 3600000)));
	wait_until(is_there, &watched, "one that is watched has the configuration's limit");
	ck_assert_uint_eq(count_of(attached.pid, "rss-limit"), 0);
	configure("[Alarms]\nRssLimit=1M\nProcesses=all\n");
	kill(test_daemon, SIGHUP);
	wait_until(is_there, &attached, "one that is only attached has it, too, when that is said");
	end_program(watched.pid);
	end_program(attached.pid);
}
END_TEST

START_TEST(what_is_wrong_is_named_by_file_line_and_key)
{
	configure("[Alarms]\nRssLimit=lots\nSlopeTime=1\nMemoryPressure=3s\nProcesses=none\nLeastTime=0\n"
		  "MemoryEvents=maybe\n");
	test_daemon = fork();
	if (test_daemon == 0)
		daemon_exec((const char *const[]){ "--no-state", NULL });
	ck_assert_int_eq(daemon_wait(), 1);
	daemon_log_must_hold("allocwatchd.conf:2: RssLimit= wants a size");
	daemon_log_must_hold("allocwatchd.conf:3: SlopeTime= wants a time from 2 to 86400 seconds");
	daemon_log_must_hold("allocwatchd.conf:4: MemoryPressure= wants a time from 1ms to less than 2 seconds");
	daemon_log_must_hold("allocwatchd.conf:5: Processes= wants one of watched, all");
	daemon_log_must_hold("allocwatchd.conf:6: LeastTime= wants a time from 1 to 86400 seconds");
	daemon_log_must_hold("allocwatchd.conf:7: MemoryEvents= wants yes or no");
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "alarms");

	tcase_add_test(t, a_rules_limit_that_is_passed_makes_one_snapshot_that_says_why);
	tcase_add_test(t, the_configuration_says_whose_and_when_and_can_be_read_again);
	tcase_add_test(t, what_is_wrong_is_named_by_file_line_and_key);
}

int main(void)
{
	return fixture_run("daemon_alarms", add_tests);
}
