#define _GNU_SOURCE              /* posix_spawn_file_actions_addclosefrom_np, struct ucred */
#include "daemon/tracer_process.h"

#include "base/fd.h"
#include "tracer/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define TRACER_SOCKET_FD 3

extern char **environ;

/* --- a child --- */

static int prepare_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attr, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &all);
	/* A session of its own: the signals of a terminal are the daemon's. */
	if (r == 0)
		r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							   POSIX_SPAWN_SETSID);
	return r;
}

static int prepare_files(posix_spawn_file_actions_t *files, int sock)
{
	int r = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
	if (r == 0 && sock >= 0)
		r = posix_spawn_file_actions_adddup2(files, sock, TRACER_SOCKET_FD);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(files, TRACER_SOCKET_FD + (sock >= 0));
	return r;
}

int tracer_process_spawn(const char *program, char *const *argv, int sock, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int r;

	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_init(&files);
	r = prepare_attributes(&attr);
	if (r == 0)
		r = prepare_files(&files, sock);
	if (r == 0)
		r = posix_spawn(ret_pid, program, &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -r;
}

/* --- a service --- */

int tracer_process_connect(const char *path, int *ret_sock)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock, one = 1, r = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	/* Before anything can be sent, or the sender is not told. */
	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0 ||
	    connect(sock, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (r < 0)
		fd_close(&sock);
	else
		*ret_sock = sock;
	return r;
}

/* The connection's own peer is systemd, which listens. */
static int peek_sender(int sock, struct ucred *ret)
{
	union {
		char space[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control.space, .msg_controllen = sizeof(control.space) };
	struct cmsghdr *cmsg;
	ssize_t n = recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (n == 0 || !cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_CREDENTIALS ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(*ret)))
		return -ECONNRESET;
	memcpy(ret, CMSG_DATA(cmsg), sizeof(*ret));
	return 0;
}

int tracer_process_meet(int sock, pid_t *ret_pid, int *ret_pidfd)
{
	struct ucred sender;
	int zero = 0, pidfd, r = peek_sender(sock, &sender);

	if (r < 0)
		return r;
	if (sender.pid <= 0)
		return -EXDEV;          /* of another namespace */
	/* From now on it would take the room of the descriptors beside a message. */
	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &zero, sizeof(zero)) < 0)
		return -errno;
	*ret_pid = sender.pid;
	pidfd = (int)syscall(SYS_pidfd_open, sender.pid, 0);
	if (pidfd < 0)
		return -errno;
	*ret_pidfd = pidfd;
	return 0;
}

int tracer_process_hear(int sock, uint32_t *ret_type)
{
	union {
		char bytes[WIRE_MESSAGE_MAX];
		struct wire_head head;
	} buffer;
	int passed = -1;
	ssize_t n = fd_receive_message(sock, &buffer, sizeof(buffer), &passed);

	fd_close(&passed);
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	if (wire_check(&buffer, (size_t)n, 1) < 0)
		return -EBADMSG;
	*ret_type = buffer.head.type;
	return 0;
}
