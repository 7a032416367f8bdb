/* Attaching and detaching, as attach, run and detach need it.
 * The functions return an exit status and have said on stderr why it is not 0. */
#ifndef ALLOCWATCH_CLI_TRACING_H
#define ALLOCWATCH_CLI_TRACING_H

#include "cli/session.h"

#include <sys/types.h>

/* A PID given as an argument of a command; EXIT_USAGE when it is none. */
int tracing_pid(const char *command, const char *text, pid_t *ret_pid);
/* "4242 (redis-server)", "4242" when the name cannot be read. */
#define TRACING_NAME_MAX 96
const char *tracing_name(char text[TRACING_NAME_MAX], pid_t pid);

/* Attaches as the options say; when the system's daemon, found by itself, does not permit it, a
 * private one is asked.  *ret_reply is {pid, tasks, probes}. */
int tracing_attach(struct session *session, const struct options *options, pid_t pid, const char *name,
		   bool wait_for_exec, json_t **ret_reply);
/* Only when nobody traces it yet; *ret_attached says whether it did.  purpose: "show", what it is for. */
int tracing_attach_if_need_be(struct session *session, const struct options *options, pid_t pid, const char *name,
			      const char *purpose, bool *ret_attached);
/* keep: for a while, see detach --keep.  *ret_reply is {clean, message}; may be NULL. */
int tracing_detach(struct session *session, pid_t pid, const char *name, bool keep, json_t **ret_reply);

#endif
