#define _GNU_SOURCE
#include "tracer/recall.h"

#include "tracer/session.h"

#include "model/snapshot.h"
#include "target/elf_file.h"

#include "base/fd.h"
#include "base/mounts.h"
#include "base/user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_GROUP 65534         /* of the owner only the user is known */

/* --- the image --- */

/* Who may write to the file could change it while it is read. */
static int copy_sealed(int file, uint64_t size, int *ret_fd)
{
	int fd = memfd_create("snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;
	uint64_t left = size;
	off_t at = 0;

	if (fd < 0)
		return -errno;
	while (r == 0 && left > 0) {
		ssize_t n = sendfile(fd, file, &at, left);

		if (n > 0)
			left -= (uint64_t)n;
		else if (n == 0)
			r = -ENODATA;
		else if (errno != EINTR)
			r = -errno;
	}
	return fd_seal(fd, r, ret_fd);
}

static int take_image(int file, int *ret_fd, uint64_t *ret_size)
{
	struct stat st;

	if (fstat(file, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENODATA;
	if ((uint64_t)st.st_size > REFUGE_BYTES_MAX)
		return -EFBIG;
	*ret_size = (uint64_t)st.st_size;
	return copy_sealed(file, *ret_size, ret_fd);
}

static int read_image(int fd, uint64_t size, struct snapshot **ret, const char **ret_reason)
{
	void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	*ret_reason = "it cannot be mapped";
	if (data == MAP_FAILED)
		return -errno;
	r = snapshot_image_read(data, size, ret, ret_reason);
	munmap(data, size);
	return r;
}

/* --- its modules' files --- */

/* To open a device or a pipe can be an action of its own: what it is, is looked at first.  Where a file's file system may
 * not answer, nobody is there to be given a copy. */
static int open_plain_file(const struct mounts *mounts, const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char again[48];
	struct stat st;

	if (place >= 0 && !mounts_may_wait(mounts, place) && fstat(place, &st) == 0 && S_ISREG(st.st_mode)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
		fd = open(again, O_RDONLY | O_CLOEXEC);
	}
	fd_close(&place);
	return fd;
}

/* The path may lead to another file by now. */
static bool is_its_file(int fd, const struct snapshot_module *module)
{
	struct elf_file file;
	bool same;

	if (elf_file_read(fd, &file) < 0)
		return false;
	same = file.build_id_len > 0 && file.build_id_len == module->build_id_len &&
	       memcmp(file.build_id, module->build_id, file.build_id_len) == 0;
	elf_file_fini(&file);
	return same;
}

static void send_file(struct link *link, const struct snapshot *snapshot, const struct mounts *mounts, uint32_t id)
{
	const struct snapshot_module *module = &snapshot->modules.items[id];
	const char *path = strtab_get(snapshot->strings, module->path);
	struct wire_module message = { .head = { WIRE_MODULE, 0, (int32_t)snapshot->pid, sizeof(message) },
				       .module = id, .build_id_len = module->build_id_len };
	int fd;

	if (path[0] != '/' || module->build_id_len == 0 || strlen(path) >= sizeof(message.path))
		return;
	fd = open_plain_file(mounts, path);
	if (fd >= 0 && !is_its_file(fd, module))
		fd_close(&fd);
	if (fd < 0)
		return;
	memcpy(message.build_id, module->build_id, module->build_id_len);
	snprintf(message.path, sizeof(message.path), "%s", path);
	link_send(link, &message, sizeof(message), fd);
}

/* --- the whole --- */

static void send_all(struct link *link, const struct wire_recall *request, const struct snapshot *snapshot, int image)
{
	struct wire_snapshot_ready ready = {
		.head = { WIRE_SNAPSHOT_READY, request->head.serial, request->head.pid, sizeof(ready) },
		.reason = SNAPSHOT_LOST,
	};
	struct mounts *mounts = NULL;

	mounts_read(getpid(), &mounts);
	for (uint32_t id = 0; id < snapshot->modules.count && !request->without_files; id++)
		send_file(link, snapshot, mounts, id);
	mounts_free(mounts);
	link_send(link, &ready, sizeof(ready), image);
}

void recall_send(struct link *link, const struct wire_recall *request, int fd)
{
	const char *reason = NULL;
	struct snapshot *snapshot;
	uint64_t size = 0;
	int image = -1, r = 0;

	if (request->as_owner)
		r = user_become(request->owner_uid, NO_GROUP, NULL, 0);
	if (r == 0)
		r = take_image(fd, &image, &size);
	if (r == 0)
		r = read_image(image, size, &snapshot, &reason);
	if (r < 0) {
		fd_close(&image);
		session_fail(link, request->head.serial, request->head.pid, FAILURE_INTERNAL, 0, "%s",
			     reason ? reason : strerror(-r));
		return;
	}
	send_all(link, request, snapshot, image);
	snapshot_put(snapshot);
}
