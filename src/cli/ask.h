/* Statistics and differences of snapshots: made where the snapshots are. */
#ifndef ALLOCWATCH_CLI_ASK_H
#define ALLOCWATCH_CLI_ASK_H

#include "cli/fetch.h"
#include "model/statistics.h"

/* names: one for statistics, two (older, newer) for differences; a daemon answers of snapshots that it has, files are read
 * here.  Returns an exit status and has said why it is not 0; free *ret with statistics_free(). */
int ask_statistics(struct fetch *fetch, const char *command, const struct statistics_query *query, char **names, size_t count,
		   struct statistics **ret);
#endif
