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
	bool blocks;            /* a fresh snapshot has its blocks: by whom and when each was made is known of single ones */
};

/* blocks: as the options need them. */
void fetch_init(struct fetch *fetch, const struct options *options);
void fetch_fini(struct fetch *fetch);

/* EXIT_USAGE when it names no snapshot. */
int fetch_check(const char *command, const char *name, struct snap *ret_snap);
/* Parses the name and gets the snapshot; returns an exit status and has said why it is not 0. */
int fetch_snapshot(struct fetch *fetch, const char *command, const char *name,
		   struct snapshot **ret_snapshot);

/* Hides what the daemon hides, too, by the first piece of a snapshot's tables: what is computed here then looks as what it
 * computes.  0, -EBADMSG, -ENOMEM. */
int fetch_take_hidden(const json_t *tables);

/* With a session at hand.  blocks: a fresh one shall have them. */
int fetch_from_daemon(struct session *session, const char *name, bool blocks, struct snapshot **ret_snapshot);

#endif
