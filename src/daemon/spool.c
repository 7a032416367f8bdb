#define _GNU_SOURCE              /* asprintf */
#include "daemon/spool.h"

#include "base/fd.h"
#include "base/vec.h"
#include "daemon/places.h"

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
#include <unistd.h>

#define SUFFIX ".allocwatch"
#define SYSTEM_FOLDER "/var/lib/allocwatch"

struct spool {
	char *folder;
	int lock_fd;           /* its content is the last number, as text */
};

static int explain(char **ret_reason, int r, const char *what, const char *on)
{
	if (asprintf(ret_reason, "%s %s: %s", what, on, strerror(-r)) < 0)
		*ret_reason = NULL;
	return r;
}

static int make_folder(const char *folder)
{
	char path[PATH_MAX];

	if (folder[0] != '/' || strlen(folder) >= sizeof(path))
		return -EINVAL;
	strcpy(path, folder);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Who else could write there could put a link in the place of a file to come. */
static int check_folder(const char *folder, char **ret_reason)
{
	struct stat st;

	if (lstat(folder, &st) < 0)
		return explain(ret_reason, -errno, "cannot look at", folder);
	if (!S_ISDIR(st.st_mode))
		return explain(ret_reason, -ENOTDIR, "cannot use", folder);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return explain(ret_reason, -EPERM, "others may write to", folder);
	return 0;
}

static int lock_folder(const char *folder)
{
	char path[PATH_MAX];
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/lock", folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

/* What a daemon that was killed was writing: "s17.allocwatch.0123456789abcdef.tmp", and SQLite's journal of it. */
static bool is_unfinished(const char *name)
{
	const char *suffix = strstr(name, SUFFIX ".");
	size_t digits = suffix ? strspn(suffix + sizeof(SUFFIX), "0123456789abcdef") : 0;

	return name[0] == 's' && digits == 16 && strncmp(suffix + sizeof(SUFFIX) + digits, ".tmp", 4) == 0;
}

/* Nobody else writes there: the folder is ours and locked. */
static void remove_unfinished(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (is_unfinished(entry->d_name) && unlinkat(dirfd(dir), entry->d_name, 0) < 0)
			errno = 0;      /* it is counted nowhere, and harms nobody */
	}
	if (dir)
		closedir(dir);
}

int spool_open(const char *folder, struct spool **ret, char **ret_reason)
{
	struct spool *spool;
	int r = make_folder(folder);

	*ret_reason = NULL;
	if (r < 0)
		return explain(ret_reason, r, "cannot make the folder", folder);
	r = check_folder(folder, ret_reason);
	if (r < 0)
		return r;
	spool = calloc(1, sizeof(*spool));
	if (!spool)
		return -ENOMEM;
	spool->lock_fd = lock_folder(folder);
	if (spool->lock_fd < 0) {
		r = spool->lock_fd;
		spool_close(spool);
		return explain(ret_reason, r, r == -EWOULDBLOCK ? "another daemon uses" : "cannot lock the folder",
			       folder);
	}
	spool->folder = strdup(folder);
	if (!spool->folder) {
		spool_close(spool);
		return -ENOMEM;
	}
	remove_unfinished(folder);
	*ret = spool;
	return 0;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	fd_close(&spool->lock_fd);
	free(spool->folder);
	free(spool);
}

const char *spool_folder(const struct spool *spool)
{
	return spool->folder;
}

char *spool_path(const struct spool *spool, uint64_t number, uid_t owner)
{
	char *path;
	int n = owner == geteuid() ? asprintf(&path, "%s/s%" PRIu64 SUFFIX, spool->folder, number) :
				     asprintf(&path, "%s/s%" PRIu64 ".u%u" SUFFIX, spool->folder, number, owner);

	return n < 0 ? NULL : path;
}

static bool parse_number(const char **at, uint64_t max, uint64_t *ret)
{
	uint64_t number;
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	number = strtoull(*at, &end, 10);
	if (errno != 0 || number > max)
		return false;
	*at = end;
	*ret = number;
	return true;
}

static bool parse_name(const char *name, struct spool_file *ret_file)
{
	uint64_t number, owner = geteuid();
	const char *at = name + 1;

	if (name[0] != 's' || *at == '0' || !parse_number(&at, UINT64_MAX, &number))
		return false;
	if (at[0] == '.' && at[1] == 'u') {
		at += 2;
		if (!parse_number(&at, UINT32_MAX - 1, &owner))
			return false;
	}
	if (strcmp(at, SUFFIX) != 0)
		return false;
	*ret_file = (struct spool_file){ number, (uid_t)owner };
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct spool_file *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

int spool_list(const struct spool *spool, struct spool_file **ret_files, size_t *ret_count)
{
	VEC_OF(struct spool_file) files = { 0 };
	DIR *dir = opendir(spool->folder);
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((r = folder_next(dir, &entry)) > 0) {
		struct spool_file file, *slot;

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
	if (files.count > 0)
		qsort(files.items, files.count, sizeof(*files.items), compare_files);
	*ret_files = files.items;
	*ret_count = files.count;
	return 0;
}

uint64_t spool_last_number(const struct spool *spool)
{
	char text[32] = "";
	uint64_t number = 0;

	if (pread(spool->lock_fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	return sscanf(text, "%" SCNu64, &number) == 1 ? number : 0;
}

/* Best effort: only an id that was removed again could come back. */
void spool_set_last_number(struct spool *spool, uint64_t number)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%" PRIu64 "\n", number);

	if (pwrite(spool->lock_fd, text, (size_t)len, 0) < 0)
		errno = 0;
}

char *spool_default_folder(int private_daemon)
{
	const char *systemd = getenv("STATE_DIRECTORY");
	char *state, *folder;

	/* Of several, separated by colons, systemd names the first first. */
	if (systemd && systemd[0] == '/')
		return strndup(systemd, strcspn(systemd, ":"));
	if (!private_daemon && geteuid() == 0)
		return strdup(SYSTEM_FOLDER);
	state = place_of_user("XDG_STATE_HOME", "/.local/state");
	if (!state || asprintf(&folder, "%s/allocwatch", state) < 0)
		folder = NULL;
	free(state);
	return folder;
}
