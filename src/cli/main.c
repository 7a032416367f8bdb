/* allocwatch(1): asks the daemon, or files, and prints the answers. */
#include "config.h"

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/show.h"

#include <locale.h>
#include <string.h>

static int print_version(void)
{
	puts(PACKAGE_STRING);
	return show_finish();
}

static int run_command(struct options *options, const struct command *command, int argc, char **argv)
{
	int first, count;
	int r = options_parse(options, command, argc, argv, &first);

	if (r != EXIT_DONE)
		return r;
	if (options_have(options, OPTION(VERSION)))
		return print_version();
	if (options_have(options, OPTION(HELP))) {
		help_command(stdout, command);
		return show_finish();
	}
	count = argc - first;
	if (count < command->least)
		return fail_usage(command->name, "'%s' needs %s", command->name, command->arguments);
	if (command->most >= 0 && count > command->most)
		return fail_usage(command->name, "'%s' takes no argument '%s'", command->name,
				  argv[first + command->most]);
	return command->run(options, count, argv + first);
}

static int run(struct options *options, int argc, char **argv)
{
	const struct command *command;
	int first;
	int r = options_parse(options, NULL, argc, argv, &first);

	if (r != EXIT_DONE)
		return r;
	if (options_have(options, OPTION(VERSION)))
		return print_version();
	if (options_have(options, OPTION(HELP)))
		return cmd_help(options, argc - first > 0 ? 1 : 0, argv + first);
	if (first == argc)
		return fail_usage(NULL, "a command is missing");
	command = command_find(argv[first]);
	if (!command)
		return fail_usage(NULL, "there is no command '%s'", argv[first]);
	return run_command(options, command, argc - first, argv + first);
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	int r;

	/* Only times are written the user's way; numbers stay as tracemalloc writes them. */
	setlocale(LC_TIME, "");
	r = run(&options, argc, argv);
	options_fini(&options);
	return r;
}
