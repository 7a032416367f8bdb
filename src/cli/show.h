/* Showing statistics: as tracemalloc's text or as JSON, and what could not be known with them. */
#ifndef ALLOCWATCH_CLI_SHOW_H
#define ALLOCWATCH_CLI_SHOW_H

#include "cli/options.h"
#include "cli/source.h"
#include "export/text.h"

#include <jansson.h>

/* What the options ask for; filters stay the options'.  EXIT_USAGE for what does not go together. */
int show_query(const struct options *options, const char *command, struct statistics_query *ret_query);
/* How they want text printed.  The style borrows source. */
struct text_style show_style(const struct options *options, struct source *source);

/* Prints statistics or (diff) differences; the exit status is EXIT_INEXACT when --strict says so. */
int show_statistics(const struct options *options, const struct statistics *statistics, bool diff);

/* Says so on stderr when snapshots had different frames limits and that decided the answer. */
void show_limits(const struct statistics *statistics);
/* ... when not all names of a snapshot could be looked for. */
void show_names(const struct statistics *statistics);
/* Says so on stderr when rows are by another key than options have, since builds differ. */
void show_key(const struct options *options, const struct statistics *statistics);
/* What could not be known, in words; nothing when all is known. */
void show_unknown(FILE *out, bool exact, const struct snapshot_unknown *unknown);
/* Says that they are estimates, when they are. */
void show_sampling(FILE *out, uint64_t sample_bytes);
/* EXIT_INEXACT and a line on stderr for an answer that is not exact under --strict, else EXIT_DONE. */
int show_verdict(const struct options *options, bool exact);

/* Prints one document and takes the reference; NULL is out of memory. */
int show_json(json_t *document);
int show_json_to(FILE *out, json_t *document);
/* Flushes stdout; what was printed must have arrived. */
int show_finish(void);

#endif
