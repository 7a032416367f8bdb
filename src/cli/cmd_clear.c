#include "cli/command.h"
#include "cli/simple.h"

int cmd_clear(const struct options *options, int argc, char **argv)
{
	(void)argc;
	return simple_call(options, "clear", argv[0], "Clear", "cannot clear the traces of");
}
