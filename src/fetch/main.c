#define _GNU_SOURCE              /* close_range, clearenv */
/* allocwatch-fetcher: started by the daemon, or by systemd for it, with the connection as descriptor 3.  It has the only
 * network access of allocwatch, and no rights but those of the user for whom it asks. */
#include "fetch/fetch.h"

#include "base/fd.h"
#include "base/sanitized.h"
#include "base/user.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_FD 3
#define MEMORY_MAX (1ULL << 30)        /* address space */
#define DESCRIPTORS_MAX 64
#define NOBODY 65534
/* Where large files that nobody needs for long belong, unless $TMPDIR says something else. */
#define FOLDER "/var/tmp"
/* After the time that libdebuginfod was given. */
#define GRACE_S 10

#if SANITIZED
/* LeakSanitizer would have to trace this process, which it may not when that has become another user. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static bool is_socket(int fd)
{
	socklen_t len = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

/* The daemon does not want it any more, or is gone. */
static bool is_cancelled(void)
{
	struct pollfd peer = { .fd = SOCKET_FD };

	return poll(&peer, 1, 0) != 0;
}

static int become(const struct wire_identity *identity)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (geteuid() != 0)
		return identity->as_other && identity->uid != geteuid() ? -EPERM : 0;
	if (identity->as_other)
		return user_become(identity->uid, identity->gid, identity->groups, identity->group_count);
	return user_become(NOBODY, NOBODY, NULL, 0);
}

static int limit(int resource, rlim_t max)
{
	const struct rlimit both = { max, max };
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		return -errno;
	if (now.rlim_max <= max)
		return 0;
	return setrlimit(resource, &both) < 0 ? -errno : 0;
}

static int set_limits(const struct fetch_request *request)
{
	int r = limit(RLIMIT_CORE, 0);

	/* AddressSanitizer reserves terabytes of address space for itself. */
	if (r == 0 && !SANITIZED)
		r = limit(RLIMIT_AS, MEMORY_MAX);
	if (r == 0)
		r = limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, request->bytes_max);
	if (r == 0)
		r = limit(RLIMIT_CPU, request->time_s);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* Should libdebuginfod be stuck where it asks nobody whether it is to go on. */
	alarm(request->time_s + GRACE_S);
	return r;
}

/* Of the environment only what says how the network is reached, and who is trusted there. */
static int clean_environment(void)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
					     "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR" };
	char *values[sizeof(names) / sizeof(names[0])];
	int r = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		values[i] = value ? strdup(value) : NULL;
	}
	clearenv();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (values[i] && setenv(names[i], values[i], 1) < 0)
			r = -errno;
		free(values[i]);
	}
	return r;
}

static int serve(const struct fetch_request *request)
{
	const char *chosen = getenv("TMPDIR");
	char *folder = strdup(chosen && chosen[0] == '/' ? chosen : FOLDER);
	int r = folder ? become(&request->identity) : -ENOMEM;

	umask(077);
	if (r == 0)
		r = set_limits(request);
	if (r == 0)
		r = clean_environment();
	if (r == 0)
		r = fetch_debuginfo(request, folder, is_cancelled);
	free(folder);
	return r;
}

static int answer(int result)
{
	struct fetch_answer message = { .result = result < 0 ? result : 0 };
	int r = fd_send_message(SOCKET_FD, &message, sizeof(message), result < 0 ? -1 : result);

	fd_close(&result);
	return r;
}

int main(void)
{
	struct fetch_request request;
	int fd = -1;
	ssize_t n;

	if (!is_socket(SOCKET_FD)) {
		fputs("allocwatch-fetcher: descriptor 3 is not the daemon's socket: it is started by "
		      "allocwatchd, not by hand\n", stderr);
		return 2;
	}
	close_range(SOCKET_FD + 1, ~0U, 0);
	n = fd_receive_message(SOCKET_FD, &request, sizeof(request), &fd);
	fd_close(&fd);
	if (n < 0 || fetch_check_request(&request, (size_t)n) < 0)
		return n == 0 ? 0 : 1;
	return answer(serve(&request)) < 0;
}
