#define _GNU_SOURCE              /* memfd_create, O_PATH, statx */
#include "target/mapped_file.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mounts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SPACE 4352
#define COPY_CHUNK (1u << 16)
#define HEAD_SIZE 4096u

/* What is looked for. */
struct wanted {
	pid_t tid;
	const struct map_line *map;  /* NULL: the program */
	const struct mounts *mounts;
	size_t most;                 /* bytes of a copy */
	bool head;                   /* its beginning is enough */
};

/* --- ways to it --- */

enum way { WAY_MAPPING, WAY_ROOT, WAY_PATH, WAY_PROGRAM, WAYS };

static bool has_way(const struct wanted *wanted, enum way way)
{
	if (!wanted->map)
		return way == WAY_PROGRAM;
	return (way != WAY_ROOT && way != WAY_PATH) || !wanted->map->deleted;
}

static int open_way(const struct wanted *wanted, enum way way, int flags)
{
	char path[PATH_SPACE];

	if (way == WAY_MAPPING)
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", wanted->tid, wanted->map->start,
			 wanted->map->end);
	else if (way == WAY_ROOT)
		snprintf(path, sizeof(path), "/proc/%d/root%s", wanted->tid, wanted->map->path);
	else if (way == WAY_PATH)
		snprintf(path, sizeof(path), "%s", wanted->map->path);
	else
		snprintf(path, sizeof(path), "/proc/%d/exe", wanted->tid);
	return open(path, flags);
}

/* The kernel's own links lead to the file itself.  A path is followed as far as that takes nobody's answer; -EAGAIN: it
 * does. */
static int open_way_without_asking(const struct wanted *wanted, enum way way)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	char root[64];
	int from, fd;

	if (way == WAY_MAPPING || way == WAY_PROGRAM) {
		fd = open_way(wanted, way, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	snprintf(root, sizeof(root), "/proc/%d/root", way == WAY_ROOT ? wanted->tid : getpid());
	from = open(root, O_PATH | O_CLOEXEC);
	if (from < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, from, wanted->map->path + strspn(wanted->map->path, "/"), &how, sizeof(how));
	if (fd < 0)
		fd = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ? -errno : -EAGAIN;
	fd_close(&from);
	return fd;
}

/* The mapping says which file it is; a path may meanwhile name another one, or be seen from another root.  Where stat's
 * device is not that of maps (overlayfs, btrfs) the build-id decides. */
static bool is_wanted(const struct wanted *wanted, enum way way, int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) == 0 &&
	       S_ISREG(st.stx_mode) && (way == WAY_MAPPING || !wanted->map || st.stx_ino == wanted->map->inode);
}

/* --- without asking --- */

/* A path may by now name what must not be opened, which is known by its place. */
static int reopen(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The file; -1: there is none; -EAGAIN: that takes somebody's answer. */
static int open_without_asking(const struct wanted *wanted)
{
	for (enum way way = 0; way < WAYS; way++) {
		int place, fd = -1;

		place = has_way(wanted, way) ? open_way_without_asking(wanted, way) : -ENOENT;
		if (place == -EAGAIN)
			return -EAGAIN;
		if (place >= 0 && is_wanted(wanted, way, place)) {
			if (mounts_may_wait(wanted->mounts, place))
				fd = -EAGAIN;
			else
				fd = reopen(place);
		}
		if (place >= 0)
			fd_close(&place);
		if (fd >= 0 || fd == -EAGAIN)
			return fd;
	}
	return -1;
}

/* --- by a process of its own; nothing here may allocate, since it was forked beside a thread --- */

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* What the parent hears, at last with the descriptor. */
struct fetched {
	bool more;                   /* to come: it is being copied */
	bool copy, too_large;
	uint64_t size;
};

static int copy_bytes(const struct wanted *wanted, int from, int to, int sock)
{
	static const struct fetched more = { .more = true };
	static char chunk[COPY_CHUNK];
	size_t done = 0;

	while (done < wanted->most) {
		size_t left = wanted->most - done;
		ssize_t n = pread(from, chunk, left < sizeof(chunk) ? left : sizeof(chunk), (off_t)done);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if (fd_write_all(to, chunk, (size_t)n) < 0)
			return -ENOSPC;
		done += (size_t)n;
		if (fd_send_message(sock, &more, sizeof(more), -1) < 0)
			return -EPIPE;
	}
	return wanted->head ? 0 : -EFBIG;
}

static int copy(const struct wanted *wanted, int from, int sock, struct fetched *fetched)
{
	struct stat st;
	int fd, r;

	fetched->copy = true;
	if (!is_elf(from))
		return -1;
	fd = memfd_create("object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	r = copy_bytes(wanted, from, fd, sock);
	fetched->too_large = r == -EFBIG;
	if (fd_seal(fd, r, &fd) < 0)
		return -1;
	fetched->size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	return fd;
}

static void fetch(const struct wanted *wanted, int sock)
{
	struct fetched fetched = { 0 };
	int fd = -1;

	for (enum way way = 0; way < WAYS && fd < 0; way++) {
		int place = has_way(wanted, way) ? open_way(wanted, way, O_PATH | O_CLOEXEC) : -1;

		if (place >= 0 && is_wanted(wanted, way, place))
			fd = reopen(place);
		fd_close(&place);
	}
	if (fd >= 0 && mounts_may_wait(wanted->mounts, fd))
		fd = copy(wanted, fd, sock, &fetched);
	fd_send_message(sock, &fetched, sizeof(fetched), fd);
}

/* Nobody waits for this one: it ends when it may. */
static void fetch_and_end(const struct wanted *wanted, int sock)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	sigset_t none;

	sigaction(SIGALRM, &by_default, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(MAPPED_WAIT_MS / 1000 + 1);
	/* The daemon's socket, above all: its end means that we have ended. */
	dup2(sock, STDIN_FILENO);
	if (close_range(1, ~0U, 0) == 0)
		fetch(wanted, STDIN_FILENO);
	_exit(0);
}

static int start(const struct wanted *wanted, int sock)
{
	pid_t child = fork();

	if (child == 0) {
		if (fork() == 0)
			fetch_and_end(wanted, sock);
		_exit(0);
	}
	if (child < 0)
		return -errno;
	while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	return 0;
}

/* 0 and what came last, or -ETIMEDOUT. */
static int await(int sock, uint64_t wait_ms, struct fetched *ret_fetched, int *ret_fd)
{
	uint64_t deadline_ns = clock_monotonic_ns() + wait_ms * NSEC_PER_MSEC;
	uint64_t silent_ns = clock_monotonic_ns() + MAPPED_SILENCE_MS * NSEC_PER_MSEC;
	struct pollfd pollfd = { .fd = sock, .events = POLLIN };
	struct fetched fetched;
	int fd;

	for (;;) {
		uint64_t until_ns = silent_ns < deadline_ns ? silent_ns : deadline_ns, now_ns = clock_monotonic_ns();

		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		/* EINTR, too, is not the end. */
		if (poll(&pollfd, 1, (int)((until_ns - now_ns) / NSEC_PER_MSEC) + 1) != 1)
			continue;
		if (fd_receive_message(sock, &fetched, sizeof(fetched), &fd) != (ssize_t)sizeof(fetched))
			return -EIO;
		if (!fetched.more) {
			*ret_fetched = fetched;
			*ret_fd = fd;
			return 0;
		}
		silent_ns = clock_monotonic_ns() + MAPPED_SILENCE_MS * NSEC_PER_MSEC;
	}
}

static int fetch_in_time(const struct wanted *wanted, uint64_t wait_ms, struct fetched *ret_fetched, int *ret_fd)
{
	int socks[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return -errno;
	r = start(wanted, socks[1]);
	fd_close(&socks[1]);
	if (r == 0)
		r = await(socks[0], wait_ms, ret_fetched, ret_fd);
	fd_close(&socks[0]);
	return r;
}

/* --- a target's files --- */

static bool is_mute(const struct mapped_files *files, uint64_t device)
{
	for (unsigned i = 0; i < files->mute_count; i++) {
		if (files->mute[i] == device)
			return true;
	}
	return false;
}

void mapped_files_miss(struct mapped_files *files, const char *path, const char *why)
{
	/* The same again, at the next look. */
	if (files->missed_why == why && strncmp(files->missed_path, path, sizeof(files->missed_path) - 1) == 0)
		return;
	files->missed++;
	files->missed_why = why;
	snprintf(files->missed_path, sizeof(files->missed_path), "%s", path);
}

static void note_mute(struct mapped_files *files, uint64_t device)
{
	if (!is_mute(files, device) && files->mute_count < MAPPED_MUTE_DEVICES_MAX)
		files->mute[files->mute_count++] = device;
}

static int ask(struct mapped_files *files, struct wanted *wanted, bool *ret_copy)
{
	uint64_t left = MAPPED_COPIES_MAX - files->copied, began_ns = clock_monotonic_ns();
	struct fetched fetched = { 0 };
	int fd = -1, r = -ETIMEDOUT;

	wanted->most = left < MAPPED_COPY_MAX ? left : MAPPED_COPY_MAX;
	if (!is_mute(files, wanted->map->device) && files->waited_ms < MAPPED_WAIT_MS)
		r = fetch_in_time(wanted, MAPPED_WAIT_MS - files->waited_ms, &fetched, &fd);
	files->waited_ms += (clock_monotonic_ns() - began_ns) / NSEC_PER_MSEC;
	files->copied += fetched.size;
	*ret_copy = fetched.copy;
	if (r == -ETIMEDOUT) {
		mapped_files_miss(files, wanted->map->path, "its file system does not answer in time");
		note_mute(files, wanted->map->device);
	} else if (r == 0 && fetched.too_large) {
		mapped_files_miss(files, wanted->map->path, "it is too large to be copied from a file system that may cease to answer");
	}
	return fd;
}

int mapped_file_open(struct mapped_files *files, pid_t tid, const struct map_line *map, bool *ret_copy)
{
	struct wanted wanted = { .tid = tid, .map = map };
	int fd;

	*ret_copy = false;
	/* Without them only memory and disks are known to answer. */
	if (!files->mounts)
		mounts_read(tid, &files->mounts);
	wanted.mounts = files->mounts;
	fd = open_without_asking(&wanted);
	return fd == -EAGAIN ? ask(files, &wanted, ret_copy) : fd;
}

void mapped_files_look_done(struct mapped_files *files)
{
	mounts_free(files->mounts);
	files->mounts = NULL;
	files->waited_ms = 0;
}

int mapped_file_open_head(pid_t tid)
{
	struct wanted wanted = { .tid = tid, .most = HEAD_SIZE, .head = true };
	struct fetched fetched;
	struct mounts *mounts = NULL;
	int fd, asked = -1;

	mounts_read(tid, &mounts);
	wanted.mounts = mounts;
	fd = open_without_asking(&wanted);
	if (fd == -EAGAIN)
		fd = fetch_in_time(&wanted, MAPPED_WAIT_MS, &fetched, &asked) == 0 ? asked : -1;
	mounts_free(mounts);
	return fd;
}
