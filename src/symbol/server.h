/* Answers the daemon's requests on one socket until its end.  Everything hostile is parsed here:
 * call confine() first. */
#ifndef ALLOCWATCH_SYMBOL_SERVER_H
#define ALLOCWATCH_SYMBOL_SERVER_H

/* Returns 0 when the other side closed the socket, or negative errno; -EBADMSG: it sent garbage. */
int server_run(int sock, const char *debug_root);

#endif
