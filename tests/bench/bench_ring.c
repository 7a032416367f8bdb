/* What the ring engine's code costs the thread that allocates: malloc and free of this process get jumps.
 *
 *	bench_ring [MIB [samples]]	the ring's size; only what sampling costs
 *
 * Pairs at some depth of stack, in bursts that the ring has room for; what a burst left is read between them, which is measured
 * by itself.  Last without bursts, a thread on the other core reading and unwinding: that says something only while nobody
 * else wants a core. */
#include "../unit/ring_fixture.h"

#include "probe/ring_stack.h"
#include "process_map.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 100000                   /* of a round */
#define ROUNDS 7
#define DEPTH 20
#define MALLOC 1                       /* numbers of sites: its entry, behind it its returns */
#define FREE 20
#define COLD_BYTES 32768
#define FRAMES 41                      /* of a traceback of 25, as the tracer takes them */

static struct ring *ring;
static struct ring_area area;
static volatile int reading;
static bool unwinding;
static uint64_t ring_size = 4 << 20;   /* or as many MiB as the argument says */
static unsigned burst = 1000;          /* pairs */
static uint64_t records, bytes, cut;
static struct module_map map;
static struct stack_table *stacks;
static struct unwinder *unwinder;
static uint64_t function;              /* malloc */

static __attribute__((noinline)) void pairs(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		void *volatile block = malloc(64);

		free(block);
	}
}

/* A frame of 96 bytes or so. */
static __attribute__((noinline)) void descend(unsigned depth, unsigned count)
{
	volatile uint64_t locals[7] = { depth };

	if (depth == 0)
		pairs(count);
	else
		descend(depth - 1, count);
	locals[0]++;
}

static int read_nothing(void *context, raddr at, void *buf, size_t len)
{
	(void)context, (void)at, (void)buf, (void)len;
	return -EFAULT;
}

static void unwind(const struct ring_record *record)
{
	static const struct reader none = { .read = read_nothing };
	struct ring_stack stack;

	if (!record->is_return)
		return;
	stack = ring_stack_unwind(unwinder, &map, &none, record, function, FRAMES);
	ring_stack_learn(ring, record, &stack);
	cut += stack.cut;
}

static bool pass_one(void)
{
	struct ring_record record;

	if (ring_next(ring, &record) != 1)
		return false;
	records++;
	bytes += record.stack_length;
	if (unwinding)
		unwind(&record);
	/* With samples, as who has a heap does it. */
	if (record.site == FREE)
		ring_filter_remove(ring, record.args[0]);
	ring_done(ring);
	return true;
}

/* Of this thread alone, for others want the core, too. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

struct cost {
	double calls, reading;                 /* ns a pair */
};

static struct cost burst_cost(void)
{
	uint64_t began = cpu_ns(), between;

	descend(DEPTH, burst);
	between = cpu_ns();
	while (pass_one())
		;
	return (struct cost){ (double)(between - began) / burst, (double)(cpu_ns() - between) / burst };
}

/* The least of several, for the machine is never quiet. */
static struct cost pair_cost(void)
{
	struct cost least = { 1e9, 1e9 };

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct cost sum = { 0, 0 };

		for (unsigned i = 0; i < PAIRS / burst; i++) {
			struct cost cost = burst_cost();

			sum.calls += cost.calls * burst / PAIRS;
			sum.reading += cost.reading * burst / PAIRS;
		}
		least.calls = sum.calls < least.calls ? sum.calls : least.calls;
		least.reading = sum.reading < least.reading ? sum.reading : least.reading;
	}
	return least;
}

static void *read_on(void *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(*(int *)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	while (reading)
		pass_one();
	return NULL;
}

/* By the clock: what two cores can keep up. */
static double sustained_ns(void)
{
	static int cpu = 1;
	double least = 1e9;
	pthread_t reader;

	reading = 1;
	if (pthread_create(&reader, NULL, read_on, &cpu) != 0)
		return 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t began = clock_monotonic_ns();
		double ns;

		descend(DEPTH, PAIRS);
		ns = (double)(clock_monotonic_ns() - began) / PAIRS;
		least = ns < least ? ns : least;
	}
	ring_area_record(&area, NULL);             /* for the end of a thread frees something */
	reading = 0;
	pthread_join(reader, NULL);
	while (pass_one())
		;
	return least;
}

static void stay_on_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void know_main_stack(struct ring_control *control)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]"))
			sscanf(line, "%lx-%lx", &control->main_stack, &control->main_stack_end);
	if (maps)
		fclose(maps);
}

static unsigned longest_learned(void)
{
	unsigned longest = 0;

	for (unsigned i = 0; i < RING_LENGTHS; i++) {
		unsigned length = (ring_control(ring)->lengths[i] >> 16) * RING_UNIT;

		if (length != RING_STACK_UNKNOWN && length > longest)
			longest = length;
	}
	return longest;
}

static bool make_unwinder(void)
{
	module_map_init(&map);
	stacks = stack_table_new(1 << 20);
	unwinder = stacks ? unwinder_new(&map, stacks) : NULL;
	function = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
	return unwinder && process_map_update(getpid(), &map, unwinder) == 0;
}

/* In bursts, and the loss of time by the clock. */
static void measure(const char *what, double plain)
{
	struct cost cost = pair_cost();

	printf("%-32s %8.1f ns added to a pair, %8.1f to read it\n", what, cost.calls - plain, cost.reading);
}

/* --- as in a program that does something else between two calls --- */

#define LINE 64
#define COLD_PAIRS 50                  /* of a round */
#define COLD_LEAST_OF 8
#define COLD_TURNS 1000
#define JUMP_ON (LINE - 5)

static uint8_t *cold_code;
static volatile uint8_t cold_data[COLD_BYTES];

/* A jump in each line, from one to the next, and a return in the last: with the data as much as the first caches hold. */
static void make_cold_code(void)
{
	const uint8_t jump[] = { 0xe9, JUMP_ON, 0, 0, 0 };

	cold_code = mmap(NULL, COLD_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cold_code == MAP_FAILED)
		exit(1);
	for (size_t at = 0; at < COLD_BYTES; at += LINE)
		memcpy(cold_code + at, jump, sizeof(jump));
	cold_code[COLD_BYTES - LINE] = 0xc3;
}

static void use_the_caches(void)
{
	((void (*)(void))(uintptr_t)cold_code)();
	for (size_t at = 0; at < COLD_BYTES; at += LINE)
		(void)cold_data[at];
}

static __attribute__((noinline)) void cold_pairs(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		void *volatile block;

		use_the_caches();
		block = malloc(64);
		use_the_caches();
		free(block);
	}
}

/* With the jumps, or what they stand for. */
static void set_jumps(const struct ring_patches *patches, bool on)
{
	for (uint32_t i = 0; i < patches->count; i++) {
		const struct ring_patch *patch = &patches->items[i];
		uint8_t jump[ARCH_JUMP_SIZE];

		arch_put_jump((uintptr_t)patch->at, patch->site.at, jump);
		memcpy(patch->at, on ? jump : patch->text, sizeof(jump));
	}
}

static double least_cold_ns(const struct ring_patches *patches, bool on)
{
	double least = 1e9;

	set_jumps(patches, on);
	cold_pairs(COLD_PAIRS);
	for (unsigned round = 0; round < COLD_LEAST_OF; round++) {
		uint64_t began = cpu_ns();
		double ns;

		cold_pairs(COLD_PAIRS);
		ns = (double)(cpu_ns() - began) / COLD_PAIRS;
		least = ns < least ? ns : least;
	}
	while (pass_one())
		;
	return least;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* By turns, and the median of what each turn says: these differences are small beside what they are of. */
static void measure_cold(const struct ring_patches *patches)
{
	static double added[COLD_TURNS], plain[COLD_TURNS];

	for (unsigned turn = 0; turn < COLD_TURNS; turn++) {
		plain[turn] = least_cold_ns(patches, false);
		added[turn] = least_cold_ns(patches, true) - plain[turn];
	}
	qsort(added, COLD_TURNS, sizeof(*added), compare);
	qsort(plain, COLD_TURNS, sizeof(*plain), compare);
	printf("%-32s %8.1f ns added to a pair, half of all turns %.1f to %.1f; a pair takes %.0f with the rest\n",
	       "and the caches used in between", added[COLD_TURNS / 2], added[COLD_TURNS / 4], added[COLD_TURNS / 4 * 3],
	       plain[COLD_TURNS / 2]);
}

static void measure_length(uint32_t length, double plain)
{
	char what[64];

	burst = (unsigned)(ring_size / 2 / (length + 4 * RING_UNIT));
	ring_set_all_stack_lengths(ring, length);
	snprintf(what, sizeof(what), "%u bytes of stack", length);
	measure(what, plain);
}

static void patch(struct ring_patches *patches, bool sampled)
{
	ring_unpatch(patches);
	area.sampled = sampled;
	ring_patch_symbol(&area, "malloc", true, MALLOC, patches);
	ring_patch_symbol(&area, "free", false, FREE, patches);
}

/* What was drawn with another rate is drawn anew. */
static void set_rate(uint64_t rate)
{
	ring_set_sampling(ring, rate);
	memset(ring_control(ring)->draws_of, 0, sizeof(ring_control(ring)->draws_of));
}

/* Nearly none is, and one for each 512 KiB. */
static void measure_sampling(struct ring_patches *patches, double plain)
{
	burst = 1000;
	ring_set_all_stack_lengths(ring, 4096);
	ring_area_record(&area, NULL);
	set_rate(RING_SAMPLE_MAX);
	patch(patches, true);
	measure("samples, switched off", plain);
	ring_area_record(&area, ring);
	measure("not sampled", plain);
	set_rate(512 << 10);
	measure("sampled every 512 KiB", plain);
	measure_cold(patches);
	patch(patches, false);
}

static void measure_unwinding(double plain)
{
	unwinding = true;
	ring_set_all_stack_lengths(ring, RING_STACK_UNKNOWN);
	descend(DEPTH, 1);
	while (pass_one())
		;
	burst = (unsigned)(ring_size / 2 / (4096 + 4 * RING_UNIT));
	measure("as long as needed, unwound", plain);
	printf("%lu stacks cut, %u bytes learned\n", cut, longest_learned());
	printf("%-32s %8.1f ns added to a pair\n", "two threads, by the clock", sustained_ns() - plain);
}

static void measure_all(struct ring_patches *patches, double plain)
{
	static const uint32_t lengths[] = { 0, 256, 512, 1024, 2048, 4096, 8192 };

	patch(patches, false);
	measure("switched off", plain);
	ring_area_record(&area, ring);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		measure_length(lengths[i], plain);
	measure_sampling(patches, plain);
	measure_unwinding(plain);
}

int main(int argc, char **argv)
{
	static struct ring_patches patches;
	struct ring_control *control;
	double plain;

	if (argc > 1)
		ring_size = strtoull(argv[1], NULL, 10) << 20;
	if (ring_new(ring_size, &ring) < 0 || !make_unwinder())
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	stay_on_one_cpu();
	make_cold_code();
	control = ring_control(ring);
	/* A page that is touched first costs more than all else. */
	madvise(control, ring_mapping_size(ring), MADV_POPULATE_WRITE);
	control->state = RING_ON;
	control->wait_ticks = 1ULL << 40;
	control->may_yield = 1;
	know_main_stack(control);
	plain = pair_cost().calls;
	printf("as it is, a pair costs %.1f ns\n", plain);
	area.notes_pending = true;
	ring_area_map(&area, dlsym(RTLD_DEFAULT, "malloc"));
	if (argc > 2 && strcmp(argv[2], "samples") == 0)
		measure_sampling(&patches, plain);
	else
		measure_all(&patches, plain);
	printf("%lu records, %lu bytes of stack, %lu waits, %lu lost\n", records, bytes, control->waits, control->lost);
	ring_unpatch(&patches);
	ring_free(ring);
	unwinder_free(unwinder);
	stack_table_free(stacks);
	module_map_fini(&map);
	return 0;
}
