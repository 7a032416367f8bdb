/* Services as systemd tells of them, over a bus on which this test is systemd: one that fails now and then. */
#include "daemon/units.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEADLINE_US (60ULL * 1000 * 1000)
#define BUSY "org.freedesktop.DBus.Error.NoReply"

static char folder[] = "/tmp/check_services.XXXXXX";
static char path[64];
static sd_event *event;
static int listener;
static sd_bus *bus;
static struct units *units;

/* What fails, how often still, and with which error. */
static struct {
	const char *unit, *question, *error;
	int times;
	int asked;                      /* for `unit` */
} failing;
static int busy_times;

static struct {
	int pid, looked_up;
	bool problem;
} told;

/* --- systemd --- */

static bool fails(const char *unit, const char *question)
{
	if (!failing.unit || strcmp(unit, failing.unit) != 0 || strcmp(question, failing.question) != 0)
		return false;
	failing.asked++;
	return failing.times-- > 0;
}

static int answer_property(sd_bus_message *call, const char *object)
{
	const char *interface, *property;

	ck_assert_int_gt(sd_bus_message_read(call, "ss", &interface, &property), 0);
	if (fails(object + 1, property))
		return sd_bus_reply_method_errorf(call, failing.error, "%s", "systemd is busy");
	if (strcmp(property, "LoadState") == 0)
		return sd_bus_reply_method_return(call, "v", "s", "loaded");
	return sd_bus_reply_method_return(call, "v", "u", (uint32_t)4242);
}

static int answer_unit(sd_bus_message *call)
{
	char object[64];
	const char *name;

	ck_assert_int_gt(sd_bus_message_read(call, "s", &name), 0);
	snprintf(object, sizeof(object), "/%.*s", (int)strcspn(name, "."), name);
	if (fails(object + 1, "LoadUnit"))
		return sd_bus_reply_method_errorf(call, failing.error, "%s", "systemd is busy");
	if (strcmp(object, "/always-busy") == 0) {
		busy_times++;
		return sd_bus_reply_method_errorf(call, BUSY, "%s", "systemd is busy");
	}
	return sd_bus_reply_method_return(call, "o", object);
}

static int on_call(sd_bus_message *message, void *context, sd_bus_error *ret_error)
{
	(void)context;
	(void)ret_error;
	if (sd_bus_message_is_method_call(message, NULL, "Hello"))
		return sd_bus_reply_method_return(message, "s", ":1.7");
	if (sd_bus_message_is_method_call(message, NULL, "LoadUnit"))
		return answer_unit(message);
	if (sd_bus_message_is_method_call(message, NULL, "Get"))
		return answer_property(message, sd_bus_message_get_path(message));
	return sd_bus_reply_method_return(message, NULL);
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *context)
{
	int peer = accept(fd, NULL, NULL);
	sd_id128_t id;

	(void)source;
	(void)events;
	(void)context;
	ck_assert_int_ge(peer, 0);
	ck_assert_int_eq(sd_id128_randomize(&id), 0);
	ck_assert_int_ge(sd_bus_new(&bus), 0);
	ck_assert_int_ge(sd_bus_set_fd(bus, peer, peer), 0);
	ck_assert_int_ge(sd_bus_set_server(bus, 1, id), 0);
	ck_assert_int_ge(sd_bus_set_anonymous(bus, 1), 0);
	ck_assert_int_ge(sd_bus_add_filter(bus, NULL, on_call, NULL), 0);
	ck_assert_int_ge(sd_bus_start(bus), 0);
	ck_assert_int_ge(sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL), 0);
	return 0;
}

static void start_bus(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char variable[96];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/bus", folder);
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_ge(sd_event_add_io(event, NULL, listener, 1 /* EPOLLIN */, on_connection, NULL), 0);
	snprintf(variable, sizeof(variable), "unix:path=%s", path);
	setenv("DBUS_SYSTEM_BUS_ADDRESS", variable, 1);
}

/* --- the daemon --- */

static void on_main_pid(void *context, const char *unit, int pid)
{
	(void)context;
	if (failing.unit && strncmp(unit, failing.unit, strlen(failing.unit)) == 0)
		told.pid = pid;
}

static void on_looked_up(void *context, const char *unit, const char *problem)
{
	(void)context;
	(void)unit;
	told.looked_up++;
	told.problem |= problem != NULL;
}

static void on_bus(void *context, sd_bus *of_systemd, const char *problem)
{
	(void)context;
	(void)of_systemd;
	ck_assert_msg(!problem, "%s", problem);
}

static void setup(void)
{
	const struct units_owner owner = { NULL, on_main_pid, on_looked_up, on_bus };

	ck_assert_int_ge(sd_event_new(&event), 0);
	start_bus();
	ck_assert_int_eq(units_new(event, &owner, &units), 0);
}

static void teardown(void)
{
	units_free(units);
	if (bus)
		sd_bus_detach_event(bus);
	bus = sd_bus_close_unref(bus);
	close(listener);
	unlink(path);
	rmdir(folder);
	sd_event_unref(event);
}

static void run_until(bool (*is_done)(void))
{
	uint64_t begin, now;

	sd_event_now(event, CLOCK_MONOTONIC, &begin);
	while (!is_done()) {
		ck_assert_int_ge(sd_event_run(event, 100 * 1000), 0);
		sd_event_now(event, CLOCK_MONOTONIC, &now);
		ck_assert_msg(now - begin < DEADLINE_US, "nothing more comes");
	}
}

static bool knows_pid(void)
{
	return told.pid == 4242;
}

static const char *const questions[] = { "LoadUnit", "LoadState", "MainPID" };

START_TEST(a_question_that_failed_is_asked_again)
{
	failing.unit = "busy";
	failing.question = questions[_i];
	failing.error = BUSY;
	failing.times = 2;
	ck_assert_int_eq(units_follow(units, "busy.service"), 0);
	run_until(knows_pid);
	ck_assert_int_eq(failing.asked, 3);
	/* The first answer is whoever asked's; that nothing could be said of it is said once. */
	ck_assert_int_eq(told.looked_up, 1);
	ck_assert(told.problem == (_i < 2));
}
END_TEST

static bool was_busy_twice(void)
{
	return busy_times >= 3;
}

/* Meanwhile another one's question, which fails after this one's, is asked again twice. */
START_TEST(what_systemd_calls_invalid_is_not_asked_again)
{
	failing.unit = "wrong@";
	failing.question = "LoadUnit";
	failing.error = SD_BUS_ERROR_INVALID_ARGS;
	failing.times = 1;
	ck_assert_int_eq(units_follow(units, "always-busy.service"), 0);
	ck_assert_int_eq(units_follow(units, "wrong@.service"), 0);
	run_until(was_busy_twice);
	ck_assert_int_eq(failing.asked, 1);
	ck_assert(told.problem);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("services");
	TCase *tcase = tcase_create("services");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, a_question_that_failed_is_asked_again, 0, 3);
	tcase_add_test(tcase, what_systemd_calls_invalid_is_not_asked_again);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
