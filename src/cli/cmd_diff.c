#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/show.h"

#include <errno.h>

static int compare(const struct options *options, const struct statistics_query *query,
		   const struct snapshot *older, const struct snapshot *newer)
{
	struct statistics *statistics;
	const char *reason = NULL;
	int r = statistics_compare(older, newer, query, &statistics, &reason);

	if (r == -EINVAL)
		return fail_usage("diff", "%s", reason);
	if (r < 0)
		return fail_memory();
	r = show_statistics(options, statistics, !query->born);
	statistics_free(statistics);
	return r;
}

int cmd_diff(const struct options *options, int argc, char **argv)
{
	struct snapshot *older = NULL, *newer = NULL;
	struct statistics_query query;
	struct fetch fetch;
	struct snap snap;
	int r = show_query(options, "diff", &query);

	(void)argc;
	fetch_init(&fetch, options);
	/* A fresh snapshot is not taken for a pair that is half wrong. */
	if (r == EXIT_DONE)
		r = fetch_check("diff", argv[1], &snap);
	if (r == EXIT_DONE)
		r = fetch_snapshot(&fetch, "diff", argv[0], &older);
	if (r == EXIT_DONE)
		r = fetch_snapshot(&fetch, "diff", argv[1], &newer);
	if (r == EXIT_DONE)
		r = compare(options, &query, older, newer);
	snapshot_put(older);
	snapshot_put(newer);
	fetch_fini(&fetch);
	return r;
}
