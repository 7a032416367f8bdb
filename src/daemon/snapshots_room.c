/* The room for snapshots: which of them leave memory, or make way for others altogether. */
#define _GNU_SOURCE              /* asprintf */
#include "daemon/snapshots_private.h"

#include "daemon/limits.h"
#include "daemon/log.h"
#include "model/alarm.h"
#include "model/index.h"
#include "model/occasion.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names that the daemon itself gives; nobody waits for these snapshots, so they make way. */
static bool is_automatic_name(const char *name)
{
	return occasion_text(name) != NULL;
}

bool kept_is_last_name(const char *name)
{
	return is_automatic_name(name) && strcmp(name, SNAPSHOT_OF_RULE) != 0 && !alarm_is_name(name);
}

/* --- memory --- */

/* What somebody uses stays in memory in any case. */
static bool is_in_use(const struct kept *kept)
{
	return kept->snapshot->references > 1 || kept->working || kept->getters.count > 0;
}

void room_drop_index(struct kept *kept)
{
	if (!snapshot_index_any(kept->snapshot) || is_in_use(kept))
		return;
	snapshot_index_drop(kept->snapshot);
	kept_account(kept);
}

/* Indexes are made again when they are asked for. */
static void drop_indexes(struct snapshots *snapshots)
{
	for (size_t i = 0; i < snapshots->list.count; i++) {
		struct kept *kept = snapshots->list.items[i];

		if (kept->snapshot)
			room_drop_index(kept);
	}
}

static struct kept *least_used_saved(const struct snapshots *snapshots)
{
	struct kept *found = NULL;

	for (size_t i = 0; i < snapshots->list.count; i++) {
		struct kept *kept = snapshots->list.items[i];

		if (kept->snapshot && kept->saved && !is_in_use(kept) && (!found || kept->used < found->used))
			found = kept;
	}
	return found;
}

static uint64_t memory_for(const struct snapshots *snapshots, bool automatic)
{
	uint64_t all = snapshots->limits.snapshot_bytes;

	return automatic ? all : all - AUTOMATIC_MEMORY(all);
}

bool room_make_memory(struct snapshots *snapshots, uint64_t more, bool automatic)
{
	struct kept *kept;

	if (snapshots->bytes + more > memory_for(snapshots, automatic))
		drop_indexes(snapshots);
	while (snapshots->bytes + more > memory_for(snapshots, automatic)) {
		kept = least_used_saved(snapshots);
		if (!kept)
			return false;
		kept_drop_snapshot(kept);
	}
	return true;
}

void snapshots_set_limits(struct snapshots *snapshots, const struct limits *limits)
{
	snapshots->limits = *limits;
	room_make_memory(snapshots, 0, false);
}

const char snapshots_memory_full[] =
	"the snapshots that are kept, read or in use take the memory allowed for them (--max-memory of allocwatchd)";

bool snapshots_reserve(struct snapshots *snapshots, uint64_t bytes, bool automatic)
{
	/* One that is larger than the others' part has all of it when there is no other. */
	if (bytes > 0 && !room_make_memory(snapshots, bytes, automatic || snapshots->bytes == 0))
		return false;
	snapshots->bytes += bytes;
	return true;
}

bool snapshots_reserve_spare(struct snapshots *snapshots, uint64_t bytes)
{
	if (snapshots->bytes + bytes > memory_for(snapshots, false))
		return false;
	snapshots->bytes += bytes;
	return true;
}

void snapshots_unreserve(struct snapshots *snapshots, uint64_t bytes)
{
	snapshots->bytes -= bytes;
}

void snapshots_charge(struct snapshots *snapshots, struct snapshot *snapshot)
{
	snapshot_charge(snapshot, &snapshots->bytes);
}

/* --- places in the list, and disk --- */

/* Also while it gets its names or is written: it is freed after that. */
static bool may_make_way(const struct kept *kept)
{
	return is_automatic_name(kept->name) && kept->getters.count == 0;
}

/* Whose room it is: everybody's for the daemon's own user, else one's own. */
static bool counts_for(const struct kept *kept, uid_t owner)
{
	return owner == geteuid() || kept->owner == owner;
}

static struct kept *oldest_automatic(const struct snapshots *snapshots, uid_t owner)
{
	for (size_t i = 0; i < snapshots->list.count; i++) {
		struct kept *kept = snapshots->list.items[i];

		if (may_make_way(kept) && counts_for(kept, owner))
			return kept;
	}
	return NULL;
}

/* On disk, or what it will be there, about, once it is written. */
static uint64_t bytes_of_file(const struct kept *kept)
{
	bool to_be_written = kept->snapshots->spool && !kept->saved && (!kept->named || kept->working);

	return to_be_written ? kept->bytes : kept->file_bytes;
}

static uint64_t bytes_of_files(const struct snapshots *snapshots)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < snapshots->list.count; i++)
		bytes += bytes_of_file(snapshots->list.items[i]);
	return bytes;
}

static bool has_its_share(const struct snapshots *snapshots, uid_t owner)
{
	const struct limits *limits = &snapshots->limits;
	uint64_t file_bytes = 0, bytes = 0;
	size_t count = 0;

	for (size_t i = 0; owner != geteuid() && i < snapshots->list.count; i++) {
		const struct kept *kept = snapshots->list.items[i];

		if (kept->owner != owner)
			continue;
		count++;
		file_bytes += bytes_of_file(kept);
		bytes += kept->saved ? 0 : kept->bytes;
	}
	return count > 0 && (count >= OWNER_SHARE(limits->snapshots) || file_bytes > OWNER_SHARE(limits->file_bytes) ||
			     bytes > OWNER_SHARE(limits->snapshot_bytes));
}

static bool is_full(const struct snapshots *snapshots, uid_t owner)
{
	return snapshots->list.count >= snapshots->limits.snapshots ||
	       bytes_of_files(snapshots) > snapshots->limits.file_bytes || has_its_share(snapshots, owner);
}

static char *__attribute__((format(printf, 1, 2))) text(const char *format, ...)
{
	va_list args;
	char *made;
	int n;

	va_start(args, format);
	n = vasprintf(&made, format, args);
	va_end(args);
	return n < 0 ? NULL : made;
}

char *snapshots_full(const struct snapshots *snapshots, uid_t owner)
{
	const struct limits *limits = &snapshots->limits;

	/* Those that make way by themselves are in nobody's way. */
	if (!is_full(snapshots, owner) || oldest_automatic(snapshots, owner))
		return NULL;
	if (snapshots->list.count >= limits->snapshots)
		return text("%zu snapshots are kept, and more are not allowed (--max-snapshots of allocwatchd)",
			    snapshots->list.count);
	if (has_its_share(snapshots, owner))
		return text("your snapshots take a fourth of what is allowed for all users: no more are kept for one");
	return text("the files of the snapshots take %" PRIu64 " MiB of disk, and more is not allowed "
		    "(--max-disk of allocwatchd)", bytes_of_files(snapshots) >> 20);
}

bool room_make_place(struct snapshots *snapshots, uid_t owner)
{
	while (is_full(snapshots, owner)) {
		struct kept *kept = oldest_automatic(snapshots, owner);

		if (!kept)
			return false;
		log_info("snapshot %s (%d:%s) makes way for a newer one", kept->id, kept->pid, kept->name);
		snapshots->owner.makes_way(snapshots->owner.context, kept);
		snapshots_remove(snapshots, kept);
	}
	return true;
}

void room_thin_out(struct snapshots *snapshots, int pid, uint64_t start_time, bool last, size_t max)
{
	size_t count = 0;

	for (size_t i = snapshots->list.count; i-- > 0;) {
		struct kept *kept = snapshots->list.items[i];

		if (kept->pid == pid && kept->start_time == start_time && may_make_way(kept) &&
		    (last ? kept_is_last_name(kept->name) : alarm_is_name(kept->name)) && ++count > max)
			snapshots_remove(snapshots, kept);
	}
}
