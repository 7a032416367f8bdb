/* The snapshots that are kept: their ids and names, in memory as long as there is room, on disk in the
 * state folder (when there is one), so that they outlive target, tracer and daemon.
 *
 * A snapshot that has been saved may leave memory and is read again when it is asked for.  Ids
 * ("s17") are never used twice. */
#ifndef ALLOCWATCH_DAEMON_SNAPSHOTS_H
#define ALLOCWATCH_DAEMON_SNAPSHOTS_H

#include "daemon/limits.h"
#include "daemon/work.h"
#include "model/snapshot.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct snapshots;
struct kept;

/* The name of those that are taken for a rule (watches.h), which says how many are kept. */
#define SNAPSHOT_OF_RULE "watch"

/* Who hears of them. */
struct snapshots_owner {
	void *context;
	void (*kept)(void *context, const struct kept *kept);
	/* One is about to be removed for a newer one. */
	void (*makes_way)(void *context, const struct kept *kept);
};

/* folder: NULL, or of the state; one that cannot be used is logged and done without. */
int snapshots_new(struct work *work, const char *folder, const struct limits *limits,
		  const struct snapshots_owner *owner, struct snapshots **ret);
void snapshots_free(struct snapshots *snapshots);
/* Of fewer than there are none is removed; in memory those on disk make way. */
void snapshots_set_limits(struct snapshots *snapshots, const struct limits *limits);
/* NULL: they are kept in memory only. */
const char *snapshots_folder(const struct snapshots *snapshots);
size_t snapshots_count(const struct snapshots *snapshots);
/* Of one owner, or of all. */
size_t snapshots_count_of(const struct snapshots *snapshots, uid_t owner, bool all);
/* Bytes that all of them take in memory, and on disk. */
uint64_t snapshots_memory(const struct snapshots *snapshots);
uint64_t snapshots_disk(const struct snapshots *snapshots);
/* Nothing waits for its names or to be written. */
bool snapshots_are_settled(const struct snapshots *snapshots);

/* Keeps a snapshot under a new id and this name ("" for none): takes a reference, sets id and name.
 * Those that the daemon takes by itself (model/occasion.h) make way when there are too many, and, but for those at a
 * rule's interval, at once when there are more than AUTOMATIC_SNAPSHOTS_MAX of one process ("exit", "exec", "detach",
 * "lost") or ALARM_SNAPSHOTS_MAX (the others).  Who is not the daemon's user has a share of the room, and only what is
 * theirs makes way for it.
 * It is not ready before snapshots_named().  0; -ENOSPC, -ENOMEM. */
int snapshots_keep(struct snapshots *snapshots, struct snapshot *snapshot, const char *name, uid_t owner,
		   struct kept **ret);
/* Its names are there: who waits is told, and it is written. */
void snapshots_named(struct snapshots *snapshots, struct kept *kept);
/* The same; stored is told once: written is true when it is on disk, or nobody wants it any more. */
void snapshots_named_then(struct snapshots *snapshots, struct kept *kept, void (*stored)(void *context, bool written),
			  void *context);

/* Once the state folder has been looked through (at the start it takes a while): at once or later. */
void snapshots_when_listed(struct snapshots *snapshots, void (*listed)(void *context), void *context);

/* Memory that a snapshot under way will take.  All that are in the daemon's memory count, kept or not, whoever uses
 * them; those that are on disk and in nobody's use make way.  automatic: of one that the daemon takes by itself, for which
 * AUTOMATIC_MEMORY is kept free of others.  False: there is not so much. */
bool snapshots_reserve(struct snapshots *snapshots, uint64_t bytes, bool automatic);
void snapshots_unreserve(struct snapshots *snapshots, uint64_t bytes);
/* The same for what can be done without: nothing makes way for it. */
bool snapshots_reserve_spare(struct snapshots *snapshots, uint64_t bytes);
/* It is there now, or has become larger. */
void snapshots_charge(struct snapshots *snapshots, struct snapshot *snapshot);
/* The reason when there is no such memory. */
extern const char snapshots_memory_full[];
/* Why no more can be kept for this user; NULL: they can.  To be freed. */
char *snapshots_full(const struct snapshots *snapshots, uid_t owner);

/* Who asks: root sees all, others their own, and some what root has had traced, too (permit.h). */
struct viewer {
	uid_t uid;
	bool sees_roots;
};

/* NULL: none that the viewer sees.  Of several with one name the newest.  "exit" is the end of a
 * program, also by an exec, as long as the process lives on.  pid's last one: of its latest incarnation. */
struct kept *snapshots_by_id(struct snapshots *snapshots, struct viewer viewer, const char *id);
struct kept *snapshots_by_name(struct snapshots *snapshots, struct viewer viewer, int pid, const char *name);
struct kept *snapshots_last_of(struct snapshots *snapshots, struct viewer viewer, int pid);
const char *kept_id(const struct kept *kept);
uid_t kept_owner(const struct kept *kept);
uint64_t kept_start_time(const struct kept *kept);     /* with its PID, whose it is */
uint64_t kept_taken_ns(const struct kept *kept);       /* CLOCK_REALTIME */

/* Whose and how much a kept snapshot is; i below snapshots_count(), by id.  The name is the snapshot's. */
struct kept_facts {
	int pid;
	uint64_t start_time, taken_ns;
	uint64_t bytes;                /* on disk, or what it will be there, about */
	const char *name;
};
struct kept *snapshots_at(const struct snapshots *snapshots, size_t i);
struct kept_facts kept_facts(const struct kept *kept);
/* Whether somebody sees it; whether it goes by that name. */
bool kept_is_seen(const struct kept *kept, struct viewer viewer);
bool kept_is_called(const struct kept *kept, const char *name);

/* The snapshot itself, with names: `got` is told at once or later, with NULL and a reason when it
 * cannot be read or was removed meanwhile.  The snapshot is borrowed: take a reference. */
void snapshots_get(struct snapshots *snapshots, struct kept *kept,
		   void (*got)(void *context, struct snapshot *snapshot, const char *reason), void *context);

/* type SnapshotInfo, as a list ordered by id; pid 0: of all processes. */
json_t *snapshots_list(struct snapshots *snapshots, struct viewer viewer, int pid);
json_t *kept_info(const struct kept *kept);
/* From memory and disk. */
void snapshots_remove(struct snapshots *snapshots, struct kept *kept);

#endif
