#define _GNU_SOURCE              /* asprintf */
#include "daemon/conf_file.h"

#include "base/fd.h"
#include "model/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define COMPLAINT_MAX 1024
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define ESCAPED_BYTE 0xdc00           /* of utf8_next(): no character */

/* --- what is wrong --- */

void conf_complain(struct conf_reader *reader, enum conf_kind kind, const char *format, ...)
{
	char place[24] = "", text[COMPLAINT_MAX], *line;
	va_list args;

	*(kind == CONF_ERROR ? &reader->errors : &reader->warnings) += 1;
	if (reader->errors + reader->warnings > CONF_COMPLAINTS_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (reader->line > 0)
		snprintf(place, sizeof(place), ":%u", reader->line);
	if (asprintf(&line, "%s%s: %s", reader->path, place, text) < 0)
		return;
	reader->complain(reader->context, kind, line);
	free(line);
}

/* --- lines --- */

static char *strip(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

static bool is_comment(const char *line)
{
	return line[0] == '#' || line[0] == ';';
}

/* Control characters have no business in a path or a number, and would steer the terminal of who reads an error. */
static bool is_plain_text(const char *line)
{
	uint32_t code;

	while ((code = utf8_next(&line)) != 0) {
		if ((code < 0x20 && code != '\t') || code == 0x7f ||
		    (code >= ESCAPED_BYTE && code <= ESCAPED_BYTE + 0xff))
			return false;
	}
	return true;
}

/* Whether the next line belongs to this one: it ends in a backslash that is none of a pair. */
static bool goes_on(const char *line)
{
	size_t len = strlen(line), slashes = 0;

	while (slashes < len && line[len - 1 - slashes] == '\\')
		slashes++;
	return slashes % 2 == 1;
}

struct parser {
	struct conf_reader *reader;
	char section[64];
	bool section_is_lost;          /* its heading was wrong, so what follows is nobody's */
	char joined[CONF_LINE_BYTES_MAX];
	size_t joined_len;
	unsigned joined_line;          /* where it began; 0: there is none */
};

static void take_section(struct parser *parser, char *line)
{
	size_t len = strlen(line);

	parser->section_is_lost = true;
	if (line[len - 1] != ']') {
		conf_complain(parser->reader, CONF_ERROR, "the section's name has no ] at its end: %.80s", line);
	} else if (len - 2 >= sizeof(parser->section) || len == 2) {
		conf_complain(parser->reader, CONF_ERROR, "no section has such a name: %.80s", line);
	} else {
		memcpy(parser->section, line + 1, len - 2);
		parser->section[len - 2] = '\0';
		parser->section_is_lost = false;
	}
}

static void take_assignment(struct parser *parser, char *line)
{
	char *sign = strchr(line, '=');

	if (!sign || sign == line) {
		conf_complain(parser->reader, CONF_ERROR, "this is neither [SECTION] nor KEY=VALUE: %.80s", line);
		return;
	}
	*sign = '\0';
	parser->reader->assign(parser->reader, parser->section, strip(line), strip(sign + 1));
}

static void take_line(struct parser *parser, char *line)
{
	line = strip(line);
	if (*line == '\0' || is_comment(line))
		return;
	if (!is_plain_text(line))
		conf_complain(parser->reader, CONF_ERROR, "the line holds control characters or is no UTF-8");
	else if (*line == '[')
		take_section(parser, line);
	else if (!parser->section_is_lost)
		take_assignment(parser, line);
}

static void end_joined(struct parser *parser)
{
	unsigned here = parser->reader->line;

	if (parser->joined_line == 0)
		return;
	parser->reader->line = parser->joined_line;
	take_line(parser, parser->joined);
	parser->reader->line = here;
	parser->joined_line = 0;
}

/* The line without its backslash and a space in its place, as systemd does it. */
static void join(struct parser *parser, const char *line, bool more)
{
	size_t len = strlen(line) - more;

	if (parser->joined_line == 0) {
		parser->joined_line = parser->reader->line;
		parser->joined_len = 0;
	}
	if (parser->joined_len + len + 2 > sizeof(parser->joined)) {
		conf_complain(parser->reader, CONF_ERROR, "the line is longer than %d bytes", CONF_LINE_BYTES_MAX);
		parser->joined_len = 0;
		len = 0;
	}
	memcpy(parser->joined + parser->joined_len, line, len);
	parser->joined_len += len;
	if (more)
		parser->joined[parser->joined_len++] = ' ';
	parser->joined[parser->joined_len] = '\0';
}

static void take_raw_line(struct parser *parser, char *line)
{
	char *begin = line + strspn(line, " \t");
	size_t len = strlen(line);

	if (len > 0 && line[len - 1] == '\r')
		line[len - 1] = '\0';
	/* Between continued lines a comment is no end. */
	if (is_comment(begin))
		return;
	if (goes_on(line)) {
		join(parser, line, true);
	} else if (parser->joined_line > 0) {
		join(parser, line, false);
		end_joined(parser);
	} else if (strlen(line) >= CONF_LINE_BYTES_MAX) {
		conf_complain(parser->reader, CONF_ERROR, "the line is longer than %d bytes", CONF_LINE_BYTES_MAX);
	} else {
		take_line(parser, line);
	}
}

void conf_read_text(struct conf_reader *reader, const char *path, char *text, size_t len)
{
	struct parser parser = { .reader = reader };
	char *next = text;

	reader->path = path;
	reader->line = 0;
	if (strlen(text) != len) {
		conf_complain(reader, CONF_ERROR, "the file holds a NUL byte and is no text");
		return;
	}
	if (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
		next += strlen(BYTE_ORDER_MARK);
	while (next) {
		char *line = next, *end = strchr(line, '\n');

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		reader->line++;
		take_raw_line(&parser, line);
	}
	end_joined(&parser);
	reader->line = 0;
}

/* --- files --- */

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static bool is_acceptable(struct conf_reader *reader, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		conf_complain(reader, CONF_ERROR, "this is no regular file");
	else if (st->st_uid != geteuid() && st->st_uid != 0)
		conf_complain(reader, CONF_ERROR, "the file belongs to user %u; it must be root's or yours", st->st_uid);
	else if (st->st_mode & S_IWOTH)
		conf_complain(reader, CONF_ERROR, "everybody may write the file; 'chmod o-w' closes it");
	else if (st->st_size > CONF_FILE_BYTES_MAX)
		conf_complain(reader, CONF_ERROR, "the file is larger than %u KiB", CONF_FILE_BYTES_MAX >> 10);
	else
		return true;
	return false;
}

/* O_NONBLOCK: nobody may have the other end of a FIFO. */
void conf_read_file(struct conf_reader *reader, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;
	struct stat st;
	size_t len;
	char *text;

	reader->path = path;
	reader->line = 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		conf_complain(reader, CONF_ERROR, "cannot be read: %s", strerror(errno));
	} else if (!is_null_device(&st) && is_acceptable(reader, &st)) {
		r = fd_read_text(fd, CONF_FILE_BYTES_MAX, &text, &len);
		if (r < 0) {
			conf_complain(reader, CONF_ERROR, "cannot be read: %s", strerror(-r));
		} else {
			conf_read_text(reader, path, text, len);
			free(text);
		}
	}
	fd_close(&fd);
}
