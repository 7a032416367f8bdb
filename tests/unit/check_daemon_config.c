/* What the daemon makes of its configuration, when it starts and when it is told to read it again. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- files --- */

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", test_folder, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(chmod(path_of(name), 0644), 0);
}

/* As a user's own: the fixture's daemons are private and have XDG_CONFIG_HOME in their folder. */
static void configure(const char *text)
{
	mkdir(path_of("allocwatch"), 0755);
	put("allocwatch/allocwatchd.conf", text);
}

static int log_count(const char *text)
{
	char command[512], answer[32] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "grep -cF -- '%s' '%s'", text, path_of("log"));
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(fgets(answer, sizeof(answer), pipe));
	pclose(pipe);
	return atoi(answer);
}

static int reloads_wanted;

static bool is_read_again(void *what)
{
	return log_count(what) >= reloads_wanted;
}

static void reload_until(const char *what)
{
	reloads_wanted = log_count(what) + 1;
	kill(test_daemon, SIGHUP);
	wait_until(is_read_again, (void *)what, what);
}

/* --- the tests --- */

START_TEST(files_say_what_options_say_and_options_win)
{
	configure("[Daemon]\nMaxSessions=1\n[Snapshots]\nState=none\n");
	daemon_start((const char *const[]){ NULL });
	attach_ok(target_start());
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
	kill(test_daemon, SIGTERM);
	ck_assert_int_eq(daemon_wait(), 0);
	daemon_start((const char *const[]){ "--max-sessions", "2", NULL });
	attach_ok(target_start());
	attach_ok(target_start());
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
}
END_TEST

START_TEST(drop_ins_come_after_the_file_and_an_empty_value_is_the_default)
{
	configure("[Daemon]\nMaxSessions=1\nMaxClients=1\n");
	mkdir(path_of("allocwatch/allocwatchd.conf.d"), 0755);
	put("allocwatch/allocwatchd.conf.d/10.conf", "[Daemon]\nMaxSessions=2\n");
	put("allocwatch/allocwatchd.conf.d/20.conf", "[Daemon]\nMaxClients=\n");
	daemon_start_default();
	close(raw_connect());
	attach_ok(target_start());
	attach_ok(target_start());
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
}
END_TEST

START_TEST(one_file_can_take_the_place_of_all)
{
	configure("[Daemon]\nMaxSessions=nonsense\n");
	put("other.conf", "[Daemon]\nMaxSessions=1\n");
	daemon_start((const char *const[]){ "--no-state", "--config", path_of("other.conf"), NULL });
	attach_ok(target_start());
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
}
END_TEST

static void require_engine(const char *asked, const char *engine)
{
	pid_t pid = target_start();
	json_t *reply;

	json_decref(call_ok("Attach", json_pack("{s:i, s:s*}", "pid", (int)pid, "engine", asked)));
	reply = call_ok("GetStatus", pid_of(pid));
	ck_assert_str_eq(text_of(member(reply, "status"), "engine"), engine);
	json_decref(reply);
}

START_TEST(an_engine_in_the_file_serves_who_asks_for_none)
{
	configure("[Tracing]\nEngine=ring\n");
	daemon_start_default();
	require_engine(NULL, "ring");
	require_engine("int3", "int3");
	configure("[Tracing]\nEngine=int3\n");
	reload_until("Engine= has changed");
	require_engine(NULL, "int3");
	require_engine("ring", "ring");
	configure("[Tracing]\nEngine=steam\n");
	reload_until("the configuration is wrong");
	daemon_log_must_hold("allocwatchd.conf:2: Engine= wants one of auto, int3, ring, not 'steam'");
	require_engine(NULL, "int3");
}
END_TEST

/* What a status says of a process that is attached to with this option. */
static long long figure_of(const char *figure, const char *option, json_t *value)
{
	pid_t pid = target_start();
	long long number;
	json_t *reply;

	json_decref(call_ok("Attach", json_pack("{s:i, s:o*}", "pid", (int)pid, option, value)));
	reply = call_ok("GetStatus", pid_of(pid));
	number = json_integer_value(json_object_get(member(reply, "status"), figure));
	json_decref(reply);
	return number;
}

static long long sampling_of(const char *option, json_t *value)
{
	return figure_of("sample_bytes", option, value);
}

START_TEST(how_many_read_a_ring_is_in_the_file_for_who_does_not_say)
{
	configure("[Tracing]\nRingReaders=3\n");
	daemon_start_default();
	ck_assert_int_eq(figure_of("ring_readers", "engine", NULL), 3);
	ck_assert_int_eq(figure_of("ring_readers", "ring_readers", json_integer(5)), 5);
	ck_assert_int_eq(figure_of("ring_readers", "ring_readers", json_integer(0)), 0);
	configure("[Tracing]\nRingReaders=auto\n");
	reload_until("RingReaders= has changed");
	ck_assert_int_eq(figure_of("ring_readers", "engine", NULL), 0);
	configure("[Tracing]\nRingReaders=17\n");
	reload_until("the configuration is wrong");
	daemon_log_must_hold("allocwatchd.conf:2: RingReaders= wants auto or a number from 1 to 16, not '17'");
}
END_TEST

START_TEST(a_wait_in_the_file_serves_who_does_not_say)
{
	configure("[Tracing]\nRingWait=5s\n");
	daemon_start_default();
	ck_assert_int_eq(figure_of("ring_wait_ms", "engine", NULL), 5000);
	ck_assert_int_eq(figure_of("ring_wait_ms", "ring_wait_ms", json_integer(20)), 20);
	configure("[Tracing]\nRingWait=250ms\n");
	reload_until("RingWait= has changed");
	ck_assert_int_eq(figure_of("ring_wait_ms", "engine", NULL), 250);
	configure("[Tracing]\nRingWait=0\n");
	reload_until("the configuration is wrong");
	daemon_log_must_hold("allocwatchd.conf:2: RingWait= wants a time from 1ms to 3600s, such as 100ms or 5s, not '0'");
}
END_TEST

/* As the tracer has understood it. */
static void require_wish(const char *option, const char *wanted)
{
	pid_t pid = target_start();
	json_t *reply;

	json_decref(call_ok("Attach", json_pack("{s:i, s:o*}", "pid", (int)pid, option, *option ? json_true() : NULL)));
	reply = call_ok("GetStatus", pid_of(pid));
	ck_assert_str_eq(json_string_value(json_object_get(member(reply, "status"), "hold_reason")), wanted);
	json_decref(reply);
}

START_TEST(whether_ptrace_is_held_is_in_the_file_for_who_does_not_say)
{
	configure("[Tracing]\nPtrace=release\n");
	daemon_start_default();
	require_wish("", "release");
	require_wish("hold", "hold");
	require_wish("release", "release or fail");
	require_wish("follow_forks", "release");
	configure("[Tracing]\nPtrace=auto\n");
	reload_until("Ptrace= has changed");
	require_wish("", "auto");
	configure("[Tracing]\nPtrace=hold\n");
	reload_until("Ptrace= has changed");
	require_wish("", "hold");
	require_wish("release", "release or fail");
	configure("[Tracing]\n");
	reload_until("Ptrace= has changed");
	require_wish("", "auto");
	configure("[Tracing]\nPtrace=yes\n");
	reload_until("the configuration is wrong");
	daemon_log_must_hold("allocwatchd.conf:2: Ptrace= wants one of auto, hold, release, not 'yes'");
}
END_TEST

START_TEST(a_rate_in_the_file_serves_who_does_not_say)
{
	configure("[Tracing]\nSampleBytes=512K\n");
	daemon_start_default();
	ck_assert_int_eq(sampling_of("engine", NULL), 512 << 10);
	ck_assert_int_eq(sampling_of("sample_bytes", json_integer(0)), 0);
	ck_assert_int_eq(sampling_of("sample_bytes", json_integer(4096)), 4096);
	/* What does not go together with it is done without. */
	ck_assert_int_eq(sampling_of("engine", json_string("int3")), 0);
	ck_assert_int_eq(sampling_of("allocators", json_pack("[s]", "odd odd_get(-, -, -, size)")), 0);
	ck_assert_int_eq(sampling_of("allocators", json_pack("[s]", "even even_get(-, size)")), 512 << 10);
	ck_assert_int_eq(sampling_of("follow_forks", json_true()), 512 << 10);
	ck_assert_int_eq(sampling_of("release", json_true()), 512 << 10);
	configure("[Tracing]\nSampleBytes=2G\n");
	reload_until("the configuration is wrong");
}
END_TEST

START_TEST(a_wrong_file_is_named_and_no_daemon_starts_with_it)
{
	configure("[Daemon]\n\nMaxSessions=many\n[Snapshots]\nMaxMemory=5X\nState=here\nMaxSnapshots=0\n");
	test_daemon = fork();
	if (test_daemon == 0)
		daemon_exec((const char *const[]){ "--no-state", NULL });
	ck_assert_int_eq(daemon_wait(), 1);
	daemon_log_must_hold("/allocwatch/allocwatchd.conf:3: MaxSessions= wants a number from 1 to 4096, not 'many'");
	daemon_log_must_hold("/allocwatch/allocwatchd.conf:5: MaxMemory= wants a size such as 512M");
	daemon_log_must_hold("/allocwatch/allocwatchd.conf:6: State= wants an absolute path");
	daemon_log_must_hold("/allocwatch/allocwatchd.conf:7: MaxSnapshots= wants a number from 1");
	ck_assert_int_ne(access(test_socket, F_OK), 0);
}
END_TEST

START_TEST(what_is_not_known_is_a_warning)
{
	configure("[Daemon]\nMaxSesions=3\nMaxMemory=512M\n[Deamon]\nMaxClients=2\n[X-Site]\nOwner=us\n");
	daemon_start_default();
	daemon_log_must_hold(":2: MaxSesions= is ignored: there is no such key in [Daemon]");
	daemon_log_must_hold(":3: MaxMemory= is ignored: it belongs to [Snapshots], not to [Daemon]");
	daemon_log_must_hold(":5: MaxClients= is ignored: there is no section [Deamon]");
	ck_assert(!daemon_log_holds("Owner"));
	ok("List", json_object());
}
END_TEST

START_TEST(a_reload_changes_what_can_change_and_says_what_cannot)
{
	configure("[Daemon]\nMaxSessions=1\n");
	daemon_start((const char *const[]){ "--no-state", "--max-clients", "7", NULL });
	attach_ok(target_start());
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
	configure("[Daemon]\nMaxSessions=2\nMaxClients=5\nHeal=no\nLogLevel=debug\n[Snapshots]\nMaxSnapshots=1\n");
	reload_until("MaxSnapshots= has changed");
	ck_assert_int_eq(log_count("MaxSessions= has changed"), 1);
	ck_assert_int_eq(log_count("Heal= has changed, which takes effect when the daemon is started again"), 1);
	/* The command line's. */
	ck_assert_int_eq(log_count("MaxClients= has changed"), 0);
	attach_ok(target_start());
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
	reload_until("Heal= has changed, which takes effect");
	ck_assert_int_eq(log_count("MaxSessions= has changed"), 1);
}
END_TEST

START_TEST(a_reload_describes_allocators_for_what_is_attached_then)
{
	configure("[Allocators]\nAllocator=old old_get(size)\n");
	daemon_start_default();
	attach_ok(target_start());
	configure("[Allocators]\nAllocator=pool pool_get(size)\nAllocator=slab slab_get(size)\n[Frames]\nHide=xmalloc\n");
	reload_until("Allocator= has changed");
	ck_assert_int_eq(log_count("Hide= has changed"), 1);
	ck_assert_int_eq(log_count("takes effect when"), 0);
	ck_assert_int_eq(tracer_notes("old "), 1);
	attach_ok(target_start());
	ck_assert_int_eq(tracer_notes("old "), 1);
	ck_assert_int_eq(tracer_notes("pool "), 1);
	ck_assert_int_eq(tracer_notes("slab "), 1);
	/* With one that is wrong all stays as it is. */
	configure("[Allocators]\nAllocator=slob slob_get(size)\n[Frames]\nHide=@line=7\n");
	reload_until("the configuration is wrong, and the old one stays in force");
	attach_ok(target_start());
	ck_assert_int_eq(tracer_notes("slob "), 0);
	ck_assert_int_eq(tracer_notes("pool "), 2);
}
END_TEST

START_TEST(a_lowered_limit_takes_nothing_away_and_lets_nothing_in)
{
	pid_t first = target_start();

	configure("[Snapshots]\nMaxSnapshots=3\n");
	daemon_start((const char *const[]){ "--no-state", NULL });
	attach_ok(first);
	attach_ok(target_start());
	take(first, "a");
	take(first, "b");
	configure("[Daemon]\nMaxSessions=1\n[Snapshots]\nMaxSnapshots=1\n");
	reload_until("MaxSnapshots= has changed");
	ck_assert_uint_eq(kept_count(), 2);
	ck_assert_str_eq(state_of(first), "tracing");
	json_decref(call_fails("TakeSnapshot", pid_of(first), "LimitReached"));
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
}
END_TEST

START_TEST(a_wrong_reload_leaves_the_old_configuration_in_force)
{
	configure("[Daemon]\nMaxSessions=1\n");
	daemon_start_default();
	attach_ok(target_start());
	configure("[Daemon]\nMaxSessions=9\nMaxClients=-1\n");
	reload_until("the configuration is wrong, and the old one stays in force");
	daemon_log_must_hold("allocwatchd.conf:3: MaxClients= wants a number");
	json_decref(call_fails("Attach", pid_of(target_start()), "LimitReached"));
	configure("[Daemon]\nMaxSessions=9\n");
	reload_until("MaxSessions= has changed");
	attach_ok(target_start());
}
END_TEST

static bool has_left(void *context)
{
	(void)context;
	return daemon_log_holds("nothing is traced and nobody asks: leaving");
}

START_TEST(a_daemon_that_stays_can_be_told_to_leave_when_idle)
{
	configure("[Daemon]\nIdleExit=0\n");
	daemon_start_default();
	configure("[Daemon]\nIdleExit=1s\n");
	reload_until("IdleExit= has changed");
	varlink_client_close(test_client);
	test_client = NULL;
	wait_until(has_left, NULL, "it leaves");
	ck_assert_int_eq(daemon_wait(), 0);
}
END_TEST

/* --- a service manager --- */

static char told[8192];
static int manager;

static bool is_told(void *what)
{
	size_t len = strlen(told);
	ssize_t n = recv(manager, told + len, sizeof(told) - len - 2, MSG_DONTWAIT);

	if (n > 0)
		strcpy(told + len + n, "|");
	return strstr(told, what) != NULL;
}

START_TEST(the_service_manager_is_told_when_a_reload_begins_and_ends)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, path_of("notify"));
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	configure("[Daemon]\nMaxSessions=1\n");
	daemon_start_default();
	wait_until(is_told, (void *)"READY=1|", "READY=1");
	for (int wrong = 0; wrong < 2; wrong++) {
		char *begin;

		told[0] = '\0';
		configure(wrong ? "[Daemon\n" : "[Daemon]\nMaxSessions=2\n");
		kill(test_daemon, SIGHUP);
		wait_until(is_told, (void *)"READY=1|", "READY=1");
		begin = strstr(told, "RELOADING=1\nMONOTONIC_USEC=");
		ck_assert_ptr_nonnull(begin);
		ck_assert_uint_gt(strtoull(begin + strlen("RELOADING=1\nMONOTONIC_USEC="), NULL, 10), 0);
		ck_assert(begin < strstr(told, "READY=1"));
	}
	close(manager);
	unsetenv("NOTIFY_SOCKET");
}
END_TEST

static int check_config(const char *arguments, char *ret_text, size_t space)
{
	char command[512];
	FILE *pipe;
	size_t n;

	snprintf(command, sizeof(command), "%s --private --check-config %s 2>&1", getenv("ALLOCWATCHD") ?
		 getenv("ALLOCWATCHD") : "src/allocwatchd", arguments);
	pipe = popen(command, "r");
	n = fread(ret_text, 1, space - 1, pipe);
	ret_text[n] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

START_TEST(a_configuration_can_be_checked_before_it_is_used)
{
	char text[4096];

	configure("[Daemon]\nMaxSessions=5\nNope=1\n");
	ck_assert_int_eq(check_config("", text, sizeof(text)), 0);
	ck_assert_ptr_nonnull(strstr(text, "allocwatchd.conf:3: Nope= is ignored"));
	ck_assert_ptr_nonnull(strstr(text, "1 files, 0 errors, 1 warnings"));
	put("x.conf", "[Daemon]\nHeal=perhaps\nLogLevel=loud\n");
	ck_assert_int_eq(check_config(path_of("x.conf"), text, sizeof(text)), 1);
	ck_assert_ptr_nonnull(strstr(text, "/x.conf:2: Heal= wants yes or no, not 'perhaps'"));
	ck_assert_ptr_nonnull(strstr(text, "/x.conf:3: LogLevel= wants one of error, warning, notice, info, debug, not"));
	put("y.conf", "[Frames]\nHide=xmalloc\nHide=@object=libpool.so*\nHide=@line=7\n");
	ck_assert_int_eq(check_config(path_of("y.conf"), text, sizeof(text)), 1);
	ck_assert_ptr_nonnull(strstr(text, "/y.conf:4: Hide= wants GLOB, @function=GLOB, @object=GLOB or @file=GLOB; '@line=7'"));
	ck_assert_ptr_nonnull(strstr(text, "1 files, 1 errors, 0 warnings"));
	ck_assert_int_eq(check_config(path_of("missing"), text, sizeof(text)), 1);
}
END_TEST

/* As for a unit's ExecStart= line, which has both. */
START_TEST(what_the_command_line_sets_is_checked_with_it)
{
	char text[4096];

	configure("[Daemon]\nMaxSessions=5\nHeal=perhaps\n");
	ck_assert_int_eq(check_config("--max-sessions lots", text, sizeof(text)), 2);
	ck_assert_ptr_nonnull(strstr(text, "--max-sessions"));
	ck_assert_ptr_nonnull(strstr(text, "allocwatchd.conf:3: Heal= wants yes or no"));
	configure("[Daemon]\nMaxSessions=5\n");
	ck_assert_int_eq(check_config("--max-sessions lots", text, sizeof(text)), 2);
	ck_assert_int_eq(check_config("--max-sessions 7", text, sizeof(text)), 0);
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "configuration");

	tcase_add_test(t, files_say_what_options_say_and_options_win);
	tcase_add_test(t, drop_ins_come_after_the_file_and_an_empty_value_is_the_default);
	tcase_add_test(t, one_file_can_take_the_place_of_all);
	tcase_add_test(t, an_engine_in_the_file_serves_who_asks_for_none);
	tcase_add_test(t, how_many_read_a_ring_is_in_the_file_for_who_does_not_say);
	tcase_add_test(t, a_wait_in_the_file_serves_who_does_not_say);
	tcase_add_test(t, whether_ptrace_is_held_is_in_the_file_for_who_does_not_say);
	tcase_add_test(t, a_rate_in_the_file_serves_who_does_not_say);
	tcase_add_test(t, a_wrong_file_is_named_and_no_daemon_starts_with_it);
	tcase_add_test(t, what_is_not_known_is_a_warning);
	tcase_add_test(t, a_reload_changes_what_can_change_and_says_what_cannot);
	tcase_add_test(t, a_reload_describes_allocators_for_what_is_attached_then);
	tcase_add_test(t, a_lowered_limit_takes_nothing_away_and_lets_nothing_in);
	tcase_add_test(t, a_wrong_reload_leaves_the_old_configuration_in_force);
	tcase_add_test(t, a_daemon_that_stays_can_be_told_to_leave_when_idle);
	tcase_add_test(t, the_service_manager_is_told_when_a_reload_begins_and_ends);
	tcase_add_test(t, a_configuration_can_be_checked_before_it_is_used);
	tcase_add_test(t, what_the_command_line_sets_is_checked_with_it);
}

int main(void)
{
	return fixture_run("daemon_config", add_tests);
}
