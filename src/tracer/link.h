/* The tracer's line to the daemon.
 *
 * The ptrace thread sits in waitid and must neither block on a socket nor make extra system calls per event.
 * So a second thread does all reading and writing: it hands messages over in memory and, while one waits,
 * interrupts the ptrace thread's waitid with a signal, again and again until it is taken, since a signal that
 * comes just before waitid would be lost.  It also keeps time: ticks, and the daemon's end or silence, come
 * as messages too. */
#ifndef ALLOCWATCH_TRACER_LINK_H
#define ALLOCWATCH_TRACER_LINK_H

#include "tracer/wire.h"

#include <stdbool.h>
#include <sys/types.h>

#define LINK_TICK_MS 100
#define LINK_INBOX_MAX 256        /* messages; more are refused with FAILURE_LIMIT by the daemon's own limit */
#define LINK_OUTBOX_MAX 8192      /* messages; a daemon that reads nothing for so long is taken for dead */

/* Pseudo messages, beside enum wire_type. */
#define LINK_TICK 1000u
#define LINK_CLOSED 1001u         /* the daemon is gone */
#define LINK_TERMINATE 1002u      /* SIGTERM or SIGINT */
#define LINK_SILENT 1003u         /* the daemon has not answered for LINK_SILENT_TICKS */

/* Counted as often as this thread looked, so that a machine that stood still does not count. */
#define LINK_SILENT_TICKS 100

struct link;

struct link_message {
	struct link_message *next;
	uint32_t type;
	size_t length;
	int fd;                   /* -1: none; the taker's */
	/* As every message needs it, not only their head. */
	_Alignas(8) union {
		struct wire_head head;
		char bytes[WIRE_MESSAGE_MAX];
	} body;
};

/* Starts the thread.  Blocks SIGTERM and SIGINT in the caller and installs SIGUSR1. */
int link_new(int sock, struct link **ret_link);
/* In bytes, but for messages under way. */
size_t link_memory(struct link *link);
/* Sends what is queued (for at most a second) and ends the thread. */
void link_free(struct link *link);

/* In a forked process, which has no such thread: closes what belongs to it. */
void link_abandon(struct link *link);

/* One atomic load: is there a message to take? */
bool link_has_message(const struct link *link);
/* The next message, NULL: none.  With wait, blocks for one.  free() it. */
struct link_message *link_take(struct link *link, bool wait);
/* Queues a message; fd is closed once it is sent.  A message that cannot be queued is dropped and the
 * daemon taken for dead. */
void link_send(struct link *link, const void *message, size_t len, int fd);
/* The daemon's end of the socket is closed. */
bool link_is_closed(const struct link *link);
/* Tells the daemon that the ptrace thread is at work, and will say so again within patience_ms. */
#define LONG_STEP_MS 15000             /* parsing, planting */
void link_beat(struct link *link, pid_t target, uint32_t patience_ms);
/* Waits until all is handed to the socket, LINK_FLUSH_MS at most. */
#define LINK_FLUSH_MS 200
void link_flush(struct link *link);

#endif
