/* What becomes of a cgroup's files that are gone: alarms.c alone, with files, a session and rules of the test's. */
#include "base/clock.h"
#include "base/fd.h"
#include "daemon/daemon.h"
#include "daemon/memory_files.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEADLINE_NS (30 * NSEC_PER_SEC)

static sd_event *event;
static struct daemon test_daemon;
static struct alarms *alarms;
static bool gone, told, moved;
static int last_pressure, last_events;
static unsigned opened, read_after_the_move;

/* --- what alarms.c asks for --- */

static struct session *const session = (struct session *)&gone;

void memory_files_open(struct memory_files *files, int pid, const char *cgroups, uint64_t stalled_us)
{
	(void)cgroups;
	(void)stalled_us;
	*files = (struct memory_files){ .pid = pid, .events = eventfd(0, EFD_CLOEXEC), .failures = -1, .swap_failures = -1,
					.control = -1, .pressure = eventfd(0, EFD_CLOEXEC), .triggers = true };
	last_pressure = files->pressure;
	last_events = files->events;
	opened++;
	moved = false;
}

bool memory_files_have_moved(const struct memory_files *files)
{
	(void)files;
	return moved;
}

void memory_files_close(struct memory_files *files)
{
	fd_close(&files->events);
	fd_close(&files->pressure);
}

void memory_files_read(struct memory_files *files, struct alarm_figures *ret)
{
	(void)ret;
	if (gone)
		memory_files_close(files);
	if (opened == 2)
		read_after_the_move++;
}

struct session *sessions_find(const struct sessions *sessions, int pid)
{
	(void)sessions;
	(void)pid;
	return session;
}

int session_pid(const struct session *s)
{
	(void)s;
	return 4321;
}

uint64_t session_start_time(const struct session *s)
{
	(void)s;
	return 77;
}

enum session_state session_state(const struct session *s)
{
	(void)s;
	return SESSION_TRACING;
}

bool session_may_log(struct session *s)
{
	(void)s;
	return false;
}

const struct history_rule *watches_rule_of(const struct watches *watches, int pid, uint64_t start_time)
{
	(void)watches;
	(void)pid;
	(void)start_time;
	return NULL;
}

void watches_take(struct watches *watches, struct session *s, const char *who, const char *name)
{
	(void)watches;
	(void)s;
	(void)who;
	(void)name;
}

/* --- the tests --- */

static void setup(void)
{
	const struct alarm_options options = { .slope_s = 60, .least_s = 1, .events = true, .stalled_us = 1000 };

	ck_assert_int_eq(sd_event_new(&event), 0);
	test_daemon.event = event;
	ck_assert_int_eq(alarms_new(&test_daemon, &options, &alarms), 0);
}

static void teardown(void)
{
	alarms_free(alarms);
	sd_event_unref(event);
}

static int on_other(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	(void)source;
	(void)fd;
	(void)revents;
	(void)context;
	told = true;
	return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static void run_until(bool (*done)(void))
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;

	while (!done()) {
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		ck_assert(!clock_passed(deadline));
	}
}

static bool pressure_is_closed(void)
{
	return fcntl(last_pressure, F_GETFD) < 0;
}

static bool is_told(void)
{
	return told;
}

START_TEST(another_descriptor_with_the_number_of_one_that_was_closed_is_left_alone)
{
	sd_event_source *source;
	int fd;

	alarms_attached(alarms, session);
	gone = true;
	run_until(pressure_is_closed);
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd != last_pressure) {
		ck_assert_int_eq(dup2(fd, last_pressure), last_pressure);
		close(fd);
	}
	ck_assert_int_ge(sd_event_add_io(event, &source, last_pressure, EPOLLIN, on_other, NULL), 0);
	alarms_ended(alarms, session);
	ck_assert_int_eq(eventfd_write(last_pressure, 1), 0);
	run_until(is_told);
	sd_event_source_unref(source);
	close(last_pressure);
}
END_TEST

static bool is_opened_again(void)
{
	return opened == 2;
}

static bool is_heard(void)
{
	return read_after_the_move > 2;
}

START_TEST(a_process_that_moves_to_another_cgroup_is_looked_at_there)
{
	int before;

	alarms_attached(alarms, session);
	before = last_events;
	moved = true;
	run_until(is_opened_again);
	ck_assert(last_events != before || fcntl(before, F_GETFD) >= 0);
	run_until(is_heard);
	ck_assert_uint_eq(opened, 2);
	alarms_ended(alarms, session);
	ck_assert_int_eq(fcntl(last_events, F_GETFD), -1);
	ck_assert_int_eq(fcntl(last_pressure, F_GETFD), -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alarm files");
	TCase *t = tcase_create("alarm files");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, another_descriptor_with_the_number_of_one_that_was_closed_is_left_alone);
	tcase_add_test(t, a_process_that_moves_to_another_cgroup_is_looked_at_there);
	tcase_set_timeout(t, 60);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
