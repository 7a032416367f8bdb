#define _GNU_SOURCE
/* What the ring engine's code costs the thread that allocates: malloc and free of this process get jumps.
 *
 * Pairs at some depth of stack, in bursts that the ring has room for; what the burst left is passed between them and not
 * measured.  Then without bursts, a thread on the other core passing the records.  Nothing is unwound here. */
#include "../unit/ring_fixture.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RING_SIZE (16u << 20)
#define BURST 1500
#define BURSTS 100
#define ROUNDS 7
#define DEPTH 20

static struct ring *ring;
static struct ring_area area;
static volatile int reading;
static uint64_t records, bytes;

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

static bool pass_one(void)
{
	struct ring_record record;

	if (ring_next(ring, &record) != 1)
		return false;
	records++;
	bytes += record.stack_length;
	ring_done(ring);
	return true;
}

static double burst_ns(bool drain)
{
	uint64_t began = clock_monotonic_ns(), took;

	descend(DEPTH, BURST);
	took = clock_monotonic_ns() - began;
	while (drain && pass_one())
		;
	return (double)took / BURST;
}

/* The least of several, for the machine is never quiet. */
static double pair_ns(bool drain)
{
	double least = 1e9;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double sum = 0;

		for (unsigned i = 0; i < BURSTS; i++)
			sum += burst_ns(drain);
		if (sum / BURSTS < least)
			least = sum / BURSTS;
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

static double with_reader_ns(void)
{
	static int cpu = 1;
	pthread_t reader;
	double least;

	reading = 1;
	if (pthread_create(&reader, NULL, read_on, &cpu) != 0)
		return 0;
	least = pair_ns(false);
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

static void print_line(const char *what, double ns, double plain)
{
	printf("%-44s %8.1f ns a pair, added %8.1f\n", what, ns, ns - plain);
}

int main(void)
{
	static const unsigned lengths[] = { 0, 256, 512, 1024, 2048, 4096, 8192 };
	static struct ring_patches patches;
	struct ring_control *control;
	double plain;

	if (ring_new(RING_SIZE, &ring) < 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	stay_on_one_cpu();
	control = ring_control(ring);
	/* A page that is touched first costs more than all else. */
	madvise(control, ring_mapping_size(ring), MADV_POPULATE_WRITE);
	control->state = RING_ON;
	control->wait_ticks = UINT32_MAX;
	know_main_stack(control);
	plain = pair_ns(false);
	print_line("as it is", plain, plain);
	ring_area_map(&area, dlsym(RTLD_DEFAULT, "malloc"));
	ring_patch_symbol(&area, "malloc", true, 1, &patches);
	ring_patch_symbol(&area, "free", false, 20, &patches);
	print_line("switched off", pair_ns(false), plain);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		char what[64];

		ring_set_all_stack_lengths(ring, lengths[i]);
		ring_area_record(&area, ring);
		snprintf(what, sizeof(what), "%u bytes of stack, in bursts", lengths[i]);
		print_line(what, pair_ns(true), plain);
		snprintf(what, sizeof(what), "%u bytes of stack, read by another thread", lengths[i]);
		print_line(what, with_reader_ns(), plain);
		ring_area_record(&area, NULL);
	}
	printf("%lu records, %lu bytes of stack, %lu waits, %lu lost\n", records, bytes, control->waits, control->lost);
	ring_unpatch(&patches);
	ring_free(ring);
	return 0;
}
