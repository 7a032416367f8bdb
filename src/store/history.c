#include "store/history.h"

#include "store/db.h"

#include "model/engine_kind.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define APPLICATION_ID 0x61774869      /* "awHi" */
#define VERSION 2                      /* 1: rules without from_start */
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
	"CREATE TABLE IF NOT EXISTS alarm (who TEXT PRIMARY KEY, rss_bytes INTEGER NOT NULL, slope_bytes INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS engine (who TEXT PRIMARY KEY, name TEXT NOT NULL);";

void history_fini(struct history *history)
{
	vec_fini(&history->rules);
	vec_fini(&history->runs);
}

/* Writable in any case, so that what a killed writer has left is rolled back. */
static int open_file(struct db *db, int flags)
{
	return db_open(db, db->path, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
}

static int read_number(struct db *db, const char *sql, uint64_t *ret)
{
	sqlite3_stmt *stmt;
	int r = db_prepare(db, sql, &stmt);

	if (r < 0)
		return r;
	r = db_step(db, stmt);
	if (r > 0)
		r = db_numbers(db, stmt, 0, 1, 0, ret);
	sqlite3_finalize(stmt);
	return r;
}

static int check_header(struct db *db)
{
	uint64_t id = 0, version = 0;
	int r = read_number(db, "PRAGMA application_id", &id);

	if (r == 0)
		r = read_number(db, "PRAGMA user_version", &version);
	if (r < 0)
		return r;
	if (id != APPLICATION_ID)
		return db_fail(db, -EMEDIUMTYPE, "it is another program's");
	if (version < 1 || version > VERSION)
		return db_fail(db, -EPROTONOSUPPORT, "it is of version %lld, and this one knows %d", (long long)version,
			       VERSION);
	db->version = (uint32_t)version;
	return 0;
}

/* --- reading --- */

typedef int (*take_row_fn)(struct db *db, sqlite3_stmt *stmt, struct history *history);

static int take_who(struct db *db, sqlite3_stmt *stmt, char who[HISTORY_WHO_MAX])
{
	const char *text;
	size_t len;
	int r = db_text(db, stmt, 0, &text, &len);

	if (r < 0)
		return r;
	if (len == 0 || len >= HISTORY_WHO_MAX)
		return db_damaged(db, "a name has %zu bytes", len);
	memcpy(who, text, len);
	who[len] = '\0';
	return 0;
}

static int take_rule(struct db *db, sqlite3_stmt *stmt, struct history *history)
{
	struct history_rule rule = { 0 }, *slot;
	uint64_t numbers[8];
	int r = take_who(db, stmt, rule.who);

	if (r == 0)
		r = db_numbers(db, stmt, 1, 8, 0, numbers);
	if (r < 0)
		return r;
	rule.is_program = numbers[0] != 0;
	rule.follow_forks = numbers[1] != 0;
	rule.frames = (uint32_t)numbers[2];
	rule.every_ns = numbers[3];
	rule.limits = (struct history_limits){ (uint32_t)numbers[4], numbers[5], numbers[6] };
	rule.from_start = numbers[7] != 0;
	if (rule.every_ns == 0 || rule.every_ns > INT64_MAX)
		return db_damaged(db, "%s has no interval", rule.who);
	slot = vec_push(&history->rules);
	if (!slot)
		return -ENOMEM;
	*slot = rule;
	return 0;
}

static int take_run(struct db *db, sqlite3_stmt *stmt, struct history *history)
{
	struct history_run run = { 0 }, *slot;
	uint64_t numbers[5];
	int r = take_who(db, stmt, run.who);

	if (r == 0)
		r = db_numbers(db, stmt, 1, 5, 1u << 4, numbers);
	if (r < 0)
		return r;
	run.pid = (int)numbers[0];
	run.start_time = numbers[1];
	run.since_ns = numbers[2];
	run.until_ns = numbers[3];
	run.has_status = sqlite3_column_type(stmt, 5) != SQLITE_NULL;
	run.status = (int)numbers[4];
	if (run.pid <= 0)
		return db_damaged(db, "%s has a run of process %d", run.who, run.pid);
	slot = vec_push(&history->runs);
	if (!slot)
		return -ENOMEM;
	*slot = run;
	return 0;
}

static struct history_rule *find_rule(struct history *history, const char *who)
{
	for (size_t i = 0; i < history->rules.count; i++) {
		if (strcmp(history->rules.items[i].who, who) == 0)
			return &history->rules.items[i];
	}
	return NULL;
}

static int take_alarm(struct db *db, sqlite3_stmt *stmt, struct history *history)
{
	char who[HISTORY_WHO_MAX];
	struct history_rule *rule;
	uint64_t numbers[2];
	int r = take_who(db, stmt, who);

	if (r == 0)
		r = db_numbers(db, stmt, 1, 2, 0, numbers);
	if (r < 0)
		return r;
	rule = find_rule(history, who);
	if (rule) {
		rule->rss_bytes = numbers[0];
		rule->slope_bytes = numbers[1];
	}
	return 0;
}

/* One that this version does not know is the configuration's. */
static int take_engine(struct db *db, sqlite3_stmt *stmt, struct history *history)
{
	char who[HISTORY_WHO_MAX];
	struct history_rule *rule;
	const char *name;
	size_t len;
	int kind, r = take_who(db, stmt, who);

	if (r == 0)
		r = db_text(db, stmt, 1, &name, &len);
	if (r < 0)
		return r;
	rule = find_rule(history, who);
	kind = engine_kind_by_name(name);
	if (rule && kind >= 0) {
		rule->has_engine = true;
		rule->engine = kind;
	}
	return 0;
}

static int load_rows(struct db *db, const char *sql, take_row_fn take, struct history *history)
{
	sqlite3_stmt *stmt;
	int r = db_prepare(db, sql, &stmt);

	if (r < 0)
		return r;
	while ((r = db_step(db, stmt)) > 0) {
		r = take(db, stmt, history);
		if (r < 0)
			break;
	}
	sqlite3_finalize(stmt);
	return r;
}

#define RULE_SQL(from_start) "SELECT who, program, follow_forks, frames, every_ns, keep_count, keep_age_ns, keep_bytes, " \
	from_start " FROM rule ORDER BY who LIMIT " VALUE(HISTORY_RULES_MAX)

#define TABLE_SQL(name) "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" name "'"

/* Rows of a table that files of older daemons do not have. */
static int load_newer(struct db *db, const char *count_sql, const char *sql, take_row_fn take, struct history *history)
{
	uint64_t tables = 0;
	int r = read_number(db, count_sql, &tables);

	return r < 0 || tables == 0 ? r : load_rows(db, sql, take, history);
}

static int load_alarms(struct db *db, struct history *history)
{
	return load_newer(db, TABLE_SQL("alarm"), "SELECT who, rss_bytes, slope_bytes FROM alarm LIMIT " VALUE(HISTORY_RULES_MAX),
			  take_alarm, history);
}

static int load_engines(struct db *db, struct history *history)
{
	return load_newer(db, TABLE_SQL("engine"), "SELECT who, name FROM engine LIMIT " VALUE(HISTORY_RULES_MAX), take_engine,
			  history);
}

static int load_all(struct db *db, struct history *history)
{
	int r = load_rows(db, db->version == 1 ? RULE_SQL("0") : RULE_SQL("from_start"), take_rule, history);

	if (r == 0)
		r = load_rows(db, "SELECT who, pid, start_time, since_ns, until_ns, status FROM run"
				  " ORDER BY since_ns LIMIT " VALUE(HISTORY_RUNS_MAX), take_run, history);
	if (r == 0)
		r = load_alarms(db, history);
	return r < 0 ? r : load_engines(db, history);
}

/* An empty one is what is left of a first writer that was killed. */
static bool is_missing(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode) && st.st_size == 0;
}

int history_load(const char *path, struct history *ret, char **ret_reason)
{
	struct db db = { .path = path, .ret_reason = ret_reason };
	struct history history = { 0 };
	int r;

	*ret_reason = NULL;
	if (is_missing(path))
		return -ENOENT;
	r = open_file(&db, 0);
	if (r == 0)
		r = check_header(&db);
	if (r == 0)
		r = load_all(&db, &history);
	db_close(&db);
	if (r < 0)
		history_fini(&history);
	else
		*ret = history;
	return r;
}

/* --- writing --- */

/* Bytes that are no UTF-8, too: as a BLOB the name would sort behind all others. */
static void bind_who(sqlite3_stmt *stmt, const char *who)
{
	sqlite3_bind_text(stmt, 1, who, -1, SQLITE_STATIC);
}

static int insert_rule(struct db *db, sqlite3_stmt *stmt, const struct history_rule *rule)
{
	const uint64_t numbers[] = { rule->is_program, rule->follow_forks, rule->frames, rule->every_ns, rule->limits.count,
				     rule->limits.age_ns, rule->limits.bytes, rule->from_start };

	bind_who(stmt, rule->who);
	for (int i = 0; i < 8; i++)
		db_bind_number(stmt, 2 + i, numbers[i]);
	return db_insert(db, stmt);
}

static int insert_run(struct db *db, sqlite3_stmt *stmt, const struct history_run *run)
{
	bind_who(stmt, run->who);
	db_bind_number(stmt, 2, (uint64_t)run->pid);
	db_bind_number(stmt, 3, run->start_time);
	db_bind_number(stmt, 4, run->since_ns);
	db_bind_number(stmt, 5, run->until_ns);
	if (run->has_status)
		sqlite3_bind_int(stmt, 6, run->status);
	else
		sqlite3_bind_null(stmt, 6);
	return db_insert(db, stmt);
}

static int insert_alarm(struct db *db, sqlite3_stmt *stmt, const struct history_rule *rule)
{
	if (rule->rss_bytes == 0 && rule->slope_bytes == 0)
		return 0;
	bind_who(stmt, rule->who);
	db_bind_number(stmt, 2, rule->rss_bytes);
	db_bind_number(stmt, 3, rule->slope_bytes);
	return db_insert(db, stmt);
}

static int insert_engine(struct db *db, sqlite3_stmt *stmt, const struct history_rule *rule)
{
	if (!rule->has_engine)
		return 0;
	bind_who(stmt, rule->who);
	sqlite3_bind_text(stmt, 2, engine_kinds[rule->engine], -1, SQLITE_STATIC);
	return db_insert(db, stmt);
}

static int save_rows(struct db *db, const struct history *history)
{
	sqlite3_stmt *rule = NULL, *alarm = NULL, *engine = NULL, *run = NULL;
	int r = db_prepare(db, "INSERT INTO rule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", &rule);

	if (r == 0)
		r = db_prepare(db, "INSERT INTO alarm VALUES (?, ?, ?)", &alarm);
	if (r == 0)
		r = db_prepare(db, "INSERT INTO engine VALUES (?, ?)", &engine);
	if (r == 0)
		r = db_prepare(db, "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?)", &run);
	for (size_t i = 0; r == 0 && i < history->rules.count; i++) {
		r = insert_rule(db, rule, &history->rules.items[i]);
		if (r == 0)
			r = insert_alarm(db, alarm, &history->rules.items[i]);
		if (r == 0)
			r = insert_engine(db, engine, &history->rules.items[i]);
	}
	for (size_t i = 0; r == 0 && i < history->runs.count; i++)
		r = insert_run(db, run, &history->runs.items[i]);
	sqlite3_finalize(rule);
	sqlite3_finalize(alarm);
	sqlite3_finalize(engine);
	sqlite3_finalize(run);
	return r;
}

int history_save(const char *path, const struct history *history, char **ret_reason)
{
	struct db db = { .path = path, .ret_reason = ret_reason };
	bool is_new = is_missing(path);
	int r;

	*ret_reason = NULL;
	r = open_file(&db, SQLITE_OPEN_CREATE);
	if (r == 0 && !is_new)
		r = check_header(&db);
	if (r == 0)
		r = db_run(&db, "BEGIN IMMEDIATE");
	if (r == 0)
		r = db_run(&db, schema);
	if (r == 0)
		r = db_run(&db, "DELETE FROM run; DELETE FROM alarm; DELETE FROM engine");
	if (r == 0)
		r = save_rows(&db, history);
	if (r == 0)
		r = db_run(&db, "COMMIT");
	db_close(&db);
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
