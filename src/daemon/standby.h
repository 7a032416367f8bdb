/* A process that is ready to heal: started, linked and waiting ahead of time, since to start one takes as long as the healing.
 *
 * There is one at the most.  It is dispensable: one that has ended, or was stopped, is not taken, and whoever wanted it starts
 * a process as ever. */
#ifndef ALLOCWATCH_DAEMON_STANDBY_H
#define ALLOCWATCH_DAEMON_STANDBY_H

#include <sys/types.h>
#include <systemd/sd-event.h>

struct standby;

/* program: path of allocwatch-tracer; borrowed. */
int standby_new(sd_event *event, const char *program, struct standby **ret);
/* The process leaves by itself. */
void standby_free(struct standby *standby);          /* accepts NULL */
/* Starts one where there is none; after one that was not taken, STANDBY_PAUSE_NS later than that one.  That it cannot is no
 * failure. */
void standby_prepare(struct standby *standby);       /* accepts NULL */
/* There is nothing that could have to be healed. */
void standby_dismiss(struct standby *standby);       /* accepts NULL */
/* Has it heal process `pid` (0: all), and hands it over: its end is the caller's to wait for.  -ESRCH: there is none, or none
 * that would do it now. */
int standby_take(struct standby *standby, int pid, pid_t *ret_healer);   /* accepts NULL */

#endif
