/* Snapshot files that somebody made to harm: reading them and working with what was read.  Built with
 * sanitizers, and with checksums not looked at (FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION), since who means
 * harm can compute them. */
#include "files.h"

#include "fuzz.h"
#include "use_snapshot.h"

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

static char folder[200], path[240], other[240];

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
	if (*folder)
		return;
	snprintf(folder, sizeof(folder), "%s/fuzz-store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	MUST(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
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

static void look_at(void)
{
	struct snapshot *snapshot;
	unsigned count = 0, which;
	char *reason;

	if (!passed(store_count(path, &count, &reason), &reason))
		return;
	MUST(count > 0);
	fuzz_reached(0);
	for (which = 1; which <= count && which <= SNAPSHOTS_MAX; which++) {
		if (passed(store_describe(path, which, &snapshot, &reason), &reason))
			snapshot_put(snapshot);
		if (!passed(store_load(path, which, &snapshot, &reason), &reason))
			continue;
		fuzz_use_snapshot(snapshot);
		save_again(snapshot);
		fuzz_reached(1);
		snapshot_put(snapshot);
	}
	passed(store_find(path, "exit", &which, &reason), &reason);
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

void fuzz_store_run(const uint8_t *data, size_t len)
{
	prepare();
	write_file(data, len);
	look_at();
	add_to(data, len);
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

uint8_t *fuzz_store_restructure(const uint8_t *data, size_t len, size_t *ret_len)
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
