#define _GNU_SOURCE              /* vasprintf */
#include "cli/failure.h"

#include "cli/terminal.h"
#include "export/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_line(const char *colour, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void print_line(const char *colour, const char *format, va_list args)
{
	char *text;
	bool coloured = terminal_colours(stderr);

	progress_clear();
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	fprintf(stderr, "%sallocwatch:%s ", coloured ? colour : "", coloured ? COLOUR_OFF : "");
	/* Some of it comes from other processes: it must stay one harmless line. */
	if (text)
		printable_write(stderr, text, strlen(text), false);
	else
		fputs("out of memory", stderr);
	fputc('\n', stderr);
	free(text);
}

int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(COLOUR_RED, format, args);
	va_end(args);
	return EXIT_FAILED;
}

int fail_usage(const char *command, const char *format, ...)
{
	char *text;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return fail_memory();
	if (command)
		fail("%s; see 'allocwatch %s --help'", text, command);
	else
		fail("%s; see 'allocwatch --help'", text);
	free(text);
	return EXIT_USAGE;
}

int fail_memory(void)
{
	return fail("out of memory; end other programs and try again");
}

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line("", format, args);
	va_end(args);
}

/* What to do about an error of the daemon's, where its own message cannot know it. */
static const struct remedy {
	const char *error, *text;
} remedies[] = {
	{ "NoSuchProcess", "'ps -e' shows the processes there are" },
	{ "NotTraced", "'allocwatch list' shows what is traced, 'allocwatch attach PID' starts tracing" },
	{ "AlreadyTraced", "'allocwatch status PID' shows how, 'allocwatch detach PID' ends it" },
	{ "NoAllocator", "wait until it has loaded its libraries, or check that it allocates with malloc" },
	{ "NoSuchSnapshot", "'allocwatch snapshots' shows those that are kept" },
	{ "LimitReached", "free what is no longer needed with 'allocwatch detach' or 'allocwatch rm'" },
};

static const char *short_name(const char *error)
{
	const char *dot = strrchr(error, '.');

	return dot ? dot + 1 : error;
}

static const char *string_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && *text ? text : otherwise;
}

static const char *remedy_of(const char *name, const char *why)
{
	/* The daemon's own message often says what to do, behind the reason. */
	for (size_t i = 0; !strstr(why, "; ") && i < sizeof(remedies) / sizeof(remedies[0]); i++)
		if (strcmp(remedies[i].error, name) == 0)
			return remedies[i].text;
	return NULL;
}

int fail_remote(const char *what, const json_t *error)
{
	const json_t *parameters = json_object_get(error, "parameters");
	const char *name = short_name(string_of(error, "error", "unknown error"));
	const char *why = string_of(parameters, "reason", string_of(parameters, "message", name));
	const char *remedy = string_of(parameters, "remedy", remedy_of(name, why));
	const char *parameter = string_of(parameters, "parameter", NULL);

	if (strcmp(name, "InvalidParameter") == 0 && parameter)
		return fail("%s: the daemon does not accept the parameter '%s'; client and daemon may be of different "
			    "versions", what, parameter);
	if (strcmp(name, "MethodNotFound") == 0)
		return fail("%s: the daemon does not know how; client and daemon may be of different versions", what);
	/* Some reasons are whole sentences: "cannot attach to process 4242: ...". */
	if (strncmp(why, "cannot ", strlen("cannot ")) == 0)
		return remedy ? fail("%s; %s", why, remedy) : fail("%s", why);
	return remedy ? fail("%s: %s; %s", what, why, remedy) : fail("%s: %s", what, why);
}

int fail_file(const char *what, const char *path, int result, char *reason)
{
	const char *remedy = "";

	if (result == -ENOMEM)
		fail_memory();
	else if (result == -EMEDIUMTYPE)
		remedy = "; 'allocwatch dump' writes files that can be read";
	else if (result == -EBADMSG)
		remedy = "; get it again from where it came from";
	else if (result == -ENOENT && access(path, F_OK) == 0)
		remedy = "; 'allocwatch snapshots FILE' shows those it has";
	else if (result == -ENOENT || result == -EACCES || result == -ENOTDIR)
		remedy = "; check its path and whom it belongs to";
	if (result != -ENOMEM && reason)
		fail("%s%s", reason, remedy);
	else if (result != -ENOMEM)
		fail("%s %s: %s%s", what, path, strerror(-result), remedy);
	free(reason);
	return EXIT_FAILED;
}
