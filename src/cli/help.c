#include "cli/help.h"

#include "cli/failure.h"
#include "cli/show.h"

void help_program(FILE *out)
{
	fputs("Usage: allocwatch COMMAND [OPTION...] [ARGUMENT...]\n"
	      "Shows which lines of a running program hold its memory.\n\nCommands:\n", out);
	for (const struct command *command = commands; command->name; command++)
		fprintf(out, "  %-12s%s\n", command->name, command->summary);
	fputs("\nOptions of every command:\n", out);
	options_print(out, OPTIONS_COMMON);
	fputs("\nExit status: 0 done; 1 failed; 2 wrong usage; 3 not exact with --strict, or over\n"
	      "the limit of 'run --fail-over'.  More: 'allocwatch COMMAND --help', allocwatch(1).\n", out);
}

void help_command(FILE *out, const struct command *command)
{
	fprintf(out, "Usage: allocwatch %s [OPTION...]%s%s\n%c%s.\n", command->name, *command->arguments ? " " : "",
		command->arguments, command->summary[0] - 'a' + 'A', command->summary + 1);
	if (command->details)
		fprintf(out, "\n%s", command->details);
	fputs("\nOptions:\n", out);
	options_print(out, command->options | OPTIONS_COMMON);
}

int cmd_help(const struct options *options, int argc, char **argv)
{
	const struct command *command;

	(void)options;
	if (argc == 0) {
		help_program(stdout);
		return show_finish();
	}
	command = command_find(argv[0]);
	if (!command)
		return fail_usage(NULL, "there is no command '%s'", argv[0]);
	help_command(stdout, command);
	return show_finish();
}
