/* Figures of everything that is traced, for monitoring: asked of the tracers, put together and made a text.
 *
 * A text is for a viewer, who sees of it what List would show.  Which lines hold the memory comes from snapshots, which
 * metrics_groups.h takes at a bounded rate. */
#ifndef ALLOCWATCH_DAEMON_METRICS_H
#define ALLOCWATCH_DAEMON_METRICS_H

#include "export/openmetrics.h"

#include <stdbool.h>
#include <sys/types.h>

struct daemon;
struct options;
struct metrics;

/* Who looks. */
struct metrics_viewer {
	uid_t uid;
	bool all;              /* sees what is others', too */
	bool sees_roots;       /* sees root's, too: see permit.h */
};

int metrics_new(struct daemon *daemon, const struct options *options, struct metrics **ret);
/* What is under way ends without a text; before the daemon's parts go.  Accepts NULL. */
void metrics_stop(struct metrics *metrics);
void metrics_free(struct metrics *metrics);            /* accepts NULL */
void metrics_set_options(struct metrics *metrics, const struct options *options);

/* `made` is told once, by METRICS_DEADLINE_US at the latest, from the event loop or at once.  The text is the receiver's, to
 * be freed; NULL: there is no memory. */
void metrics_collect(struct metrics *metrics, struct metrics_viewer viewer, enum openmetrics_format format,
		     void (*made)(void *context, char *text, size_t len), void *context);

#endif
