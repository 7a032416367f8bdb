/* The SQLite side of the store: connections, statements, and what went wrong in words.
 * Private to store/.
 *
 * A file is somebody else's: it is opened with SQLite's defences up, every value's type is looked at
 * before it is used, and only tables whose definition is ours, to the letter, are asked. */
#ifndef ALLOCWATCH_STORE_DB_H
#define ALLOCWATCH_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DB_BUSY_MS 10000               /* how long to wait for somebody else's lock */

struct store_listener;

struct db {
	sqlite3 *handle;
	const char *path;              /* as people know it: for the reason */
	const char *doing;             /* "read", "write": the snapshot file, for the reason; NULL: the caller says that */
	uint32_t version;              /* of the format; known once the header was checked */
	char **ret_reason;
	const struct store_listener *listener;   /* of who writes; NULL: nobody */
};

/* Sets the reason, unless one is set already, and returns `error`. */
int db_fail(struct db *db, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* -EBADMSG, "it is damaged: ..." */
int db_damaged(struct db *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Turns the connection's last error into a negative errno and a reason. */
int db_failed(struct db *db);

/* db->path, doing and ret_reason are set by the caller, who calls db_close in any case.  Only regular
 * files are opened: -EMEDIUMTYPE.  Nothing is read yet. */
int db_open(struct db *db, const char *file, int flags);
void db_close(struct db *db);

/* The file's raw bytes and its length, through SQLite's own descriptor: to open and close the file
 * ourselves would drop every lock this process has on it (POSIX).  Bytes behind its end are zero. */
int db_read_raw(struct db *db, void *bytes, size_t len);
int db_file_size(struct db *db, uint64_t *ret_size);

int db_run(struct db *db, const char *sql);
int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret);
/* 1: a row, 0: no more, else negative errno. */
int db_step(struct db *db, sqlite3_stmt *stmt);
/* Runs a statement that gives no rows, and makes it ready for the next values. */
int db_insert(struct db *db, sqlite3_stmt *stmt);

/* Columns first.. as numbers.  A NULL is allowed, and becomes 0, where null_mask has its bit. */
int db_numbers(struct db *db, sqlite3_stmt *stmt, int first, int count, uint32_t null_mask, uint64_t *ret);
/* A text of the row, good until the next step; NULL for NULL.  It has no NUL inside. */
int db_text(struct db *db, sqlite3_stmt *stmt, int column, const char **ret, size_t *ret_len);

void db_bind_number(sqlite3_stmt *stmt, int index, uint64_t value);
/* As TEXT when it is UTF-8, else as BLOB; NULL as NULL. */
void db_bind_text(sqlite3_stmt *stmt, int index, const char *text, size_t len);

#endif
