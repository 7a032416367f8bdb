#include "tracer/refuge.h"

#include "tracer/snapshot.h"

#include "base/fd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void refuge_take(struct session *session, int *fd)
{
	fd_close(&session->refuge_fd);
	session->refuge_fd = *fd;
	*fd = -1;
}

static bool is_wanted(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 0;
}

/* A whole one, or nothing; negative errno. */
static int store(struct session *session, bool with_blocks)
{
	int fd = session->refuge_fd, r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (r == 0)
		r = snapshot_write_file(session, with_blocks, fd, REFUGE_BYTES_MAX);
	/* One that cannot be emptied either is refused by who reads it: it is shorter than it says. */
	if (r < 0 && ftruncate(fd, 0) < 0)
		errno = 0;
	return r;
}

/* Nobody but the log hears it now. */
static void tell(const struct session *session, const char *what, int error)
{
	fprintf(stderr, "allocwatch-tracer: process %d: what is known of it %s: %s\n", session->target->pid, what,
		error == -EFBIG ? "it is too much" : strerror(-error));
}

void refuge_store(struct session *session)
{
	int whole, rest;

	/* Of a program that was not begun yet nothing is known. */
	if (!session->heap || session->waits_for_exec || !is_wanted(session->refuge_fd))
		return;
	whole = store(session, true);
	if (whole == 0)
		return;
	rest = store(session, false);
	if (rest == 0)
		tell(session, "is stored for the next daemon without its blocks", whole);
	else
		tell(session, "cannot be stored for the next daemon in its state folder, and is lost", rest);
}
