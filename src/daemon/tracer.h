/* The tracer processes: started, spoken to, listened to, and seen off.
 *
 * A tracer that loses its socket undoes everything in its target and leaves; that is how the daemon
 * lets one go.  What a tracer sends is checked before anybody sees it.  Nothing here knows what the
 * messages mean. */
#ifndef ALLOCWATCH_DAEMON_TRACER_H
#define ALLOCWATCH_DAEMON_TRACER_H

#include "tracer/wire.h"

#include <stddef.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct tracers;
struct tracer;

/* program: path of allocwatch-tracer.  service: NULL, or the socket where systemd starts one for each connection
 * (tracer_process.h).  gone: called whenever a process has ended. */
int tracers_new(sd_event *event, const char *program, const char *service, void (*gone)(void *context),
		void *context, struct tracers **ret);
/* What still runs is left to itself: without its socket it undoes everything and leaves. */
void tracers_free(struct tracers *tracers);
/* Processes that have not ended, those let go included. */
size_t tracers_running(const struct tracers *tracers);

struct tracer_owner {
	void *context;
	/* A message that passed wire_check(); the handler takes *fd by setting it to -1. */
	void (*message)(void *context, const struct wire_head *message, int *fd);
	/* It died, hung up or sent nonsense: `reason` is for a person.  Nothing follows; the owner must
	 * still let it go. */
	void (*lost)(void *context, const char *reason);
};

/* pid: of the target, for the log. */
int tracer_start(struct tracers *tracers, int pid, const struct tracer_owner *owner, struct tracer **ret);
/* Closes the socket; the process is killed when it has not left after TRACER_EXIT_GRACE_US. */
void tracer_let_go(struct tracer *tracer);          /* accepts NULL */
/* 0 or negative errno; fd is borrowed, -1: none. */
int tracer_send(struct tracer *tracer, const void *message, size_t len, int fd);
pid_t tracer_pid(const struct tracer *tracer);

/* The tracer of a child that is followed: it was forked by `parent`, and sock is its socket, taken over.  -EPERM: it
 * is no child process of the parent's. */
int tracer_adopt(struct tracers *tracers, const struct tracer *parent, int target_pid, pid_t pid, int sock,
		 const struct tracer_owner *owner, struct tracer **ret);
/* Has what a dead tracer has left in a process (0: in all) taken out, by a process of its own.  Of a tracer that
 * dies in tracing this is done by itself. */
void tracers_heal(struct tracers *tracers, int pid);

#endif
