#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/show.h"

#include <errno.h>

int cmd_stats(const struct options *options, int argc, char **argv)
{
	struct statistics *statistics = NULL;
	struct snapshot *snapshot = NULL;
	struct statistics_query query;
	const char *reason = NULL;
	struct fetch fetch;
	int r = show_query(options, "stats", &query);

	(void)argc;
	if (r != EXIT_DONE)
		return r;
	fetch_init(&fetch, options);
	r = fetch_snapshot(&fetch, "stats", argv[0], &snapshot);
	if (r != EXIT_DONE)
		goto out;
	r = statistics_make(snapshot, &query, &statistics, &reason);
	if (r == -EINVAL)
		r = fail_usage("stats", "%s", reason);
	else if (r < 0)
		r = fail_memory();
	else
		r = show_statistics(options, statistics, false);
out:
	statistics_free(statistics);
	snapshot_put(snapshot);
	fetch_fini(&fetch);
	return r;
}
