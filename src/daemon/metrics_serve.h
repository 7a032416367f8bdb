/* Whether and where metrics are served by HTTP, which a reload can change. */
#ifndef ALLOCWATCH_DAEMON_METRICS_SERVE_H
#define ALLOCWATCH_DAEMON_METRICS_SERVE_H

struct daemon;
struct metrics_serve;
struct options;

/* handed_over: a listening socket of the service manager's, taken over, which counts in place of what options say; -1.  An
 * address that cannot be had is logged and done without.  0 or -ENOMEM. */
int metrics_serve_new(struct daemon *daemon, const struct options *options, int handed_over, struct metrics_serve **ret);
void metrics_serve_free(struct metrics_serve *serve);          /* accepts NULL */
/* 0; or negative errno, logged, and nothing has changed. */
int metrics_serve_set(struct metrics_serve *serve, const struct options *options);

#endif
