#define _GNU_SOURCE              /* O_PATH */
#include "tracer/opening.h"

#include "base/fd.h"
#include "base/mounts.h"
#include "base/user.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* For good: what was given up does not come back. */
static int become(const struct wire_identity *identity)
{
	static struct wire_identity present;
	static bool known;
	int r = 0;

	if (known)
		return memcmp(&present, identity, sizeof(present)) == 0 ? 0 : -EPERM;
	if (identity->as_other)
		r = user_become(identity->uid, identity->gid, identity->groups, identity->group_count);
	if (r == 0) {
		present = *identity;
		known = true;
	}
	return r;
}

/* What it is, is looked at before it is opened, which may be an action of its own. */
static int check_place(int place)
{
	struct stat st;

	if (fstat(place, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return (uint64_t)st.st_size > OPENING_BYTES_MAX ? -EFBIG : 0;
}

static int check_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && memcmp(magic, ELFMAG, SELFMAG) == 0
		       ? 0 : -ENOEXEC;
}

static int reopen(int place, bool names)
{
	char path[48];
	int fd, r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = names ? 0 : check_elf(fd);
	if (r < 0)
		fd_close(&fd);
	return r < 0 ? r : fd;
}

/* Among the mounts that the process sees. */
static bool may_wait(pid_t pid, int place)
{
	struct mounts *mounts = NULL;
	bool may;

	mounts_read(pid, &mounts);
	may = mounts_may_wait(mounts, place);
	mounts_free(mounts);
	return may;
}

/* A descriptor or negative errno. */
static int open_file(const struct wire_open *request)
{
	int place = open(request->path, O_PATH | O_CLOEXEC), r = -EREMOTE;

	if (place < 0)
		return -errno;
	if (!may_wait(getpid(), place) || (request->names && !may_wait(request->head.pid, place)))
		r = check_place(place);
	if (r == 0)
		r = reopen(place, request->names);
	fd_close(&place);
	return r;
}

void opening_send(struct link *link, const struct wire_open *request)
{
	struct wire_opened answer = { .head = { WIRE_OPENED, request->head.serial, request->head.pid, sizeof(answer) } };
	int r = become(&request->identity);

	if (r == 0)
		r = open_file(request);
	answer.result = r < 0 ? r : 0;
	link_send(link, &answer, sizeof(answer), r < 0 ? -1 : r);
}
