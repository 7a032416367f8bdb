/* Names that hang on debug information from elsewhere: they are waited for, for a while, and nobody else is kept waiting. */
#include "base/clock.h"
#include "base/fd.h"
#include "symbol_fixture.h"
#include "symbolize_fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUILD_ID "1234567890abcdef1234567890abcdef12345678"

static const struct file_user user_one = { .owner = 1001, .identity = { 1, 1001, 1001, 0, { 0 } } };
static const struct file_user user_other = { .owner = 1002, .identity = { 1, 1002, 1002, 0, { 0 } } };
static const uint8_t build_id[] = { 0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xef, 0x12, 0x34,
				    0x56, 0x78, 0x90, 0xab, 0xcd, 0xef, 0x12, 0x34, 0x56, 0x78 };

/* What the server would say, and how often it was asked; and of the file that dwz has made. */
static int answer_fd, answer_error, shared_fd, shared_error;
static unsigned times_asked, times_asked_shared;
static uint32_t last_uid;

static int get(void *context, const struct file_user *user, const uint8_t *id, size_t len)
{
	(void)context;
	ck_assert_uint_eq(len, sizeof(build_id));
	last_uid = user->identity.uid;
	if (memcmp(id, build_id, sizeof(build_id)) != 0) {
		ck_assert_int_ge(shared_fd, 0);
		times_asked_shared++;
		return shared_error < 0 ? shared_error : shared_fd;
	}
	times_asked++;
	return answer_error < 0 ? answer_error : answer_fd;
}

static void set_up_stripped(void)
{
	const struct symbolize_debug debug = { NULL, get };

	set_up();
	fixture_run("gcc -O2 -g -Wl,--build-id=0x" BUILD_ID " -o levels $DATA/levels.c && "
		    "objcopy --only-keep-debug levels levels.debug && cp levels stripped && strip -g stripped");
	start(SYMBOLIZER);
	symbolize_set_debug(symbolize, &debug);
	answer_fd = open("levels.debug", O_RDONLY | O_CLOEXEC);
	shared_fd = -1;
	answer_error = shared_error = times_asked = times_asked_shared = 0;
}

static void tear_down_stripped(void)
{
	tear_down();
	fd_close(&answer_fd);
	fd_close(&shared_fd);
}

static void say(int error)
{
	answer_error = error;
	symbolize_debug_arrived(symbolize);
}

/* Asks for every byte of the function, as this object's file with it says where it is. */
static void begin_as_in(struct input *input, const char *object, const struct file_user *user)
{
	uint64_t size, address = fixture_address(object, "three_levels", &size);
	uint32_t module;

	input_init(input);
	input->user = user;
	module = input_file(input, "stripped");
	input->snapshot->modules.items[module].build_id_len = sizeof(build_id);
	memcpy(input->snapshot->modules.items[module].build_id, build_id, sizeof(build_id));
	for (uint64_t i = 0; i < size; i++)
		input_frame(input, module, address + i, FRAME_EXACT);
	ask(input);
}

static void begin(struct input *input, const struct file_user *user)
{
	begin_as_in(input, "stripped", user);
}

/* By debug information alone. */
static size_t lines_of(const struct input *input)
{
	size_t count = 0;

	for (size_t i = 0; i < input->snapshot->locations.count; i++)
		count += input->snapshot->locations.items[i].line > 0;
	return count;
}

static void run_until_asked(const unsigned *times)
{
	uint64_t deadline = clock_in_ms(60000);

	while (*times == 0) {
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		ck_assert(!clock_passed(deadline));
	}
}

/* What is to be done is done, and it still waits. */
static void require_waiting(const struct input *input)
{
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_ge(sd_event_run(event, 1000), 0);
	ck_assert_uint_eq(input->done, 0);
}

static void set_patience(uint64_t debug_ms)
{
	const struct symbolize_times times = { 60000, 60000, 60000, 60000, 60000, debug_ms, 60000, 60000 };

	symbolize_set_times(symbolize, &times);
}

START_TEST(it_gives_lines_and_inlined_calls)
{
	struct input input;

	begin(&input, &user_one);
	await(&input);
	ck_assert_uint_gt(lines_of(&input), 0);
	ck_assert(input.snapshot->symbolized);
	ck_assert_uint_eq(last_uid, 1001);
	input_fini(&input);
}
END_TEST

START_TEST(while_it_is_awaited_all_others_go_on)
{
	struct input waiting, same_user, other_user;

	answer_error = -EINPROGRESS;
	begin(&waiting, &user_one);
	run_until_asked(&times_asked);
	require_waiting(&waiting);
	input_init(&same_user);
	same_user.user = &user_one;
	input_frame(&same_user, input_file(&same_user, "other"), fixture_address("other", "main", NULL), FRAME_EXACT);
	ask(&same_user);
	await(&same_user);
	ck_assert_uint_gt(lines_of(&same_user), 0);
	answer_error = 0;
	begin(&other_user, &user_other);
	await(&other_user);
	ck_assert_uint_gt(lines_of(&other_user), 0);
	ck_assert_uint_eq(waiting.done, 0);
	say(0);
	await(&waiting);
	ck_assert_uint_gt(lines_of(&waiting), 0);
	ck_assert(waiting.snapshot->symbolized);
	input_fini(&waiting);
	input_fini(&same_user);
	input_fini(&other_user);
}
END_TEST

START_TEST(news_of_another_file_do_not_end_the_wait)
{
	struct input input;

	answer_error = -EINPROGRESS;
	begin(&input, &nobody);
	run_until_asked(&times_asked);
	say(-EINPROGRESS);
	require_waiting(&input);
	say(0);
	await(&input);
	ck_assert_uint_gt(lines_of(&input), 0);
	input_fini(&input);
}
END_TEST

START_TEST(what_does_not_come_in_time_is_said_to_lack_and_asked_for_again)
{
	struct input input, again;

	set_patience(100);
	answer_error = -EINPROGRESS;
	begin(&input, &nobody);
	await(&input);
	ck_assert_int_eq(input.result, 0);
	ck_assert_uint_eq(lines_of(&input), 0);
	ck_assert_uint_gt(named_count(&input), 0);         /* by symbols */
	ck_assert(!input.snapshot->symbolized);
	say(0);
	begin(&again, &nobody);
	await(&again);
	ck_assert_uint_gt(lines_of(&again), 0);
	ck_assert(again.snapshot->symbolized);
	input_fini(&input);
	input_fini(&again);
}
END_TEST

START_TEST(what_no_server_knows_is_not_waited_for_and_remembered)
{
	struct input input, again;
	unsigned asked;

	answer_error = -ENOENT;
	begin(&input, &nobody);
	await(&input);
	ck_assert_uint_eq(lines_of(&input), 0);
	ck_assert_uint_gt(named_count(&input), 0);
	ck_assert(input.snapshot->symbolized);
	asked = times_asked;
	begin(&again, &nobody);
	await(&again);
	ck_assert_uint_eq(named_count(&again), named_count(&input));
	ck_assert_uint_eq(times_asked, asked);
	input_fini(&input);
	input_fini(&again);
}
END_TEST

START_TEST(what_has_another_build_id_is_not_used)
{
	struct input input;

	fd_close(&answer_fd);
	answer_fd = open(_i == 0 ? "other" : "/etc/passwd", O_RDONLY | O_CLOEXEC);
	begin(&input, &nobody);
	await(&input);
	ck_assert_uint_eq(lines_of(&input), 0);
	ck_assert_uint_gt(named_count(&input), 0);
	input_fini(&input);
}
END_TEST

START_TEST(nobody_is_asked_about_what_has_its_own)
{
	struct input input;

	input_init(&input);
	input_frame(&input, input_file(&input, "levels"), fixture_address("levels", "main", NULL), FRAME_EXACT);
	ask(&input);
	await(&input);
	ck_assert_uint_gt(lines_of(&input), 0);
	ck_assert_uint_eq(times_asked, 0);
	input_fini(&input);
}
END_TEST

/* --- what dwz has moved to another file --- */

/* The debug file lacks what it shares with that of another program. */
static void share(void)
{
	fixture_run("gcc -O2 -g -gdwarf-4 -Wl,--build-id=0x" BUILD_ID " -o levels $DATA/levels.c && "
		    "gcc -O2 -g -gdwarf-4 -Wl,--build-id=sha1 -Dadd=add2 -o second $DATA/levels.c && "
		    "objcopy --only-keep-debug levels levels.debug && objcopy --only-keep-debug second second.debug && "
		    "cp levels stripped && strip -s stripped && dwz -m shared -M /nowhere/shared levels.debug second.debug");
	fd_close(&answer_fd);
	answer_fd = open("levels.debug", O_RDONLY | O_CLOEXEC);
	shared_fd = open("shared", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(shared_fd, 0);
}

/* Of every level of every byte. */
static void begin_shared(struct input *input)
{
	begin_as_in(input, "levels", &user_one);
}

static size_t names_of(const struct input *input)
{
	size_t count = 0;

	for (size_t i = 0; i < input->snapshot->locations.count; i++)
		count += *strtab_get(input->snapshot->strings, input->snapshot->locations.items[i].function) != '\0';
	return count;
}

START_TEST(what_dwz_has_moved_is_asked_for_after_it)
{
	struct input input;

	share();
	begin_shared(&input);
	await(&input);
	ck_assert_uint_gt(times_asked, 0);
	ck_assert_uint_gt(times_asked_shared, 0);
	ck_assert_uint_gt(names_of(&input), 0);
	ck_assert_uint_eq(names_of(&input), input.snapshot->locations.count);
	ck_assert(input.snapshot->symbolized);
	ck_assert_uint_eq(last_uid, 1001);
	input_fini(&input);
}
END_TEST

START_TEST(what_dwz_has_moved_is_awaited_as_long)
{
	struct input input, again;

	share();
	shared_error = -EINPROGRESS;
	begin_shared(&input);
	run_until_asked(&times_asked_shared);
	require_waiting(&input);
	/* Not for what came before it. */
	symbolize_debug_arrived(symbolize);
	require_waiting(&input);
	shared_error = 0;
	symbolize_debug_arrived(symbolize);
	await(&input);
	ck_assert_uint_eq(names_of(&input), input.snapshot->locations.count);
	ck_assert(input.snapshot->symbolized);
	/* What is missing is said. */
	fixture_run("cp stripped copy && mv copy stripped");
	shared_error = -ETIMEDOUT;
	begin_shared(&again);
	await(&again);
	ck_assert_uint_lt(names_of(&again), again.snapshot->locations.count);
	ck_assert_uint_gt(lines_of(&again), 0);
	ck_assert(!again.snapshot->symbolized);
	input_fini(&input);
	input_fini(&again);
}
END_TEST

START_TEST(another_file_in_place_of_what_dwz_has_moved_is_not_used)
{
	struct input input;

	share();
	fd_close(&shared_fd);
	shared_fd = open("other", O_RDONLY | O_CLOEXEC);
	begin_shared(&input);
	await(&input);
	ck_assert_uint_gt(times_asked_shared, 0);
	ck_assert_uint_lt(names_of(&input), input.snapshot->locations.count);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	input_fini(&input);
}
END_TEST

START_TEST(it_may_be_freed_while_a_snapshot_waits)
{
	struct input input;

	answer_error = -EINPROGRESS;
	begin(&input, &nobody);
	run_until_asked(&times_asked);
	require_waiting(&input);
	symbolize_free(symbolize);
	symbolize = NULL;
	ck_assert_uint_eq(input.done, 0);
	input_fini(&input);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbolize_debug");
	TCase *tcase = tcase_create("debug");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, set_up_stripped, tear_down_stripped);
	tcase_add_test(tcase, it_gives_lines_and_inlined_calls);
	tcase_add_test(tcase, while_it_is_awaited_all_others_go_on);
	tcase_add_test(tcase, news_of_another_file_do_not_end_the_wait);
	tcase_add_test(tcase, what_does_not_come_in_time_is_said_to_lack_and_asked_for_again);
	tcase_add_test(tcase, what_no_server_knows_is_not_waited_for_and_remembered);
	tcase_add_loop_test(tcase, what_has_another_build_id_is_not_used, 0, 2);
	tcase_add_test(tcase, nobody_is_asked_about_what_has_its_own);
	tcase_add_test(tcase, what_dwz_has_moved_is_asked_for_after_it);
	tcase_add_test(tcase, what_dwz_has_moved_is_awaited_as_long);
	tcase_add_test(tcase, another_file_in_place_of_what_dwz_has_moved_is_not_used);
	tcase_add_test(tcase, it_may_be_freed_while_a_snapshot_waits);
	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
