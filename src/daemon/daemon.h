/* The daemon as a whole: its parts, put together, run and taken apart. */
#ifndef ALLOCWATCH_DAEMON_DAEMON_H
#define ALLOCWATCH_DAEMON_DAEMON_H

#include "daemon/intake.h"
#include "daemon/allocators.h"
#include "daemon/limits.h"
#include "daemon/options.h"
#include "daemon/server.h"
#include "daemon/session.h"
#include "daemon/snapshots.h"
#include "daemon/tracer.h"
#include "daemon/watches.h"
#include "daemon/work.h"

#include <systemd/sd-event.h>

struct daemon {
	sd_event *event;
	char *address;                 /* of the socket: which daemon this is */
	struct limits limits;
	unsigned engine;               /* enum engine_kind: for who asks for none */
	unsigned ptrace;               /* enum ptrace_wish: likewise */
	unsigned ring_wait_ms;         /* likewise; 0: the default */
	unsigned ring_readers;         /* likewise; 0: as many as are needed */
	uint64_t sample_bytes;         /* likewise: one sample for so many; 0: all is recorded */
	struct allocators allocators;  /* which the configuration describes */
	uint64_t trend_bytes;          /* of the snapshots that trends are being made of, and of their sizes; atomic */
	bool serves_all;               /* root's, for all users: see permit.h */
	gid_t readers;                 /* members see what root has had traced: see permit.h */
	bool heals;                    /* looks for what dead tracers have left when it starts */
	struct events *events;         /* who has subscribed */
	struct work *work;
	struct symbolize *symbolize;
	struct broker *broker;
	struct names_keep *names_keep;
	struct debuginfo *debuginfo;   /* of other machines */
	struct intakes *intakes;
	struct snapshots *snapshots;
	struct tracers *tracers;
	struct sessions *sessions;
	struct watches *watches;
	struct alarms *alarms;
	struct lost *lost;             /* what tracers stored when a daemon before this one was gone */
	struct server *server;
	struct reload *reload;
	struct metrics *metrics;
	struct metrics_serve *metrics_serve;
	sd_event_source *status_timer, *idle_timer, *stop_timer, *stop_check;
	bool stopping, in_a_hurry;
};

/* Holds back the signals that the event loop will take, from before anybody can find the daemon by its socket.  0 or
 * negative errno. */
int daemon_hold_signals(void);
/* Takes over listen_fd, and metrics_fd (-1: none); options are the daemon's own as long as it lives, and are changed by a reload.  0 or negative errno;
 * what failed was logged. */
int daemon_new(struct options *options, int listen_fd, int metrics_fd, const char *address, struct daemon **ret);
void daemon_free(struct daemon *daemon);               /* accepts NULL */
/* Until SIGTERM, SIGINT or idleness: 0; 1: not all is done, and it must not be waited for; or a negative
 * errno that was logged. */
int daemon_run(struct daemon *daemon);
/* Other limits than it was made with: what is there stays, and what is new keeps to them. */
void daemon_set_limits(struct daemon *daemon, const struct limits *limits);
/* Takes the rules over: frames are hidden by them from now on, also of snapshots that are there.  Allocators are for what is
 * attached from now on. */
void daemon_set_described(struct daemon *daemon, struct described *described);

#endif
