/* The options of all commands: each is described once, and a command lists which it takes. */
#ifndef ALLOCWATCH_CLI_OPTIONS_H
#define ALLOCWATCH_CLI_OPTIONS_H

#include "base/vec.h"
#include "cli/top_model.h"
#include "model/filter.h"
#include "model/statistics.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum option_id {
	OPTION_ALL,
	OPTION_ALLOCATOR,
	OPTION_APPEND,
	OPTION_BLOCKS,
	OPTION_BORN,
	OPTION_BY,
	OPTION_CHURN,
	OPTION_CUMULATIVE,
	OPTION_DOMAINS,
	OPTION_DURATION,
	OPTION_ENGINE,
	OPTION_EVERY,
	OPTION_EXE,
	OPTION_FAIL_OVER,
	OPTION_FILTER,
	OPTION_FOLLOW_FORKS,
	OPTION_FORMAT,
	OPTION_FRAMES,
	OPTION_FRAMES_SHOWN,
	OPTION_FROM_START,
	OPTION_FUNCTIONS,
	OPTION_HIDE,
	OPTION_HISTOGRAM,
	OPTION_HOLD,
	OPTION_INTERVAL,
	OPTION_ITERATIONS,
	OPTION_KEEP,
	OPTION_KEEP_AGE,
	OPTION_KEEP_COUNT,              /* --keep, too: how many, not whether */
	OPTION_KEEP_SIZE,
	OPTION_KEY,
	OPTION_LIMIT,
	OPTION_METRICS_FORMAT,          /* --format, too */
	OPTION_MOST_RECENT_FIRST,
	OPTION_NAME,
	OPTION_OLDER_THAN,
	OPTION_OUTPUT,
	OPTION_PEAK,
	OPTION_PRETTY,
	OPTION_PYTHON,
	OPTION_RELEASE,
	OPTION_RING_READERS,
	OPTION_RING_WAIT,
	OPTION_SAMPLE_BYTES,
	OPTION_RSS_LIMIT,
	OPTION_RSS_SLOPE,
	OPTION_SHOW_RUNTIME,
	OPTION_SORT,
	OPTION_STRICT,
	OPTION_TOP_SORT,                /* --sort, too: of what is live, not of differences */
	/* taken by every command */
	OPTION_HELP,
	OPTION_JSON,
	OPTION_SOCKET,
	OPTION_VERSION,
	OPTION_COUNT
};

#define OPTION(name) (1ULL << OPTION_##name)
#define OPTIONS_COMMON (OPTION(HELP) | OPTION(JSON) | OPTION(SOCKET) | OPTION(VERSION))

#define FILTERS_MAX 1000
#define FRAMES_MAX 1024
#define ALLOCATORS_MAX 8

struct options {
	uint64_t given;                 /* OPTION() bits */
	const char *socket, *name, *engine, *domains, *output, *format;
	uint32_t frames;                /* 0: the default */
	unsigned python;                /* minor version of Python 3 to export for; 0: the default */
	int64_t frames_shown;
	uint64_t limit;                 /* 0: none given */
	uint64_t duration_ns;
	uint64_t ring_wait_ns;          /* 0: the default */
	unsigned ring_readers;          /* 0: as many as are needed */
	uint64_t sample_bytes;          /* one sample for so many; 0: all is recorded */
	uint64_t older_than_ns;
	uint64_t fail_over;
	uint64_t interval_ns;
	const char *exe;
	uint64_t every_ns, keep_age_ns, keep_bytes;
	uint64_t rss_limit, rss_slope;  /* bytes; a minute */
	uint32_t keep;                  /* 0: none given */
	uint64_t iterations;            /* 0: none given */
	enum statistics_key key;
	enum diff_sort sort;
	enum top_sort top_sort;
	VEC_OF(const char *) allocators;        /* descriptions */
	VEC_OF(struct filter) filters;
	VEC_OF(const char *) filter_texts;      /* as they were given */
};

static inline bool options_have(const struct options *options, uint64_t bits)
{
	return options->given & bits;
}

struct command;

/* Reads the options of `command` (NULL: those before the command, up to the first argument) from
 * argv[1] on, adding to *options; *ret_first is the index of the first argument that is none.
 * Returns an exit status: EXIT_USAGE when it has complained on stderr. */
int options_parse(struct options *options, const struct command *command, int argc, char **argv,
		  int *ret_first);
void options_fini(struct options *options);

/* "  --limit N     show at most N rows", one line for each option in `bits`. */
void options_print(FILE *out, uint64_t bits);

#endif
