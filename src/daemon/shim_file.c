#define _GNU_SOURCE              /* asprintf */
#include "daemon/shim_file.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FOLDER_MODE 0755
#define FILE_MODE 0644

char *shim_file_path(const char *unit)
{
	char *path;

	return asprintf(&path, SHIM_UNIT_FOLDER "/%s.d/" SHIM_FILE_NAME, unit) < 0 ? NULL : path;
}

static char *folder_of(const char *path)
{
	return strndup(path, (size_t)(strrchr(path, '/') - path));
}

/* The modes are those that units have, whatever our umask. */
static int make_folder(const char *path)
{
	char *folder = folder_of(path);
	int r = 0;

	if (!folder)
		return -ENOMEM;
	if (mkdir(folder, FOLDER_MODE) == 0)
		r = chmod(folder, FOLDER_MODE) < 0 ? -errno : 0;
	else if (errno != EEXIST)
		r = -errno;
	free(folder);
	return r;
}

static int write_to(const char *path, const char *text)
{
	int r, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r == 0 && fchmod(fd, FILE_MODE) < 0)
		r = -errno;
	fd_close(&fd);
	return r;
}

int shim_file_write(const char *path, const char *text)
{
	char *beside;
	int r = make_folder(path);

	if (r < 0)
		return r;
	if (asprintf(&beside, "%s.new", path) < 0)
		return -ENOMEM;
	r = write_to(beside, text);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(beside);
	free(beside);
	return r;
}

bool shim_file_remove(const char *path)
{
	bool was_there = unlink(path) == 0;
	char *folder = folder_of(path);

	if (folder)
		rmdir(folder);
	free(folder);
	return was_there;
}

bool shim_file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool everybody_may_execute(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	if (strlen(path) >= sizeof(part))
		return false;
	/* Each folder on the way, and the file. */
	for (const char *at = path; at; at = strchr(at + 1, '/')) {
		const char *end = strchr(at + 1, '/');
		size_t len = end ? (size_t)(end - path) : strlen(path);

		memcpy(part, path, len);
		part[len] = '\0';
		if (stat(part, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

const char *shim_file_obstacle(const char *shim)
{
	static const char *const hidden[] = { "/home/", "/root/", "/run/", "/tmp/", "/var/tmp/", "/dev/" };
	struct statvfs fs;

	if (access(shim, F_OK) < 0)
		return "is not installed";
	if (!everybody_may_execute(shim))
		return "may not be executed by everybody";
	if (statvfs(shim, &fs) < 0 || fs.f_flag & ST_NOEXEC)
		return "lies on a file system that is mounted noexec";
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		if (strncmp(shim, hidden[i], strlen(hidden[i])) == 0)
			return "is installed where many services may not look";
	}
	return NULL;
}

char *shim_file_fingerprint(char *const *files, const char *own)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (; files && *files; files++) {
		struct stat st = { 0 };

		if (strcmp(*files, own) == 0)
			continue;
		stat(*files, &st);
		fprintf(out, "%s %llu %lld %lld.%09ld\n", *files, (unsigned long long)st.st_ino, (long long)st.st_size,
			(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
