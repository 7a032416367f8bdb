/* What clients can ask: the table of methods, and who answers them. */
#ifndef ALLOCWATCH_DAEMON_REQUESTS_H
#define ALLOCWATCH_DAEMON_REQUESTS_H

#include "daemon/call.h"

/* Makes a call of a client's message and hands it to its method.  False: the message is no Varlink
 * call, and the connection of no use. */
bool requests_dispatch(struct daemon *daemon, struct conn *conn, const json_t *message);

/* The handlers: parameters are checked against their tables, the peer may ask.  Each ends the call. */
void handle_attach(struct call *call);
void handle_detach(struct call *call);
void handle_metrics(struct call *call);
void handle_wait_gone(struct call *call);
void handle_subscribe(struct call *call);
void handle_clear(struct call *call);
void handle_reset_peak(struct call *call);
void handle_list(struct call *call);
void handle_get_status(struct call *call);
void handle_take_snapshot(struct call *call);
void handle_list_snapshots(struct call *call);
void handle_remove_snapshots(struct call *call);
void handle_get_snapshot(struct call *call);
void handle_statistics(struct call *call);
void handle_compare(struct call *call);
void handle_trend(struct call *call);
void handle_find_block(struct call *call);
void handle_list_mismatches(struct call *call);
void handle_watch(struct call *call);
void handle_unwatch(struct call *call);
void handle_list_watches(struct call *call);
void handle_get_history(struct call *call);

#endif
