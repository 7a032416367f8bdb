/* What allocwatchd was told by its command line and its configuration files. */
#ifndef ALLOCWATCH_DAEMON_OPTIONS_H
#define ALLOCWATCH_DAEMON_OPTIONS_H

#include "base/vec.h"
#include "daemon/alarms.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/settings.h"

#include <stdbool.h>

#define IDLE_EXIT_DEFAULT (-1)
#define STATE_NONE "none"
/* Whose processes the HTTP listener tells of: the daemon's user's, or all. */
enum { METRICS_SHOW_OWN, METRICS_SHOW_ALL };

/* A setting of the command line, which wins over all files. */
struct given {
	const struct setting *setting;
	const char *option;            /* its name */
	const char *value;
};

/* What only the command line says; its texts are argv's. */
struct command_line {
	bool private_daemon;
	bool heal;                     /* that alone */
	int heal_pid;                  /* 0: all */
	bool check_config;             /* that alone */
	const char *config;            /* this file in place of the usual ones; NULL */
	VEC_OF(struct given) given;
};

struct options {
	struct command_line line;
	/* what is in settings.c */
	char *socket;                  /* NULL: systemd's or the usual place */
	int64_t idle_exit_s;           /* 0: never; IDLE_EXIT_DEFAULT */
	bool heal_at_start;
	unsigned log_level;            /* enum log_level */
	char *tracer, *symbolizer, *fetcher;           /* programs; NULL: ours */
	char *tracer_service, *fetcher_service;        /* sockets that start them; NULL: the daemon does */
	char *debuginfod;              /* see debuginfo_set_servers(); NULL: none */
	char *state;                   /* a folder, STATE_NONE, or NULL: the usual one */
	unsigned engine;               /* enum engine_kind */
	unsigned ptrace;               /* enum ptrace_wish */
	unsigned ring_wait_ms;         /* 0: the default */
	unsigned ring_readers;         /* 0: as many as are needed */
	uint64_t sample_bytes;         /* one sample for so many; 0: all is recorded */
	char *allocators;              /* descriptions of model/allocators.h, a line each; NULL: none */
	char *hide;                    /* rules of model/hidden_rules.h, a line each; NULL: none */
	char *metrics_listen;          /* see metrics_address.h; NULL: nowhere */
	size_t metrics_groups;
	int64_t metrics_interval_s;
	unsigned metrics_show;         /* METRICS_SHOW_... */
	struct alarm_options alarms;
	struct limits limits;
	/* what becomes of it */
	char *tracer_program, *symbolizer_program, *fetcher_program;
	char *state_folder;            /* NULL: memory only */
};

/* 0: go on; 1: done (--help, --version, --check-config); -EINVAL: wrong usage, which was said; -EBADMSG: the
 * configuration is wrong, which was said; -ENOMEM. */
int options_parse(int argc, char **argv, struct options *ret);
/* The same command line, and the files as they are now.  What is wrong is logged, and nothing changes: -EBADMSG, -ENOMEM. */
int options_read_again(const struct options *old, struct options *ret);
void options_fini(struct options *options);

#endif
