/* Having what dead tracers have left in processes taken out, by processes that may do so. */
#ifndef ALLOCWATCH_DAEMON_HEALING_H
#define ALLOCWATCH_DAEMON_HEALING_H

#include <systemd/sd-event.h>

struct healings;

/* program: path of allocwatch-tracer, or service: the socket where systemd starts one; borrowed. */
int healings_new(sd_event *event, const char *program, const char *service, struct healings **ret);
/* What is under way goes on by itself. */
void healings_free(struct healings *healings);       /* accepts NULL */
/* While something is traced that may have to be healed: one process is ready for that (standby.h).  May be called often. */
void healings_prepare(struct healings *healings);
/* Nothing is traced any more. */
void healings_relax(struct healings *healings);
/* pid 0: of all processes; else of that one and others of its program.  What fails is tried again, then logged. */
void healings_begin(struct healings *healings, int pid);

#endif
