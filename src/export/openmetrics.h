/* Figures of traced processes as a text for Prometheus and its like: OpenMetrics 1.0 (openmetrics.io), or Prometheus' own
 * text format 0.0.4, which promtool checks and old servers want.  The values are the same; names of families of counters,
 * information and the end of the text are written in another way.
 *
 * Label values are whatever somebody named a file: escaped, cut to OPENMETRICS_LABEL_MAX characters, and what is no UTF-8
 * or steers a terminal becomes \xNN.  Groups that look the same after that are one.  Knows no process and no clock. */
#ifndef ALLOCWATCH_EXPORT_OPENMETRICS_H
#define ALLOCWATCH_EXPORT_OPENMETRICS_H

#include "model/heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPENMETRICS_LABEL_MAX 200
#define OPENMETRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define OPENMETRICS_PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum openmetrics_format { OPENMETRICS_1_0, OPENMETRICS_PROMETHEUS };
/* "openmetrics", "prometheus".  -EINVAL. */
int openmetrics_format_parse(const char *name, enum openmetrics_format *ret_format);

struct openmetrics_group {
	const char *file;
	uint32_t line;                 /* 0: the file is an object with an offset */
	uint64_t live_bytes, live_blocks;
};

struct openmetrics_domain {
	const char *name;
	uint64_t live_bytes, live_blocks;
};

struct openmetrics_target {
	int pid;
	uint32_t uid;                  /* who has it traced */
	const char *exe, *engine;
	bool traced, exact, crash_safe;
	uint64_t since_ns;             /* CLOCK_REALTIME */
	struct heap_counters counters;
	uint64_t truncated_stacks, probe_gaps, pending_calls, children_not_followed;
	uint64_t tracer_memory, stops, held_us, longest_stop_us;
	const struct openmetrics_domain *domains;
	size_t domain_count;
	const struct openmetrics_group *groups;
	size_t group_count;
	uint64_t groups_ns;            /* CLOCK_REALTIME: when they were so; 0: there are none */
};

struct openmetrics {
	const char *version;
	size_t snapshots;              /* kept, as far as who asks sees them */
	const struct openmetrics_target *targets;      /* each pid once */
	size_t target_count;
	/* Of the daemon as a whole; left out for who sees a part of it only. */
	bool whole;
	size_t clients;
	uint64_t snapshot_memory, snapshot_disk, resident_memory, cpu_us, start_ns;
};

/* *ret_text is NUL-terminated UTF-8, to be freed.  0 or -ENOMEM. */
int openmetrics_write(const struct openmetrics *metrics, enum openmetrics_format format, char **ret_text,
		      size_t *ret_len);

#endif
