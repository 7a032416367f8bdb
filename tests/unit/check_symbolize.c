/* The daemon's side of the symbolizer: names get into snapshots, and whatever the process does, the
 * daemon is told in the end and goes on. */
#define _GNU_SOURCE

#include "base/clock.h"
#include "base/hash.h"
#include "base/proc.h"
#include "daemon/symbolize.h"
#include "daemon/symbolize_cache.h"
#include "daemon/symbolize_queue.h"
#include "require.h"
#include "symbol_fixture.h"
#include "symbolize_fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS (60 * NSEC_PER_SEC)
#define LARGE "/usr/bin/python3.11d"

static const struct file_user user_one = { .owner = 1001, .identity = { 1, 1001, 1001, 0, { 0 } } };
static const struct file_user user_other = { .owner = 1002, .identity = { 1, 1002, 1002, 0, { 0 } } };

static void start_fake(const char *way)
{
	char program[4096];

	fixture_run("ln -sf %s %s", FAKE_SYMBOLIZER, way);
	ck_assert_ptr_nonnull(realpath(".", program));
	snprintf(program + strlen(program), sizeof(program) - strlen(program), "/%s", way);
	start(program);
	set_deadlines(300, 1000);
}

/* Three frames of `levels`, one of them in `take`. */
static void levels_input(struct input *input, uint32_t *ret_take)
{
	uint32_t module;

	input_init(input);
	module = input_file(input, "levels");
	*ret_take = input_frame(input, module, fixture_address("levels", "take", NULL) + 1, FRAME_CALL);
	input_frame(input, module, fixture_address("levels", "main", NULL), FRAME_EXACT);
	input_frame(input, module, fixture_address("levels", "three_levels", NULL), FRAME_EXACT);
}

/* --- generated code --- */

static struct generated own;
static unsigned places_asked;
static char last_place[4096];

/* It has its files in its own folder here. */
static int open_place(sd_event_source *source, void *context)
{
	(void)context;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	symbolize_opened(symbolize, strstr(last_place, ".map") ? open("own.map", O_RDONLY | O_CLOEXEC) : -ENOENT);
	return 0;
}

static void on_place(void *context, const struct file_user *user, const char *path, bool names)
{
	sd_event_source *source;

	(void)context;
	(void)user;
	ck_assert(names);
	places_asked++;
	snprintf(last_place, sizeof(last_place), "%s", path);
	ck_assert_int_ge(sd_event_add_defer(event, &source, open_place, NULL), 0);
	sd_event_source_set_floating(source, 1);
	sd_event_source_unref(source);
}

static void on_no_cancel(void *context)
{
	(void)context;
}

static void start_with_map(const char *text)
{
	const struct symbolize_opener opener = { NULL, on_place, on_no_cancel };
	uint64_t ticks;

	start(SYMBOLIZER);
	symbolize_set_opener(symbolize, &opener);
	places_asked = 0;
	fixture_run("printf '%s' > own.map", text);
	ck_assert_int_eq(proc_start_time(getpid(), &ticks), 0);
	generated_init(&own);
	generated_look(&own, getpid(), ticks);
	ck_assert_int_eq(own.pid, getpid());
}

static void ask_generated(struct input *input)
{
	input->done = 0;
	ck_assert_int_eq(symbolize_snapshot(symbolize, input->snapshot, input->fds, input->snapshot->modules.count,
					    &nobody, &own, on_done, input), 0);
	await(input);
	ck_assert_int_eq(input->result, 0);
}

START_TEST(what_is_in_no_module_has_the_names_that_the_process_tells)
{
	struct input input, again;
	uint32_t call, other, take;
	char expected[64];

	start_with_map("7000 100 made\\n8000 10 elsewhere\\n");
	levels_input(&input, &take);
	call = input_frame(&input, MODULE_NONE, 0x7100, FRAME_CALL);
	other = input_frame(&input, MODULE_NONE, 0x9000, FRAME_EXACT);
	ask_generated(&input);
	snprintf(expected, sizeof(expected), "/proc/%d/root/tmp/perf-%d.map", getpid(), own.inner_pid);
	ck_assert_str_eq(last_place, expected);
	ck_assert_uint_eq(places_asked, 1);
	ck_assert_str_eq(name_of(&input, call), "made");
	ck_assert_str_eq(name_of(&input, other), "");
	ck_assert_str_eq(name_of(&input, take), "take");
	/* The next snapshot has what was told by then, which may be that there is something else now. */
	fixture_run("echo 7000 100 later >> own.map");
	input_init(&again);
	call = input_frame(&again, MODULE_NONE, 0x7100, FRAME_CALL);
	ask_generated(&again);
	ck_assert_str_eq(name_of(&again, call), "later");
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	input_fini(&input);
	input_fini(&again);
	generated_fini(&own);
}
END_TEST

START_TEST(nothing_is_looked_for_where_all_is_in_modules)
{
	struct input input;
	uint32_t take;

	start_with_map("7000 100 made\\n");
	levels_input(&input, &take);
	ask_generated(&input);
	ck_assert_uint_eq(places_asked, 0);
	ck_assert_str_eq(name_of(&input, take), "take");
	input_fini(&input);
	generated_fini(&own);
}
END_TEST

/* Its folder is gone with it, and nobody else may have the file. */
START_TEST(the_file_that_was_open_serves_when_the_process_is_gone)
{
	struct input input;
	uint32_t call;

	start_with_map("7000 100 made\\n");
	ck_assert(generated_take(&own, GENERATED_MAP, open("own.map", O_RDONLY | O_CLOEXEC)));
	fixture_run("rm own.map");
	input_init(&input);
	call = input_frame(&input, MODULE_NONE, 0x7010, FRAME_CALL);
	ask_generated(&input);
	ck_assert_uint_ge(places_asked, 1);
	ck_assert_str_eq(name_of(&input, call), "made");
	input_fini(&input);
	generated_fini(&own);
}
END_TEST

START_TEST(a_file_that_another_process_has_left_is_not_believed)
{
	start_with_map("7000 100 made\\n");
	fixture_run("touch -d '@%llu' own.map", (unsigned long long)(own.started_ns / NSEC_PER_SEC) - 10);
	ck_assert(!generated_take(&own, GENERATED_MAP, open("own.map", O_RDONLY | O_CLOEXEC)));
	fixture_run("touch own.map");
	ck_assert(generated_take(&own, GENERATED_MAP, open("own.map", O_RDONLY | O_CLOEXEC)));
	own.uid++;
	ck_assert(getuid() == 0 || !generated_take(&own, GENERATED_MAP, open("own.map", O_RDONLY | O_CLOEXEC)));
	ck_assert(!generated_take(&own, GENERATED_MAP, open(".", O_RDONLY | O_CLOEXEC)));
	ck_assert_int_ge(own.fds[GENERATED_MAP], 0);
	generated_fini(&own);
}
END_TEST

START_TEST(a_jitdump_is_where_it_is_mapped)
{
	char path[4096], mapped[64];
	enum generated_kind kind;

	start_with_map("");
	ck_assert_int_eq(generated_place(&own, 0, path, sizeof(path), &kind), -ENOENT);
	generated_note_mapping(&own, "/usr/lib/libc.so.6");
	generated_note_mapping(&own, "/a/jit-1.dump");
	ck_assert_ptr_null(own.dump_path);
	snprintf(mapped, sizeof(mapped), "/a/b/jit-%d.dump", own.inner_pid);
	generated_note_mapping(&own, mapped);
	ck_assert_int_eq(generated_place(&own, 0, path, sizeof(path), &kind), 0);
	ck_assert_int_eq(kind, GENERATED_DUMP);
	ck_assert_ptr_nonnull(strstr(path, mapped));
	/* In another PID namespace its number says nothing here. */
	own.inner_pid = 1;
	ck_assert_int_eq(generated_place(&own, 2, path, sizeof(path), &kind), 0);
	ck_assert_ptr_nonnull(strstr(path, "/root/tmp/perf-1.map"));
	ck_assert_int_eq(generated_place(&own, 3, path, sizeof(path), &kind), -ENOENT);
	ck_assert_int_eq(generated_place(&own, 4, path, sizeof(path), &kind), -ENOSPC);
	generated_fini(&own);
}
END_TEST

/* --- what it is for --- */

START_TEST(frames_get_names_lines_and_inlined_calls)
{
	struct snapshot_location *at;
	struct input input;
	uint64_t address, size;
	uint32_t take, call = 0;

	start(SYMBOLIZER);
	levels_input(&input, &take);
	address = fixture_address("levels", "three_levels", &size);
	for (uint64_t i = 0; i < size; i++)
		call = input_frame(&input, 0, address + i, FRAME_EXACT);
	input_frame(&input, MODULE_NONE, 4242, FRAME_CALL);
	input_frame(&input, MODULE_NONE, TRUNCATED_NO_CFI, FRAME_TRUNCATED);
	ask(&input);
	await(&input);
	ck_assert_int_eq(input.result, 0);
	ck_assert(input.snapshot->symbolized);
	ck_assert_str_eq(name_of(&input, take), "take");
	at = &input.snapshot->locations.items[input.snapshot->frames.items[take].first_location];
	ck_assert_str_eq(strtab_get(input.snapshot->strings, at->file), SYMBOL_DATA "/levels.c");
	ck_assert_uint_eq(at->line, 10);
	ck_assert_uint_eq(at->function_offset, 1);
	ck_assert_str_eq(name_of(&input, call), "three_levels");
	ck_assert_uint_eq(named_count(&input), 3 + size);
	ck_assert_uint_gt(input.snapshot->locations.count, 3 + size);
	for (size_t i = 1; i < input.snapshot->frames.count; i++) {
		const struct snapshot_frame *frame = &input.snapshot->frames.items[i];

		for (uint32_t j = 0; j < frame->location_count; j++)
			ck_assert_int_eq(
				input.snapshot->locations.items[frame->first_location + j].inlined,
				j + 1 < frame->location_count);
	}
	input_fini(&input);
}
END_TEST

/* --- files that belong to a module --- */

static struct {
	unsigned asked, cancelled;
	char path[4096];
	uint32_t may_read;             /* the uid of the only user who may */
	bool hangs, late;
	uint32_t last_uid;
} files;

static int answer_late(sd_event_source *source, void *context)
{
	(void)context;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	symbolize_opened(symbolize, files.hangs ? -ETIMEDOUT : open(files.path, O_RDONLY | O_CLOEXEC));
	return 0;
}

static void on_open(void *context, const struct file_user *user, const char *path, bool names)
{
	sd_event_source *source;

	(void)context;
	ck_assert(!names);
	files.asked++;
	files.last_uid = user->identity.uid;
	snprintf(files.path, sizeof(files.path), "%s", user->identity.uid == files.may_read ? path : "/nowhere");
	if (files.late)
		return;
	ck_assert_int_ge(sd_event_add_defer(event, &source, answer_late, NULL), 0);
	sd_event_source_set_floating(source, 1);
	sd_event_source_unref(source);
}

static void on_cancel(void *context)
{
	(void)context;
	files.cancelled++;
}

static void start_with_files(void)
{
	const struct symbolize_opener opener = { NULL, on_open, on_cancel };

	memset(&files, 0, sizeof(files));
	fixture_run("gcc -O2 -g -gsplit-dwarf -c -o levels.o $DATA/levels.c && gcc -o levels levels.o && test -e levels.dwo");
	start(SYMBOLIZER);
	symbolize_set_opener(symbolize, &opener);
}

/* Every byte of a function with inlined calls, which only the .dwo file knows. */
static void split_input(struct input *input, const struct file_user *user)
{
	uint64_t size, address = fixture_address("levels", "three_levels", &size);
	uint32_t module;

	input_init(input);
	input->user = user;
	module = input_file(input, "levels");
	for (uint64_t i = 0; i < size; i++)
		input_frame(input, module, address + i, FRAME_EXACT);
}

static size_t inlined_count(struct input *input)
{
	size_t count = 0;

	ask(input);
	await(input);
	ck_assert_int_eq(input->result, 0);
	ck_assert_uint_gt(named_count(input), 0);
	for (size_t i = 0; i < input->snapshot->locations.count; i++)
		count += input->snapshot->locations.items[i].inlined;
	return count;
}

START_TEST(what_belongs_to_a_file_is_asked_for_with_its_users_rights)
{
	struct input of_one, of_other, again;
	pid_t process;
	unsigned asked;

	start_with_files();
	files.may_read = 1001;
	split_input(&of_one, &user_one);
	ck_assert_uint_gt(inlined_count(&of_one), 0);
	ck_assert_uint_gt(files.asked, 0);
	ck_assert_uint_eq(files.last_uid, 1001);
	ck_assert_ptr_nonnull(strstr(files.path, "levels.dwo"));
	process = symbolize_pid(symbolize);
	asked = files.asked;
	/* Another one gets no answer that the first one's rights have made, and no process that has read for them. */
	split_input(&of_other, &user_other);
	ck_assert_uint_eq(inlined_count(&of_other), 0);
	ck_assert_uint_gt(files.asked, asked);
	ck_assert_uint_eq(files.last_uid, 1002);
	ck_assert_int_ne(symbolize_pid(symbolize), process);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	/* And what is known already is not asked for again. */
	asked = files.asked;
	split_input(&again, &user_one);
	ck_assert_uint_gt(inlined_count(&again), 0);
	ck_assert_uint_eq(files.asked, asked);
	input_fini(&of_one);
	input_fini(&of_other);
	input_fini(&again);
}
END_TEST

START_TEST(without_somebody_who_opens_files_there_are_none)
{
	struct input input;

	start_with_files();
	symbolize_set_opener(symbolize, &(const struct symbolize_opener){ 0 });
	split_input(&input, &nobody);
	ck_assert_uint_eq(inlined_count(&input), 0);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	input_fini(&input);
}
END_TEST

START_TEST(where_a_file_does_not_come_in_time_no_other_is_waited_for)
{
	struct input input;

	start_with_files();
	files.hangs = true;
	split_input(&input, &nobody);
	ck_assert_uint_eq(inlined_count(&input), 0);
	ck_assert_uint_eq(files.asked, 1);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	input_fini(&input);
}
END_TEST

START_TEST(one_that_dies_while_it_waits_for_a_file_is_started_again)
{
	struct input input;

	start_with_files();
	files.late = true;
	split_input(&input, &nobody);
	ask(&input);
	while (files.asked == 0)
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
	kill(symbolize_pid(symbolize), SIGKILL);
	while (files.cancelled == 0)
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
	symbolize_opened(symbolize, open("levels.dwo", O_RDONLY | O_CLOEXEC));        /* too late */
	files.late = false;
	await(&input);
	ck_assert_uint_gt(files.asked, 1);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 1);
	input_fini(&input);
}
END_TEST

/* As most services are that begin as root: the kernel gives their folders in /proc to root. */
START_TEST(who_has_given_up_root_has_no_file_opened_with_its_rights)
{
	static const struct wire_attach by_root;
	struct file_user user;
	char byte;
	int pipes[2];
	pid_t pid;

	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(1002) < 0 || setuid(1001) < 0 || write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
	file_user_of_attach(&by_root, pid, &user);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_uint_eq(user.identity.as_other, 1);
	ck_assert_uint_eq(user.identity.uid, 1001);
	ck_assert_uint_eq(user.identity.gid, 1002);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

START_TEST(a_call_at_a_functions_end_belongs_to_it)
{
	struct input input;
	uint64_t address, size;
	uint32_t call, exact;

	start(SYMBOLIZER);
	input_init(&input);
	input_file(&input, "levels");
	address = fixture_address("levels", "take", &size);
	call = input_frame(&input, 0, address + size, FRAME_CALL);
	exact = input_frame(&input, 0, address + size, FRAME_EXACT);
	ask(&input);
	await(&input);
	ck_assert_str_eq(name_of(&input, call), "take");
	ck_assert_str_ne(name_of(&input, exact), "take");
	input_fini(&input);
}
END_TEST

START_TEST(what_was_named_once_is_not_asked_again)
{
	struct input first, second;
	uint32_t take;
	pid_t pid;

	start(SYMBOLIZER);
	levels_input(&first, &take);
	ask(&first);
	await(&first);
	pid = symbolize_pid(symbolize);
	ck_assert_int_gt(pid, 0);
	kill(pid, SIGSTOP);
	levels_input(&second, &take);
	ask(&second);
	await(&second);
	ck_assert_str_eq(name_of(&second, take), "take");
	ck_assert_uint_eq(named_count(&second), 3);
	ck_assert_int_eq(symbolize_pid(symbolize), pid);
	input_fini(&first);
	input_fini(&second);
}
END_TEST

/* Anybody can give a file another file's build-id, or replace a file in its place. */
START_TEST(a_file_of_the_same_build_id_or_path_does_not_get_anothers_names)
{
	struct input first, second;
	uint32_t take;

	start(SYMBOLIZER);
	levels_input(&first, &take);
	first.snapshot->modules.items[0].build_id_len = 3;
	ask(&first);
	await(&first);
	ck_assert_str_eq(name_of(&first, take), "take");
	fixture_run("cp other levels");
	input_init(&second);
	input_file(&second, "levels");
	take = input_frame(&second, 0, fixture_address("levels", "taken", NULL) + 1, FRAME_CALL);
	ck_assert_uint_eq(second.snapshot->frames.items[take].frame.offset,
			  first.snapshot->frames.items[1].frame.offset);
	second.snapshot->modules.items[0].build_id_len = 3;
	ask(&second);
	await(&second);
	ck_assert_str_eq(name_of(&second, take), "taken");
	input_fini(&first);
	input_fini(&second);
}
END_TEST

START_TEST(modules_without_a_readable_file_stay_unnamed)
{
	struct input input;
	uint32_t text, levels, gone, directory, take;

	start(SYMBOLIZER);
	fixture_run("echo nothing > text");
	levels_input(&input, &take);
	levels = 0;
	text = input_file(&input, "text");
	gone = input_file(&input, NULL);
	directory = input_file(&input, ".");
	input_frame(&input, text, 10, FRAME_CALL);
	input_frame(&input, gone, 10, FRAME_CALL);
	input_frame(&input, directory, 10, FRAME_CALL);
	input_frame(&input, levels, 1, FRAME_CALL);
	input_frame(&input, levels, 0, FRAME_CALL);
	input_frame(&input, levels, UINT64_MAX, FRAME_CALL);
	ask(&input);
	await(&input);
	ck_assert_int_eq(input.result, 0);
	ck_assert_uint_eq(named_count(&input), 3);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	input_fini(&input);
}
END_TEST

START_TEST(an_empty_snapshot_is_done_without_a_process)
{
	struct input input;

	start(SYMBOLIZER);
	input_init(&input);
	ask(&input);
	await(&input);
	ck_assert_int_eq(input.result, 0);
	ck_assert_int_eq(symbolize_pid(symbolize), 0);
	input_fini(&input);
}
END_TEST

START_TEST(snapshots_are_done_in_their_order)
{
	struct input inputs[5];
	uint32_t take;

	start(SYMBOLIZER);
	for (unsigned i = 0; i < 5; i++) {
		levels_input(&inputs[i], &take);
		ask(&inputs[i]);
	}
	for (unsigned i = 0; i < 5; i++) {
		await(&inputs[i]);
		ck_assert_uint_eq(inputs[i].order, i + 1);
		ck_assert_str_eq(name_of(&inputs[i], take), "take");
		input_fini(&inputs[i]);
	}
}
END_TEST

static void free_symbolize(void *context, struct snapshot *snapshot, int result)
{
	on_done(context, snapshot, result);
	symbolize_free(symbolize);
	symbolize = NULL;
}

START_TEST(it_may_be_freed_when_done_and_before)
{
	struct input first, second;
	uint32_t take;

	start(SYMBOLIZER);
	levels_input(&first, &take);
	levels_input(&second, &take);
	ck_assert_int_eq(symbolize_snapshot(symbolize, first.snapshot, first.fds, 1, &nobody, NULL, free_symbolize,
					    &first), 0);
	ask(&second);
	await(&first);
	ck_assert_ptr_null(symbolize);
	ck_assert_uint_eq(second.done, 0);
	for (int i = 0; i < 10; i++)
		ck_assert_int_ge(sd_event_run(event, 1000), 0);
	ck_assert_uint_eq(second.done, 0);
	input_fini(&first);
	input_fini(&second);
}
END_TEST

/* --- what the process may do --- */

static void large_input(struct input *input, size_t frames)
{
	struct addresses addresses;

	ck_assert_msg(access(LARGE, R_OK) == 0, "%s is missing: install python3.11-dbg", LARGE);
	fixture_function_addresses(LARGE, frames, &addresses);
	input_init(input);
	input_file(input, LARGE);
	for (size_t i = 0; i < addresses.items.count; i++)
		input_frame(input, 0, addresses.items.items[i], FRAME_EXACT);
	vec_fini(&addresses.items);
}

static void run_until_some_are_named(const struct input *input)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;

	while (named_count(input) == 0) {
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		ck_assert(!clock_passed(deadline));
		ck_assert_uint_eq(input->done, 0);
	}
}

START_TEST(killed_in_the_middle_it_is_started_again_and_goes_on)
{
	struct input input;

	start(SYMBOLIZER);
	large_input(&input, 30000);
	ask(&input);
	run_until_some_are_named(&input);
	kill(symbolize_pid(symbolize), SIGKILL);
	await(&input);
	ck_assert_int_eq(input.result, 0);
	ck_assert_uint_eq(named_count(&input), input.snapshot->frames.count - 1);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 1);
	input_fini(&input);
}
END_TEST

START_TEST(stopped_it_is_killed_after_the_deadline_and_goes_on)
{
	struct input input;
	pid_t pid;

	start(SYMBOLIZER);
	set_deadlines(2000, 60000);
	large_input(&input, 30000);
	ask(&input);
	run_until_some_are_named(&input);
	pid = symbolize_pid(symbolize);
	kill(pid, SIGSTOP);
	await(&input);
	ck_assert_uint_eq(named_count(&input), input.snapshot->frames.count - 1);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 1);
	ck_assert_int_ne(symbolize_pid(symbolize), pid);
	input_fini(&input);
}
END_TEST

static void stop_or_kill_whenever_it_runs(const struct input *input, int signal)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	pid_t last = 0;

	while (input->done == 0) {
		pid_t pid = symbolize_pid(symbolize);

		if (symbolize_is_asking(symbolize) && pid != last && symbolize_deaths(symbolize) < 2) {
			kill(pid, signal);
			last = pid;
		}
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		ck_assert(!clock_passed(deadline));
	}
}

START_TEST(a_module_that_ends_it_twice_stays_unnamed_and_the_next_one_works)
{
	struct input bad, again, good;
	uint32_t take;

	start(SYMBOLIZER);
	set_deadlines(3000, 60000);
	large_input(&bad, 300);
	ask(&bad);
	stop_or_kill_whenever_it_runs(&bad, _i == 0 ? SIGKILL : SIGSTOP);
	ck_assert_int_eq(bad.result, 0);
	ck_assert_uint_eq(named_count(&bad), 0);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 2);
	levels_input(&good, &take);
	ask(&good);
	await(&good);
	ck_assert_str_eq(name_of(&good, take), "take");
	/* It is not tried a third time. */
	large_input(&again, 300);
	ask(&again);
	await(&again);
	ck_assert_uint_eq(named_count(&again), 0);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 2);
	input_fini(&bad);
	input_fini(&again);
	input_fini(&good);
}
END_TEST

START_TEST(killed_while_idle_it_is_started_again)
{
	struct input first, second;
	uint32_t take;

	start(SYMBOLIZER);
	levels_input(&first, &take);
	ask(&first);
	await(&first);
	kill(symbolize_pid(symbolize), SIGKILL);
	levels_input(&second, &take);
	take = input_frame(&second, 0, fixture_address("levels", "add", NULL), FRAME_EXACT);
	ask(&second);
	await(&second);
	ck_assert_str_eq(name_of(&second, take), "add");
	input_fini(&first);
	input_fini(&second);
}
END_TEST

static const char *const liars[] = {
	"silent", "silent_later", "garbage", "too_long", "wrong_serial", "wrong_type", "too_many",
	"not_in_turn", "unasked", "ready_twice", "dies_opening", "dies_resolving", "no_memory",
};

START_TEST(whatever_it_says_the_snapshot_is_done)
{
	struct input input, again;
	uint32_t take;

	start_fake(liars[_i]);
	levels_input(&input, &take);
	ask(&input);
	await(&input);
	ck_assert_int_eq(input.result, 0);
	/* The one that only falls silent names one in each of its two lives. */
	ck_assert_uint_eq(named_count(&input), strcmp(liars[_i], "silent_later") == 0 ? 2 : 0);
	ck_assert_str_ne(name_of(&input, take), "take");
	ck_assert_uint_eq(symbolize_deaths(symbolize), 2);
	levels_input(&again, &take);
	ask(&again);
	await(&again);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 2);
	input_fini(&input);
	input_fini(&again);
}
END_TEST

static const char *const broken[] = { "exits", "mute", "garbage_first" };

START_TEST(a_program_that_does_not_start_is_an_error_of_the_snapshot)
{
	struct input input;
	uint32_t take;

	start_fake(broken[_i]);
	levels_input(&input, &take);
	for (unsigned i = 1; i <= 3; i++) {
		ask(&input);
		await(&input);
		ck_assert_int_eq(input.result, -ECHILD);
		ck_assert(!input.snapshot->symbolized);
		ck_assert_uint_eq(named_count(&input), 0);
		ck_assert_uint_eq(symbolize_deaths(symbolize), i);
	}
	input_fini(&input);
}
END_TEST

/* After an upgrade, say: no file is to blame. */
START_TEST(one_of_another_version_is_an_error_of_the_snapshot)
{
	struct input input;
	uint32_t take;

	start_fake("other_version");
	levels_input(&input, &take);
	for (int i = 0; i < 3; i++) {
		ask(&input);
		await(&input);
		ck_assert_int_eq(input.result, -EPROTONOSUPPORT);
		ck_assert(!input.snapshot->symbolized);
		ck_assert_uint_eq(named_count(&input), 0);
	}
	input_fini(&input);
}
END_TEST

START_TEST(a_missing_program_is_an_error_of_the_snapshot)
{
	struct input input;
	uint32_t take;

	start("/no/such/program");
	levels_input(&input, &take);
	ask(&input);
	await(&input);
	ck_assert_int_eq(input.result, -ENOENT);
	input_fini(&input);
}
END_TEST

START_TEST(one_that_dies_at_every_second_answer_does_not_go_on_for_ever)
{
	struct input input;

	start_fake("dies_often");
	large_input(&input, 2000);
	ask(&input);
	await(&input);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 2);
	ck_assert_uint_eq(named_count(&input), 2);
	input_fini(&input);
}
END_TEST

START_TEST(one_that_is_slow_with_a_module_is_stopped_at_the_modules_deadline)
{
	uint64_t begin = clock_monotonic_ns();
	struct input input;

	start_fake("slow");
	large_input(&input, 2000);
	ask(&input);
	await(&input);
	ck_assert_uint_gt(named_count(&input), 1);
	ck_assert_uint_lt(named_count(&input), 1000);
	ck_assert_uint_lt(clock_monotonic_ns() - begin, 20 * NSEC_PER_SEC);
	input_fini(&input);
}
END_TEST

START_TEST(a_snapshot_that_takes_too_long_has_the_names_found_by_then)
{
	const struct symbolize_times times = { 60000, 60000, 300, 60000, 60000, 60000, 60000, 60000 };
	struct input input;
	size_t named;

	start_fake("slow");
	symbolize_set_times(symbolize, &times);
	large_input(&input, 2000);
	ask(&input);
	await(&input);
	named = named_count(&input);
	ck_assert_int_eq(input.result, -ETIMEDOUT);
	ck_assert(!input.snapshot->symbolized);
	ck_assert_uint_gt(named, 0);
	ck_assert_uint_lt(named, 1000);
	/* The file is not to blame, and the next snapshot has the rest of it, or some more. */
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	for (unsigned i = 0; i < 3; i++) {
		ask(&input);
		await(&input);
		ck_assert_uint_gt(named_count(&input), named);
		named = named_count(&input);
	}
	input_fini(&input);
}
END_TEST

/* --- users take turns --- */

START_TEST(a_user_with_many_snapshots_does_not_hold_up_another)
{
	const struct symbolize_times times = { 60000, 60000, 60000, 0, 60000, 60000, 60000, 60000 };
	struct input many[8], few[2];
	uint32_t take;

	start(SYMBOLIZER);
	symbolize_set_times(symbolize, &times);
	for (unsigned i = 0; i < 8; i++) {
		levels_input(&many[i], &take);
		many[i].user = &user_one;
		ask(&many[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		levels_input(&few[i], &take);
		few[i].user = &user_other;
		ask(&few[i]);
	}
	await(&many[7]);
	ck_assert_uint_eq(few[1].done, 1);
	ck_assert_uint_lt(few[1].order, many[5].order);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_str_eq(name_of(&many[i], take), "take");
		ck_assert(i == 0 || many[i].order > many[i - 1].order);
		input_fini(&many[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		await(&few[i]);
		ck_assert_str_eq(name_of(&few[i], take), "take");
		input_fini(&few[i]);
	}
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
}
END_TEST

/* Each address takes it twenty milliseconds. */
START_TEST(a_question_that_takes_long_is_broken_off_for_another_user_and_asked_again)
{
	const struct symbolize_times times = { 60000, 60000, 60000, 50, 200, 60000, 60000, 60000 };
	struct input slow, quick;
	uint32_t take;
	size_t named;

	start_fake("slow");
	symbolize_set_times(symbolize, &times);
	large_input(&slow, 200);
	slow.user = &user_one;
	ask(&slow);
	run_until_some_are_named(&slow);
	levels_input(&quick, &take);
	quick.user = &user_other;
	ask(&quick);
	await(&quick);
	named = named_count(&slow);
	ck_assert_uint_eq(slow.done, 0);
	ck_assert_uint_lt(named, 200);
	ck_assert_uint_eq(named_count(&quick), 3);
	await(&slow);
	ck_assert_int_eq(slow.result, 0);
	ck_assert_uint_eq(named_count(&slow), slow.snapshot->frames.count - 1);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	input_fini(&slow);
	input_fini(&quick);
}
END_TEST

static void run_until_asked_for(const struct file_user *user)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;

	while (files.last_uid != user->identity.uid && !clock_passed(deadline))
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
	ck_assert_uint_eq(files.last_uid, user->identity.uid);
}

/* Before anything of it is answered. */
START_TEST(a_module_that_is_long_to_open_is_broken_off_for_another_user)
{
	const struct symbolize_times times = { 60000, 20000, 60000, 50, 200, 60000, 300, 1000 };
	const struct symbolize_opener opener = { NULL, on_open, on_cancel };
	struct input slow, other;
	uint32_t take;

	memset(&files, 0, sizeof(files));
	start_fake("needy");
	symbolize_set_times(symbolize, &times);
	symbolize_set_opener(symbolize, &opener);
	levels_input(&slow, &take);
	slow.user = &user_one;
	ask(&slow);
	levels_input(&other, &take);
	other.user = &user_other;
	ask(&other);
	run_until_asked_for(&user_other);
	run_until_asked_for(&user_one);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	ck_assert_uint_eq(slow.done + other.done, 0);
	symbolize_free(symbolize);
	symbolize = NULL;
	input_fini(&slow);
	input_fini(&other);
}
END_TEST

/* --- one that takes longer than others can wait --- */

/* Two seconds to open what is called slow, in which it says nothing, or for ever; another user comes while it does. */
static void begin_slow(const char *name, struct input *slow, struct input *other, const struct symbolize_times *times)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	uint32_t take;

	start_fake("slow_to_open");
	symbolize_set_times(symbolize, times);
	fixture_run("cp levels %s", name);
	input_init(slow);
	input_frame(slow, input_file(slow, name), fixture_address(name, "main", NULL), FRAME_EXACT);
	slow->user = &user_one;
	ask(slow);
	while (!symbolize_is_asking(symbolize) && !clock_passed(deadline))
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
	levels_input(other, &take);
	other->user = &user_other;
	ask(other);
}

START_TEST(one_that_is_silent_for_long_has_its_names_behind_the_others)
{
	const struct symbolize_times times = { 60000, 60000, 60000, 20, 700, 60000, 60000, 60000 };
	struct input slow, other, again;
	uint32_t take;

	begin_slow("slow", &slow, &other, &times);
	await(&other);
	ck_assert_uint_eq(slow.done, 0);
	ck_assert_uint_eq(named_count(&other), 3);
	await(&slow);
	ck_assert_uint_eq(named_count(&slow), 1);
	ck_assert(slow.snapshot->symbolized);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 0);
	/* What it was is remembered: others are not kept waiting to find it out anew. */
	input_frame(&slow, 0, fixture_address("slow", "take", NULL), FRAME_EXACT);
	levels_input(&again, &take);
	input_frame(&again, 0, fixture_address("levels", "three_levels", NULL) + 1, FRAME_EXACT);
	again.user = &user_other;
	kill(symbolize_pid(symbolize), SIGKILL);
	ask(&slow);
	ask(&again);
	await(&again);
	ck_assert_uint_eq(slow.done, 0);
	await(&slow);
	ck_assert_uint_eq(named_count(&slow), 2);
	input_fini(&slow);
	input_fini(&other);
	input_fini(&again);
}
END_TEST

static void ask_again(void *context, struct snapshot *snapshot, int result)
{
	struct input *input = context;

	on_done(context, snapshot, result);
	ck_assert_int_eq(symbolize_snapshot(symbolize, input->snapshot, input->fds, input->snapshot->modules.count, input->user,
					    NULL, ask_again, input), 0);
}

START_TEST(where_others_always_wait_it_is_put_off_for_so_long_only)
{
	const struct symbolize_times times = { 60000, 60000, 60000, 20, 700, 60000, 500, 60000 };
	struct input slow, first, second;
	uint32_t take;

	begin_slow("slow", &slow, &first, &times);
	await(&first);
	levels_input(&second, &take);
	first.user = second.user = &user_other;
	ask_again(&first, first.snapshot, 0);
	ask_again(&second, second.snapshot, 0);
	await(&slow);
	ck_assert_uint_eq(named_count(&slow), 1);
	ck_assert_uint_gt(first.done, 10);
	symbolize_free(symbolize);
	symbolize = NULL;
	input_fini(&slow);
	input_fini(&first);
	input_fini(&second);
}
END_TEST

START_TEST(one_that_is_silent_in_its_longer_turn_too_is_left_alone)
{
	const struct symbolize_times times = { 3000, 60000, 60000, 20, 700, 60000, 60000, 60000 };
	struct input slow, other;

	begin_slow("slowest", &slow, &other, &times);
	await(&other);
	await(&slow);
	ck_assert_uint_eq(named_count(&other), 3);
	ck_assert_uint_eq(named_count(&slow), 0);
	ck_assert_int_eq(slow.result, 0);
	ck_assert_uint_eq(symbolize_deaths(symbolize), 2);
	input_fini(&slow);
	input_fini(&other);
}
END_TEST

static struct symbolize_job *job_of(struct symbolize_queue *queue, struct symbolize_files *nothing,
				    const struct file_user *user)
{
	struct snapshot *snapshot = snapshot_new();
	struct symbolize_job *job;

	ck_assert_int_eq(symbolize_job_new(snapshot, NULL, 0, user, NULL, nothing, NULL, &job), 0);
	snapshot_put(snapshot);
	ck_assert_int_eq(symbolize_queue_add(queue, job), 0);
	return job;
}

START_TEST(each_user_has_a_line_and_they_take_turns)
{
	struct file_user of_root = user_one, in_a_group = user_one;
	struct symbolize_files nothing = { 0 };
	struct symbolize_queue queue;
	struct symbolize_job *jobs[6];

	of_root.owner = 0;
	in_a_group.identity.gid = 5;
	symbolize_queue_init(&queue);
	jobs[0] = job_of(&queue, &nothing, &user_one);
	ck_assert_uint_eq(symbolize_queue_turn_ns(&queue), 0);
	jobs[1] = job_of(&queue, &nothing, &user_one);
	jobs[2] = job_of(&queue, &nothing, &in_a_group);
	ck_assert_uint_eq(symbolize_queue_turn_ns(&queue), 0);
	jobs[3] = job_of(&queue, &nothing, &user_other);
	jobs[4] = job_of(&queue, &nothing, &of_root);
	ck_assert_uint_gt(symbolize_queue_turn_ns(&queue), 0);
	ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[0]);
	symbolize_queue_next_turn(&queue);
	ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[3]);
	symbolize_queue_next_turn(&queue);
	ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[4]);
	symbolize_job_free(symbolize_queue_take_first(&queue));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[i]);
		symbolize_job_free(symbolize_queue_take_first(&queue));
	}
	/* Who comes back has a line at the end. */
	symbolize_queue_next_turn(&queue);
	ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[3]);
	jobs[5] = job_of(&queue, &nothing, &of_root);
	symbolize_job_free(symbolize_queue_take_first(&queue));
	ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[2]);
	symbolize_job_free(symbolize_queue_take_first(&queue));
	ck_assert_ptr_eq(symbolize_queue_first(&queue), jobs[5]);
	ck_assert_uint_eq(symbolize_queue_turn_ns(&queue), 0);
	symbolize_queue_fini(&queue);
	ck_assert_ptr_null(symbolize_queue_first(&queue));
}
END_TEST

START_TEST(the_turns_of_others_do_not_count_for_a_deadline)
{
	struct symbolize_files nothing = { 0 };
	struct symbolize_queue queue;
	struct symbolize_job *job;
	uint64_t before_ns, paused_ns;

	symbolize_queue_init(&queue);
	job = job_of(&queue, &nothing, &user_one);
	job_of(&queue, &nothing, &user_other);
	job->deadline_ns = before_ns = clock_monotonic_ns() + NSEC_PER_SEC;
	symbolize_queue_next_turn(&queue);
	paused_ns = clock_monotonic_ns();
	while (!clock_passed(paused_ns + 20 * NSEC_PER_MSEC))
		;
	ck_assert_uint_eq(job->deadline_ns, before_ns);
	symbolize_queue_next_turn(&queue);
	ck_assert_uint_ge(job->deadline_ns, before_ns + 20 * NSEC_PER_MSEC);
	symbolize_queue_fini(&queue);
}
END_TEST

/* --- the cache --- */

#define FILES 50
#define ADDRESSES 2000

static void expected(const struct symbolize_key *key, struct symbolize_location *location, char *name)
{
	sprintf(name, "function_%ju_%ju_%d", (uintmax_t)key->file, (uintmax_t)key->address,
		key->is_call);
	*location = (struct symbolize_location){ name, key->address % 3 ? "/a/file.c" : "",
						 (uint32_t)key->address, (uint32_t)key->file, false };
}

START_TEST(the_cache_is_right_or_empty_and_never_larger_than_its_bound)
{
	const size_t max = 4u << 20;
	struct symbolize_cache *cache = symbolize_cache_new(max);
	size_t hits = 0, misses = 0, peak = 0;

	for (uint64_t i = 0; i < 600000; i++) {
		uint64_t random = hash_u64(i);
		struct symbolize_key key = { random % FILES, (random >> 8) % ADDRESSES, random >> 63 };
		struct symbolize_location want, have[SYMBOLIZE_LOCATIONS_MAX];
		char name[64];
		size_t count;

		expected(&key, &want, name);
		if (symbolize_cache_find(cache, &key, have, &count)) {
			hits++;
			REQUIRE(count == (key.address % 5 ? 1 : 0));
			if (count > 0) {
				REQUIRE(strcmp(have[0].function, want.function) == 0);
				REQUIRE(strcmp(have[0].file, want.file) == 0);
				REQUIRE(have[0].line == want.line);
			}
		} else {
			misses++;
			REQUIRE(symbolize_cache_add(cache, &key, &want, key.address % 5 ? 1 : 0) == 0);
		}
		if (symbolize_cache_memory(cache) > peak)
			peak = symbolize_cache_memory(cache);
	}
	printf("cache: %zu hits, %zu misses, at most %zu bytes of %zu\n", hits, misses, peak, max);
	ck_assert_uint_gt(hits, 1000);
	ck_assert_uint_gt(misses, 100000);
	ck_assert_uint_le(peak, max);
	symbolize_cache_free(cache);
}
END_TEST

START_TEST(what_is_used_stays_in_the_cache)
{
	struct symbolize_cache *cache = symbolize_cache_new(1u << 20);
	struct symbolize_key used = { 1, 1, true };
	struct symbolize_location want, have[SYMBOLIZE_LOCATIONS_MAX];
	char name[64];
	size_t count;

	expected(&used, &want, name);
	ck_assert_int_eq(symbolize_cache_add(cache, &used, &want, 1), 0);
	for (uint64_t i = 0; i < 200000; i++) {
		struct symbolize_key key = { 2, i, false };
		char other[64];

		expected(&key, &want, other);
		REQUIRE(symbolize_cache_add(cache, &key, &want, 1) == 0);
		REQUIRE(symbolize_cache_find(cache, &used, have, &count));
		REQUIRE(strcmp(have[0].function, name) == 0);
	}
	symbolize_cache_free(cache);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbolize");
	TCase *use = tcase_create("use"), *misuse = tcase_create("misuse"), *turns = tcase_create("turns"), *cache = tcase_create("cache");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(use, set_up, tear_down);
	tcase_add_test(use, frames_get_names_lines_and_inlined_calls);
	tcase_add_test(use, what_is_in_no_module_has_the_names_that_the_process_tells);
	tcase_add_test(use, nothing_is_looked_for_where_all_is_in_modules);
	tcase_add_test(use, the_file_that_was_open_serves_when_the_process_is_gone);
	tcase_add_test(use, a_file_that_another_process_has_left_is_not_believed);
	tcase_add_test(use, a_jitdump_is_where_it_is_mapped);
	tcase_add_test(use, what_belongs_to_a_file_is_asked_for_with_its_users_rights);
	tcase_add_test(use, without_somebody_who_opens_files_there_are_none);
	tcase_add_test(use, where_a_file_does_not_come_in_time_no_other_is_waited_for);
	tcase_add_test(use, one_that_dies_while_it_waits_for_a_file_is_started_again);
	if (geteuid() == 0)
		tcase_add_test(use, who_has_given_up_root_has_no_file_opened_with_its_rights);
	else
		printf("SKIP: whose rights files are opened with is not tried: only root's daemon has a choice\n");
	tcase_add_test(use, a_call_at_a_functions_end_belongs_to_it);
	tcase_add_test(use, what_was_named_once_is_not_asked_again);
	tcase_add_test(use, a_file_of_the_same_build_id_or_path_does_not_get_anothers_names);
	tcase_add_test(use, modules_without_a_readable_file_stay_unnamed);
	tcase_add_test(use, an_empty_snapshot_is_done_without_a_process);
	tcase_add_test(use, snapshots_are_done_in_their_order);
	tcase_add_test(use, it_may_be_freed_when_done_and_before);
	tcase_set_timeout(use, 120);
	suite_add_tcase(suite, use);

	tcase_add_checked_fixture(misuse, set_up, tear_down);
	tcase_add_test(misuse, killed_in_the_middle_it_is_started_again_and_goes_on);
	tcase_add_test(misuse, stopped_it_is_killed_after_the_deadline_and_goes_on);
	tcase_add_loop_test(misuse, a_module_that_ends_it_twice_stays_unnamed_and_the_next_one_works, 0, 2);
	tcase_add_test(misuse, killed_while_idle_it_is_started_again);
	tcase_add_loop_test(misuse, whatever_it_says_the_snapshot_is_done, 0,
			    sizeof(liars) / sizeof(liars[0]));
	tcase_add_loop_test(misuse, a_program_that_does_not_start_is_an_error_of_the_snapshot, 0,
			    sizeof(broken) / sizeof(broken[0]));
	tcase_add_test(misuse, one_of_another_version_is_an_error_of_the_snapshot);
	tcase_add_test(misuse, a_missing_program_is_an_error_of_the_snapshot);
	tcase_add_test(misuse, one_that_dies_at_every_second_answer_does_not_go_on_for_ever);
	tcase_add_test(misuse, one_that_is_slow_with_a_module_is_stopped_at_the_modules_deadline);
	tcase_add_test(misuse, a_snapshot_that_takes_too_long_has_the_names_found_by_then);
	tcase_set_timeout(misuse, 120);
	suite_add_tcase(suite, misuse);

	tcase_add_checked_fixture(turns, set_up, tear_down);
	tcase_add_test(turns, a_user_with_many_snapshots_does_not_hold_up_another);
	tcase_add_test(turns, a_question_that_takes_long_is_broken_off_for_another_user_and_asked_again);
	tcase_add_test(turns, a_module_that_is_long_to_open_is_broken_off_for_another_user);
	tcase_add_test(turns, one_that_is_silent_for_long_has_its_names_behind_the_others);
	tcase_add_test(turns, where_others_always_wait_it_is_put_off_for_so_long_only);
	tcase_add_test(turns, one_that_is_silent_in_its_longer_turn_too_is_left_alone);
	tcase_add_test(turns, each_user_has_a_line_and_they_take_turns);
	tcase_add_test(turns, the_turns_of_others_do_not_count_for_a_deadline);
	tcase_set_timeout(turns, 120);
	suite_add_tcase(suite, turns);

	tcase_add_test(cache, the_cache_is_right_or_empty_and_never_larger_than_its_bound);
	tcase_add_test(cache, what_is_used_stays_in_the_cache);
	tcase_set_timeout(cache, 120);
	suite_add_tcase(suite, cache);

	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
