#include "cli/ask.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"

int cmd_diff(const struct options *options, int argc, char **argv)
{
	struct statistics *statistics;
	struct statistics_query query;
	struct fetch fetch;
	int r = show_query(options, "diff", &query);

	if (r != EXIT_DONE)
		return r;
	fetch_init(&fetch, options);
	r = ask_statistics(&fetch, "diff", &query, argv, (size_t)argc, &statistics);
	fetch_fini(&fetch);
	if (r != EXIT_DONE)
		return r;
	r = show_statistics(options, statistics, !query.born);
	statistics_free(statistics);
	return r;
}
