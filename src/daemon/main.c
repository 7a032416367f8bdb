/* allocwatchd: traces the heaps of processes and answers questions about them. */
#include "daemon/daemon.h"
#include "daemon/listen.h"
#include "daemon/log.h"
#include "daemon/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2

static int run(struct options *options)
{
	struct daemon *daemon;
	struct listen listen;
	char *reason = NULL;
	int r = daemon_hold_signals();

	if (r == 0)
		r = listen_open(options->socket, options->line.private_daemon, &listen, &reason);
	if (r < 0) {
		log_error("%s", reason ? reason : strerror(-r));
		free(reason);
		return EXIT_FAILURE;
	}
	r = daemon_new(options, listen.fd, listen.metrics_fd, listen.address, &daemon);
	listen.fd = listen.metrics_fd = -1;     /* the daemon has them */
	if (r == 0) {
		r = daemon_run(daemon);
		if (r <= 0)
			daemon_free(daemon);
	}
	listen_close(&listen);
	if (r > 0)
		_exit(EXIT_SUCCESS);    /* threads may still be at work */
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The tracer's program does it: the daemon touches no process. */
static int heal(const struct options *options)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", options->line.heal_pid);
	execl(options->tracer_program, "allocwatch-tracer", "--heal", options->line.heal_pid ? pid : (char *)NULL, (char *)NULL);
	log_error("cannot run %s: %s", options->tracer_program, strerror(errno));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct options options;
	int r;

	log_init();
	r = options_parse(argc, argv, &options);
	if (r > 0)
		return EXIT_SUCCESS;
	if (r < 0)
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	umask(077);             /* what is written tells what other programs do */
	log_set_level(options.log_level);
	r = options.line.heal ? heal(&options) : run(&options);
	options_fini(&options);
	return r;
}
