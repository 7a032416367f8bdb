/* The user's private daemon: where its socket is, and how it comes to run. */
#ifndef ALLOCWATCH_CLI_SPAWN_H
#define ALLOCWATCH_CLI_SPAWN_H

#include "varlink/client.h"

#include <stdbool.h>

/* Where the private daemon's socket is: $XDG_RUNTIME_DIR/allocwatch.sock, else allocwatch-UID/
 * allocwatch.sock in the temporary folder.  The folder must be the user's own and closed to others;
 * it is made when it is missing and `make` is set.  0: *ret_path is to be freed.  Negative errno:
 * *ret_reason, to be freed, says what is wrong (NULL without memory). */
int spawn_socket_path(bool make, char **ret_path, char **ret_reason);

/* Connects to the daemon at `path`, under a lock starting one when none answers.  0, or negative
 * errno with *ret_reason as above: among others the last words of the daemon. */
int spawn_daemon(const char *path, struct varlink_client **ret_client, char **ret_reason);

#endif
