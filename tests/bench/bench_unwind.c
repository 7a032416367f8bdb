/* Times the unwinder against libdw's walker on recorded stacks, and prints JSON.
 *
 *	bench_unwind [-r ROUNDS] RECORDING...
 *
 * A round is: everything made anew (unwinder, stack table, libdw session), all stacks once ("cold": every
 * miss is in it), all stacks again ("warm").  The two take turns; medians are printed.  Times are CPU
 * times of this process, which does nothing else; opening the modules is timed by itself.  A live stack has
 * just been written by its thread and copied by the kernel, so the bytes of each batch are brought into
 * the processor's caches, for both, before its time begins.  The stacks of both must agree, frame by frame. */
#include "base/clock.h"
#include "base/fd.h"
#include "recording.h"
#include "unwind/unwind.h"
#include "walker.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS_MAX 64
#define NODES_MAX (16u << 20)
#define BATCH 32u

enum measure { OPEN, COLD, WARM, MEASURES };
static const char *const measure_names[MEASURES] = { "open_us", "cold_us", "warm_us" };

struct times {
	double ns[MEASURES][ROUNDS_MAX];
};

struct bench {
	struct recording recording;
	struct unwinder *unwinder;
	struct stack_table *stacks;
	struct walker *walker;
	struct times ours, libdw;
	uint64_t frames, misses, differ;
	size_t memory;
	uint64_t reads;
};

static double cpu_ns(void)
{
	return (double)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(const double *values, unsigned int count)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	return sorted[count / 2];
}

static void open_ours(struct bench *b)
{
	b->stacks = stack_table_new(NODES_MAX);
	b->unwinder = unwinder_new(&b->recording.map, b->stacks);
	for (uint32_t i = 0; i < b->recording.map.modules.count; i++) {
		int fd = recording_open_module(&b->recording, i);

		unwinder_add_module(b->unwinder, i, fd);
		fd_close(&fd);
	}
}

static void unwind_one(struct bench *b, struct recorded_stack *stack)
{
	struct reader reader = recording_reader(stack);

	unwinder_unwind(b->unwinder, &stack->regs, &reader, WALKER_FRAMES_MAX, NULL);
}

static void walk_one(struct bench *b, struct recorded_stack *stack)
{
	raddr pcs[WALKER_FRAMES_MAX];

	walker_walk(b->walker, stack, pcs);
}

static void touch(const struct recorded_stack *stack)
{
	const volatile uint8_t *bytes = stack->bytes;

	for (uint32_t i = 0; i < stack->len; i += 64)
		(void)bytes[i];
}

/* The time of all stacks, by batches. */
static double time_all(struct bench *b, void (*one)(struct bench *, struct recorded_stack *))
{
	struct recorded_stack *stacks = b->recording.stacks.items;
	size_t count = b->recording.stacks.count;
	double total = 0;

	for (size_t first = 0; first < count; first += BATCH) {
		size_t end = first + BATCH < count ? first + BATCH : count;
		double start;

		for (size_t i = first; i < end; i++)
			touch(&stacks[i]);
		start = cpu_ns();
		for (size_t i = first; i < end; i++)
			one(b, &stacks[i]);
		total += cpu_ns() - start;
	}
	return total;
}

static void time_ours(struct bench *b, unsigned int round)
{
	double start = cpu_ns();

	open_ours(b);
	b->ours.ns[OPEN][round] = cpu_ns() - start;
	b->ours.ns[COLD][round] = time_all(b, unwind_one);
	b->ours.ns[WARM][round] = time_all(b, unwind_one);
}

static void time_libdw(struct bench *b, unsigned int round)
{
	double start = cpu_ns();

	b->walker = walker_new(&b->recording);
	if (!b->walker)
		exit(1);
	b->libdw.ns[OPEN][round] = cpu_ns() - start;
	b->libdw.ns[COLD][round] = time_all(b, walk_one);
	b->libdw.ns[WARM][round] = time_all(b, walk_one);
}

static unsigned int pcs_of(const struct bench *b, uint32_t node, raddr pcs[WALKER_FRAMES_MAX])
{
	unsigned int count = 0;

	for (; node != STACK_ROOT; node = stack_table_node(b->stacks, node).parent) {
		struct frame frame = stack_table_get_frame(b->stacks, stack_table_node(b->stacks, node).frame);

		if (frame.kind == FRAME_TRUNCATED || count == WALKER_FRAMES_MAX)
			break;
		pcs[count++] = frame.offset + (frame.module == MODULE_NONE ? 0 :
			       b->recording.map.modules.items[frame.module].bias);
	}
	return count;
}

/* Both must have done the same work. */
static void compare_all(struct bench *b)
{
	raddr ours[WALKER_FRAMES_MAX], theirs[WALKER_FRAMES_MAX];

	for (size_t i = 0; i < b->recording.stacks.count; i++) {
		struct recorded_stack *stack = &b->recording.stacks.items[i];
		struct reader reader = recording_reader(stack);
		uint32_t node = unwinder_unwind(b->unwinder, &stack->regs, &reader, WALKER_FRAMES_MAX, NULL);
		unsigned int count = pcs_of(b, node, ours);

		b->frames += count;
		if (walker_walk(b->walker, stack, theirs) == count &&
		    memcmp(ours, theirs, count * sizeof(*ours)) == 0)
			continue;
		if (b->differ++ < 3)
			fprintf(stderr, "stack %zu differs from libdw's\n", i);
	}
}

static void close_round(struct bench *b)
{
	unwinder_free(b->unwinder);
	stack_table_free(b->stacks);
	walker_free(b->walker);
}

static void run_rounds(struct bench *b, unsigned int rounds)
{
	for (unsigned int round = 0; round < rounds; round++) {
		time_ours(b, round);
		time_libdw(b, round);
		if (round + 1 == rounds) {
			b->misses = unwinder_counters(b->unwinder).row_misses;
			b->memory = unwinder_memory(b->unwinder);
			compare_all(b);
		}
		close_round(b);
	}
}

/* Per stack, in microseconds; opening per module set. */
static json_t *times_json(const struct times *times, unsigned int rounds, size_t stacks)
{
	json_t *json = json_object();

	for (int m = 0; m < MEASURES; m++) {
		double ns = median(times->ns[m], rounds);

		json_object_set_new(json, measure_names[m],
				    json_real(ns / 1000 / (m == OPEN ? 1 : (double)stacks)));
	}
	return json;
}

static double ratio(const struct bench *b, enum measure measure, unsigned int rounds)
{
	return median(b->libdw.ns[measure], rounds) / median(b->ours.ns[measure], rounds);
}

static json_t *bench_json(const struct bench *b, const char *path, unsigned int rounds)
{
	size_t stacks = b->recording.stacks.count;

	return json_pack("{s:s, s:I, s:f, s:I, s:I, s:I, s:o, s:o, s:f, s:f}", "recording", path, "stacks",
			 (json_int_t)stacks, "frames_per_stack", (double)b->frames / (double)stacks,
			 "row_misses", (json_int_t)b->misses, "unwinder_bytes", (json_int_t)b->memory,
			 "differ", (json_int_t)b->differ, "ours", times_json(&b->ours, rounds, stacks),
			 "libdw", times_json(&b->libdw, rounds, stacks), "times_faster_cold",
			 ratio(b, COLD, rounds), "times_faster_warm", ratio(b, WARM, rounds));
}

struct total {
	uint64_t stacks, frames, differ;
	double ours[MEASURES], libdw[MEASURES];
};

static void add_total(struct total *total, const struct bench *b, unsigned int rounds)
{
	total->stacks += b->recording.stacks.count;
	total->frames += b->frames;
	total->differ += b->differ;
	for (int m = 0; m < MEASURES; m++) {
		total->ours[m] += median(b->ours.ns[m], rounds);
		total->libdw[m] += median(b->libdw.ns[m], rounds);
	}
}

static json_t *total_json(const struct total *t)
{
	return json_pack("{s:I, s:f, s:I, s:f, s:f, s:f, s:f, s:f}", "stacks", (json_int_t)t->stacks,
			 "frames_per_stack", (double)t->frames / (double)t->stacks, "differ",
			 (json_int_t)t->differ, "unwinds_per_second_cold",
			 1e9 * (double)t->stacks / t->ours[COLD], "unwinds_per_second_warm",
			 1e9 * (double)t->stacks / t->ours[WARM], "libdw_unwinds_per_second",
			 1e9 * (double)t->stacks / t->libdw[WARM], "times_faster_cold",
			 t->libdw[COLD] / t->ours[COLD], "times_faster_warm", t->libdw[WARM] / t->ours[WARM]);
}

int main(int argc, char **argv)
{
	unsigned int rounds = 5;
	struct total total = { 0 };
	json_t *list = json_array(), *json;
	int option;

	while ((option = getopt(argc, argv, "r:")) != -1)
		rounds = option == 'r' ? (unsigned int)strtoul(optarg, NULL, 10) : 0;
	if (rounds == 0 || rounds > ROUNDS_MAX || optind == argc) {
		fprintf(stderr, "usage: bench_unwind [-r ROUNDS] RECORDING...\n");
		return 2;
	}
	for (int i = optind; i < argc; i++) {
		struct bench b = { 0 };
		int err = recording_read(argv[i], &b.recording);

		if (err < 0 || b.recording.stacks.count == 0) {
			fprintf(stderr, "bench_unwind: %s: %s\n", argv[i], err < 0 ? strerror(-err) : "no stacks");
			return 1;
		}
		run_rounds(&b, rounds);
		json_array_append_new(list, bench_json(&b, argv[i], rounds));
		add_total(&total, &b, rounds);
		recording_fini(&b.recording);
	}
	json = json_pack("{s:o, s:o}", "recordings", list, "total", total_json(&total));
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(5));
	putchar('\n');
	json_decref(json);
	return total.differ != 0;
}
