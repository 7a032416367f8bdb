/* allocwatch-tracer: traces one process tree for the daemon, which starts it with a socket as descriptor 3;
 * or, as "allocwatch-tracer --heal [PID]", takes out what a tracer that died has left in processes; with
 * --heal-after-failure only when systemd says that the service whose end this is has failed; with --stand-by when the
 * daemon says so over that socket, where it may also say that first. */
#include "tracer/heal.h"
#include "tracer/link.h"
#include "tracer/loop.h"

#include "target/ptrace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DAEMON_SOCKET 3

/* Why this process ends is for the log; its end is seen by the daemon, which heals. */
static void tell_refusal(pid_t tid, int error)
{
	fprintf(stderr, "allocwatch-tracer: the kernel refuses to go on with thread %d: %s; it is let go\n", tid,
		strerror(-error));
}

/* systemd.exec(5): what it tells the programs that it runs when a service has ended. */
static bool ended_well(void)
{
	const char *result = getenv("SERVICE_RESULT"), *status = getenv("EXIT_STATUS");

	return result && strcmp(result, "success") == 0 && status && strcmp(status, "0") == 0;
}

int main(int argc, char **argv)
{
	struct link *link;
	sigset_t child;
	socklen_t len = sizeof(int);
	int type, r;

	ptrace_on_refusal(tell_refusal);
	/* In all threads: a stop that comes while it is awaited, or records are, ends that wait (stop_pause). */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	if (argc >= 2 && argc <= 3 && strcmp(argv[1], "--heal") == 0)
		return heal_main(argc == 3 ? argv[2] : NULL);
	if (argc == 2 && strcmp(argv[1], "--heal-after-failure") == 0)
		return ended_well() ? EXIT_SUCCESS : heal_main(NULL);
	if (argc == 2 && strcmp(argv[1], "--stand-by") == 0)
		return heal_stand_by(DAEMON_SOCKET, argv[1]);
	if (getsockopt(DAEMON_SOCKET, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
		fprintf(stderr, "allocwatch-tracer is started by allocwatchd; use allocwatch(1)\n");
		return 2;
	}
	if (heal_is_to_stand_by(DAEMON_SOCKET))
		return heal_serve(DAEMON_SOCKET);
	r = link_new(DAEMON_SOCKET, &link);
	if (r < 0) {
		fprintf(stderr, "allocwatch-tracer: cannot start: %s\n", strerror(-r));
		return 1;
	}
	r = loop_run(link, NULL);
	link_free(link);
	return r;
}
