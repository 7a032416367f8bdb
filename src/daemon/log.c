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

static bool prefixed;

/* JOURNAL_STREAM holds device and inode of the stream; a redirected stderr is another one. */
void log_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	prefixed = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		   fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static void make_harmless(char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < 0x20 || *line == 0x7f)
			*line = '?';
	}
}

static void put(const char *priority, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* One write for a line, so that those of several processes do not mix. */
static void put(const char *priority, const char *format, va_list args)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
	int keep = errno, len;

	vsnprintf(text, sizeof(text), format, args);
	make_harmless(text);
	len = snprintf(line, sizeof(line), "%s%s%s\n", prefixed ? priority : "",
		       prefixed ? "" : "allocwatchd: ", text);
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		errno = 0;      /* there is nobody left to tell */
	errno = keep;
}

#define PUT(priority, format)              \
	do {                               \
		va_list args;              \
		va_start(args, format);    \
		put(priority, format, args); \
		va_end(args);              \
	} while (0)

void log_error(const char *format, ...)
{
	PUT(SD_ERR, format);
}

void log_warning(const char *format, ...)
{
	PUT(SD_WARNING, format);
}

void log_info(const char *format, ...)
{
	PUT(SD_INFO, format);
}
