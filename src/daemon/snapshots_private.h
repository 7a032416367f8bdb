/* Shared by the files of snapshots (snapshots*.c) only. */
#ifndef ALLOCWATCH_DAEMON_SNAPSHOTS_PRIVATE_H
#define ALLOCWATCH_DAEMON_SNAPSHOTS_PRIVATE_H

#include "base/vec.h"
#include "daemon/log_limit.h"
#include "daemon/snapshots.h"
#include "daemon/spool.h"

struct getter {
	void (*got)(void *context, struct snapshot *snapshot, const char *reason);
	void *context;
};

struct kept {
	struct snapshots *snapshots;
	uint64_t number;
	uid_t owner;
	char id[24];
	/* identity, also while it is only on disk */
	char *name, *command;
	int pid;
	uint64_t start_time, taken_ns, size, count;
	struct snapshot *snapshot;     /* NULL: on disk only */
	uint64_t bytes;                /* of memory, as accounted */
	uint64_t bytes_before;         /* when it was in memory last; 0: it never was */
	uint64_t file_bytes;           /* on disk, as accounted */
	uint64_t used;                 /* a tick: which was used last */
	bool named;                    /* it has its names */
	bool saved;
	bool working;                  /* a job has it */
	bool removed;                  /* out of the list; freed after the job */
	VEC_OF(struct getter) getters;
	void (*stored)(void *context, bool written);   /* NULL: nobody waits for that */
	void *stored_context;
};

struct listener {
	void (*listed)(void *context);
	void *context;
};

struct snapshots {
	struct work *work;
	struct snapshots_owner owner;
	struct spool *spool;           /* NULL: memory only */
	struct limits limits;
	uint64_t bytes;                /* of all snapshots in memory, and of those on their way there */
	uint64_t file_bytes;           /* on disk */
	uint64_t ticks, last_number;
	VEC_OF(struct kept *) list;    /* by number */
	/* looking through the folder */
	struct spool_file *found;
	size_t found_count, found_next;
	bool listed;
	VEC_OF(struct listener) listeners;
	size_t jobs;
	struct log_limit unwritten;    /* of lines about what cannot be written */
};

struct kept *kept_new(struct snapshots *snapshots, uint64_t number, uid_t owner);
void kept_free(struct kept *kept);
/* Takes over the reference: it is in memory now. */
void kept_set_snapshot(struct kept *kept, struct snapshot *snapshot);
void kept_drop_snapshot(struct kept *kept);
/* What it takes of memory is something else now. */
void kept_account(struct kept *kept);
int kept_take_identity(struct kept *kept, const struct snapshot *snapshot);
/* Sets its id and name; -ENOMEM. */
int snapshot_label(struct snapshot *snapshot, const char *id, const char *name);
void kept_tell(struct kept *kept, const char *reason);
int snapshots_insert(struct snapshots *snapshots, struct kept *kept);

/* snapshots_room.c */
/* Whether that is a name of those that are limited for each process, in two kinds that do not make way for each other: these, and
 * those of alarms (model/alarm.h). */
bool kept_is_last_name(const char *name);
/* An index that nobody uses goes; it is made again when it is asked for. */
void room_drop_index(struct kept *kept);
/* Lets what is on disk, too, leave memory until `more` bytes fit, also into what is for those that the daemon takes by itself
 * (automatic).  False: they do not. */
bool room_make_memory(struct snapshots *snapshots, uint64_t more, bool automatic);
/* Removes what makes way until there is a place for one more of this owner's; false: there is none. */
bool room_make_place(struct snapshots *snapshots, uid_t owner);
/* Removes all of this process's but the newest `max`, of the one kind or the other: a process that execs without an end, or hovers
 * at a limit, must not drive out what others left. */
void room_thin_out(struct snapshots *snapshots, int pid, uint64_t start_time, bool last, size_t max);

/* snapshots_disk.c */
/* Whoever waits until it is on disk: it is, or it will not be. */
void kept_tell_stored(struct kept *kept, bool written);
void disk_look_through(struct snapshots *snapshots);
void disk_save(struct kept *kept);
/* How many more could not be written, once that period is over. */
void disk_tell_unwritten(struct snapshots *snapshots, uint64_t now_ns);
void disk_load(struct kept *kept);
void disk_remove(struct kept *kept);

#endif
