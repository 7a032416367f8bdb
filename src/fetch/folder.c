#define _GNU_SOURCE              /* nftw, asprintf */
#include "fetch/folder.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "allocwatch-fetcher-"
#define UNIQUE "XXXXXX"
#define FOLDERS_OPEN_MAX 8       /* at a time, while they are removed */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void remove_whole(const char *path)
{
	nftw(path, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}

/* Locked; -EWOULDBLOCK: it is in use. */
static int hold(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	r = -errno;
	fd_close(&fd);
	return r;
}

/* What begins between its making and its lock may take it for one that was left. */
static bool is_still_there(const char *path, int fd)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static int make_one(const char *above, struct fetch_folder *folder)
{
	int r;

	if (asprintf(&folder->path, "%s/" NAME UNIQUE, above) < 0)
		return -ENOMEM;
	r = mkdtemp(folder->path) ? hold(folder->path) : -errno;
	if (r >= 0 && is_still_there(folder->path, r)) {
		folder->fd = r;
		return 0;
	}
	if (r >= 0)
		close(r);
	free(folder->path);
	return r >= 0 || r == -ENOENT || r == -EWOULDBLOCK ? -EAGAIN : r;
}

int fetch_folder_make(const char *above, struct fetch_folder *ret_folder)
{
	int r;

	do
		r = make_one(above, ret_folder);
	while (r == -EAGAIN);
	return r;
}

void fetch_folder_remove(struct fetch_folder *folder)
{
	remove_whole(folder->path);
	fd_close(&folder->fd);
	free(folder->path);
	folder->path = NULL;
}

static bool has_our_name(const char *name)
{
	return strncmp(name, NAME, strlen(NAME)) == 0 && strlen(name) == strlen(NAME UNIQUE);
}

static void remove_left(const char *above, const char *name)
{
	struct stat st;
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", above, name) < 0)
		return;
	fd = hold(path);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid())
		remove_whole(path);
	fd_close(&fd);
	free(path);
}

void fetch_folder_remove_left(const char *above)
{
	DIR *dir = opendir(above);
	struct dirent *entry;

	for (unsigned i = 0; dir && i < FOLDERS_LOOKED_AT_MAX && folder_next(dir, &entry) > 0; i++) {
		if (has_our_name(entry->d_name))
			remove_left(above, entry->d_name);
	}
	if (dir)
		closedir(dir);
}
