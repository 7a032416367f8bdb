#define _GNU_SOURCE              /* asprintf */
#include "daemon/listen.h"

#include "base/fd.h"
#include "base/reason.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define SYSTEM_FOLDER "/run/allocwatch"
#define SOCKET_NAME "allocwatch.sock"
#define METRICS_NAME "metrics"
#define BACKLOG 128
#define LOCK_WAIT_MS 5000
#define LOCK_POLL_MS 10

/* --- systemd's --- */

static int describe(int fd, char **ret_address)
{
	struct sockaddr_un address = { 0 };
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	*ret_address = strndup(address.sun_path[0] ? address.sun_path : "(abstract)", sizeof(address.sun_path));
	return *ret_address ? 0 : -ENOMEM;
}

/* FileDescriptorName= of its unit. */
static int take_for_metrics(struct listen *own, int fd, char **ret_reason)
{
	if (own->metrics_fd >= 0)
		return reason_set(ret_reason, -EINVAL, "more than one socket named " METRICS_NAME " was handed over");
	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
		return reason_set(ret_reason, -EINVAL, "what was handed over for metrics is no listening stream socket");
	own->metrics_fd = fd;
	return 0;
}

static int take_for_clients(struct listen *own, int fd, char **ret_reason)
{
	if (own->fd >= 0)
		return reason_set(ret_reason, -EINVAL,
				  "more than one socket was handed over that is not named " METRICS_NAME);
	if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0)
		return reason_set(ret_reason, -EINVAL, "what was handed over is no listening Unix stream socket");
	own->fd = fd;
	return describe(fd, &own->address);
}

static void free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

/* Called once: what is handed over is handed over no more.  elsewhere: clients are listened to at a path, and only the socket
 * for metrics is taken. */
static int take_handed_over(struct listen *own, bool elsewhere, char **ret_reason)
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names), r = 0;

	if (count < 0)
		return reason_set(ret_reason, count, "the sockets handed over cannot be taken: %s", strerror(-count));
	for (int i = 0; r == 0 && i < count; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], METRICS_NAME) == 0)
			r = take_for_metrics(own, fd, ret_reason);
		else if (!elsewhere)
			r = take_for_clients(own, fd, ret_reason);
		else
			close(fd);
	}
	free_names(names);
	return r;
}

/* --- an own one --- */

/* In the folder nobody but the daemon's user and root may make or move anything. */
static int check_folder(const char *path, char **ret_reason)
{
	char *copy = strdup(path);
	const char *folder;
	struct stat st;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	folder = dirname(copy);
	if (lstat(folder, &st) < 0)
		r = reason_set(ret_reason, -errno, "the folder %s: %s", folder, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		r = reason_set(ret_reason, -ENOTDIR, "%s is no folder", folder);
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		r = reason_set(ret_reason, -EPERM,
			       "the folder %s belongs to user %u, who could put another socket in the "
			       "place of this one; choose a folder of your own", folder, st.st_uid);
	else if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
		r = reason_set(ret_reason, -EPERM,
			       "others may write to the folder %s; 'chmod go-w %s' closes it, or choose "
			       "another", folder, folder);
	free(copy);
	return r;
}

static bool somebody_listens(const struct sockaddr_un *address)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool refused;

	if (sock < 0)
		return true;
	refused = connect(sock, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
		  (errno == ECONNREFUSED || errno == ENOENT);
	close(sock);
	return !refused;
}

/* A daemon that leaves listens no more, but has its lock until all it keeps is on disk: whoever starts the next
 * one at that moment need not hear of it. */
static bool lock_in_time(int fd, const struct sockaddr_un *address)
{
	for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_ms += LOCK_POLL_MS) {
		if (errno != EWOULDBLOCK || waited_ms > LOCK_WAIT_MS || somebody_listens(address))
			return false;
		poll(NULL, 0, LOCK_POLL_MS);
	}
	return true;
}

static int take_lock(struct listen *own, const struct sockaddr_un *address, char **ret_reason)
{
	char *path;
	int r = 0;

	if (asprintf(&path, "%s.running", own->path) < 0)
		return -ENOMEM;
	own->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (own->lock_fd < 0)
		r = reason_set(ret_reason, -errno, "%s cannot be made: %s", path, strerror(errno));
	else if (!lock_in_time(own->lock_fd, address))
		r = reason_set(ret_reason, -EADDRINUSE, "another daemon runs on %s; stop it, or choose another socket",
			       own->path);
	free(path);
	return r;
}

/* Only a socket of our own user that nobody listens on. */
static int remove_stale(const struct sockaddr_un *address, char **ret_reason)
{
	const char *path = address->sun_path;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : reason_set(ret_reason, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return reason_set(ret_reason, -EEXIST, "%s is there and is no socket; choose another path", path);
	if (st.st_uid != geteuid())
		return reason_set(ret_reason, -EPERM, "%s is a socket of user %u; choose another path", path, st.st_uid);
	if (somebody_listens(address))
		return reason_set(ret_reason, -EADDRINUSE,
				  "another daemon runs on %s; stop it, or choose another socket",
				  path);
	if (unlink(path) < 0)
		return reason_set(ret_reason, -errno, "%s cannot be removed: %s", path, strerror(errno));
	return 0;
}

static int bind_and_listen(struct listen *own, const struct sockaddr_un *address, bool for_all, char **ret_reason)
{
	mode_t before = umask(for_all ? 0111 : 0177);
	struct stat st;
	int r = 0;

	own->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (own->fd < 0 || bind(own->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		r = reason_set(ret_reason, -errno,
			       "no socket can be made at %s: %s", address->sun_path, strerror(errno));
	umask(before);
	if (r < 0)
		return r;
	if (stat(address->sun_path, &st) == 0) {
		own->device = st.st_dev;
		own->inode = st.st_ino;
	}
	if (listen(own->fd, BACKLOG) < 0)
		return reason_set(ret_reason, -errno, "%s cannot be listened on: %s", address->sun_path,
				  strerror(errno));
	return 0;
}

static int open_own(struct listen *own, const char *path, bool for_all, char **ret_reason)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return reason_set(ret_reason, -ENAMETOOLONG, "%s is too long for a socket; choose a shorter path", path);
	strcpy(address.sun_path, path);
	own->path = strdup(path);
	own->address = strdup(path);
	if (!own->path || !own->address)
		return -ENOMEM;
	r = check_folder(path, ret_reason);
	if (r == 0)
		r = take_lock(own, &address, ret_reason);
	if (r == 0)
		r = remove_stale(&address, ret_reason);
	if (r == 0)
		r = bind_and_listen(own, &address, for_all, ret_reason);
	return r;
}

/* --- where, when nobody says --- */

static int make_folder(const char *folder, mode_t mode, char **ret_reason)
{
	mode_t before = umask(022);
	int r = mkdir(folder, mode) < 0 && errno != EEXIST ? -errno : 0;

	umask(before);
	return r < 0 ? reason_set(ret_reason, r, "the folder %s cannot be made: %s", folder, strerror(-r)) : 0;
}

static int in_folder(const char *folder, char **ret_path)
{
	return asprintf(ret_path, "%s/" SOCKET_NAME, folder) < 0 ? -ENOMEM : 0;
}

/* A folder of the user's own under the temporary one, closed to others. */
static int default_in_temporary(char **ret_path, char **ret_reason)
{
	const char *tmp = getenv("TMPDIR");
	struct stat st;
	char *folder;
	int r;

	if (asprintf(&folder, "%s/allocwatch-%u", tmp && tmp[0] == '/' ? tmp : "/tmp", geteuid()) < 0)
		return -ENOMEM;
	r = make_folder(folder, 0700, ret_reason);
	if (r == 0 && (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		       (st.st_mode & 077)))
		r = reason_set(ret_reason, -EPERM, "%s is no folder of yours that is closed to others", folder);
	if (r == 0)
		r = in_folder(folder, ret_path);
	free(folder);
	return r;
}

static int default_path(bool private_daemon, char **ret_path, char **ret_reason)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int r;

	if (!private_daemon && geteuid() == 0) {
		r = make_folder(SYSTEM_FOLDER, 0755, ret_reason);
		return r < 0 ? r : in_folder(SYSTEM_FOLDER, ret_path);
	}
	if (runtime && runtime[0] == '/' && stat(runtime, &st) == 0 && st.st_uid == geteuid() &&
	    !(st.st_mode & 077))
		return in_folder(runtime, ret_path);
	return default_in_temporary(ret_path, ret_reason);
}

int listen_open(const char *path, bool private_daemon, struct listen *ret, char **ret_reason)
{
	struct listen own = { .fd = -1, .metrics_fd = -1, .lock_fd = -1 };
	char *chosen = NULL;
	int r;

	*ret_reason = NULL;
	r = take_handed_over(&own, path != NULL, ret_reason);
	if (r == 0 && own.fd < 0 && !path) {
		r = default_path(private_daemon, &chosen, ret_reason);
		path = chosen;
	}
	if (r == 0 && own.fd < 0)
		r = open_own(&own, path, !private_daemon && geteuid() == 0, ret_reason);
	free(chosen);
	if (r < 0) {
		listen_close(&own);
		return r;
	}
	*ret = own;
	return 0;
}

void listen_close(struct listen *own)
{
	struct stat st;

	fd_close(&own->fd);
	fd_close(&own->metrics_fd);
	if (own->path && own->inode != 0 && lstat(own->path, &st) == 0 &&
	    st.st_dev == own->device && st.st_ino == own->inode)
		unlink(own->path);
	fd_close(&own->lock_fd);
	free(own->path);
	free(own->address);
	memset(own, 0, sizeof(*own));
	own->fd = own->metrics_fd = own->lock_fd = -1;
}
