/* allocwatchd's command line. */
#ifndef ALLOCWATCH_DAEMON_OPTIONS_H
#define ALLOCWATCH_DAEMON_OPTIONS_H

#include "daemon/limits.h"

#include <stdbool.h>

struct options {
	const char *socket;            /* NULL: systemd's or the usual place */
	const char *tracer_service;    /* the socket where systemd starts tracers; NULL: they are children */
	bool private_daemon;
	bool heal;                     /* that alone */
	bool no_heal;                  /* not when it starts */
	int heal_pid;                  /* 0: all */
	char *tracer, *symbolizer;     /* programs */
	char *state_folder;            /* NULL: memory only */
	struct limits limits;
};

/* 0: go on; 1: done (--help, --version); -EINVAL: wrong usage, which was said; -ENOMEM. */
int options_parse(int argc, char **argv, struct options *ret);
void options_fini(struct options *options);

#endif
