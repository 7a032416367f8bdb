/* Snapshot files that somebody made to harm: reading them and working with what was read.  Built with
 * sanitizers, and with checksums not looked at (FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION), since who means
 * harm can compute them. */
#include "fuzz_driver.h"

#include "export/text.h"
#include "export/tracemalloc.h"
#include "model/statistics.h"
#include "model/trend.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SNAPSHOTS_MAX 4                 /* looked at in one file */
#define EXPORT_BLOCKS_MAX 20000u        /* more would only take time */
#define MUST(claim) \
	do { \
		if (!(claim)) { \
			fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #claim); \
			abort(); \
		} \
	} while (0)

static char folder[200], path[240], other[240];
static FILE *nowhere;

static void clean_up(void)
{
	char journal[300];

	unlink(path);
	unlink(other);
	snprintf(journal, sizeof(journal), "%s-journal", path);
	unlink(journal);
	rmdir(folder);
}

static void prepare(void)
{
	if (nowhere)
		return;
	snprintf(folder, sizeof(folder), "%s/fuzz-store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	MUST(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	nowhere = fopen("/dev/null", "w");
	MUST(nowhere);
	atexit(clean_up);
}

static void write_file(const uint8_t *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0);
	MUST(write(fd, data, len) == (ssize_t)len);
	close(fd);
}

static uint8_t *read_file(size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	uint8_t *data = malloc(FUZZ_INPUT_MAX);

	MUST(f && data);
	*ret_len = fread(data, 1, FUZZ_INPUT_MAX, f);
	fclose(f);
	return data;
}

/* --- working with a snapshot --- */

static void group_by(const struct snapshot *s, enum statistics_key key, bool cumulative)
{
	const struct statistics_query query = { .key = key, .cumulative = cumulative };
	const struct text_style style = { .functions = true };
	struct statistics *statistics;
	const char *reason;

	if (statistics_make(s, &query, &statistics, &reason) < 0)
		return;
	for (size_t i = 0; i < statistics->row_count && i < 50; i++) {
		text_statistic(nowhere, statistics, &statistics->rows[i], false);
		text_statistic_traceback(nowhere, statistics, &statistics->rows[i], false, &style);
	}
	text_pretty(nowhere, statistics, 10, &style.source);
	statistics_free(statistics);
	MUST(statistics_compare(s, s, &query, &statistics, &reason) == 0);
	for (size_t i = 0; i < statistics->row_count; i++)
		MUST(statistics->rows[i].size_diff == 0 && statistics->rows[i].count_diff == 0);
	statistics_free(statistics);
}

/* Questions beyond tracemalloc's: each is answered or refused with a reason, and an answer can be printed. */
static void ask(const struct snapshot *old, const struct snapshot *new, const struct statistics_query *query)
{
	struct statistics *statistics;
	const char *reason = NULL;
	int r = old ? statistics_compare(old, new, query, &statistics, &reason) :
		      statistics_make(new, query, &statistics, &reason);

	if (r < 0) {
		MUST(r == -EINVAL && reason && *reason);
		return;
	}
	for (size_t i = 0; i < statistics->row_count && i < 50; i++) {
		const struct statistic *row = &statistics->rows[i];

		MUST(row->size <= INT64_MAX && row->count <= INT64_MAX && row->youngest_ns <= row->oldest_ns);
		text_statistic(nowhere, statistics, row, old != NULL);
		text_histogram(nowhere, row);
	}
	statistics_free(statistics);
}

/* The same heap at three moments, unless the file says something else: nothing grows. */
static void follow(const struct snapshot *s, const struct statistics_query *query)
{
	struct snapshot later[2] = { *s, *s };
	const struct snapshot *all[] = { s, &later[0], &later[1] };
	struct trend *trend;
	const char *reason = NULL;
	int r;

	for (size_t i = 0; i < 2; i++) {
		later[i].clock_ns += i + 1;
		later[i].taken_ns += i + 1;
	}
	r = trend_make(all, 3, query, &trend, &reason);
	if (r < 0) {
		MUST(r == -EINVAL && reason && *reason);
		return;
	}
	for (size_t i = 0; i < trend->statistics->row_count; i++)
		MUST(trend->rows[i].growth == 0 && trend->rows[i].steadiness == 0);
	trend_free(trend);
}

static void ask_beyond(const struct snapshot *s, enum statistics_key key)
{
	const struct block_ages ages = statistics_older_than(s->traces.count);
	const struct statistics_query queries[] = {
		{ .key = key, .ages = ages }, { .key = key, .ages = ages, .cumulative = true },
		{ .key = key, .churn = true, .sort = SORT_CHURN }, { .key = key, .churn = true, .cumulative = true },
		{ .key = key, .peak = true }, { .key = key, .peak = true, .cumulative = true },
		{ .key = key, .histogram = true }, { .key = key, .born = true },
	};
	struct snapshot later = *s;

	later.clock_ns += 1000;
	for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
		ask(NULL, s, &queries[i]);
		ask(s, &later, &queries[i]);
		follow(s, &queries[i]);
	}
}

static void export_it(const struct snapshot *s)
{
	const struct tracemalloc_options options = { 0 };
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->traces.count; i++)
		blocks += s->traces.items[i].live_blocks;
	if (blocks <= EXPORT_BLOCKS_MAX)
		MUST(tracemalloc_write(nowhere, s, &options) == 0);
}

/* What could be read can be written, and is then the same. */
static void save_again(const struct snapshot *s)
{
	struct snapshot *again;
	char *reason;

	MUST(store_save(other, s, &reason) == 0);
	MUST(store_load(other, 0, &again, &reason) == 0);
	MUST(again->traces.count == s->traces.count && again->blocks.count == s->blocks.count);
	for (size_t i = 0; i < s->traces.count; i++)
		MUST(memcmp(&again->traces.items[i].domain, &s->traces.items[i].domain,
			    sizeof(struct snapshot_trace) - offsetof(struct snapshot_trace, domain)) == 0);
	for (size_t i = 0; i < s->blocks.count; i++)
		MUST(again->blocks.items[i].age_ns == s->blocks.items[i].age_ns &&
		     again->blocks.items[i].thread == s->blocks.items[i].thread);
	MUST(again->clock_ns == s->clock_ns && again->counters.peak_ns == s->counters.peak_ns);
	snapshot_put(again);
}

static void use(const struct snapshot *s)
{
	const char *reason;

	MUST(snapshot_check(s, &reason) == 0);
	for (int key = KEY_LINENO; key <= KEY_DOMAIN; key++) {
		group_by(s, (enum statistics_key)key, false);
		group_by(s, (enum statistics_key)key, true);
	}
	/* By one of the keys: these questions are many. */
	ask_beyond(s, (enum statistics_key)fuzz_pick(KEY_DOMAIN + 1));
	export_it(s);
	save_again(s);
}

/* --- the target --- */

/* Failures have a reason and a known errno. */
static bool passed(int r, char **reason)
{
	if (r < 0) {
		MUST(r == -EBADMSG || r == -EMEDIUMTYPE || r == -EPROTONOSUPPORT || r == -EBUSY || r == -ENOENT ||
		     r == -EACCES || r == -ENOMEM);
		MUST(*reason && **reason);
	}
	free(*reason);
	return r == 0;
}

/* 0: refused, 1: something could be read. */
static int look_at(void)
{
	struct snapshot *snapshot;
	unsigned count = 0, which;
	char *reason;
	int found = 0;

	if (!passed(store_count(path, &count, &reason), &reason))
		return 0;
	MUST(count > 0);
	for (which = 1; which <= count && which <= SNAPSHOTS_MAX; which++) {
		if (passed(store_describe(path, which, &snapshot, &reason), &reason))
			snapshot_put(snapshot);
		if (!passed(store_load(path, which, &snapshot, &reason), &reason))
			continue;
		use(snapshot);
		found = 1;
		snapshot_put(snapshot);
	}
	passed(store_find(path, "exit", &which, &reason), &reason);
	return found;
}

/* Adding to such a file is refused or goes through; reading it changes nothing. */
static void add_to(const uint8_t *data, size_t len)
{
	struct snapshot *snapshot = snapshot_new();
	size_t len_after;
	uint8_t *after = read_file(&len_after);
	char *reason;
	int r;

	MUST(snapshot);
	MUST(len_after == len && memcmp(after, data, len) == 0);
	free(after);
	snapshot->pid = 4242;
	snapshot->start_time = 1;
	r = store_append(path, snapshot, &reason);
	MUST(r == 0 || reason);
	free(reason);
	snapshot_put(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int found;

	if (len > FUZZ_INPUT_MAX)
		return 0;
	prepare();
	write_file(data, len);
	found = look_at();
	fuzz_count(found);
	add_to(data, len);
	return 0;
}

/* --- changes that leave the file a sound database --- */

static const char *const columns[][2] = {
	{ "process", "pid" }, { "process", "snapshots" }, { "process", "exe" }, { "snapshot", "number" },
	{ "snapshot", "frames_limit" }, { "snapshot", "exact" }, { "snapshot", "has_blocks" },
	{ "snapshot", "live_bytes" }, { "snapshot", "name" }, { "snapshot", "taken_ns" }, { "string", "id" },
	{ "string", "text" }, { "module", "id" }, { "module", "path" }, { "module", "build_id" }, { "frame", "id" },
	{ "frame", "module" }, { "frame", "kind" }, { "frame", "offset" }, { "location", "frame" },
	{ "location", "position" }, { "location", "function" }, { "location", "file" }, { "location", "line" },
	{ "location", "function_offset" }, { "location", "inlined" }, { "node", "id" }, { "node", "parent" },
	{ "node", "frame" }, { "trace", "id" }, { "trace", "snapshot" }, { "trace", "stack" }, { "trace", "domain" },
	{ "trace", "live_blocks" }, { "trace", "live_bytes" }, { "trace", "total_bytes" }, { "block", "id" },
	{ "block", "trace" }, { "block", "address" }, { "block", "size" }, { "block", "age_ns" },
	{ "block", "thread" }, { "trace", "total_blocks" }, { "trace", "temporary_blocks" }, { "trace", "peak_blocks" },
	{ "trace", "peak_bytes" }, { "snapshot", "clock_ns" }, { "snapshot", "peak_ns" }, { "snapshot", "peak_blocks" },
	{ "snapshot", "peak_bytes" }, { "snapshot", "attached_ns" }, { "process", "start_time" },
};

static const char *const values[] = {
	"0", "1", "2", "3", "-1", "%s + 1", "%s - 1", "%s * 2", "2147483647", "4294967295", "4294967296",
	"9223372036854775807", "-9223372036854775808", "NULL", "''", "'text'", "x'00ff'", "x'ff'", "1.5",
	"hex(zeroblob(140000))", "zeroblob(20)",
};

static void change(sqlite3 *db)
{
	const char *const *column = columns[fuzz_pick(sizeof(columns) / sizeof(*columns))];
	const char *value = values[fuzz_pick(sizeof(values) / sizeof(*values))];
	const char *format = strstr(value, "%s"), *first = format ? column[1] : "";
	unsigned row = fuzz_pick(fuzz_pick(2) ? 4 : 60);
	char *sql;

	if (fuzz_pick(12) == 0)
		sql = sqlite3_mprintf("DELETE FROM %s WHERE %s IN (SELECT %s FROM %s LIMIT 1 OFFSET %u)", column[0],
				      column[1], column[1], column[0], row);
	else
		sql = sqlite3_mprintf("UPDATE OR IGNORE %s SET %s = %s%s WHERE %s IN (SELECT %s FROM %s LIMIT 1 OFFSET %u)",
				      column[0], column[1], first, format ? format + 2 : value, column[1], column[1],
				      column[0], row);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
}

uint8_t *fuzz_restructure(const uint8_t *data, size_t len, size_t *ret_len)
{
	sqlite3 *db = NULL;

	prepare();
	write_file(data, len);
	if (sqlite3_open(path, &db) == SQLITE_OK) {
		sqlite3_exec(db, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", NULL, NULL, NULL);
		for (unsigned i = 1 + fuzz_pick(3); i > 0; i--)
			change(db);
	}
	sqlite3_close(db);
	return read_file(ret_len);
}
