/* The daemon's socket itself, for tests that ask more of it than the client does. */
#ifndef ALLOCWATCH_TESTS_CLIENT_H
#define ALLOCWATCH_TESTS_CLIENT_H

#include "varlink/client.h"

#include <jansson.h>
#include <sys/types.h>

struct tool;

struct varlink_client *client_of(struct tool *tool);
/* As another user, who is so by the kernel's word; only root can. */
struct varlink_client *client_of_user(struct tool *tool, uid_t uid);
/* Calls Subscribe, for all (pid 0) or one process, and waits until it is in force. */
void client_subscribe(struct varlink_client *client, pid_t pid);
/* The next event, which must come. */
json_t *client_event(struct varlink_client *client);
/* Takes the parameters over.  The reply; NULL: it was refused by a limit, whose name and message are in *ret_limit when
 * asked for.  Fails at any other error. */
json_t *client_call(struct varlink_client *client, const char *method, json_t *parameters, const char **ret_limit);

#endif
