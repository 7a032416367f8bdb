#define _GNU_SOURCE              /* F_ADD_SEALS, O_PATH */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many descriptors a hostile peer may attach before the kernel cuts them off. */
#define MAX_PASSED_FDS 8

void fd_close(int *fd)
{
	int keep = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = keep;
}

int fd_seal(int fd, int r, int *ret_fd)
{
	if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		fd_close(&fd);
	else
		*ret_fd = fd;
	return r;
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_read_text(int fd, size_t max, char **ret_text, size_t *ret_len)
{
	size_t space = 4096, len = 0;
	char *text = malloc(space);

	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t n;

		if (len + 1 == space) {
			char *grown = realloc(text, space * 2);

			if (!grown) {
				free(text);
				return -ENOMEM;
			}
			text = grown;
			space *= 2;
		}
		n = read(fd, text + len, space - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || len + (size_t)(n > 0 ? n : 0) > max) {
			int r = n < 0 ? -errno : -EFBIG;

			free(text);
			return r;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret_text = text;
	if (ret_len)
		*ret_len = len;
	return 0;
}

int file_read_text(const char *path, size_t max, char **ret_text, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_read_text(fd, max, ret_text, ret_len);
	close(fd);
	return r;
}

int fd_send_message(int sock, const void *data, size_t len, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	while (sendmsg(sock, &msg, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int take_fds(struct msghdr *msg)
{
	int first = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

ssize_t fd_receive_message(int sock, void *buf, size_t space, int *ret_fd)
{
	union {
		char space[CMSG_SPACE(MAX_PASSED_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, space };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control.space, .msg_controllen = sizeof(control.space) };
	ssize_t n;
	int fd;

	while ((n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC)) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	fd = take_fds(&msg);
	if (msg.msg_flags & MSG_TRUNC) {
		fd_close(&fd);
		return -EMSGSIZE;
	}
	*ret_fd = fd;
	return n;
}

/* What it is, is looked at first; by the kernel's link the very file that was looked at is opened. */
int file_open_plain(const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC), fd = -EINVAL;
	char again[48];
	struct stat st;

	if (place < 0)
		return -errno;
	if (fstat(place, &st) < 0) {
		fd = -errno;
	} else if (S_ISREG(st.st_mode)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			fd = -errno;
	}
	fd_close(&place);
	return fd;
}

int folder_next(DIR *dir, struct dirent **ret_entry)
{
	errno = 0;
	*ret_entry = readdir(dir);
	return *ret_entry ? 1 : -errno;
}
