/* A process that is ready to heal: started, linked and waiting ahead of time, since to start one takes as long as the healing.
 *
 * It is a child, or, where tracers are services, one of theirs that was told to stand by; it is none of the tracers that are
 * counted and watched.  There is one at the most.  It is dispensable: one that has ended, or was stopped, is not taken, and
 * whoever wanted it starts a process as ever. */
#ifndef ALLOCWATCH_DAEMON_STANDBY_H
#define ALLOCWATCH_DAEMON_STANDBY_H

#include <sys/types.h>
#include <systemd/sd-event.h>

struct standby;

/* One that was told to heal. */
struct standby_healer {
	pid_t pid;
	int sock, pidfd;             /* of a service, which answers there; else -1 */
};

/* program: path of allocwatch-tracer, or service: the socket where systemd starts one; borrowed.  0 or -ENOMEM. */
int standby_new(sd_event *event, const char *program, const char *service, struct standby **ret);
/* The process leaves by itself. */
void standby_free(struct standby *standby);          /* accepts NULL */
/* Starts one where there is none; after one that was not taken, STANDBY_PAUSE_NS later than that one, and
 * STANDBY_REFUSED_PAUSE_NS after a service that was never heard.  That it cannot is no failure. */
void standby_prepare(struct standby *standby);
/* There is nothing that could have to be healed. */
void standby_dismiss(struct standby *standby);
/* Has it heal process `pid` (0: all), and hands it over: its end is the caller's to wait for, and the descriptors are the
 * caller's.  -ESRCH: there is none, or none that would do it now. */
int standby_take(struct standby *standby, int pid, struct standby_healer *ret);

#endif
