/* One configuration file: sections, KEY=VALUE, comments and continued lines as in systemd.syntax(7).  It knows no keys:
 * what it reads it hands on, with the place where it stands.
 *
 * Must be a regular file (or /dev/null: empty) of its reader or of root that not everybody may write, UTF-8, and within the
 * limits below. */
#ifndef ALLOCWATCH_DAEMON_CONF_FILE_H
#define ALLOCWATCH_DAEMON_CONF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define CONF_FILE_BYTES_MAX (256u << 10)
#define CONF_LINE_BYTES_MAX 8192       /* with what continues it */
#define CONF_COMPLAINTS_MAX 50         /* of all files together; further ones are counted */

enum conf_kind { CONF_ERROR, CONF_WARNING };

/* What hears of it. */
struct conf_reader {
	void *context;
	/* section: "" before the first one.  Complains by itself, with conf_complain(). */
	void (*assign)(struct conf_reader *reader, const char *section, const char *key, const char *value);
	/* line: "FILE:LINE: ..." */
	void (*complain)(void *context, enum conf_kind kind, const char *line);
	/* Where the reader is, and what it found wrong so far. */
	const char *path;
	unsigned line;                 /* 0: the file as a whole */
	unsigned errors, warnings;
};

void conf_complain(struct conf_reader *reader, enum conf_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads a text of len bytes with a NUL behind them, which is changed.  Errors are counted in the reader. */
void conf_read_text(struct conf_reader *reader, const char *path, char *text, size_t len);
/* A missing file is an error; so is one that cannot be read. */
void conf_read_file(struct conf_reader *reader, const char *path);

#endif
