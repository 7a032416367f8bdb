/* Rules: what is traced for them, kept of them, and remembered. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "shim/shim.h"
#include "store/history.h"

#include <check.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char program[128];
static char state[128];

/* A program that nobody else runs: it sleeps. */
static void make_program(void)
{
	char command[400];

	snprintf(program, sizeof(program), "%s/watched program", test_folder);
	snprintf(state, sizeof(state), "%s/state", test_folder);
	snprintf(command, sizeof(command), "cp /bin/sleep '%s'", program);
	ck_assert_int_eq(system(command), 0);
}

static pid_t run_program(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, "1000", (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void end_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void start(void)
{
	daemon_start((const char *const[]){ "--state", state, NULL });
}

static void watch(int every_ms, int keep)
{
	json_t *reply = call_ok("Watch", json_pack("{s:s, s:i, s:i}", "who", program, "every_ms", every_ms, "keep", keep));

	ck_assert_str_eq(text_of(reply, "who"), program);
	ck_assert(json_is_null(json_object_get(reply, "problem")));
	json_decref(reply);
}

static bool is_tracing(void *context)
{
	return strcmp(state_of(*(pid_t *)context), "tracing") == 0;
}

static bool is_not_traced(void *context)
{
	return strcmp(state_of(*(pid_t *)context), "") == 0;
}

static json_t *runs(void)
{
	json_t *reply = call_ok("GetHistory", json_pack("{s:s}", "who", program)), *list = json_incref(member(reply, "runs"));

	json_decref(reply);
	return list;
}

/* Of the run with this number, by time. */
static size_t snapshots_of(size_t run)
{
	json_t *list = runs();
	size_t count = json_array_size(member(json_array_get(list, run), "snapshots"));

	json_decref(list);
	return count;
}

static bool has_many(void *context)
{
	return snapshots_of(0) >= *(size_t *)context;
}

static bool has_ended(void *context)
{
	json_t *list = runs();
	bool ended = json_is_integer(json_object_get(json_array_get(list, *(size_t *)context), "until"));

	json_decref(list);
	return ended;
}

START_TEST(each_process_of_a_program_is_traced_and_remembered)
{
	pid_t first, second;
	size_t run = 0;
	json_t *list;

	make_program();
	start();
	first = run_program();
	watch(3600000, 10);
	wait_until(is_tracing, &first, "the one that runs is traced");
	end_program(first);
	wait_until(has_ended, &run, "its end is remembered");
	second = run_program();
	wait_until(is_tracing, &second, "the next one is traced");
	list = runs();
	ck_assert_uint_eq(json_array_size(list), 2);
	ck_assert_int_eq(number_of(json_array_get(list, 0), "pid"), first);
	ck_assert(json_is_false(member(json_array_get(list, 0), "traced")));
	ck_assert_int_eq(number_of(json_array_get(list, 1), "pid"), second);
	ck_assert(json_is_true(member(json_array_get(list, 1), "traced")));
	ck_assert(json_is_null(json_object_get(json_array_get(list, 1), "until")));
	json_decref(list);
	end_program(second);
}
END_TEST

static char cannot[] = "what is watched cannot be written", again[] = "what is watched is written to";

static bool log_holds(void *text)
{
	return daemon_log_holds(text);
}

static void watched_are(size_t count)
{
	json_t *reply = call_ok("ListWatches", json_object());

	ck_assert_uint_eq(json_array_size(member(reply, "watches")), count);
	json_decref(reply);
}

/* Nothing can be written beside a journal that is a folder. */
static void block_history(void)
{
	char command[400];

	snprintf(command, sizeof(command), "cd '%s' && until [ -s history.sqlite -a ! -e history.sqlite-journal ]; do :; done; "
		 "mkdir -p history.sqlite-journal/full", state);
	ck_assert_int_eq(system(command), 0);
}

static void unblock_history(void)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -r '%s/history.sqlite-journal'", state);
	ck_assert_int_eq(system(command), 0);
}

/* Nothing changes any more once there is room again. */
START_TEST(a_rule_that_is_taken_back_while_nothing_can_be_written_does_not_come_again)
{
	make_program();
	start();
	watch(3600000, 10);
	block_history();
	ok("Unwatch", json_pack("{s:s}", "who", program));
	wait_until(log_holds, cannot, "the log says so");
	unblock_history();
	wait_until(log_holds, again, "it is written");
	kill(test_daemon, SIGKILL);
	daemon_wait();
	start();
	watched_are(0);
}
END_TEST

START_TEST(what_could_not_be_written_is_tried_once_more_at_the_end)
{
	make_program();
	start();
	watch(3600000, 10);
	block_history();
	ok("Unwatch", json_pack("{s:s}", "who", program));
	wait_until(log_holds, cannot, "the log says so");
	unblock_history();
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	start();
	watched_are(0);
}
END_TEST

static bool is_gone_from_history(void *context)
{
	json_t *list = runs(), *info;
	bool gone = true;
	size_t i;

	json_array_foreach(member(json_array_get(list, 0), "snapshots"), i, info) {
		if (strcmp(text_of(info, "id"), context) == 0)
			gone = false;
	}
	json_decref(list);
	return gone;
}

START_TEST(the_newest_are_kept_the_first_of_a_live_process_and_what_somebody_took)
{
	size_t enough = 5;
	char first[32], second[32], mine[32];
	json_t *all, *list;
	pid_t pid;

	make_program();
	start();
	pid = run_program();
	watch(100, 4);
	wait_until(is_tracing, &pid, "it is traced");
	snprintf(mine, sizeof(mine), "%s", take(pid, "mine"));
	wait_until(has_many, &enough, "snapshots are taken");
	all = runs();
	list = member(json_array_get(all, 0), "snapshots");
	snprintf(first, sizeof(first), "%s", text_of(json_array_get(list, 0), "id"));
	for (size_t i = 1; i < json_array_size(list); i++) {
		snprintf(second, sizeof(second), "%s", text_of(json_array_get(list, i), "id"));
		if (strcmp(second, mine) != 0)
			break;
	}
	json_decref(all);
	wait_until(is_gone_from_history, second, "an old one is no longer kept");
	ck_assert(!is_gone_from_history(first));
	ck_assert(!is_gone_from_history(mine));
	ck_assert_uint_le(snapshots_of(0), 4 + 1 + 1);
	end_program(pid);
}
END_TEST

/* Their snapshots take turns. */
START_TEST(of_two_live_processes_the_first_ones_and_the_newest_are_kept)
{
	size_t enough = 9;
	char old[32];
	json_t *all, *list;
	pid_t one, other;

	make_program();
	start();
	one = run_program();
	other = run_program();
	watch(100, 3);
	wait_until(is_tracing, &one, "one is traced");
	wait_until(is_tracing, &other, "the other is traced");
	all = runs();
	list = member(json_array_get(all, 0), "snapshots");
	/* The second of its process. */
	for (size_t tries = 0; json_array_size(list) < 2; tries++) {
		ck_assert_uint_lt(tries, 1000);
		poll(NULL, 0, 10);
		json_decref(all);
		all = runs();
		list = member(json_array_get(all, 0), "snapshots");
	}
	snprintf(old, sizeof(old), "%s", text_of(json_array_get(list, 1), "id"));
	json_decref(all);
	wait_until(is_gone_from_history, old, "an old one is no longer kept");
	ck_assert_uint_le(snapshots_of(0) + snapshots_of(1), enough);
	end_program(one);
	end_program(other);
}
END_TEST

static bool are_stored(void *context)
{
	char pattern[160];
	glob_t found;
	bool enough;

	snprintf(pattern, sizeof(pattern), "%s/s*.allocwatch", state);
	enough = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc >= *(size_t *)context;
	globfree(&found);
	return enough;
}

START_TEST(rules_and_what_was_traced_outlive_a_daemon_that_is_killed)
{
	size_t enough = 2, run = 0;
	pid_t pid;
	json_t *reply, *rule;

	make_program();
	start();
	pid = run_program();
	watch(150, 7);
	wait_until(is_tracing, &pid, "it is traced");
	wait_until(are_stored, &enough, "snapshots are taken and stored");
	kill(test_daemon, SIGKILL);
	ck_assert_int_eq(daemon_wait(), -SIGKILL);
	start();
	/* Somebody makes the same rule while it still looks through what is kept. */
	watch(150, 7);
	wait_until(is_tracing, &pid, "it is traced by the next daemon");
	reply = call_ok("ListWatches", json_object());
	ck_assert_uint_eq(json_array_size(member(reply, "watches")), 1);
	rule = json_array_get(member(reply, "watches"), 0);
	ck_assert_str_eq(text_of(rule, "who"), program);
	ck_assert_int_eq(number_of(rule, "every_ms"), 150);
	ck_assert_int_eq(number_of(rule, "keep"), 7);
	ck_assert_int_eq(json_integer_value(json_array_get(member(rule, "pids"), 0)), pid);
	json_decref(reply);
	ck_assert_uint_ge(snapshots_of(0), 2);
	end_program(pid);
	wait_until(has_ended, &run, "its end is remembered");
	reply = runs();
	ck_assert_uint_eq(json_array_size(reply), 1);
	json_decref(reply);
	ck_assert(!daemon_log_holds("cannot be written"));
}
END_TEST

START_TEST(unwatch_lets_go_and_keeps_what_was_known)
{
	size_t enough = 1;
	pid_t pid, next;

	make_program();
	start();
	fails("Unwatch", json_pack("{s:s}", "who", program), "NotWatched");
	fails("GetHistory", json_pack("{s:s}", "who", program), "NotWatched");
	pid = run_program();
	watch(3600000, 10);
	wait_until(is_tracing, &pid, "it is traced");
	wait_until(has_many, &enough, "the first snapshot is taken");
	ok("Unwatch", json_pack("{s:s}", "who", program));
	wait_until(is_not_traced, &pid, "it is let go");
	ck_assert_uint_ge(snapshots_of(0), 1);
	fails("Unwatch", json_pack("{s:s}", "who", program), "NotWatched");
	next = run_program();
	watch(3600000, 10);
	wait_until(is_tracing, &next, "the rule can be made again");
	end_program(next);
	end_program(pid);
}
END_TEST

/* Of its first process. */
static void require_engine(pid_t pid, const char *engine)
{
	json_t *reply;

	wait_until(is_tracing, &pid, "it is traced");
	reply = call_ok("GetStatus", pid_of(pid));
	ck_assert_str_eq(text_of(member(reply, "status"), "engine"), engine);
	json_decref(reply);
}

static void require_rules_engine(const char *engine)
{
	json_t *reply = call_ok("ListWatches", json_object());

	ck_assert_str_eq(text_of(json_array_get(member(reply, "watches"), 0), "engine"), engine);
	json_decref(reply);
}

START_TEST(a_rule_has_an_engine_of_its_own_also_for_the_next_daemon)
{
	pid_t pid;

	make_program();
	start();
	fails("Watch", json_pack("{s:s, s:s}", "who", program, "engine", "steam"), "org.varlink.service.InvalidParameter");
	json_decref(call_ok("Watch", json_pack("{s:s, s:s}", "who", program, "engine", "ring")));
	require_rules_engine("ring");
	pid = run_program();
	require_engine(pid, "ring");
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	start();
	require_rules_engine("ring");
	require_engine(pid, "ring");
	end_program(pid);
}
END_TEST

/* Who detaches from a process means it. */
START_TEST(what_somebody_lets_go_is_left_alone)
{
	size_t run = 0;
	pid_t pid, other;

	make_program();
	start();
	pid = run_program();
	watch(3600000, 10);
	wait_until(is_tracing, &pid, "it is traced");
	ok("Detach", pid_of(pid));
	wait_until(has_ended, &run, "that is remembered");
	/* At a look that finds another one it would be found, too. */
	other = run_program();
	wait_until(is_tracing, &other, "another one is traced");
	ck_assert_str_eq(state_of(pid), "");
	end_program(pid);
	end_program(other);
}
END_TEST

START_TEST(a_service_without_a_bus_is_a_rule_with_a_problem)
{
	static const char *const sizes[] = { "keep_bytes", "rss_limit", "rss_slope" };
	json_t *reply;

	make_program();
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	start();
	reply = call_ok("Watch", json_pack("{s:s}", "who", "nobodys"));
	ck_assert_str_eq(text_of(reply, "who"), "nobodys.service");
	ck_assert_ptr_nonnull(strstr(text_of(reply, "problem"), "the system bus cannot be used"));
	json_decref(reply);
	reply = call_ok("ListWatches", json_object());
	ck_assert_str_eq(text_of(json_array_get(member(reply, "watches"), 0), "who"), "nobodys.service");
	json_decref(reply);
	fails("Watch", json_pack("{s:s}", "who", "a/b"), "org.varlink.service.InvalidParameter");
	fails("Watch", json_pack("{s:s, s:i}", "who", "a", "every_ms", 1), "org.varlink.service.InvalidParameter");
	fails("Watch", json_pack("{s:s, s:i}", "who", "a", "rss_limit", -1), "org.varlink.service.InvalidParameter");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fails("Watch", json_pack("{s:s, s:I}", "who", "nobodys", sizes[i], (json_int_t)HISTORY_SIZE_MAX + 1),
		      "org.varlink.service.InvalidParameter");
		json_decref(call_ok("Watch", json_pack("{s:s, s:I}", "who", "nobodys", sizes[i], (json_int_t)HISTORY_SIZE_MAX)));
	}
	ok("Unwatch", json_pack("{s:s}", "who", "nobodys.service"));
}
END_TEST

/* Root's daemon alone can, and systemd must be there. */
START_TEST(a_start_that_cannot_be_watched_is_no_rule)
{
	json_t *reply;

	make_program();
	setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
	start();
	fails("Watch", json_pack("{s:s, s:b}", "who", program, "from_start", 1), "org.varlink.service.InvalidParameter");
	fails("Watch", json_pack("{s:s, s:b}", "who", "nobodys", "from_start", 1),
	      geteuid() == 0 ? "org.allocwatch.Tracer.Unsupported" : "org.allocwatch.Tracer.NotPermitted");
	reply = call_ok("ListWatches", json_object());
	ck_assert_uint_eq(json_array_size(member(reply, "watches")), 0);
	json_decref(reply);
	/* Nor does what was refused stand in the way of a rule without it. */
	json_decref(call_ok("Watch", json_pack("{s:s}", "who", "nobodys")));
	fails("Watch", json_pack("{s:s, s:b}", "who", "nobodys", "from_start", 1),
	      geteuid() == 0 ? "org.allocwatch.Tracer.Unsupported" : "org.allocwatch.Tracer.NotPermitted");
	reply = call_ok("ListWatches", json_object());
	ck_assert(json_is_false(json_object_get(json_array_get(member(reply, "watches"), 0), "from_start")));
	json_decref(reply);
}
END_TEST

/* Where the shim is, this test and what it starts see a program that sleeps. */
static void make_shim(void)
{
	char folder[] = SHIM_PATH, command[400];

	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	do
		*strrchr(folder, '/') = '\0';
	while (access(folder, F_OK) < 0);
	ck_assert_int_eq(mount("none", folder, "tmpfs", 0, NULL), 0);
	snprintf(command, sizeof(command), "mkdir -p '%s' && cp /bin/sleep '%s'", PKGLIBEXECDIR, SHIM_PATH);
	ck_assert_int_eq(system(command), 0);
	strcpy(program, SHIM_PATH);
	snprintf(state, sizeof(state), "%s/state", test_folder);
}

static bool is_logged(void *context)
{
	return daemon_log_holds(context);
}

/* While the daemon waits for the shim to execute the program, its tracer dies, and then nobody is interested any more: in the
 * twenty milliseconds until it looks at the shim again, sooner or later. */
START_TEST(a_tracer_that_dies_while_the_shim_waits_does_no_harm)
{
	make_shim();
	setenv("MALLOC_PERTURB_", "165", 1);
	start();
	tracer_mode("die-at-status");
	for (int i = 0; i < 10; i++) {
		pid_t pid = run_program();
		char line[80];

		watch(3600000, 10);
		snprintf(line, sizeof(line), "process %d is watched", (int)pid);
		wait_until(is_logged, line, "it is traced");
		fails("GetStatus", pid_of(pid), "Failed");
		ok("Unwatch", json_pack("{s:s}", "who", program));
		end_program(pid);
	}
	ok("ListSnapshots", json_object());
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "watches");

	tcase_add_test(t, each_process_of_a_program_is_traced_and_remembered);
	tcase_add_test(t, a_rule_that_is_taken_back_while_nothing_can_be_written_does_not_come_again);
	tcase_add_test(t, what_could_not_be_written_is_tried_once_more_at_the_end);
	tcase_add_test(t, the_newest_are_kept_the_first_of_a_live_process_and_what_somebody_took);
	tcase_add_test(t, of_two_live_processes_the_first_ones_and_the_newest_are_kept);
	tcase_add_test(t, rules_and_what_was_traced_outlive_a_daemon_that_is_killed);
	tcase_add_test(t, unwatch_lets_go_and_keeps_what_was_known);
	tcase_add_test(t, a_rule_has_an_engine_of_its_own_also_for_the_next_daemon);
	tcase_add_test(t, what_somebody_lets_go_is_left_alone);
	tcase_add_test(t, a_service_without_a_bus_is_a_rule_with_a_problem);
	tcase_add_test(t, a_start_that_cannot_be_watched_is_no_rule);
	if (geteuid() == 0)
		tcase_add_test(t, a_tracer_that_dies_while_the_shim_waits_does_no_harm);
	else
		printf("SKIP: a tracer that dies while the shim waits is not tried: only root can put a shim in its place\n");
}

int main(void)
{
	return fixture_run("daemon_watches", add_tests);
}
