#include "daemon/snapshots_private.h"

#include "daemon/limits.h"
#include "daemon/log.h"
#include "model/alarm.h"
#include "model/index.h"
#include "model/occasion.h"
#include "varlink/codec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one --- */

struct kept *kept_new(struct snapshots *snapshots, uint64_t number, uid_t owner)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	if (!kept)
		return NULL;
	kept->snapshots = snapshots;
	kept->number = number;
	kept->owner = owner;
	snprintf(kept->id, sizeof(kept->id), "s%" PRIu64, number);
	return kept;
}

void kept_free(struct kept *kept)
{
	if (!kept)
		return;
	kept_drop_snapshot(kept);
	kept->snapshots->file_bytes -= kept->file_bytes;
	vec_fini(&kept->getters);
	free(kept->name);
	free(kept->command);
	free(kept);
}

void kept_account(struct kept *kept)
{
	if (kept->snapshot)
		snapshots_charge(kept->snapshots, kept->snapshot);
	kept->bytes = kept->snapshot ? kept->snapshot->charged : 0;
	if (kept->snapshot)
		kept->bytes_before = kept->bytes;
}

void kept_set_snapshot(struct kept *kept, struct snapshot *snapshot)
{
	kept->snapshot = snapshot;
	kept->used = ++kept->snapshots->ticks;
	kept_account(kept);
}

void kept_drop_snapshot(struct kept *kept)
{
	snapshot_put(kept->snapshot);
	kept->snapshot = NULL;
	kept_account(kept);
}

static int replace(char **text, const char *by)
{
	char *copy = strdup(by ? by : "");

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

int kept_take_identity(struct kept *kept, const struct snapshot *snapshot)
{
	kept->pid = (int)snapshot->pid;
	kept->start_time = snapshot->start_time;
	kept->taken_ns = snapshot->taken_ns;
	kept->size = snapshot->counters.live_bytes;
	kept->count = snapshot->counters.live_blocks;
	if (replace(&kept->name, snapshot->name) < 0 || replace(&kept->command, snapshot->command) < 0)
		return -ENOMEM;
	return 0;
}

/* Takes the list away first: who is told may ask again. */
void kept_tell(struct kept *kept, const char *reason)
{
	struct snapshot *snapshot = reason ? NULL : kept->snapshot;

	while (kept->getters.count > 0) {
		struct getter getter = kept->getters.items[--kept->getters.count];

		getter.got(getter.context, snapshot, reason);
	}
}

uint64_t kept_start_time(const struct kept *kept)
{
	return kept->start_time;
}

uint64_t kept_taken_ns(const struct kept *kept)
{
	return kept->taken_ns;
}

const char *kept_id(const struct kept *kept)
{
	return kept->id;
}

uid_t kept_owner(const struct kept *kept)
{
	return kept->owner;
}

struct kept *snapshots_at(const struct snapshots *snapshots, size_t i)
{
	return snapshots->list.items[i];
}

struct kept_facts kept_facts(const struct kept *kept)
{
	return (struct kept_facts){ kept->pid, kept->start_time, kept->taken_ns, kept->saved ? kept->file_bytes : kept->bytes,
				    kept->name };
}

json_t *kept_info(const struct kept *kept)
{
	return json_pack("{s:s, s:o, s:s?, s:I, s:o, s:I, s:I, s:I}", "id", kept->id, "name", codec_bytes(kept->name),
			 "reason", occasion_text(kept->name),
			 "pid", (json_int_t)kept->pid, "command", codec_bytes(kept->command),
			 "time", (json_int_t)kept->taken_ns, "size", (json_int_t)kept->size,
			 "count", (json_int_t)kept->count);
}

/* --- all of them --- */

int snapshots_new(struct work *work, const char *folder, const struct limits *limits,
		  const struct snapshots_owner *owner, struct snapshots **ret)
{
	struct snapshots *snapshots = calloc(1, sizeof(*snapshots));
	char *reason;

	if (!snapshots)
		return -ENOMEM;
	snapshots->work = work;
	snapshots->limits = *limits;
	snapshots->owner = *owner;
	if (folder && spool_open(folder, &snapshots->spool, &reason) < 0) {
		log_warning("snapshots are kept in memory only: %s", reason ? reason : "out of memory");
		free(reason);
	}
	disk_look_through(snapshots);
	*ret = snapshots;
	return 0;
}

void snapshots_free(struct snapshots *snapshots)
{
	if (!snapshots)
		return;
	disk_tell_unwritten(snapshots, LOG_AT_THE_END);
	for (size_t i = 0; i < snapshots->list.count; i++)
		kept_free(snapshots->list.items[i]);
	vec_fini(&snapshots->list);
	vec_fini(&snapshots->listeners);
	free(snapshots->found);
	spool_close(snapshots->spool);
	assert(snapshots->bytes == 0);
	free(snapshots);
}

const char *snapshots_folder(const struct snapshots *snapshots)
{
	return snapshots->spool ? spool_folder(snapshots->spool) : NULL;
}

size_t snapshots_count_of(const struct snapshots *snapshots, uid_t owner, bool all)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshots->list.count; i++)
		count += all || snapshots->list.items[i]->owner == owner;
	return count;
}

uint64_t snapshots_memory(const struct snapshots *snapshots)
{
	return snapshots->bytes;
}

uint64_t snapshots_disk(const struct snapshots *snapshots)
{
	return snapshots->file_bytes;
}

size_t snapshots_count(const struct snapshots *snapshots)
{
	return snapshots->list.count;
}

bool snapshots_are_settled(const struct snapshots *snapshots)
{
	if (snapshots->jobs > 0)
		return false;
	for (size_t i = 0; i < snapshots->list.count; i++) {
		if (!snapshots->list.items[i]->named)
			return false;
	}
	return true;
}

void snapshots_when_listed(struct snapshots *snapshots, void (*listed)(void *context), void *context)
{
	struct listener *listener;

	/* Without memory to wait, what is known by now has to do. */
	if (snapshots->listed || !(listener = vec_push(&snapshots->listeners))) {
		listed(context);
		return;
	}
	listener->listed = listed;
	listener->context = context;
}

int snapshots_insert(struct snapshots *snapshots, struct kept *kept)
{
	size_t i = snapshots->list.count;

	if (!vec_push(&snapshots->list))
		return -ENOMEM;
	for (; i > 0 && snapshots->list.items[i - 1]->number > kept->number; i--)
		snapshots->list.items[i] = snapshots->list.items[i - 1];
	snapshots->list.items[i] = kept;
	return 0;
}

static void unlist(struct kept *kept)
{
	struct snapshots *snapshots = kept->snapshots;

	for (size_t i = 0; i < snapshots->list.count; i++) {
		if (snapshots->list.items[i] != kept)
			continue;
		snapshots->list.count--;
		memmove(&snapshots->list.items[i], &snapshots->list.items[i + 1],
			(snapshots->list.count - i) * sizeof(*snapshots->list.items));
		return;
	}
}

void snapshots_remove(struct snapshots *snapshots, struct kept *kept)
{
	(void)snapshots;
	unlist(kept);
	kept->removed = true;
	kept_tell(kept, "it was removed meanwhile");
	disk_remove(kept);
	/* One that still waits for its names or is being written is freed afterwards. */
	if (!kept->working && kept->named)
		kept_free(kept);
}

/* --- keeping --- */

int snapshot_label(struct snapshot *snapshot, const char *id, const char *name)
{
	if (replace(&snapshot->id, id) < 0 || replace(&snapshot->name, name) < 0)
		return -ENOMEM;
	return 0;
}

int snapshots_keep(struct snapshots *snapshots, struct snapshot *snapshot, const char *name, uid_t owner,
		   struct kept **ret)
{
	bool automatic = kept_is_last_name(name);
	struct kept *kept;

	if (automatic)
		room_thin_out(snapshots, (int)snapshot->pid, snapshot->start_time, true, AUTOMATIC_SNAPSHOTS_MAX - 1);
	else if (alarm_is_name(name))
		room_thin_out(snapshots, (int)snapshot->pid, snapshot->start_time, false, ALARM_SNAPSHOTS_MAX - 1);
	snapshots_charge(snapshots, snapshot);
	if (!room_make_place(snapshots, owner) ||
	    !room_make_memory(snapshots, 0, automatic || snapshots->bytes <= snapshot->charged))
		return -ENOSPC;
	kept = kept_new(snapshots, snapshots->last_number + 1, owner);
	if (!kept)
		return -ENOMEM;
	if (snapshot_label(snapshot, kept->id, name) < 0 || kept_take_identity(kept, snapshot) < 0 ||
	    snapshots_insert(snapshots, kept) < 0) {
		kept_free(kept);
		return -ENOMEM;
	}
	snapshots->last_number++;
	if (snapshots->spool)
		spool_set_last_number(snapshots->spool, snapshots->last_number);
	kept_set_snapshot(kept, snapshot_ref(snapshot));
	*ret = kept;
	snapshots->owner.kept(snapshots->owner.context, kept);
	return 0;
}

void snapshots_named(struct snapshots *snapshots, struct kept *kept)
{
	snapshots_named_then(snapshots, kept, NULL, NULL);
}

void snapshots_named_then(struct snapshots *snapshots, struct kept *kept, void (*stored)(void *context, bool written),
			  void *context)
{
	kept->named = true;
	kept->stored = stored;
	kept->stored_context = context;
	if (kept->removed) {
		kept_tell_stored(kept, true);
		kept_free(kept);
		return;
	}
	kept_account(kept);
	disk_save(kept);
	kept_tell(kept, NULL);
	/* Some were in use when this one came.  It may itself go, or be freed by what follows. */
	if (kept_is_last_name(kept->name))
		room_thin_out(snapshots, kept->pid, kept->start_time, true, AUTOMATIC_SNAPSHOTS_MAX);
	else if (alarm_is_name(kept->name))
		room_thin_out(snapshots, kept->pid, kept->start_time, false, ALARM_SNAPSHOTS_MAX);
	room_make_memory(snapshots, 0, false);
}

void snapshots_get(struct snapshots *snapshots, struct kept *kept,
		   void (*got)(void *context, struct snapshot *snapshot, const char *reason), void *context)
{
	struct getter *getter;

	kept->used = ++snapshots->ticks;
	if (kept->named && kept->snapshot) {
		/* One that other rules have made is of no use any more. */
		if (!snapshot_index_kept(kept->snapshot))
			room_drop_index(kept);
		got(context, kept->snapshot, NULL);
		return;
	}
	getter = vec_push(&kept->getters);
	if (!getter) {
		got(context, NULL, "the daemon is out of memory");
		return;
	}
	getter->got = got;
	getter->context = context;
	if (kept->named && !kept->working)
		disk_load(kept);
}
