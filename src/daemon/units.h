/* Main processes of services, as systemd tells them over the system bus: now, and whenever they change.
 *
 * Nothing waits for the bus: when it is not there, or goes away, it is tried again each UNITS_AGAIN_US.  So is a question that
 * has failed. */
#ifndef ALLOCWATCH_DAEMON_UNITS_H
#define ALLOCWATCH_DAEMON_UNITS_H

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define UNITS_AGAIN_US (1000ULL * 1000)

struct units;

struct units_owner {
	void *context;
	/* pid 0: it has none now.  Also when it has not changed. */
	void (*main_pid)(void *context, const char *unit, int pid);
	/* What is known of it first: NULL, or why it cannot be followed (now). */
	void (*looked_up)(void *context, const char *unit, const char *problem);
	/* systemd answers on this bus; NULL: it does not (any more), for this problem. */
	void (*bus)(void *context, sd_bus *bus, const char *problem);
};

/* 0 or negative errno. */
int units_new(sd_event *event, const struct units_owner *owner, struct units **ret);
void units_free(struct units *units);              /* accepts NULL */
/* name: of a service, with its suffix.  0 or negative errno; looked_up is called later. */
int units_follow(struct units *units, const char *name);
/* Has the bus connected to where no unit is followed yet; what comes of it is told by bus(), at once or later. */
void units_connect(struct units *units);
void units_leave(struct units *units, const char *name);

#endif
