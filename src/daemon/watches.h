/* What is to be watched: rules about services and programs.  Each process that comes under a rule is traced as soon as it
 * is seen, snapshots of it are taken at an interval and kept as far as the rule says, and what was traced is remembered.
 *
 * Rules and what was traced lie in the state folder, and outlive the daemon.  See doc/ARCHITECTURE.md. */
#ifndef ALLOCWATCH_DAEMON_WATCHES_H
#define ALLOCWATCH_DAEMON_WATCHES_H

#include "daemon/snapshots.h"
#include "store/history.h"

#include <jansson.h>
#include <stdbool.h>

struct daemon;
struct kept;
struct session;
struct watches;

/* Takes up the rules of the daemon before, once kept snapshots are known.  0 or negative errno. */
int watches_new(struct daemon *daemon, struct watches **ret);
/* Nobody is attached to any more. */
void watches_stop(struct watches *watches);        /* accepts NULL */
void watches_free(struct watches *watches);        /* accepts NULL */
size_t watches_count(const struct watches *watches);
/* Nothing waits to be written. */
bool watches_are_settled(const struct watches *watches);
/* Sessions have come, gone or changed: looked at from the event loop, soon. */
void watches_look(struct watches *watches);

/* What came of a rule. */
struct watches_answer {
	const char *refusal;           /* NULL: it is there; or why it cannot be traced from its start, and nothing was changed */
	const char *problem;           /* NULL, or why nothing can be seen of it for now */
	const char *drop_in;           /* of a rule from the start: the file that does it; NULL */
};
typedef void (*watches_done_fn)(void *context, const struct watches_answer *answer);

/* Makes the rule, or changes the one about the same `who`.  `done` is told once, at once or later.  0; -ENOSPC: too many;
 * -EBUSY: somebody else is just making it; or negative errno. */
int watches_add(struct watches *watches, const struct history_rule *rule, watches_done_fn done, void *context);
/* Who asked is gone. */
void watches_nobody_waits(struct watches *watches, void *context);
/* What is traced for it is let go; `done` is told once, when also nothing of it is left in the unit.  -ENOENT: there is no
 * such rule. */
int watches_remove(struct watches *watches, const char *who, watches_done_fn done, void *context);

/* A unit's name as it is used for rules: "redis-server" is redis-server.service; a path stays.  False: it is neither. */
bool watches_name(const char *text, char who[HISTORY_WHO_MAX]);

/* The rule that a traced process is under; NULL: none. */
const struct history_rule *watches_rule_of(const struct watches *watches, int pid, uint64_t start_time);
/* Takes a snapshot of a traced process by this name, which is not copied.  who: the rule's, whose limits on what is kept hold;
 * "": for none, and it is the session owner's. */
void watches_take(struct watches *watches, struct session *session, const char *who, const char *name);

/* type Watch, as a list. */
json_t *watches_list(const struct watches *watches);
/* Their names, as a list; empty for who may not know of them. */
json_t *watches_names(const struct watches *watches, bool may_know);
/* type Run, as a list by time, with the snapshots that the viewer sees; NULL without memory.  Empty: nothing was ever
 * traced for it. */
json_t *watches_history(const struct watches *watches, struct viewer viewer, const char *who);
/* The newest snapshot of this name of who's processes; "first" and "last", where none is called so, are the oldest and
 * the newest.  NULL: none that the viewer sees. */
struct kept *watches_find(const struct watches *watches, struct viewer viewer, const char *who, const char *name);
/* It has had processes, or a rule. */
bool watches_knows(const struct watches *watches, const char *who);

#endif
