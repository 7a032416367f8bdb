#define _GNU_SOURCE              /* asprintf */
#include "cli/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new empty file beside the one to come; the umask says who may read it. */
static int open_temporary(struct new_file *file, const char *path)
{
	uint64_t random;
	int fd;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	file->path = strdup(path);
	if (!file->path ||
	    asprintf(&file->temporary, "%s.%016llx.tmp", path, (unsigned long long)random) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0) {
		file->out = fdopen(fd, "w");
		if (file->out)
			return 0;
		close(fd);
		unlink(file->temporary);
		return -ENOMEM;
	}
	return -errno;
}

static int open_in_place(struct new_file *file, const char *path)
{
	file->out = fopen(path, "we");
	return file->out ? 0 : -errno;
}

static void forget(struct new_file *file)
{
	free(file->path);
	free(file->temporary);
	memset(file, 0, sizeof(*file));
}

int new_file_open(struct new_file *file, const char *path)
{
	struct stat st;
	int r;

	memset(file, 0, sizeof(*file));
	if (!path) {
		file->out = stdout;
		return 0;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		r = S_ISDIR(st.st_mode) ? -EISDIR : open_in_place(file, path);
	else
		r = open_temporary(file, path);
	if (r < 0)
		forget(file);
	return r;
}

static int flush(struct new_file *file)
{
	errno = 0;
	if (fflush(file->out) == 0 && !ferror(file->out) && (!file->temporary || fsync(fileno(file->out)) == 0))
		return 0;
	return errno ? -errno : -EIO;
}

int new_file_finish(struct new_file *file)
{
	int r = flush(file);

	if (r == 0 && file->temporary && rename(file->temporary, file->path) < 0)
		r = -errno;
	if (r < 0) {
		new_file_drop(file);
		return r;
	}
	if (file->out != stdout)
		fclose(file->out);
	forget(file);
	return 0;
}

void new_file_drop(struct new_file *file)
{
	if (file->out && file->out != stdout)
		fclose(file->out);
	if (file->temporary)
		unlink(file->temporary);
	forget(file);
}
