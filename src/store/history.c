#define _GNU_SOURCE              /* asprintf */
#include "store/history.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define APPLICATION_ID 0x61774869      /* "awHi" */
#define VERSION 2                      /* 1: rules without from_start */
#define BUSY_MS 5000
#define TEXT(number) #number
#define VALUE(number) TEXT(number)

static const char schema[] =
	"PRAGMA application_id = " VALUE(APPLICATION_ID) ";"
	"PRAGMA user_version = " VALUE(VERSION) ";"
	"DROP TABLE IF EXISTS rule;"
	"CREATE TABLE rule (who TEXT PRIMARY KEY, program INTEGER NOT NULL, follow_forks INTEGER NOT NULL,"
	" frames INTEGER NOT NULL, every_ns INTEGER NOT NULL, keep_count INTEGER NOT NULL, keep_age_ns INTEGER NOT NULL,"
	" keep_bytes INTEGER NOT NULL, from_start INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS run (who TEXT NOT NULL, pid INTEGER NOT NULL, start_time INTEGER NOT NULL,"
	" since_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL, status INTEGER);"
	/* Of rules that have any; files of older daemons have no such table. */
	"CREATE TABLE IF NOT EXISTS alarm (who TEXT PRIMARY KEY, rss_bytes INTEGER NOT NULL, slope_bytes INTEGER NOT NULL);";

void history_fini(struct history *history)
{
	vec_fini(&history->rules);
	vec_fini(&history->runs);
}

static int explain(char **ret_reason, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int explain(char **ret_reason, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_reason, format, args) < 0)
		*ret_reason = NULL;
	va_end(args);
	return error;
}

static int failed(sqlite3 *db, char **ret_reason)
{
	int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;

	if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		return explain(ret_reason, -EBADMSG, "it is damaged, or no history");
	return explain(ret_reason, code == SQLITE_NOMEM ? -ENOMEM : -EIO, "%s", db ? sqlite3_errmsg(db) : "out of memory");
}

static int open_file(const char *path, int flags, sqlite3 **ret, char **ret_reason)
{
	int r = 0;

	if (sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(*ret, BUSY_MS) != SQLITE_OK)
		r = failed(*ret, ret_reason);
	else
		sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
	return r;
}

static int run(sqlite3 *db, const char *sql, char **ret_reason)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(db, ret_reason);
}

static int pragma(sqlite3 *db, const char *sql, int64_t *ret, char **ret_reason)
{
	sqlite3_stmt *stmt;
	int r = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return failed(db, ret_reason);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		r = failed(db, ret_reason);
	sqlite3_finalize(stmt);
	return r;
}

static int check_header(sqlite3 *db, int64_t *ret_version, char **ret_reason)
{
	int64_t id = 0, version = 0;
	int r = pragma(db, "PRAGMA application_id", &id, ret_reason);

	if (r == 0)
		r = pragma(db, "PRAGMA user_version", &version, ret_reason);
	if (r == 0 && id != APPLICATION_ID)
		r = explain(ret_reason, -EMEDIUMTYPE, "it is another program's");
	else if (r == 0 && (version < 1 || version > VERSION))
		r = explain(ret_reason, -EPROTONOSUPPORT, "it is of version %lld, and this one knows %d", (long long)version,
			    VERSION);
	*ret_version = version;
	return r;
}

/* --- reading --- */

static bool take_who(sqlite3_stmt *stmt, char who[HISTORY_WHO_MAX])
{
	const char *text = (const char *)sqlite3_column_text(stmt, 0);
	size_t len = text ? strlen(text) : 0;

	if (len == 0 || len >= HISTORY_WHO_MAX || (int)len != sqlite3_column_bytes(stmt, 0))
		return false;
	memcpy(who, text, len + 1);
	return true;
}

static bool take_rule(sqlite3_stmt *stmt, struct history_rule *rule)
{
	rule->is_program = sqlite3_column_int(stmt, 1) != 0;
	rule->follow_forks = sqlite3_column_int(stmt, 2) != 0;
	rule->frames = (uint32_t)sqlite3_column_int64(stmt, 3);
	rule->every_ns = (uint64_t)sqlite3_column_int64(stmt, 4);
	rule->limits = (struct history_limits){ (uint32_t)sqlite3_column_int64(stmt, 5),
						(uint64_t)sqlite3_column_int64(stmt, 6),
						(uint64_t)sqlite3_column_int64(stmt, 7) };
	rule->from_start = sqlite3_column_int(stmt, 8) != 0;
	return take_who(stmt, rule->who) && rule->every_ns > 0 && rule->every_ns <= INT64_MAX;
}

static bool take_run(sqlite3_stmt *stmt, struct history_run *run)
{
	run->pid = sqlite3_column_int(stmt, 1);
	run->start_time = (uint64_t)sqlite3_column_int64(stmt, 2);
	run->since_ns = (uint64_t)sqlite3_column_int64(stmt, 3);
	run->until_ns = (uint64_t)sqlite3_column_int64(stmt, 4);
	run->has_status = sqlite3_column_type(stmt, 5) == SQLITE_INTEGER;
	run->status = sqlite3_column_int(stmt, 5);
	return take_who(stmt, run->who) && run->pid > 0;
}

static int add_row(sqlite3_stmt *stmt, bool rules, struct history *history)
{
	struct history_rule rule = { 0 }, *rule_slot;
	struct history_run run = { 0 }, *run_slot;

	if (rules ? !take_rule(stmt, &rule) : !take_run(stmt, &run))
		return -EBADMSG;
	if (rules) {
		rule_slot = vec_push(&history->rules);
		if (!rule_slot)
			return -ENOMEM;
		*rule_slot = rule;
		return 0;
	}
	run_slot = vec_push(&history->runs);
	if (!run_slot)
		return -ENOMEM;
	*run_slot = run;
	return 0;
}

#define RULE_SQL(from_start) "SELECT who, program, follow_forks, frames, every_ns, keep_count, keep_age_ns, keep_bytes, " \
	from_start " FROM rule ORDER BY who LIMIT " VALUE(HISTORY_RULES_MAX)

static int load_table(sqlite3 *db, int64_t version, bool rules, struct history *history, char **ret_reason)
{
	const char *rule_sql = version == 1 ? RULE_SQL("0") : RULE_SQL("from_start");
	static const char run_sql[] = "SELECT who, pid, start_time, since_ns, until_ns, status FROM run"
				      " ORDER BY since_ns LIMIT " VALUE(HISTORY_RUNS_MAX);
	sqlite3_stmt *stmt;
	int step = SQLITE_DONE, r = 0;

	if (sqlite3_prepare_v2(db, rules ? rule_sql : run_sql, -1, &stmt, NULL) != SQLITE_OK)
		return failed(db, ret_reason);
	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
		r = add_row(stmt, rules, history);
	if (r == -EBADMSG)
		explain(ret_reason, r, "a row of it makes no sense");
	else if (r == 0 && step != SQLITE_DONE)
		r = failed(db, ret_reason);
	sqlite3_finalize(stmt);
	return r;
}

static void set_alarm(struct history *history, const char *who, uint64_t rss_bytes, uint64_t slope_bytes)
{
	for (size_t i = 0; i < history->rules.count; i++) {
		if (strcmp(history->rules.items[i].who, who) != 0)
			continue;
		history->rules.items[i].rss_bytes = rss_bytes;
		history->rules.items[i].slope_bytes = slope_bytes;
	}
}

static int load_alarms(sqlite3 *db, struct history *history, char **ret_reason)
{
	sqlite3_stmt *stmt;
	int64_t tables = 0;
	int step, r = pragma(db, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'alarm'", &tables,
			     ret_reason);

	if (r < 0 || tables == 0)
		return r;
	if (sqlite3_prepare_v2(db, "SELECT who, rss_bytes, slope_bytes FROM alarm LIMIT " VALUE(HISTORY_RULES_MAX), -1, &stmt,
			       NULL) != SQLITE_OK)
		return failed(db, ret_reason);
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		char who[HISTORY_WHO_MAX];

		if (take_who(stmt, who))
			set_alarm(history, who, (uint64_t)sqlite3_column_int64(stmt, 1),
				  (uint64_t)sqlite3_column_int64(stmt, 2));
	}
	if (step != SQLITE_DONE)
		r = failed(db, ret_reason);
	sqlite3_finalize(stmt);
	return r;
}

/* An empty one is what is left of a first writer that was killed. */
static bool is_missing(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode) && st.st_size == 0;
}

int history_load(const char *path, struct history *ret, char **ret_reason)
{
	struct history history = { 0 };
	sqlite3 *db = NULL;
	int64_t version = 0;
	int r;

	*ret_reason = NULL;
	if (is_missing(path))
		return -ENOENT;
	/* Writable, so that what a killed writer has left is rolled back. */
	r = open_file(path, SQLITE_OPEN_READWRITE, &db, ret_reason);
	if (r == 0)
		r = check_header(db, &version, ret_reason);
	if (r == 0)
		r = load_table(db, version, true, &history, ret_reason);
	if (r == 0)
		r = load_table(db, version, false, &history, ret_reason);
	if (r == 0)
		r = load_alarms(db, &history, ret_reason);
	sqlite3_close(db);
	if (r < 0)
		history_fini(&history);
	else
		*ret = history;
	return r;
}

/* --- writing --- */

static void bind(sqlite3_stmt *stmt, int index, uint64_t value)
{
	sqlite3_bind_int64(stmt, index, (sqlite3_int64)value);
}

static void bind_rule(sqlite3_stmt *stmt, const struct history_rule *rule)
{
	sqlite3_bind_text(stmt, 1, rule->who, -1, SQLITE_STATIC);
	bind(stmt, 2, rule->is_program);
	bind(stmt, 3, rule->follow_forks);
	bind(stmt, 4, rule->frames);
	bind(stmt, 5, rule->every_ns);
	bind(stmt, 6, rule->limits.count);
	bind(stmt, 7, rule->limits.age_ns);
	bind(stmt, 8, rule->limits.bytes);
	bind(stmt, 9, rule->from_start);
}

static void bind_run(sqlite3_stmt *stmt, const struct history_run *run)
{
	sqlite3_bind_text(stmt, 1, run->who, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 2, run->pid);
	bind(stmt, 3, run->start_time);
	bind(stmt, 4, run->since_ns);
	bind(stmt, 5, run->until_ns);
	if (run->has_status)
		sqlite3_bind_int(stmt, 6, run->status);
	else
		sqlite3_bind_null(stmt, 6);
}

static int insert(sqlite3 *db, sqlite3_stmt *stmt, char **ret_reason)
{
	if (sqlite3_step(stmt) != SQLITE_DONE)
		return failed(db, ret_reason);
	sqlite3_reset(stmt);
	return 0;
}

static int save_rows(sqlite3 *db, const struct history *history, char **ret_reason)
{
	sqlite3_stmt *rule = NULL, *run = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(db, "INSERT INTO rule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &rule, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?)", -1, &run, NULL) != SQLITE_OK)
		r = failed(db, ret_reason);
	for (size_t i = 0; r == 0 && i < history->rules.count; i++) {
		bind_rule(rule, &history->rules.items[i]);
		r = insert(db, rule, ret_reason);
	}
	for (size_t i = 0; r == 0 && i < history->runs.count; i++) {
		bind_run(run, &history->runs.items[i]);
		r = insert(db, run, ret_reason);
	}
	sqlite3_finalize(rule);
	sqlite3_finalize(run);
	return r;
}

static int save_alarms(sqlite3 *db, const struct history *history, char **ret_reason)
{
	sqlite3_stmt *stmt = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(db, "INSERT INTO alarm VALUES (?, ?, ?)", -1, &stmt, NULL) != SQLITE_OK)
		return failed(db, ret_reason);
	for (size_t i = 0; r == 0 && i < history->rules.count; i++) {
		const struct history_rule *rule = &history->rules.items[i];

		if (rule->rss_bytes == 0 && rule->slope_bytes == 0)
			continue;
		sqlite3_bind_text(stmt, 1, rule->who, -1, SQLITE_STATIC);
		bind(stmt, 2, rule->rss_bytes);
		bind(stmt, 3, rule->slope_bytes);
		r = insert(db, stmt, ret_reason);
	}
	sqlite3_finalize(stmt);
	return r;
}

int history_save(const char *path, const struct history *history, char **ret_reason)
{
	sqlite3 *db = NULL;
	bool is_new = is_missing(path);
	int64_t version;
	int r;

	*ret_reason = NULL;
	r = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, ret_reason);
	if (r == 0 && !is_new)
		r = check_header(db, &version, ret_reason);
	if (r == 0)
		r = run(db, "BEGIN IMMEDIATE", ret_reason);
	if (r == 0)
		r = run(db, schema, ret_reason);
	if (r == 0)
		r = run(db, "DELETE FROM run; DELETE FROM alarm", ret_reason);
	if (r == 0)
		r = save_rows(db, history, ret_reason);
	if (r == 0)
		r = save_alarms(db, history, ret_reason);
	if (r == 0)
		r = run(db, "COMMIT", ret_reason);
	sqlite3_close(db);
	return r;
}

/* --- what is kept --- */

static bool too_much(const struct history_item *items, size_t count, const struct history_limits *limits)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += items[i].bytes;
	return (limits->count > 0 && count > limits->count) || (limits->bytes > 0 && bytes > limits->bytes);
}

long history_next_to_go(const struct history_item *items, size_t count, const struct history_limits *limits,
			uint64_t now_ns)
{
	bool over = too_much(items, count, limits);

	/* The newest stays in any case, or nothing would be known. */
	for (size_t i = 0; i + 1 < count; i++) {
		bool old = limits->age_ns > 0 && items[i].taken_ns < now_ns && now_ns - items[i].taken_ns > limits->age_ns;

		if (!items[i].spared && (over || old))
			return (long)i;
	}
	return -1;
}
