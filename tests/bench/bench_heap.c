/* What the table of live blocks costs: prints one JSON object a line and judges nothing.
 *
 *	bench_heap [BLOCKS...]        default 100000 1000000 10000000
 *
 * Addresses are handed out like an allocator's: the heap grows upwards, a freed place goes to a
 * later allocation.  "churn" frees any block, "young" one of the newest few thousand, as most programs
 * do.  "long churn" is LONG_CHURN times as much of the first, at LONG_CHURN_BLOCKS blocks or fewer: the memory
 * before and after it.  "random_read_ns" is the floor of the same run: one read of a random place in as much memory
 * as the table takes. */
#include "base/clock.h"
#include "model/heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STACKS 10000
#define LONG_CHURN 5
#define LONG_CHURN_BLOCKS 1000000u
#define YOUNG 4000
#define BATCH 4096              /* so many addresses are chosen before the clock runs */
#define CHURN_EVENTS (2 * 512u * BATCH)

struct run {
	struct heap *heap;
	raddr *live;
	size_t count;
	raddr top;
	uint64_t random;
	uint64_t spent_ns;              /* by what is measured: choosing the addresses is not */
	uint64_t longest_ns;
	bool timed;                     /* each event by itself */
};

static uint64_t next_random(struct run *run)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	run->random ^= run->random << 17;
	return run->random;
}

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		abort();
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The thread's own clock: another process on this core is not our doing. */
static uint64_t spent_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void apply(struct run *run, const struct alloc_event *event)
{
	uint64_t begun_ns;

	if (!run->timed) {
		if (heap_apply(run->heap, event) < 0)
			abort();
		return;
	}
	begun_ns = spent_ns();
	if (heap_apply(run->heap, event) < 0)
		abort();
	begun_ns = spent_ns() - begun_ns;
	if (begun_ns > run->longest_ns)
		run->longest_ns = begun_ns;
}

static void born(struct run *run, raddr address)
{
	uint64_t random = next_random(run);
	struct alloc_event event = {
		.kind = ALLOC_BORN, .tid = 1, .address = address,
		.stack = (uint32_t)(random % STACKS), .size = random >> 20 & 63,
	};

	apply(run, &event);
}

static void freed(struct run *run, raddr address)
{
	struct alloc_event event = { .kind = ALLOC_FREED, .tid = 1, .old_address = address };

	apply(run, &event);
}

static void grow(struct run *run)
{
	uint64_t begun_ns;

	for (size_t i = 0; i < run->count; i++) {
		run->live[i] = run->top;
		run->top += 16 + (next_random(run) & 7) * 16;
	}
	begun_ns = spent_ns();
	for (size_t i = 0; i < run->count; i++)
		born(run, run->live[i]);
	run->spent_ns += spent_ns() - begun_ns;
}

/* Pairs of a free of one of the last `among` blocks and an allocation that gets its place. */
static void churn_among(struct run *run, size_t among)
{
	static raddr chosen[BATCH];
	uint64_t begun_ns;

	for (unsigned done = 0; done < CHURN_EVENTS / 2; done += BATCH) {
		for (unsigned i = 0; i < BATCH; i++)
			chosen[i] = run->live[run->count - 1 - next_random(run) % among];
		begun_ns = spent_ns();
		for (unsigned i = 0; i < BATCH; i++) {
			freed(run, chosen[i]);
			born(run, chosen[i]);
		}
		run->spent_ns += spent_ns() - begun_ns;
	}
}

static void churn(struct run *run)
{
	churn_among(run, run->count);
}

static void churn_young(struct run *run)
{
	churn_among(run, run->count < YOUNG ? run->count : YOUNG);
}

static void shrink(struct run *run)
{
	uint64_t begun_ns;

	for (size_t i = run->count; i > 1; i--) {
		size_t at = next_random(run) % i;
		raddr address = run->live[at];

		run->live[at] = run->live[i - 1];
		run->live[i - 1] = address;
	}
	begun_ns = spent_ns();
	for (size_t i = run->count; i > 1; i--)
		freed(run, run->live[i - 1]);
	run->spent_ns += spent_ns() - begun_ns;
}

static double phase(struct run *run, void (*work)(struct run *), double events)
{
	run->spent_ns = 0;
	work(run);
	return (double)run->spent_ns / events;
}

/* Every read depends on the one before, as those of one event do. */
static double random_read_ns(size_t bytes)
{
	enum { READS = 2000000 };
	size_t lines = bytes / 64 + 1;
	struct { uint64_t next, pad[7]; } *memory = calloc(lines, sizeof(*memory));
	volatile uint64_t kept;
	uint64_t begun_ns, at = 1;

	if (!memory)
		abort();
	for (size_t i = 0; i < lines; i++)
		memory[i].next = i * 0x9e3779b97f4a7c15ULL;
	begun_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < READS; i++)
		at = memory[(at ^ i) * 0xbf58476d1ce4e5b9ULL % lines].next + i;
	begun_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
	kept = at;
	(void)kept;
	free(memory);
	return (double)begun_ns / READS;
}

/* What a long churn leaves of memory that was enough at its beginning. */
static void measure_long_churn(struct run *run)
{
	size_t table = heap_memory(run->heap), resident = resident_bytes();

	for (int i = 0; i < LONG_CHURN; i++)
		churn(run);
	printf("\"long_churn_events\": %u, \"long_churn_bytes_before\": %zu, \"long_churn_bytes_after\": %zu, "
	       "\"long_churn_resident_before\": %zu, \"long_churn_resident_after\": %zu, ",
	       LONG_CHURN * CHURN_EVENTS, table, heap_memory(run->heap), resident, resident_bytes());
}

static void start(struct run *run, size_t count, bool timed)
{
	*run = (struct run){ .count = count, .top = 0x555500000000, .timed = timed,
			     .random = 88172645463325252ULL };
	run->live = calloc(count, sizeof(*run->live));
	run->heap = heap_new(NULL, false, clock_monotonic_ns());
	if (!run->live || !run->heap)
		abort();
	for (size_t i = 0; i < count; i++)
		run->live[i] = 1;
}

static void end(struct run *run)
{
	heap_free(run->heap);
	free(run->live);
}

static void measure(size_t count)
{
	double grow_ns, churn_ns, young_ns, shrink_ns, per_block, all_per_block, resident;
	size_t before, grown;
	struct run run;

	start(&run, count, false);
	before = resident_bytes();
	grow_ns = phase(&run, grow, (double)count);
	grown = heap_block_memory(run.heap);
	resident = (double)(resident_bytes() - before) / (double)count;
	churn_ns = phase(&run, churn, CHURN_EVENTS);
	young_ns = phase(&run, churn_young, CHURN_EVENTS);
	per_block = (double)heap_block_memory(run.heap) / (double)count;
	all_per_block = (double)heap_memory(run.heap) / (double)count;
	printf("{\"bench\": \"heap\", \"blocks\": %zu, \"bytes_per_block\": %.2f, "
	       "\"bytes_per_block_after_churn\": %.2f, \"all_bytes_per_block\": %.2f, "
	       "\"resident_bytes_per_block\": %.2f, ",
	       count, (double)grown / (double)count, per_block, all_per_block, resident);
	if (count <= LONG_CHURN_BLOCKS)
		measure_long_churn(&run);
	shrink_ns = phase(&run, shrink, (double)(count - 1));
	printf("\"grow_ns_per_event\": %.1f, \"churn_ns_per_event\": %.1f, "
	       "\"young_ns_per_event\": %.1f, \"shrink_ns_per_event\": %.1f, "
	       "\"random_read_ns\": %.1f, ",
	       grow_ns, churn_ns, young_ns, shrink_ns, random_read_ns(grown));
	end(&run);

	start(&run, count, true);
	grow(&run);
	printf("\"longest_growing_us\": %.1f, ", (double)run.longest_ns / 1e3);
	churn(&run);
	shrink(&run);
	printf("\"longest_operation_us\": %.1f}\n", (double)run.longest_ns / 1e3);
	fflush(stdout);
	end(&run);
}

int main(int argc, char **argv)
{
	static const size_t usual[] = { 100000, 1000000, 10000000 };

	for (int i = 1; i < argc; i++)
		measure(strtoull(argv[i], NULL, 10));
	for (size_t i = 0; argc < 2 && i < sizeof(usual) / sizeof(*usual); i++)
		measure(usual[i]);
	return 0;
}
