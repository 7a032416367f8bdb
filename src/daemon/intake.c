#define _GNU_SOURCE              /* F_GET_SEALS */
#include "daemon/intake.h"

#include "base/fd.h"
#include "base/vec.h"
#include "daemon/limits.h"
#include "daemon/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEEDED_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct intakes {
	struct work *work;
	struct symbolize *symbolize;
	struct snapshots *snapshots;
	uint64_t max_bytes;
	VEC_OF(struct intake *) list;
};

struct intake {
	struct intakes *intakes;
	struct intake_steps steps;
	struct module_files *files;
	int *fds;                      /* of the snapshot's modules, while it is symbolized */
	int64_t pid;
	uint64_t start_time;
	uint64_t reserved;             /* memory for what is read */
	/* the job's */
	int fd;
	size_t len;
	struct snapshot *snapshot;
	int error;
	const char *reason;
};

void intakes_set_max_bytes(struct intakes *intakes, uint64_t max_bytes)
{
	intakes->max_bytes = max_bytes < SNAPSHOT_IMAGE_MAX ? max_bytes : SNAPSHOT_IMAGE_MAX;
}

int intakes_new(struct work *work, struct symbolize *symbolize, struct snapshots *snapshots, uint64_t max_bytes,
		struct intakes **ret)
{
	struct intakes *intakes = calloc(1, sizeof(*intakes));

	if (!intakes)
		return -ENOMEM;
	intakes->work = work;
	intakes->symbolize = symbolize;
	intakes->snapshots = snapshots;
	intakes_set_max_bytes(intakes, max_bytes);
	*ret = intakes;
	return 0;
}

void intakes_free(struct intakes *intakes)
{
	if (!intakes)
		return;
	vec_fini(&intakes->list);
	free(intakes);
}

size_t intakes_running(const struct intakes *intakes)
{
	return intakes->list.count;
}

size_t intakes_naming(const struct intakes *intakes, int pid, uint64_t start_time)
{
	size_t count = 0;

	for (size_t i = 0; i < intakes->list.count; i++) {
		const struct intake *intake = intakes->list.items[i];

		count += intake->pid == pid && intake->start_time == start_time && intake->fds;
	}
	return count;
}

static uint32_t owner_of(const struct module_files *files)
{
	return module_files_user(files)->owner;
}

/* Those that come by themselves are counted apart, for a storm of ends must not keep anybody from asking; and nobody but the
 * daemon's own user may have more than a share of them, for they wait for their names. */
static bool has_room(const struct intakes *intakes, const struct module_files *files, bool last)
{
	size_t count = 0, of_owner = 0, max = last ? INTAKES_LAST_MAX : INTAKES_MAX;

	for (size_t i = 0; i < intakes->list.count; i++) {
		const struct intake *other = intakes->list.items[i];

		if (other->steps.last != last)
			continue;
		count++;
		of_owner += owner_of(other->files) == owner_of(files);
	}
	return count < max && (owner_of(files) == geteuid() || of_owner < OWNER_SHARE(max));
}

static void list_remove(struct intakes *intakes, const struct intake *intake)
{
	size_t i = 0;

	while (intakes->list.items[i] != intake)
		i++;
	vec_remove_unordered(&intakes->list, i);
}

static void intake_free(struct intake *intake)
{
	list_remove(intake->intakes, intake);
	snapshots_unreserve(intake->intakes->snapshots, intake->reserved);
	fd_close(&intake->fd);
	module_files_unref(intake->files);
	free(intake->fds);
	free(intake);
}

/* In a thread. */
static void read_image(void *context)
{
	struct intake *intake = context;
	void *data = mmap(NULL, intake->len, PROT_READ, MAP_PRIVATE, intake->fd, 0);

	if (data == MAP_FAILED) {
		intake->error = -errno;
		intake->reason = "the image cannot be mapped";
		return;
	}
	intake->error = snapshot_image_read(data, intake->len, &intake->snapshot, &intake->reason);
	munmap(data, intake->len);
}

/* Without names it is still a snapshot. */
static void tell_unnamed(const struct intake *intake, int result)
{
	if (result == -ETIMEDOUT)
		log_info("process %" PRIi64 ": a snapshot's names took more than %d seconds; what is left has none", intake->pid,
			 SYMBOLIZE_SNAPSHOT_MS / 1000);
	else if (result == -EPROTONOSUPPORT)
		log_warning("process %" PRIi64 ": a snapshot has no names: the symbolizer is not the one of the daemon that runs, "
			    "as after an upgrade; restart the daemon", intake->pid);
}

static void on_named(void *context, struct snapshot *snapshot, int result)
{
	struct intake *intake = context;

	tell_unnamed(intake, result);
	snapshots_charge(intake->intakes->snapshots, snapshot);
	intake->steps.named(intake->steps.context, snapshot);
	intake_free(intake);
}

static void find_names(struct intake *intake)
{
	struct snapshot *snapshot = intake->snapshot;
	int r = -ENOMEM;

	/* Its user may have changed since. */
	module_files_look(intake->files, (int)intake->pid, intake->start_time);
	intake->fds = module_files_match(intake->files, snapshot);
	if (intake->fds)
		r = symbolize_snapshot(intake->intakes->symbolize, snapshot, intake->fds, snapshot->modules.count,
				       module_files_user(intake->files), module_files_generated(intake->files), on_named,
				       intake);
	if (r < 0)
		on_named(intake, snapshot, r);
}

/* A tracer speaks for its own target only. */
static bool is_of_its_process(const struct intake *intake)
{
	return intake->snapshot->pid == intake->pid && intake->snapshot->start_time == intake->start_time;
}

static void on_read(void *context, bool ran)
{
	struct intake *intake = context;

	fd_close(&intake->fd);
	if (!ran) {
		intake->error = -ECANCELED;
		intake->reason = "the daemon ends";
	} else if (intake->error == 0 && !is_of_its_process(intake)) {
		snapshot_put(intake->snapshot);
		intake->error = -EBADMSG;
		intake->reason = "the image is of another process";
	}
	if (intake->error < 0) {
		intake->steps.read(intake->steps.context, NULL, intake->error,
				   intake->reason ? intake->reason : "the daemon is out of memory");
		intake_free(intake);
		return;
	}
	snapshots_unreserve(intake->intakes->snapshots, intake->reserved);
	intake->reserved = 0;
	snapshots_charge(intake->intakes->snapshots, intake->snapshot);
	intake->steps.read(intake->steps.context, intake->snapshot, 0, NULL);
	find_names(intake);
}

static int check_image(const struct intakes *intakes, int fd, size_t *ret_len, const char **ret_reason)
{
	struct stat st;
	int seals;

	if (fd < 0) {
		*ret_reason = "the tracer sent no image";
		return -EBADMSG;
	}
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & NEEDED_SEALS) != NEEDED_SEALS || fstat(fd, &st) < 0 || st.st_size <= 0) {
		*ret_reason = "the tracer's image is not sealed";
		return -EBADMSG;
	}
	if ((uint64_t)st.st_size > intakes->max_bytes) {
		*ret_reason = "the image is larger than all snapshots together may be";
		return -E2BIG;
	}
	*ret_len = (size_t)st.st_size;
	return 0;
}

int intake_start(struct intakes *intakes, int *fd, struct module_files *files, int pid, uint64_t start_time,
		 const struct intake_steps *steps, const char **ret_reason)
{
	struct intake *intake, **slot;
	size_t len, reserved;
	int r = check_image(intakes, *fd, &len, ret_reason);

	if (r < 0)
		return r;
	if (!has_room(intakes, files, steps->last)) {
		*ret_reason = "too many snapshots are being read";
		return -ENOSPC;
	}
	reserved = len < INTAKE_SMALL ? 0 : len;
	if (!snapshots_reserve(intakes->snapshots, reserved, steps->last)) {
		*ret_reason = snapshots_memory_full;
		return -ENOSPC;
	}
	*ret_reason = "the daemon is out of memory";
	intake = vec_reserve(&intakes->list, 1) < 0 ? NULL : calloc(1, sizeof(*intake));
	if (!intake) {
		snapshots_unreserve(intakes->snapshots, reserved);
		return -ENOMEM;
	}
	slot = vec_push(&intakes->list);
	*slot = intake;
	intake->intakes = intakes;
	intake->reserved = reserved;
	intake->steps = *steps;
	intake->files = module_files_ref(files);
	intake->pid = pid;
	intake->start_time = start_time;
	intake->fd = *fd;
	intake->len = len;
	*fd = -1;
	r = work_submit(intakes->work, read_image, on_read, intake);
	if (r < 0)
		intake_free(intake);
	return r;
}
