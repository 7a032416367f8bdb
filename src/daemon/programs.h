/* Processes that run certain programs, found by looking at /proc each PROGRAMS_LOOK_US: for rules about programs, where no
 * service manager tells. */
#ifndef ALLOCWATCH_DAEMON_PROGRAMS_H
#define ALLOCWATCH_DAEMON_PROGRAMS_H

#include <systemd/sd-event.h>

#define PROGRAMS_LOOK_US (500ULL * 1000)

struct programs;

struct programs_owner {
	void *context;
	/* At each look, for each process that runs it. */
	void (*found)(void *context, const char *program, int pid);
};

/* 0 or negative errno. */
int programs_new(sd_event *event, const struct programs_owner *owner, struct programs **ret);
void programs_free(struct programs *programs);     /* accepts NULL */
/* program: as /proc/PID/exe names it.  0 or negative errno. */
int programs_follow(struct programs *programs, const char *program);
void programs_leave(struct programs *programs, const char *program);

#endif
