#include "daemon/exec_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	unsigned flag;
	const char *word, *prefix;
} flags[] = {
	{ EXEC_NO_ENV_EXPAND, "no-env-expand", ":" }, { EXEC_IGNORE_FAILURE, "ignore-failure", "-" },
	{ EXEC_PRIVILEGED, "privileged", "+" },	      { EXEC_NO_SETUID, "no-setuid", "!" },
	{ EXEC_AMBIENT, "ambient", "!!" },
};
#define FLAG_COUNT (sizeof(flags) / sizeof(flags[0]))

void exec_start_fini(struct exec_start *start)
{
	for (size_t i = 0; i < start->commands.count; i++) {
		struct exec_command *command = &start->commands.items[i];

		for (size_t k = 0; command->argv && command->argv[k]; k++)
			free(command->argv[k]);
		free(command->argv);
		free(command->path);
	}
	vec_fini(&start->commands);
}

int exec_flag_parse(const char *word, unsigned *ret_flag)
{
	for (size_t i = 0; i < FLAG_COUNT; i++) {
		if (strcmp(flags[i].word, word) == 0) {
			*ret_flag = flags[i].flag;
			return 0;
		}
	}
	return -EINVAL;
}

bool exec_start_has_shim(const struct exec_start *start, const char *shim)
{
	for (size_t i = 0; i < start->commands.count; i++) {
		if (strcmp(start->commands.items[i].path, shim) == 0)
			return true;
	}
	return false;
}

/* In double quotes, as systemd.syntax(7) and "Quoting" in systemd.service(5) have them.  Inside these nothing separates
 * commands (";") or arguments; specifiers are expanded. */
static void write_quoted(FILE *out, const char *text, bool expanded)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '%' || (c == '$' && expanded))
			fprintf(out, "%c%c", c, c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

/* The program's path is an argument now, in which systemd would look for variables. */
static void write_command(FILE *out, const struct exec_command *command, const char *shim)
{
	fputs("ExecStart=", out);
	for (size_t i = 0; i < FLAG_COUNT; i++) {
		if (command->flags & flags[i].flag)
			fputs(flags[i].prefix, out);
	}
	write_quoted(out, shim, false);
	putc(' ', out);
	write_quoted(out, command->path, !(command->flags & EXEC_NO_ENV_EXPAND));
	for (char **arg = command->argv; *arg; arg++) {
		putc(' ', out);
		write_quoted(out, *arg, false);
	}
	putc('\n', out);
}

int exec_start_drop_in(const struct exec_start *start, const char *unit, const char *shim, bool allow_shim, char **ret_text)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return -ENOMEM;
	fprintf(out, "# Made by allocwatchd for \"allocwatch watch --from-start\": the program is traced from its first\n"
		     "# instruction.  \"allocwatch unwatch %s\" takes this out again.\n[Service]\nExecStart=\n", unit);
	for (size_t i = 0; i < start->commands.count; i++)
		write_command(out, &start->commands.items[i], shim);
	if (allow_shim) {
		fputs("ExecPaths=", out);
		write_quoted(out, shim, false);
		putc('\n', out);
	}
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	if (len > EXEC_START_TEXT_MAX) {
		free(text);
		return -E2BIG;
	}
	*ret_text = text;
	return 0;
}
