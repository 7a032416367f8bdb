/* Drives a tracer as the daemon does, over its socket, so that nothing but the tracer is measured.
 * Whatever fails ends the benchmark with a message. */
#ifndef ALLOCWATCH_BENCH_DRIVER_H
#define ALLOCWATCH_BENCH_DRIVER_H

#include "tracer/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* tracemalloc's and allocwatch's usual limit in the benchmarks: that of `attach`. */
#define BENCH_FRAMES 25

struct driver;

struct driver_options {
	const char *placement;          /* for ALLOCWATCH_PLACEMENT; NULL: the tracer's own policy */
	const char *counter_file;       /* preload the allocation counter; NULL: no */
	uint8_t engine;                 /* enum engine_kind */
	uint32_t ring_wait_ms;          /* 0: the default */
};

struct driver *driver_start(const struct driver_options *options);
pid_t driver_pid(const struct driver *driver);
void driver_attach(struct driver *driver, pid_t target);
struct wire_status driver_status(struct driver *driver);
/* Asks for a snapshot and waits for its image; how large it is. */
uint64_t driver_snapshot(struct driver *driver, bool with_blocks);
/* Detaches, waits for the tracer's end, frees. */
void driver_detach(struct driver *driver);

#endif
