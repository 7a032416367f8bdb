/* What a daemon is to watch, and what it has watched: the rules, and the processes that were traced for them, in one SQLite
 * file of its own, beside the snapshots.  A snapshot belongs to a rule by its process.
 *
 * The whole is small and is written as a whole, in one transaction: what is on disk is what was last saved, whenever
 * the writer dies. */
#ifndef ALLOCWATCH_STORE_HISTORY_H
#define ALLOCWATCH_STORE_HISTORY_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_RULES_MAX 256
#define HISTORY_RUNS_MAX 4096          /* of all rules; the oldest make way */
#define HISTORY_WHO_MAX 512            /* bytes of a unit's name or a program's path, its NUL counted */

/* Of each size in a rule: the client, the daemon and its configuration take no more. */
#define HISTORY_SIZE_MAX (4095ULL << 40)
#define HISTORY_SIZE_MAX_TEXT "4095TiB"

/* What is kept of the snapshots of one rule; 0: no limit. */
struct history_limits {
	uint32_t count;
	uint64_t age_ns, bytes;
};

struct history_rule {
	char who[HISTORY_WHO_MAX];     /* "redis-server.service", or a program's path */
	bool is_program;
	bool follow_forks;
	bool from_start;               /* of a unit: traced from its first instruction */
	bool has_engine;               /* else the configuration's serves */
	int engine;                    /* enum engine_kind */
	uint32_t frames;
	uint64_t every_ns;
	struct history_limits limits;
	uint64_t rss_bytes;            /* 0, or a snapshot is taken when resident memory passes it */
	uint64_t slope_bytes;          /* the same of its growth a minute */
};

/* One process that was traced for a rule. */
struct history_run {
	char who[HISTORY_WHO_MAX];
	int pid;
	uint64_t start_time;           /* field 22 of /proc/PID/stat */
	uint64_t since_ns, until_ns;   /* since the epoch; until 0: it is traced, or its daemon did not see the end */
	bool has_status;
	int status;                    /* as from waitpid, when has_status */
};

struct history {
	VEC_OF(struct history_rule) rules;
	VEC_OF(struct history_run) runs;        /* by since_ns */
};

void history_fini(struct history *history);
/* 0; -ENOENT: there is none; or negative errno with *ret_reason, to be freed.  What is damaged, foreign or newer is left
 * alone. */
int history_load(const char *path, struct history *ret, char **ret_reason);
/* 0 or negative errno with *ret_reason, to be freed. */
int history_save(const char *path, const struct history *history, char **ret_reason);

/* A snapshot of a rule's process, as far as it matters for keeping. */
struct history_item {
	uint64_t taken_ns, bytes;
	bool spared;                   /* counts, and stays */
};

/* Of items in the order in which they were taken: the one that goes next so that the limits hold, or -1. */
long history_next_to_go(const struct history_item *items, size_t count, const struct history_limits *limits,
			uint64_t now_ns);

#endif
