#include "daemon/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

const char *const log_levels[] = { "error", "warning", "notice", "info", "debug", NULL };
static const char *const prefixes[] = { SD_ERR, SD_WARNING, SD_NOTICE, SD_INFO, SD_DEBUG };

static bool prefixed;
static _Atomic enum log_level most = LOG_LEVEL_INFO;   /* jobs in threads log, too */

/* JOURNAL_STREAM holds device and inode of the stream; a redirected stderr is another one. */
void log_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	prefixed = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		   fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_set_level(enum log_level level)
{
	most = level;
}

static void make_harmless(char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < 0x20 || *line == 0x7f)
			*line = '?';
	}
}

static void put(enum log_level level, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* One write for a line, so that those of several processes do not mix. */
static void put(enum log_level level, const char *format, va_list args)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
	int keep = errno, len;

	if (level > most)
		return;
	vsnprintf(text, sizeof(text), format, args);
	make_harmless(text);
	len = snprintf(line, sizeof(line), "%s%s\n", prefixed ? prefixes[level] : "allocwatchd: ", text);
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		errno = 0;      /* there is nobody left to tell */
	errno = keep;
}

#define PUT(level, format)                 \
	do {                               \
		va_list args;              \
		va_start(args, format);    \
		put(level, format, args);  \
		va_end(args);              \
	} while (0)

void log_error(const char *format, ...)
{
	PUT(LOG_LEVEL_ERROR, format);
}

void log_warning(const char *format, ...)
{
	PUT(LOG_LEVEL_WARNING, format);
}

void log_notice(const char *format, ...)
{
	PUT(LOG_LEVEL_NOTICE, format);
}

void log_info(const char *format, ...)
{
	PUT(LOG_LEVEL_INFO, format);
}

void log_debug(const char *format, ...)
{
	PUT(LOG_LEVEL_DEBUG, format);
}
