#include "symbolize_fixture.h"

#include "base/clock.h"
#include "symbol_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <unistd.h>

#define DEADLINE_NS (60 * NSEC_PER_SEC)

sd_event *event;
struct symbolize *symbolize;
const struct file_user nobody;

static unsigned finished;

void on_done(void *context, struct snapshot *snapshot, int result)
{
	struct input *input = context;

	ck_assert_ptr_eq(snapshot, input->snapshot);
	input->done++;
	input->result = result;
	input->order = ++finished;
}

void input_init(struct input *input)
{
	*input = (struct input){ .snapshot = snapshot_new(), .user = &nobody };
	ck_assert_ptr_nonnull(input->snapshot);
}

uint32_t input_file(struct input *input, const char *path)
{
	size_t module = input->snapshot->modules.count;
	struct snapshot_module *added = vec_push(&input->snapshot->modules);

	added->path = (uint32_t)strtab_add(input->snapshot->strings, path ? path : "gone");
	input->fds[module] = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ck_assert(!path || input->fds[module] >= 0);
	return (uint32_t)module;
}

uint32_t input_frame(struct input *input, uint32_t module, uint64_t offset, uint16_t kind)
{
	struct snapshot_frame *added = vec_push(&input->snapshot->frames);

	added->frame = (struct frame){ module, kind, offset };
	return (uint32_t)input->snapshot->frames.count - 1;
}

void input_fini(struct input *input)
{
	for (size_t i = 0; i < input->snapshot->modules.count; i++) {
		if (input->fds[i] >= 0)
			close(input->fds[i]);
	}
	snapshot_put(input->snapshot);
}

void ask(struct input *input)
{
	input->done = 0;
	ck_assert_int_eq(symbolize_snapshot(symbolize, input->snapshot, input->fds,
					    input->snapshot->modules.count, input->user, NULL, on_done, input), 0);
	ck_assert_uint_eq(input->done, 0);       /* only from the event loop */
}

void await(struct input *input)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	const char *reason;

	while (input->done == 0) {
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		ck_assert(!clock_passed(deadline));
	}
	ck_assert_uint_eq(input->done, 1);
	if (snapshot_check(input->snapshot, &reason) < 0)
		ck_abort_msg("%s", reason);
}

const char *name_of(const struct input *input, uint32_t frame)
{
	const struct snapshot *snapshot = input->snapshot;
	const struct snapshot_frame *at = &snapshot->frames.items[frame];

	if (at->location_count == 0)
		return "";
	return strtab_get(snapshot->strings, snapshot->locations.items[at->first_location +
								       at->location_count - 1].function);
}

size_t named_count(const struct input *input)
{
	size_t count = 0;

	for (size_t i = 1; i < input->snapshot->frames.count; i++)
		count += input->snapshot->frames.items[i].location_count > 0;
	return count;
}

/* --- set up, torn down --- */

void start(const char *program)
{
	ck_assert_int_eq(symbolize_new(event, program, &symbolize), 0);
}

void set_deadlines(uint64_t silence_ms, uint64_t module_ms)
{
	const struct symbolize_times times = { silence_ms, module_ms, SYMBOLIZE_SNAPSHOT_MS, SYMBOLIZE_TURN_MS,
					       SYMBOLIZE_LONG_TURN_MS, SYMBOLIZE_DEBUG_MS, SYMBOLIZE_PUT_OFF_MS,
					       SYMBOLIZE_SLOW_TURN_MS };

	symbolize_set_times(symbolize, &times);
}

void set_up(void)
{
	fixture_enter();
	finished = 0;
	ck_assert_int_eq(sd_event_new(&event), 0);
	fixture_run("gcc -O2 -g -o levels $DATA/levels.c && gcc -O2 -g -o other -Dtake=taken $DATA/levels.c");
}

void tear_down(void)
{
	symbolize_free(symbolize);
	symbolize = NULL;
	sd_event_unref(event);
	fixture_leave();
}
