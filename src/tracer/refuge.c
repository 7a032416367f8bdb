#include "tracer/refuge.h"

#include "tracer/snapshot.h"

#include "base/fd.h"

#include <errno.h>
#include <stdbool.h>
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

/* A whole one, or nothing. */
static bool store(struct session *session, bool with_blocks)
{
	int fd = session->refuge_fd;

	if (lseek(fd, 0, SEEK_SET) == 0 && snapshot_write_file(session, with_blocks, fd, REFUGE_BYTES_MAX) == 0)
		return true;
	/* One that cannot be emptied either is refused by who reads it: it is shorter than it says. */
	if (ftruncate(fd, 0) < 0)
		errno = 0;
	return false;
}

void refuge_store(struct session *session)
{
	/* Of a program that was not begun yet nothing is known. */
	if (!session->heap || session->waits_for_exec || !is_wanted(session->refuge_fd))
		return;
	if (!store(session, true))
		store(session, false);
}
