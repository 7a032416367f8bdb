/* Where the process of a tracer comes from.
 *
 * It is a child of the daemon; or, where the daemon runs as a service that may not trace, a service of its own, which
 * systemd starts for each connection to a socket, with that connection as descriptor 3. */
#ifndef ALLOCWATCH_DAEMON_TRACER_PROCESS_H
#define ALLOCWATCH_DAEMON_TRACER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* sock (borrowed) becomes its descriptor 3; -1: it has none.  0 or negative errno. */
int tracer_process_spawn(const char *program, char *const *argv, int sock, pid_t *ret_pid);
/* The connection of one that systemd starts, nonblocking.  Which process that is shows when it says something.  0 or
 * negative errno. */
int tracer_process_connect(const char *path, int *ret_sock);
/* Who has sent what lies in such a connection first, as the kernel knows it; once.  0; -EAGAIN: nothing has come yet;
 * -ECONNRESET: nothing will; -ESRCH: *ret_pid has ended since, and what it has sent is there to be read; or negative errno.
 * *ret_pidfd is the caller's. */
int tracer_process_meet(int sock, pid_t *ret_pid, int *ret_pidfd);
/* The type of the next message on it, of which nothing else is of interest.  0; -EAGAIN: none has come; -ECONNRESET: none will;
 * -EBADMSG: it is none of a tracer's, or negative errno. */
int tracer_process_hear(int sock, uint32_t *ret_type);

#endif
