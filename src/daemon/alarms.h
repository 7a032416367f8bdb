/* Snapshots before it is too late: of traced processes that are about to run out of memory, by themselves.
 *
 * Each is looked at every ALARMS_LOOK_US, and at once when the kernel tells of its cgroup; model/alarm.h says when that
 * makes a snapshot.  Limits are the rule's, when a process is under one, or else the configuration's. */
#ifndef ALLOCWATCH_DAEMON_ALARMS_H
#define ALLOCWATCH_DAEMON_ALARMS_H

#include "daemon/session.h"

struct alarms;
struct daemon;
struct options;

/* What the configuration says of it. */
struct alarm_options {
	uint64_t rss_bytes, slope_bytes;
	int64_t slope_s, least_s;
	uint64_t stalled_us;
	bool events;
	unsigned whose;                /* ALARMS_OF_... */
};
enum { ALARMS_OF_WATCHED, ALARMS_OF_ALL };

/* 0 or negative errno. */
int alarms_new(struct daemon *daemon, const struct alarm_options *options, struct alarms **ret);
void alarms_free(struct alarms *alarms);               /* accepts NULL */
void alarms_set_options(struct alarms *alarms, const struct alarm_options *options);
void alarms_attached(struct alarms *alarms, const struct session *session);
void alarms_ended(struct alarms *alarms, const struct session *session);

#endif
