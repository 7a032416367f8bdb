#define _GNU_SOURCE              /* asprintf */
/* Kept snapshots and their files: written, read and looked through by jobs, one file at a time. */
#include "daemon/snapshots_private.h"

#include "base/clock.h"
#include "daemon/log.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_job {
	struct kept *kept;
	char *path;
	struct snapshot *snapshot;      /* to write, or what was read */
	uint64_t reserved;              /* memory for what is read */
	int error;
	char *reason;
};

static void file_job_free(struct file_job *job)
{
	job->kept->working = false;
	job->kept->snapshots->jobs--;
	snapshots_unreserve(job->kept->snapshots, job->reserved);
	free(job->path);
	free(job->reason);
	free(job);
}

/* NULL: no memory, or the queue is full. */
static struct file_job *submit(struct kept *kept, struct snapshot *snapshot, void (*run)(void *context),
			       void (*done)(void *context, bool ran))
{
	struct file_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->kept = kept;
	job->snapshot = snapshot;
	job->path = spool_path(kept->snapshots->spool, kept->number, kept->owner);
	kept->working = true;
	kept->snapshots->jobs++;
	if (!job->path || work_submit(kept->snapshots->work, run, done, job) < 0) {
		file_job_free(job);
		return NULL;
	}
	return job;
}

static void account_file(struct kept *kept, const char *path)
{
	struct stat st;

	kept->snapshots->file_bytes -= kept->file_bytes;
	kept->file_bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
	kept->snapshots->file_bytes += kept->file_bytes;
}

static const char *reason_of(const struct file_job *job, bool ran)
{
	if (!ran)
		return "the daemon ends";
	return job->reason ? job->reason : strerror(-job->error);
}

/* --- writing --- */

void kept_tell_stored(struct kept *kept, bool written)
{
	void (*stored)(void *context, bool written) = kept->stored;

	kept->stored = NULL;
	if (stored)
		stored(kept->stored_context, written);
}

void disk_tell_unwritten(struct snapshots *snapshots, uint64_t now_ns)
{
	unsigned more = log_limit_rest(&snapshots->unwritten, now_ns);

	if (more > 0)
		log_warning("%u further snapshots were kept in memory only", more);
}

/* On a full disk this is said of each that a rule has taken. */
static void log_unwritten(const struct kept *kept, const char *why)
{
	disk_tell_unwritten(kept->snapshots, clock_monotonic_ns());
	if (log_limit_pass(&kept->snapshots->unwritten, SNAPSHOT_LOG_LINES_MAX))
		log_warning("snapshot %s is kept in memory only: %s", kept->id, why);
}

static void run_save(void *context)
{
	struct file_job *job = context;

	job->error = store_save(job->path, job->snapshot, &job->reason);
}

static void saved(void *context, bool ran)
{
	struct file_job *job = context;
	struct kept *kept = job->kept;
	bool ok = ran && job->error == 0;

	snapshot_put(job->snapshot);
	if (ok && kept->removed)
		unlink(job->path);
	else if (ok)
		account_file(kept, job->path);
	if (ok)
		disk_tell_unwritten(kept->snapshots, clock_monotonic_ns());
	else
		log_unwritten(kept, reason_of(job, ran));
	file_job_free(job);
	kept->saved = ok;
	kept_tell_stored(kept, ok || kept->removed);
	if (kept->removed)
		kept_free(kept);
}

void disk_save(struct kept *kept)
{
	struct snapshot *snapshot;

	if (!kept->snapshots->spool) {
		kept_tell_stored(kept, false);
		return;
	}
	snapshot = snapshot_ref(kept->snapshot);
	if (!submit(kept, snapshot, run_save, saved)) {
		snapshot_put(snapshot);
		log_unwritten(kept, "there is too much to write");
		kept_tell_stored(kept, false);
	}
}

void disk_remove(struct kept *kept)
{
	char *path;

	/* While a job has the file, saved() removes it. */
	if (!kept->snapshots->spool || !kept->saved)
		return;
	path = spool_path(kept->snapshots->spool, kept->number, kept->owner);
	if (!path || (unlink(path) < 0 && errno != ENOENT))
		log_warning("the file of snapshot %s cannot be removed: %s", kept->id, strerror(errno));
	free(path);
}

/* --- reading --- */

static void run_load(void *context)
{
	struct file_job *job = context;

	job->error = store_load(job->path, 0, &job->snapshot, &job->reason);
}

static void loaded(void *context, bool ran)
{
	struct file_job *job = context;
	struct kept *kept = job->kept;
	char *reason = NULL;

	if (!ran || job->error < 0) {
		if (asprintf(&reason, "%s", reason_of(job, ran)) < 0)
			reason = NULL;
		log_warning("snapshot %s cannot be read and is left alone: %s", kept->id, reason_of(job, ran));
	} else if (kept->removed || snapshot_label(job->snapshot, kept->id, kept->name) < 0) {
		snapshot_put(job->snapshot);      /* a file may have been renamed: its name says the id */
	} else {
		kept_set_snapshot(kept, job->snapshot);
	}
	file_job_free(job);
	if (kept->removed) {
		kept_free(kept);
	} else {
		kept_tell(kept, kept->snapshot ? NULL : reason ? reason : "the daemon is out of memory");
		room_make_memory(kept->snapshots, 0, false);
	}
	free(reason);
}

/* What it takes in memory is known of those that were there before; of others it is about what the file has.  One that
 * is larger than all may be is read when there is no other. */
void disk_load(struct kept *kept)
{
	struct snapshots *snapshots = kept->snapshots;
	uint64_t bytes = kept->bytes_before ? kept->bytes_before : kept->file_bytes;
	struct file_job *job;

	if (!snapshots_reserve(snapshots, bytes, false)) {
		if (snapshots->bytes > 0) {
			kept_tell(kept, snapshots_memory_full);
			return;
		}
		bytes = 0;
	}
	job = submit(kept, NULL, run_load, loaded);
	if (job) {
		job->reserved = bytes;
		return;
	}
	snapshots_unreserve(snapshots, bytes);
	kept_tell(kept, "the daemon has too much to do");
}

/* --- looking through the folder --- */

static void look_at_next(struct snapshots *snapshots);

static void run_look(void *context)
{
	struct file_job *job = context;

	job->error = store_describe(job->path, 0, &job->snapshot, &job->reason);
	if (job->error != -EBUSY)
		return;
	/* Somebody was killed while adding to it; these files are ours to repair. */
	free(job->reason);
	job->error = store_repair(job->path, &job->reason);
	if (job->error == 0)
		job->error = store_describe(job->path, 0, &job->snapshot, &job->reason);
}

static void looked_at(void *context, bool ran)
{
	struct file_job *job = context;
	struct kept *kept = job->kept;
	struct snapshots *snapshots = kept->snapshots;
	int r = ran ? job->error : -ECANCELED;

	if (r == 0) {
		r = kept_take_identity(kept, job->snapshot);
		account_file(kept, job->path);
		snapshot_put(job->snapshot);
	} else if (ran) {
		log_warning("the file of snapshot %s is left alone: %s", kept->id, reason_of(job, ran));
	}
	file_job_free(job);
	kept->named = kept->saved = true;
	if (r < 0 || snapshots_insert(snapshots, kept) < 0)
		kept_free(kept);
	if (ran)
		look_at_next(snapshots);
}

static void finish_looking(struct snapshots *snapshots)
{
	snapshots->listed = true;
	free(snapshots->found);
	snapshots->found = NULL;
	for (size_t i = 0; i < snapshots->listeners.count; i++)
		snapshots->listeners.items[i].listed(snapshots->listeners.items[i].context);
	vec_fini(&snapshots->listeners);
}

static void look_at_next(struct snapshots *snapshots)
{
	while (snapshots->found_next < snapshots->found_count) {
		const struct spool_file *file = &snapshots->found[snapshots->found_next++];
		struct kept *kept = kept_new(snapshots, file->number, file->owner);

		if (kept && submit(kept, NULL, run_look, looked_at))
			return;
		kept_free(kept);
	}
	finish_looking(snapshots);
}

void disk_look_through(struct snapshots *snapshots)
{
	int r = 0;

	if (snapshots->spool) {
		r = spool_list(snapshots->spool, &snapshots->found, &snapshots->found_count);
		if (r < 0)
			log_warning("the kept snapshots cannot be listed: %s", strerror(-r));
		snapshots->last_number = spool_last_number(snapshots->spool);
	}
	if (snapshots->found_count > 0 && snapshots->found[snapshots->found_count - 1].number > snapshots->last_number)
		snapshots->last_number = snapshots->found[snapshots->found_count - 1].number;
	look_at_next(snapshots);
}
