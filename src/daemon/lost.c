#include "daemon/lost.h"

#include "daemon/daemon.h"
#include "daemon/log.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECALL_SERIAL 1        /* an answer with none is for the log */

struct lost {
	struct daemon *daemon;
	VEC_OF(struct lost_file) files;        /* still to be read */
	struct reading *reading;       /* one at a time; NULL: none */
	sd_event_source *again;
	uint64_t patience_ns;          /* until then it looks again at those whose tracers still live */
	bool stopped;
};

/* One file: read by a tracer that does nothing else, then taken in as any snapshot is. */
struct reading {
	struct lost *lost;
	struct daemon *daemon;
	struct lost_file file;
	int fd;                        /* locked, as long as it is read */
	bool without_files;            /* the second try: without names */
	struct tracer *tracer;
	struct module_files *modules;
	struct kept *kept;
};

static void read_next(struct lost *lost);

/* --- the files of those that are traced now --- */

int lost_refuge(void *context, const struct session *session, struct lost_file *ret_file)
{
	struct daemon *daemon = context;
	const char *folder = snapshots_folder(daemon->snapshots);
	struct lost_file file = { .pid = session_pid(session), .start_time = session_start_time(session),
				  .owner = session_owner(session) };
	int fd = folder ? lost_file_make(folder, &file) : -ENOENT;

	if (fd < 0 && folder)
		log_warning("process %d: were this daemon to die, what is known would be lost: no file for it: %s",
			    file.pid, strerror(-fd));
	if (fd >= 0)
		*ret_file = file;
	return fd;
}

void lost_leave_refuge(void *context, const struct lost_file *file)
{
	const struct daemon *daemon = context;

	lost_file_remove(snapshots_folder(daemon->snapshots), file);
}

/* --- keeping what was read --- */

static void reading_free(struct reading *reading)
{
	fd_close(&reading->fd);
	module_files_unref(reading->modules);
	free(reading);
}

static void refuse(const struct daemon *daemon, const struct lost_file *file, const char *reason)
{
	log_warning("process %d: what its tracer stored when its daemon was gone is refused, and removed: %s", file->pid,
		    reason);
	lost_file_remove(snapshots_folder(daemon->snapshots), file);
}

/* What is short now need not be at the next start. */
static void leave(const struct lost_file *file, const char *reason)
{
	log_warning("process %d: what its tracer stored when its daemon was gone is left to the next start: %s",
		    file->pid, reason);
}

static void refuse_or_leave(const struct daemon *daemon, const struct lost_file *file, int error, const char *reason)
{
	if (error == -ENOSPC || error == -ENOMEM)
		leave(file, reason);
	else
		refuse(daemon, file, reason);
}

static void keep(struct reading *reading, struct snapshot *snapshot)
{
	int r = snapshots_keep(reading->daemon->snapshots, snapshot, "lost", reading->file.owner, &reading->kept);

	if (r < 0)
		leave(&reading->file, r == -ENOSPC ? "there is no room for it" : "the daemon is out of memory");
	else
		log_info("process %d: what its tracer stored when its daemon was gone is kept as snapshot %s, %d:lost",
			 reading->file.pid, kept_id(reading->kept), reading->file.pid);
}

static void on_image_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct reading *reading = context;

	if (snapshot) {
		keep(reading, snapshot);
		return;
	}
	/* When this daemon ends the next one reads it. */
	if (error != -ECANCELED)
		refuse_or_leave(reading->daemon, &reading->file, error, reason);
	reading_free(reading);
}

/* Until its snapshot is on disk it is all there is, should this daemon be killed. */
static void on_stored(void *context, bool written)
{
	struct reading *reading = context;

	if (written)
		lost_file_remove(snapshots_folder(reading->daemon->snapshots), &reading->file);
	else
		leave(&reading->file, "its snapshot is not on disk");
	reading_free(reading);
}

static void on_image_named(void *context, struct snapshot *snapshot)
{
	struct reading *reading = context;

	if (reading->kept)
		snapshots_named_then(reading->daemon->snapshots, reading->kept, on_stored, reading);
	else
		reading_free(reading);
	snapshot_put(snapshot);
}

/* --- hearing its tracer --- */

/* It has done its part; the next file may be read. */
static void end_tracing(struct reading *reading)
{
	struct lost *lost = reading->lost;

	tracer_let_go(reading->tracer);
	reading->tracer = NULL;
	lost->reading = NULL;
	read_next(lost);
}

static void give_up(struct reading *reading, int error, const char *reason)
{
	refuse_or_leave(reading->daemon, &reading->file, error, reason);
	end_tracing(reading);
	reading_free(reading);
}

static void take_image(struct reading *reading, int *fd)
{
	const struct intake_steps steps = { .context = reading, .read = on_image_read, .named = on_image_named,
					    .last = true };
	const char *why;
	int r = intake_start(reading->daemon->intakes, fd, reading->modules, reading->file.pid,
			     reading->file.start_time, &steps, &why);

	if (r < 0)
		give_up(reading, r, why);
	else
		end_tracing(reading);
}

static void on_message(void *context, const struct wire_head *message, int *fd)
{
	struct reading *reading = context;

	if (message->type == WIRE_MODULE)
		module_files_add(reading->modules, (const struct wire_module *)message, fd);
	else if (message->type == WIRE_SNAPSHOT_READY)
		take_image(reading, fd);
	else if (message->type == WIRE_FAILED)
		give_up(reading, 0, ((const struct wire_failed *)message)->text);
}

static int begin(struct reading *reading);

/* Perhaps a file of its modules hangs (they may lie anywhere): a snapshot without names is still one. */
static void on_lost(void *context, const char *reason)
{
	struct reading *reading = context;

	tracer_let_go(reading->tracer);
	reading->tracer = NULL;
	if (!reading->without_files) {
		reading->without_files = true;
		if (begin(reading) == 0)
			return;
	}
	give_up(reading, 0, reason);
}

static int begin(struct reading *reading)
{
	const struct tracer_owner owner = { reading, on_message, on_lost };
	const struct lost_file *file = &reading->file;
	struct wire_recall recall = { .head = { WIRE_RECALL, RECALL_SERIAL, file->pid, sizeof(recall) }, .owner_uid = file->owner,
				      .as_owner = file->owner != geteuid(), .without_files = reading->without_files };
	int r = tracer_start(reading->daemon->tracers, file->pid, &owner, &reading->tracer);

	if (r < 0)
		return r;
	r = tracer_send(reading->tracer, &recall, sizeof(recall), reading->fd);
	if (r < 0) {
		tracer_let_go(reading->tracer);
		reading->tracer = NULL;
	}
	return r;
}

/* --- one after the other --- */

static struct reading *reading_new(struct lost *lost, const struct lost_file *file, int fd)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct file_user user;

	if (!reading)
		return NULL;
	reading->modules = module_files_new();
	if (!reading->modules) {
		free(reading);
		return NULL;
	}
	file_user_of_owner(file->owner, file->pid, &user);
	module_files_set_user(reading->modules, &user);
	reading->lost = lost;
	reading->daemon = lost->daemon;
	reading->file = *file;
	reading->fd = fd;
	return reading;
}

static void start_reading(struct lost *lost, const struct lost_file *file, int fd)
{
	struct reading *reading = reading_new(lost, file, fd);
	int r = reading ? begin(reading) : -ENOMEM;

	if (r == 0) {
		lost->reading = reading;
		return;
	}
	log_warning("process %d: what its tracer stored when its daemon was gone cannot be read now, and is left to the "
		    "next start: %s", file->pid, strerror(-r));
	if (reading)
		reading_free(reading);
	else
		fd_close(&fd);
}

static const char *why_not(int error)
{
	switch (error) {
	case -EFBIG:
		return "it is larger than any that a tracer stores";
	case -ETIME:
		return "it is more than a week old";
	case -EPERM:
		return "it is no plain file of this daemon's user";
	default:
		return strerror(-error);
	}
}

/* True: its tracer still has it, and may be about to store something. */
static bool look_at(struct lost *lost, const struct lost_file *file)
{
	int fd = lost_file_open(snapshots_folder(lost->daemon->snapshots), file);

	if (fd == -EWOULDBLOCK)
		return true;
	if (fd == -ENODATA) {
		log_warning("process %d: what its tracer knew is lost: it was killed, or could not store it", file->pid);
		lost_leave_refuge(lost->daemon, file);
	} else if (fd < 0 && fd != -ENOENT) {
		refuse(lost->daemon, file, why_not(fd));
	} else if (fd >= 0) {
		start_reading(lost, file, fd);
	}
	return false;
}

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	(void)source;
	(void)usec;
	read_next(context);
	return 0;
}

static void look_again_later(struct lost *lost)
{
	if (lost->again) {
		sd_event_source_set_time_relative(lost->again, LOST_AGAIN_US);
		sd_event_source_set_enabled(lost->again, SD_EVENT_ONESHOT);
	} else {
		sd_event_add_time_relative(lost->daemon->event, &lost->again, CLOCK_MONOTONIC, LOST_AGAIN_US, 0,
					   on_again, lost);
	}
}

static void read_next(struct lost *lost)
{
	for (size_t i = 0; i < lost->files.count && !lost->reading && !lost->stopped;) {
		struct lost_file file = lost->files.items[i];

		if (look_at(lost, &file))
			i++;
		else
			vec_remove_unordered(&lost->files, i);
	}
	if (lost->files.count > 0 && !lost->reading && !lost->stopped && !clock_passed(lost->patience_ns))
		look_again_later(lost);
}

static void on_listed(void *context)
{
	read_next(context);
}

static void list(struct lost *lost)
{
	const char *folder = snapshots_folder(lost->daemon->snapshots);
	int r = folder ? lost_files_list(folder, &lost->files.items, &lost->files.count) : 0;

	if (r < 0)
		log_warning("what tracers may have stored in %s cannot be listed: %s", folder, strerror(-r));
	lost->files.space = lost->files.count;
	for (; lost->files.count > LOST_FILES_MAX; lost->files.count--)
		refuse(lost->daemon, &lost->files.items[lost->files.count - 1], "there are too many of them");
}

/* Those whose tracers did not leave in time make way: they are left to the next start. */
static void forget_the_stubborn(struct lost *lost)
{
	if (!clock_passed(lost->patience_ns) || lost->reading)
		return;
	for (size_t i = 0; i < lost->files.count; i++)
		leave(&lost->files.items[i], "its tracer still has it");
	lost->files.count = 0;
}

void lost_seek_refuge(void *context, const struct lost_file *file)
{
	struct daemon *daemon = context;
	struct lost *lost = daemon->lost;
	struct lost_file *slot;

	if (!lost || lost->stopped)
		return;         /* the next daemon finds it */
	forget_the_stubborn(lost);
	slot = lost->files.count < LOST_FILES_MAX ? vec_push(&lost->files) : NULL;
	if (!slot) {
		leave(file, "there are too many of them");
		return;
	}
	*slot = *file;
	lost->patience_ns = clock_monotonic_ns() + LOST_PATIENCE_S * NSEC_PER_SEC;
	snapshots_when_listed(daemon->snapshots, on_listed, lost);
}

struct lost *lost_new(struct daemon *daemon)
{
	struct lost *lost = calloc(1, sizeof(*lost));

	if (!lost)
		return NULL;
	lost->daemon = daemon;
	lost->patience_ns = clock_monotonic_ns() + LOST_PATIENCE_S * NSEC_PER_SEC;
	list(lost);         /* before this daemon makes any */
	snapshots_when_listed(daemon->snapshots, on_listed, lost);
	return lost;
}

void lost_stop(struct lost *lost)
{
	struct reading *reading = lost ? lost->reading : NULL;

	if (!lost)
		return;
	lost->stopped = true;
	lost->again = sd_event_source_disable_unref(lost->again);
	lost->reading = NULL;
	if (!reading)
		return;
	tracer_let_go(reading->tracer);
	reading_free(reading);
}

void lost_free(struct lost *lost)
{
	if (!lost)
		return;
	lost_stop(lost);
	vec_fini(&lost->files);
	free(lost);
}
