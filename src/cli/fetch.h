/* Getting snapshots, from the daemon or from a file, as the model's own objects. */
#ifndef ALLOCWATCH_CLI_FETCH_H
#define ALLOCWATCH_CLI_FETCH_H

#include "cli/session.h"
#include "cli/snap.h"
#include "model/snapshot.h"

/* A session that is opened when the first snapshot needs a daemon. */
struct fetch {
	const struct options *options;
	struct session session;
};

void fetch_init(struct fetch *fetch, const struct options *options);
void fetch_fini(struct fetch *fetch);

/* EXIT_USAGE when it names no snapshot. */
int fetch_check(const char *command, const char *name, struct snap *ret_snap);
/* Parses the name and gets the snapshot; returns an exit status and has said why it is not 0. */
int fetch_snapshot(struct fetch *fetch, const char *command, const char *name,
		   struct snapshot **ret_snapshot);

/* Which thread allocated, and when, is known of single blocks: what the options ask for needs them. */
bool fetch_wants_blocks(const struct options *options);

/* With a session at hand.  blocks: a fresh one shall have them. */
int fetch_from_daemon(struct session *session, const char *name, bool blocks, struct snapshot **ret_snapshot);

#endif
