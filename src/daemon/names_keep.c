#define _GNU_SOURCE              /* asprintf */
#include "daemon/names_keep.h"

#include "base/fd.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/names_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct names_keep {
	struct work *work;
	struct symbolize *symbolize;
	char *path, *path_new;
	uint64_t written;                    /* symbolize_named() then */
	sd_event_source *timer;
	/* the job's */
	void *data;                          /* NULL: none runs */
	size_t len;
	int error;
};

/* --- reading --- */

static int check_file(int fd, size_t *ret_len)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_size <= 0 ||
	    st.st_size > NAMES_FILE_MAX)
		return -EBADMSG;
	*ret_len = (size_t)st.st_size;
	return 0;
}

static int read_all(int fd, void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *)data + done, len - done, (off_t)done);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

static int read_names(struct names_keep *keep)
{
	int fd = open(keep->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r;
	void *data = NULL;
	size_t len = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = check_file(fd, &len);
	if (r == 0)
		data = malloc(len);
	if (r == 0)
		r = data ? read_all(fd, data, len) : -ENOMEM;
	if (r == 0)
		r = symbolize_decode(keep->symbolize, data, len);
	free(data);
	fd_close(&fd);
	return r;
}

/* --- writing --- */

/* In a thread, or at the end. */
static void write_names(void *context)
{
	struct names_keep *keep = context;
	int fd;

	/* Whatever lies there, left over or put there (a pipe would be waited for), is not what is written to. */
	unlink(keep->path_new);
	fd = open(keep->path_new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	keep->error = fd < 0 ? -errno : fd_write_all(fd, keep->data, keep->len);
	fd_close(&fd);
	/* Nothing is waited for: what a fall of the machine leaves has a checksum. */
	if (keep->error == 0 && rename(keep->path_new, keep->path) < 0)
		keep->error = -errno;
	if (keep->error < 0)
		unlink(keep->path_new);
}

static void on_written(void *context, bool ran)
{
	struct names_keep *keep = context;

	if (ran && keep->error < 0)
		log_warning("%s cannot be written, and the names in it will be looked for again: %s", keep->path,
			    strerror(-keep->error));
	if (!ran)
		keep->written = 0;
	free(keep->data);
	keep->data = NULL;
}

/* Whether there is something to write. */
static bool encode(struct names_keep *keep)
{
	uint64_t named = symbolize_named(keep->symbolize);

	if (keep->data || named == keep->written || symbolize_encode(keep->symbolize, &keep->data, &keep->len) < 0)
		return false;
	keep->written = named;
	return true;
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct names_keep *keep = context;

	(void)usec;
	if (encode(keep) && work_submit(keep->work, write_names, on_written, keep) < 0)
		on_written(keep, false);
	sd_event_source_set_time_relative(source, NAMES_KEEP_PERIOD_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* --- the object --- */

int names_keep_new(sd_event *event, struct work *work, struct symbolize *symbolize, const char *folder,
		   struct names_keep **ret)
{
	struct names_keep *keep;
	int r;

	*ret = NULL;
	if (!folder)
		return 0;
	keep = calloc(1, sizeof(*keep));
	if (!keep)
		return -ENOMEM;
	keep->work = work;
	keep->symbolize = symbolize;
	if (asprintf(&keep->path, "%s/names", folder) < 0 || asprintf(&keep->path_new, "%s/names.new", folder) < 0) {
		names_keep_free(keep);
		return -ENOMEM;
	}
	r = read_names(keep);
	if (r < 0)
		log_warning("%s is thrown away, and the names in it will be looked for again: %s", keep->path,
			    r == -EBADMSG ? "it is damaged or another version's" : strerror(-r));
	if (r < 0)
		unlink(keep->path);
	r = sd_event_add_time_relative(event, &keep->timer, CLOCK_MONOTONIC, NAMES_KEEP_PERIOD_US, 0, on_time, keep);
	if (r < 0) {
		names_keep_free(keep);
		return r;
	}
	*ret = keep;
	return 0;
}

void names_keep_free(struct names_keep *keep)
{
	if (!keep)
		return;
	if (keep->timer && encode(keep)) {
		write_names(keep);
		on_written(keep, true);
	}
	sd_event_source_disable_unref(keep->timer);
	free(keep->path);
	free(keep->path_new);
	free(keep);
}
