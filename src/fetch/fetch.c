#define _GNU_SOURCE              /* O_PATH */
#include "fetch/fetch.h"
#include "fetch/folder.h"

#include "base/fd.h"
#include "base/mounts.h"

#include <elf.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool (*is_cancelled)(void);

static int set_number(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return setenv(name, text, 1) < 0 ? -errno : 0;
}

/* It is told what to do by its environment alone. */
static int set_environment(const struct fetch_request *request, const char *cache)
{
	int r = setenv(DEBUGINFOD_URLS_ENV_VAR, request->urls, 1) < 0 ||
		setenv(DEBUGINFOD_CACHE_PATH_ENV_VAR, cache, 1) < 0 ? -errno : 0;

	if (r == 0)
		r = set_number(DEBUGINFOD_TIMEOUT_ENV_VAR, request->silence_s);
	if (r == 0)
		r = set_number(DEBUGINFOD_MAXTIME_ENV_VAR, request->time_s);
	if (r == 0)
		r = set_number(DEBUGINFOD_MAXSIZE_ENV_VAR, request->bytes_max);
	if (r == 0)
		r = set_number(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, 0);
	return r;
}

static int on_progress(debuginfod_client *client, long a, long b)
{
	(void)client, (void)a, (void)b;
	return is_cancelled();
}

/* A server may send anything. */
static int check_file(int fd, uint64_t bytes_max)
{
	char magic[SELFMAG];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > bytes_max)
		return -EFBIG;
	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && memcmp(magic, ELFMAG, SELFMAG) == 0
		       ? 0 : -EBADMSG;
}

static int find(const struct fetch_request *request)
{
	debuginfod_client *client = debuginfod_begin();
	int fd, r;

	if (!client)
		return -ENOMEM;
	debuginfod_set_progressfn(client, on_progress);
	fd = debuginfod_find_debuginfo(client, request->build_id, (int)request->build_id_len, NULL);
	debuginfod_end(client);
	if (fd < 0)
		return is_cancelled() ? -ECANCELED : fd;
	r = check_file(fd, request->bytes_max);
	if (r < 0)
		fd_close(&fd);
	return r < 0 ? r : fd;
}

/* The daemon is to hold the file, and closing one there must not mean to wait for anybody. */
static bool may_wait(const char *folder)
{
	int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct mounts *mounts = NULL;
	bool may = true;

	if (place >= 0) {
		mounts_read(getpid(), &mounts);
		may = mounts_may_wait(mounts, place);
		mounts_free(mounts);
	}
	fd_close(&place);
	return may;
}

int fetch_debuginfo(const struct fetch_request *request, const char *folder, bool (*cancelled)(void))
{
	struct fetch_folder cache;
	int r;

	if (may_wait(folder))
		return -EREMOTE;
	fetch_folder_remove_left(folder);
	r = fetch_folder_make(folder, &cache);
	if (r < 0)
		return r;
	is_cancelled = cancelled;
	r = set_environment(request, cache.path);
	if (r == 0)
		r = find(request);
	fetch_folder_remove(&cache);
	return r;
}
