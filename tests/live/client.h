/* The daemon's socket itself, for tests that ask more of it than the client does. */
#ifndef ALLOCWATCH_TESTS_CLIENT_H
#define ALLOCWATCH_TESTS_CLIENT_H

#include "varlink/client.h"

#include <jansson.h>

struct tool;

struct varlink_client *client_of(struct tool *tool);
/* Takes the parameters over.  The reply; NULL: it was refused by a limit, whose name and message are in *ret_limit when
 * asked for.  Fails at any other error. */
json_t *client_call(struct varlink_client *client, const char *method, json_t *parameters, const char **ret_limit);

#endif
