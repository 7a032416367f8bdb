#define _GNU_SOURCE              /* vasprintf */
#include "store/db.h"

#include "store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int __attribute__((format(printf, 3, 0)))
fail_va(struct db *db, int error, const char *format, va_list args)
{
	char *why = NULL, *reason = NULL;

	if (*db->ret_reason)
		return error;
	if (vasprintf(&why, format, args) < 0)
		why = NULL;
	if (!db->doing) {
		*db->ret_reason = why;
		return error;
	}
	if (asprintf(&reason, "cannot %s the snapshot file %s: %s", db->doing, db->path,
		     why ? why : strerror(-error)) < 0)
		reason = NULL;
	free(why);
	*db->ret_reason = reason;
	return error;
}

int db_fail(struct db *db, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error = fail_va(db, error, format, args);
	va_end(args);
	return error;
}

int db_damaged(struct db *db, const char *format, ...)
{
	char detail[256];
	va_list args;

	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	return db_fail(db, -EBADMSG, "it is damaged: %s", detail);
}

static int system_error(const struct db *db, int otherwise)
{
	int error = sqlite3_system_errno(db->handle);

	return error ? -error : otherwise;
}

int db_failed(struct db *db)
{
	int error;

	switch (sqlite3_errcode(db->handle) & 0xff) {
	case SQLITE_NOMEM:
		return db_fail(db, -ENOMEM, "out of memory");
	case SQLITE_FULL:
		return db_fail(db, -ENOSPC, "no space left on the device; free some, or choose another place");
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return db_fail(db, -EBUSY, "another program holds it locked; try again later");
	case SQLITE_READONLY:
		if (sqlite3_extended_errcode(db->handle) == SQLITE_READONLY_ROLLBACK)
			return db_fail(db, -EBUSY, "writing to it was interrupted; the next snapshot added "
			       "to it, or any command of sqlite3 on it, completes the repair");
		return db_fail(db, -EACCES, "it cannot be written");
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return db_fail(db, -EACCES, "permission denied");
	case SQLITE_CANTOPEN:
		error = system_error(db, -EACCES);
		return db_fail(db, error, "%s", strerror(-error));
	case SQLITE_IOERR:
		if (sqlite3_extended_errcode(db->handle) == SQLITE_IOERR_SHORT_READ)
			return db_damaged(db, "its end is missing");
		error = system_error(db, -EIO);
		return db_fail(db, error, "%s", strerror(-error));
	default:
		return db_damaged(db, "%s", sqlite3_errmsg(db->handle));
	}
}

/* SQLite gives some names a meaning of their own (":memory:", "file:..."). */
static char *plain_path(const char *path)
{
	char *plain;

	return asprintf(&plain, "%s%s", path[0] == '/' ? "" : "./", path) < 0 ? NULL : plain;
}

static void raise_defences(sqlite3 *handle)
{
	sqlite3_extended_result_codes(handle, 1);
	sqlite3_busy_timeout(handle, DB_BUSY_MS);
	sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 2 * STORE_TEXT_MAX);
	sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

int db_open(struct db *db, const char *file, int flags)
{
	char *path = plain_path(file);
	struct stat st;
	int r;

	/* Opening a FIFO would wait for somebody to write into it. */
	if (stat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
		free(path);
		return db_fail(db, -EMEDIUMTYPE, "it is no regular file");
	}
	if (!path)
		return db_fail(db, -ENOMEM, "out of memory");
	r = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
	free(path);
	if (!db->handle)
		return db_fail(db, -ENOMEM, "out of memory");
	if (r != SQLITE_OK)
		return db_failed(db);
	raise_defences(db->handle);
	return 0;
}

void db_close(struct db *db)
{
	sqlite3_close_v2(db->handle);
	db->handle = NULL;
}

static sqlite3_file *raw_file(struct db *db)
{
	sqlite3_file *file = NULL;

	sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	return file;
}

int db_read_raw(struct db *db, void *bytes, size_t len)
{
	sqlite3_file *file = raw_file(db);
	int r = file->pMethods->xRead(file, bytes, (int)len, 0);

	if (r != SQLITE_OK && r != SQLITE_IOERR_SHORT_READ)
		return db_fail(db, -EIO, "%s", strerror(EIO));
	return 0;
}

int db_file_size(struct db *db, uint64_t *ret_size)
{
	sqlite3_file *file = raw_file(db);
	sqlite3_int64 size;

	if (file->pMethods->xFileSize(file, &size) != SQLITE_OK)
		return db_fail(db, -EIO, "%s", strerror(EIO));
	*ret_size = (uint64_t)size;
	return 0;
}

int db_run(struct db *db, const char *sql)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_failed(db);
}

int db_prepare(struct db *db, const char *sql, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(db->handle, sql, -1, ret, NULL) == SQLITE_OK ? 0 : db_failed(db);
}

int db_step(struct db *db, sqlite3_stmt *stmt)
{
	switch (sqlite3_step(stmt)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return db_failed(db);
	}
}

int db_insert(struct db *db, sqlite3_stmt *stmt)
{
	int r = db_step(db, stmt);

	sqlite3_reset(stmt);
	return r < 0 ? r : 0;
}

int db_numbers(struct db *db, sqlite3_stmt *stmt, int first, int count, uint32_t null_mask, uint64_t *ret)
{
	for (int i = 0; i < count; i++) {
		int type = sqlite3_column_type(stmt, first + i);

		if (type != SQLITE_INTEGER && !(type == SQLITE_NULL && null_mask & 1u << i))
			return db_damaged(db, "%s is no number", sqlite3_column_name(stmt, first + i));
		ret[i] = (uint64_t)sqlite3_column_int64(stmt, first + i);
	}
	return 0;
}

int db_text(struct db *db, sqlite3_stmt *stmt, int column, const char **ret, size_t *ret_len)
{
	int type = sqlite3_column_type(stmt, column);
	const char *text;
	size_t len;

	if (type == SQLITE_NULL) {
		*ret = NULL;
		*ret_len = 0;
		return 0;
	}
	if (type != SQLITE_TEXT && type != SQLITE_BLOB)
		return db_damaged(db, "%s is no text", sqlite3_column_name(stmt, column));
	text = sqlite3_column_blob(stmt, column);
	len = (size_t)sqlite3_column_bytes(stmt, column);
	if (!text && len > 0)
		return db_fail(db, -ENOMEM, "out of memory");
	if (len > STORE_TEXT_MAX || (len > 0 && memchr(text, '\0', len)))
		return db_damaged(db, "%s is no text", sqlite3_column_name(stmt, column));
	*ret = len > 0 ? text : "";
	*ret_len = len;
	return 0;
}

void db_bind_number(sqlite3_stmt *stmt, int index, uint64_t value)
{
	sqlite3_bind_int64(stmt, index, (sqlite3_int64)value);
}

/* The length of the UTF-8 sequence at text[0..len), 0 when there is none. */
static size_t sequence_length(const unsigned char *text, size_t len)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

	for (size_t n = 0; n < 4 && n < len; n++) {
		uint32_t code = text[0] & (unsigned char)~forms[n].mask;

		if ((text[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((text[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (text[i] & 0x3f);
		}
		if (code < forms[n].least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
			return 0;
		return n + 1;
	}
	return 0;
}

static bool is_utf8(const char *text, size_t len)
{
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = sequence_length((const unsigned char *)text + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
}

void db_bind_text(sqlite3_stmt *stmt, int index, const char *text, size_t len)
{
	if (!text)
		sqlite3_bind_null(stmt, index);
	else if (is_utf8(text, len))
		sqlite3_bind_text(stmt, index, text, (int)len, SQLITE_STATIC);
	else
		sqlite3_bind_blob(stmt, index, text, (int)len, SQLITE_STATIC);
}
