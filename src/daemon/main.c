/* allocwatchd: traces the heaps of processes and answers questions about them. */
#include "daemon/daemon.h"
#include "daemon/listen.h"
#include "daemon/log.h"
#include "daemon/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2

static int run(const struct options *options)
{
	struct daemon *daemon;
	struct listen listen;
	char *reason;
	int r = listen_open(options->socket, options->private_daemon, &listen, &reason);

	if (r < 0) {
		log_error("%s", reason ? reason : strerror(-r));
		free(reason);
		return EXIT_FAILURE;
	}
	r = daemon_new(options, listen.fd, listen.address, &daemon);
	listen.fd = -1;             /* the daemon has it */
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

int main(int argc, char **argv)
{
	struct options options;
	int r = options_parse(argc, argv, &options);

	if (r > 0)
		return EXIT_SUCCESS;
	if (r < 0)
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	umask(077);             /* what is written tells what other programs do */
	log_init();
	r = run(&options);
	options_fini(&options);
	return r;
}
