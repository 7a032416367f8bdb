/* Files: which one is opened how, and how a new one takes its place. */
#define _GNU_SOURCE              /* asprintf, O_DIRECTORY */
#include "store/store.h"

#include "store/db.h"
#include "store/load.h"
#include "store/schema.h"
#include "store/write.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- reading --- */

/* Takes the lock for reading first, so that nobody is in the middle of a write; that statement's
 * own failure is found again by those behind it. */
static int begin_reading(struct db *db)
{
	/* Memory-mapped reading would turn a file that shrinks into SIGBUS. */
	int r = db_run(db, "PRAGMA mmap_size = 0; PRAGMA cell_size_check = 1; BEGIN");

	if (r < 0)
		return r;
	sqlite3_exec(db->handle, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
	switch (sqlite3_errcode(db->handle) & 0xff) {
	case SQLITE_OK:
	case SQLITE_CORRUPT:
		r = schema_check_size(db);
		break;
	}
	return r < 0 ? r : schema_check_tables(db);
}

static int open_for_reading(struct db *db)
{
	int r = db_open(db, db->path, SQLITE_OPEN_READONLY);

	if (r == 0)
		r = schema_check_header(db);
	if (r == 0)
		r = begin_reading(db);
	return r;
}

typedef int (*load_fn)(struct db *db, unsigned which, struct snapshot **ret_snapshot);

static int load_one(struct db *db, unsigned which, load_fn load, struct snapshot **ret_snapshot)
{
	unsigned count;
	int r = load_count(db, &count);

	if (r < 0)
		return r;
	if (which > count)
		return db_fail(db, -ENOENT, "it has no snapshot %u, the last one is %u", which, count);
	return load(db, which ? which : count, ret_snapshot);
}

static int open_and_load(const char *path, unsigned which, load_fn load, struct snapshot **ret_snapshot,
			 char **ret_reason)
{
	struct db db = {.path = path, .doing = "read", .ret_reason = ret_reason};
	int r;

	*ret_reason = NULL;
	r = open_for_reading(&db);
	if (r == 0)
		r = load_one(&db, which, load, ret_snapshot);
	db_close(&db);
	return r;
}

int store_load(const char *path, unsigned which, struct snapshot **ret_snapshot, char **ret_reason)
{
	return open_and_load(path, which, load_snapshot, ret_snapshot, ret_reason);
}

int store_describe(const char *path, unsigned which, struct snapshot **ret_snapshot, char **ret_reason)
{
	return open_and_load(path, which, load_description, ret_snapshot, ret_reason);
}

static bool is_called(const struct snapshot *snapshot, const char *name)
{
	return strcmp(snapshot->name, name) == 0 || (snapshot->id && strcmp(snapshot->id, name) == 0);
}

static int find(struct db *db, const char *name, unsigned *ret_which)
{
	unsigned count;
	int r = load_count(db, &count);

	if (r < 0)
		return r;
	for (unsigned which = count; which > 0; which--) {
		struct snapshot *snapshot;
		bool found;

		r = load_description(db, which, &snapshot);
		if (r < 0)
			return r;
		found = is_called(snapshot, name);
		snapshot_put(snapshot);
		if (found) {
			*ret_which = which;
			return 0;
		}
	}
	return db_fail(db, -ENOENT, "none of its %u snapshots has the id or the name '%s'", count, name);
}

int store_find(const char *path, const char *name, unsigned *ret_which, char **ret_reason)
{
	struct db db = {.path = path, .doing = "read", .ret_reason = ret_reason};
	int r;

	*ret_reason = NULL;
	r = open_for_reading(&db);
	if (r == 0)
		r = find(&db, name, ret_which);
	db_close(&db);
	return r;
}

int store_count(const char *path, unsigned *ret_count, char **ret_reason)
{
	struct db db = {.path = path, .doing = "read", .ret_reason = ret_reason};
	int r;

	*ret_reason = NULL;
	r = open_for_reading(&db);
	if (r == 0)
		r = load_count(&db, ret_count);
	db_close(&db);
	return r;
}

/* --- writing --- */

static int fail_errno(struct db *db, const char *what)
{
	int error = -errno;

	return db_fail(db, error, "%s: %s", what, strerror(-error));
}

/* A new empty file beside the one to come; the umask says who may read it. */
static int make_temporary(struct db *db, char **ret_path)
{
	uint64_t random;
	char *path;
	int fd;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return fail_errno(db, "no random name");
	if (asprintf(&path, "%s.%016llx.tmp", db->path, (unsigned long long)random) < 0)
		return db_fail(db, -ENOMEM, "out of memory");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		int r = fail_errno(db, path);

		free(path);
		return r;
	}
	close(fd);
	*ret_path = path;
	return 0;
}

static int sync_path(struct db *db, const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC), r = 0;

	if (fd < 0)
		return fail_errno(db, path);
	if (fsync(fd) < 0)
		r = fail_errno(db, path);
	close(fd);
	return r;
}

static int sync_folder(struct db *db)
{
	char *copy = strdup(db->path);
	int r;

	if (!copy)
		return db_fail(db, -ENOMEM, "out of memory");
	r = sync_path(db, dirname(copy), O_RDONLY | O_DIRECTORY);
	free(copy);
	return r;
}

/* Nothing is synced on the way: until the rename nobody knows the file. */
static int fill_new(struct db *db, const char *temporary, const struct snapshot *snapshot)
{
	int r = db_open(db, temporary, SQLITE_OPEN_READWRITE);

	if (r == 0)
		r = db_run(db, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN");
	if (r == 0)
		r = schema_create(db);
	if (r == 0)
		r = write_snapshot(db, snapshot);
	if (r == 0)
		r = db_run(db, "COMMIT");
	db_close(db);
	return r;
}

/* The journal of an interrupted write belongs to the file that goes; SQLite would apply it to the
 * new one. */
static int drop_journal(struct db *db)
{
	char *journal;
	int r = 0;

	if (asprintf(&journal, "%s-journal", db->path) < 0)
		return db_fail(db, -ENOMEM, "out of memory");
	if (unlink(journal) < 0 && errno != ENOENT)
		r = fail_errno(db, journal);
	free(journal);
	return r;
}

static int put_in_place(struct db *db, const char *temporary)
{
	int r = sync_path(db, temporary, O_RDONLY);

	if (r == 0)
		r = drop_journal(db);
	if (r == 0 && rename(temporary, db->path) < 0)
		r = fail_errno(db, "cannot give it its name");
	if (r == 0)
		r = sync_folder(db);
	return r;
}

/* A file may be replaced, a device, a folder or a FIFO must not. */
static int check_place(struct db *db)
{
	struct stat st;

	if (stat(db->path, &st) == 0 && !S_ISREG(st.st_mode))
		return db_fail(db, -EINVAL, "it exists and is no regular file; choose another name");
	return 0;
}

static int check_given(struct db *db, const struct snapshot *snapshot)
{
	const char *reason;

	if (snapshot_check(snapshot, &reason) < 0)
		return db_fail(db, -EINVAL, "the snapshot is not sound: %s", reason);
	return 0;
}

static int save(struct db *db, const struct snapshot *snapshot)
{
	char *temporary = NULL;
	int r = check_given(db, snapshot);

	if (r == 0)
		r = check_place(db);
	if (r == 0)
		r = make_temporary(db, &temporary);
	if (r < 0)
		return r;
	r = fill_new(db, temporary, snapshot);
	if (r == 0)
		r = put_in_place(db, temporary);
	if (r < 0)
		unlink(temporary);
	free(temporary);
	return r;
}

int store_save_telling(const char *path, const struct snapshot *snapshot, const struct store_listener *listener,
		       char **ret_reason)
{
	struct db db = {.path = path, .doing = "write", .ret_reason = ret_reason, .listener = listener};

	*ret_reason = NULL;
	return save(&db, snapshot);
}

int store_save(const char *path, const struct snapshot *snapshot, char **ret_reason)
{
	return store_save_telling(path, snapshot, NULL, ret_reason);
}

/* SQLite's own journal makes this atomic: an interrupted write is undone by the next one. */
static int add(struct db *db, const struct snapshot *snapshot)
{
	int r = check_given(db, snapshot);

	if (r == 0)
		r = db_open(db, db->path, SQLITE_OPEN_READWRITE);
	if (r == 0)
		r = schema_check_header(db);
	if (r == 0)
		r = db_run(db, "PRAGMA mmap_size = 0; PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
	if (r == 0)
		r = schema_check_tables(db);
	if (r == 0 && db->version != STORE_VERSION)
		r = db_fail(db, -EPROTONOSUPPORT, "it has version %u of the format, and snapshots are added to files of "
			    "version %u only; write a new file", db->version, STORE_VERSION);
	if (r == 0)
		r = write_snapshot(db, snapshot);
	if (r == 0)
		r = db_run(db, "COMMIT");
	db_close(db);                  /* rolls back what was not committed */
	return r;
}

int store_repair(const char *path, char **ret_reason)
{
	struct db db = {.path = path, .doing = "repair", .ret_reason = ret_reason};
	int r;

	*ret_reason = NULL;
	r = db_open(&db, path, SQLITE_OPEN_READWRITE);
	if (r == 0)
		r = schema_check_header(&db);
	if (r == 0)
		r = db_run(&db, "BEGIN IMMEDIATE; ROLLBACK");
	db_close(&db);
	return r;
}

int store_append_telling(const char *path, const struct snapshot *snapshot, const struct store_listener *listener,
			 char **ret_reason)
{
	struct db db = {.path = path, .doing = "write", .ret_reason = ret_reason, .listener = listener};

	*ret_reason = NULL;
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return save(&db, snapshot);
	return add(&db, snapshot);
}

int store_append(const char *path, const struct snapshot *snapshot, char **ret_reason)
{
	return store_append_telling(path, snapshot, NULL, ret_reason);
}
