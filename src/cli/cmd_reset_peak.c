#include "cli/command.h"
#include "cli/simple.h"

int cmd_reset_peak(const struct options *options, int argc, char **argv)
{
	(void)argc;
	return simple_call(options, "reset-peak", argv[0], "ResetPeak", "cannot reset the peak of");
}
