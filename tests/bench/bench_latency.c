/* How long a target waits: its own longest time between two mallocs, by its own clock, while it is attached to and while
 * snapshots are taken with many live blocks; and what those blocks cost the tracer.  Prints one JSON
 * object a line and judges nothing.
 *
 *	bench_latency [BLOCKS]          default 1000000
 *	bench_latency --large           the attach to the largest program alone
 *
 * The same program untraced, or traced with nothing else going on, is the measure of what the machine
 * itself adds. */
#include "driver.h"
#include "empty_stop.h"
#include "process.h"

#include "base/clock.h"
#include "model/engine_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTACHES 20
#define SNAPSHOTS 5
#define SLEEPERS 999           /* of a large program, beside one that allocates */
#define OBJECTS 300
#define OBJECT "tests/victims/plugin.so"
#define QUIET_MS 100           /* how long the program is watched with nothing going on */

struct series {
	double longest_ms[ATTACHES];
	unsigned count;
};

static void begin(struct victim *victim)
{
	victim_send(victim, 'r');
}

static void end(struct victim *victim, struct series *series)
{
	victim_command(victim, 's');
	if (victim_tally(victim, "calls") == 0)
		bench_fail("the target did not call malloc at all");
	series->longest_ms[series->count++] = (double)victim_tally(victim, "longest_ns") / 1e6;
}

static void watch_quiet(struct victim *victim, struct series *series)
{
	begin(victim);
	usleep(QUIET_MS * 1000);
	end(victim, series);
}

static void print_series(const char *name, const struct series *series)
{
	printf(", \"%s\": [", name);
	for (unsigned i = 0; i < series->count; i++)
		printf("%s%.3f", i ? ", " : "", series->longest_ms[i]);
	printf("]");
}

static struct victim *start(unsigned threads, long blocks)
{
	char thread_text[16], block_text[24];

	snprintf(thread_text, sizeof(thread_text), "%u", threads);
	snprintf(block_text, sizeof(block_text), "%ld", blocks);
	return victim_start(CPU_ANY, "tests/bench/latency", "--threads", thread_text, "--blocks", block_text,
			    NULL);
}

/* --- attaching and detaching --- */

static void measure_attach(struct victim *victim, unsigned threads, unsigned objects, enum engine_kind engine)
{
	struct driver_options options = { .engine = engine };
	struct series untraced = { .count = 0 }, attaching = { .count = 0 }, detaching = { .count = 0 };
	struct series held = { .count = 0 }, empty = { .count = 0 }, empty_held = { .count = 0 };

	for (unsigned i = 0; i < ATTACHES; i++) {
		struct driver *driver = driver_start(&options);

		watch_quiet(victim, &untraced);
		begin(victim);
		empty_held.longest_ms[empty_held.count++] = empty_stop(victim_pid(victim));
		end(victim, &empty);
		begin(victim);
		driver_attach(driver, victim_pid(victim));
		end(victim, &attaching);
		held.longest_ms[held.count++] = (double)driver_status(driver).longest_stop_us / 1e3;
		begin(victim);
		driver_detach(driver);
		end(victim, &detaching);
	}
	victim_quit(victim);
	printf("{\"bench\": \"attach\", \"threads\": %u, \"objects\": %u, \"engine\": \"%s\"", threads, objects,
	       engine == ENGINE_RING ? "ring" : "int3");
	print_series("untraced_longest_ms", &untraced);
	print_series("empty_stop_longest_ms", &empty);
	print_series("empty_stop_held_ms", &empty_held);
	print_series("attach_longest_ms", &attaching);
	print_series("attach_held_ms", &held);
	print_series("detach_longest_ms", &detaching);
	printf("}\n");
	fflush(stdout);
}

static void copy_object(const char *path)
{
	int from = open(bench_path(OBJECT), O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;

	if (from < 0 || to < 0 || fstat(from, &st) < 0 || sendfile(to, from, NULL, (size_t)st.st_size) != st.st_size)
		bench_fail("cannot copy %s to %s: %s", OBJECT, path, strerror(errno));
	close(from);
	close(to);
}

/* Each object is another file, as a program's plugins are. */
static struct victim *start_large(void)
{
	static char paths[OBJECTS][64];
	const char *argv[OBJECTS + 8] = { "tests/bench/latency", "--threads", "1", "--sleepers" };
	char folder[] = "/tmp/bench_latency.XXXXXX", count[16];
	struct victim *victim;

	if (!mkdtemp(folder))
		bench_fail("cannot make a folder in /tmp: %s", strerror(errno));
	snprintf(count, sizeof(count), "%d", SLEEPERS);
	argv[4] = count;
	for (unsigned i = 0; i < OBJECTS; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%u.so", folder, i);
		copy_object(paths[i]);
		argv[5 + i] = paths[i];
	}
	victim = victim_start_by(CPU_ANY, argv);
	for (unsigned i = 0; i < OBJECTS; i++)
		unlink(paths[i]);
	rmdir(folder);
	return victim;
}

/* --- many blocks --- */

/* What is in memory for this process alone. */
static uint64_t private_bytes(pid_t pid)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Private_Dirty: %lu kB", &kib);
	if (f)
		fclose(f);
	if (kib == 0)
		bench_fail("cannot read the tracer's memory from %s: %s", path, strerror(errno));
	return (uint64_t)kib * 1024;
}

static void measure_memory(struct victim *victim, struct driver *driver)
{
	struct wire_status before = driver_status(driver), after;
	uint64_t before_bytes = private_bytes(driver_pid(driver)), grown;
	uint64_t blocks;

	victim_command(victim, 'f');
	after = driver_status(driver);
	blocks = after.counters.live_blocks - before.counters.live_blocks;
	if (blocks != (uint64_t)victim_tally(victim, "blocks") || !after.exact)
		bench_fail("of %ld blocks the tracer saw %" PRIu64, victim_tally(victim, "blocks"), blocks);
	grown = private_bytes(driver_pid(driver)) - before_bytes;
	printf("{\"bench\": \"memory\", \"blocks\": %" PRIu64 ", \"block_table_bytes\": %" PRIu64
	       ", \"tables_bytes\": %" PRIu64 ", \"resident_bytes\": %" PRIu64 ", \"fill_seconds\": %.2f}\n",
	       blocks, after.block_memory - before.block_memory, after.tracer_memory - before.tracer_memory, grown,
	       (double)victim_tally(victim, "ns") / 1e9);
	fflush(stdout);
}

static uint64_t snap(struct victim *victim, struct driver *driver, bool with_blocks, struct series *series)
{
	uint64_t bytes;

	begin(victim);
	bytes = driver_snapshot(driver, with_blocks);
	end(victim, series);
	return bytes;
}

static void measure_snapshots(struct victim *victim, struct driver *driver, long blocks)
{
	struct series quiet = { .count = 0 }, plain = { .count = 0 }, full = { .count = 0 };
	uint64_t plain_bytes = 0, full_bytes = 0, plain_ns = 0, full_ns = 0;

	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		uint64_t begun_ns;

		watch_quiet(victim, &quiet);
		begun_ns = clock_monotonic_ns();
		plain_bytes = snap(victim, driver, false, &plain);
		plain_ns += clock_monotonic_ns() - begun_ns;
		begun_ns = clock_monotonic_ns();
		full_bytes = snap(victim, driver, true, &full);
		full_ns += clock_monotonic_ns() - begun_ns;
	}
	printf("{\"bench\": \"snapshot\", \"blocks\": %ld, \"image_bytes\": %" PRIu64
	       ", \"image_bytes_with_blocks\": %" PRIu64 ", \"seconds\": %.3f, \"seconds_with_blocks\": %.3f",
	       blocks, plain_bytes, full_bytes, (double)plain_ns / 1e9 / SNAPSHOTS,
	       (double)full_ns / 1e9 / SNAPSHOTS);
	print_series("traced_longest_ms", &quiet);
	print_series("snapshot_longest_ms", &plain);
	print_series("snapshot_blocks_longest_ms", &full);
	printf("}\n");
	fflush(stdout);
}

static void measure_blocks(long blocks)
{
	struct driver_options options = { .engine = ENGINE_INT3 };
	struct victim *victim = start(1, blocks);
	struct driver *driver = driver_start(&options);

	driver_attach(driver, victim_pid(victim));
	measure_memory(victim, driver);
	measure_snapshots(victim, driver, blocks);
	driver_detach(driver);
	victim_quit(victim);
}

int main(int argc, char **argv)
{
	bool large_alone = argc > 1 && strcmp(argv[1], "--large") == 0;
	long blocks = argc > 1 && !large_alone ? atol(argv[1]) : 1000000;

	if (blocks < 1)
		bench_fail("usage: bench_latency [BLOCKS | --large]");
	for (enum engine_kind engine = ENGINE_INT3; engine <= ENGINE_RING; engine++) {
		if (!large_alone) {
			measure_attach(start(1, 0), 1, 0, engine);
			measure_attach(start(16, 0), 16, 0, engine);
		}
		measure_attach(start_large(), 1 + SLEEPERS, OBJECTS, engine);
	}
	if (!large_alone)
		measure_blocks(blocks);
	return 0;
}
