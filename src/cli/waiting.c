#include "cli/waiting.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>

int waiting_catch_signals(int *ret_fd)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void show_rest(const char *name, uint64_t deadline)
{
	char rest[UNITS_TEXT_MAX];
	uint64_t now = clock_monotonic_ns();

	if (now < deadline)
		progress("tracing %s, %s left; Ctrl-C ends it at once", name,
			 units_duration_text(rest, deadline - now));
}

enum waiting_end waiting_for(pid_t pid, const char *name, uint64_t deadline, int signal_fd)
{
	int pid_fd = pidfd_open(pid, 0);
	enum waiting_end end = WAITING_EXITED;        /* without a pidfd it is gone already */

	while (pid_fd >= 0) {
		struct pollfd fds[] = { { signal_fd, POLLIN, 0 }, { pid_fd, POLLIN, 0 } };
		uint64_t now = clock_monotonic_ns();
		uint64_t rest_ms = now < deadline ? (deadline - now) / NSEC_PER_MSEC + 1 : 0;

		if (rest_ms == 0) {
			end = WAITING_ELAPSED;
			break;
		}
		show_rest(name, deadline);
		if (poll(fds, 2, rest_ms > 1000 ? 1000 : (int)rest_ms) <= 0)
			continue;
		end = fds[0].revents ? WAITING_INTERRUPTED : WAITING_EXITED;
		break;
	}
	progress_clear();
	fd_close(&pid_fd);
	return end;
}
