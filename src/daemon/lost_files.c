#include "daemon/lost_files.h"

#include "base/fd.h"
#include "base/vec.h"
#include "daemon/limits.h"
#include "tracer/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NUMBERS_MAX 16
#define NAME_LENGTH_MAX 80

static void name_of(const struct lost_file *file, char name[NAME_LENGTH_MAX])
{
	snprintf(name, NAME_LENGTH_MAX, "lost.%d.%" PRIu64 ".%u.u%u", file->pid, file->start_time, file->number,
		 file->owner);
}

/* What does not come out again as it went in is no name of ours. */
static bool parse_name(const char *name, struct lost_file *ret)
{
	char again[NAME_LENGTH_MAX];
	struct lost_file file;

	if (strlen(name) >= NAME_LENGTH_MAX || sscanf(name, "lost.%d.%" SCNu64 ".%u.u%u", &file.pid, &file.start_time,
						      &file.number, &file.owner) != 4)
		return false;
	name_of(&file, again);
	if (file.pid <= 0 || strcmp(again, name) != 0)
		return false;
	*ret = file;
	return true;
}

static int path_of(const char *folder, const struct lost_file *file, char path[PATH_MAX])
{
	char name[NAME_LENGTH_MAX];

	name_of(file, name);
	return snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int make(const char *folder, const struct lost_file *file)
{
	char path[PATH_MAX];
	int fd, r = path_of(folder, file, path);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* With the open file itself, so that it goes with it to the tracer. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		close(fd);
		unlink(path);
		return r;
	}
	return fd;
}

/* Another one of the same process may still be there: of the tracer that it had under the last daemon. */
int lost_file_make(const char *folder, struct lost_file *file)
{
	int r = -EEXIST;

	for (file->number = 0; r == -EEXIST && file->number < NUMBERS_MAX; file->number++) {
		r = make(folder, file);
		if (r != -EEXIST)
			break;
	}
	return r;
}

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	/* Only now does it stay as it is. */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return -ENODATA;
	if ((uint64_t)st.st_size > REFUGE_BYTES_MAX)
		return -EFBIG;
	return time(NULL) - st.st_mtime > LOST_AGE_MAX_S ? -ETIME : 0;
}

int lost_file_open(const char *folder, const struct lost_file *file)
{
	char path[PATH_MAX];
	int fd, r = path_of(folder, file, path);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	r = check(fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

void lost_file_remove(const char *folder, const struct lost_file *file)
{
	char path[PATH_MAX];

	if (path_of(folder, file, path) == 0)
		unlink(path);
}

int lost_files_list(const char *folder, struct lost_file **ret_files, size_t *ret_count)
{
	VEC_OF(struct lost_file) files = { 0 };
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = folder_next(dir, &entry)) > 0) {
		struct lost_file file, *slot;

		if (!parse_name(entry->d_name, &file))
			continue;
		slot = vec_push(&files);
		if (!slot) {
			r = -ENOMEM;
			break;
		}
		*slot = file;
	}
	closedir(dir);
	if (r < 0) {
		vec_fini(&files);
		return r;
	}
	*ret_files = files.items;
	*ret_count = files.count;
	return 0;
}
