#include "cli/terminal.h"

#include "export/printable.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K"

static bool progress_shown;

bool terminal_is(FILE *stream)
{
	return isatty(fileno(stream)) == 1;
}

/* One that understands more than text. */
static bool is_capable(FILE *stream)
{
	const char *term = getenv("TERM");

	return terminal_is(stream) && !(term && strcmp(term, "dumb") == 0);
}

bool terminal_colours(FILE *stream)
{
	const char *no_color = getenv("NO_COLOR");

	return is_capable(stream) && !(no_color && *no_color);
}

void progress(const char *format, ...)
{
	char text[80];
	va_list args;

	if (!is_capable(stderr))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fputs(CLEAR_LINE, stderr);
	printable_write(stderr, text, strlen(text), false);
	fflush(stderr);
	progress_shown = true;
}

void progress_clear(void)
{
	if (progress_shown)
		fputs(CLEAR_LINE, stderr);
	progress_shown = false;
}
