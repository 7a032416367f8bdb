/* <fcntl.h> would declare open(), which is defined here. */
#include "symbol/opener.h"

#include "base/fd.h"

#include <errno.h>
#include <linux/fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct opener chosen;
static bool entered;
static int (*fallback)(void *context);
static void *fallback_context;

void opener_set(const struct opener *opener)
{
	chosen = opener ? *opener : (struct opener){ 0 };
}

int opener_open(const char *path)
{
	if (path[0] != '/' && chosen.open)
		return -ENOENT;
	return chosen.open ? chosen.open(chosen.context, path) : file_open_plain(path);
}

int opener_fetch(const void *build_id, size_t len)
{
	return chosen.fetch ? chosen.fetch(chosen.context, build_id, len) : -ENOENT;
}

void opener_enter(int (*otherwise)(void *context), void *context)
{
	entered = true;
	fallback = otherwise;
	fallback_context = context;
}

void opener_leave(void)
{
	entered = false;
	fallback = NULL;
}

/* What is called here may open files, too. */
static int open_for_libdw(const char *path)
{
	int fd;

	entered = false;
	fd = opener_open(path);
	if (fd == -ENOENT && fallback)
		fd = fallback(fallback_context);
	entered = true;
	return fd;
}

int open(const char *path, int flags, ...);
int open(const char *path, int flags, ...)
{
	unsigned mode;
	va_list args;
	int fd;

	va_start(args, flags);
	mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, unsigned) : 0;
	va_end(args);
	if (!entered && !chosen.open)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	fd = entered ? open_for_libdw(path) : -EACCES;
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}
