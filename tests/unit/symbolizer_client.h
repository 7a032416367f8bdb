/* A symbolizer process as a test talks to it: blocking, each wait with a deadline. */
#ifndef ALLOCWATCH_TESTS_SYMBOLIZER_CLIENT_H
#define ALLOCWATCH_TESTS_SYMBOLIZER_CLIENT_H

#include "symbol/wire.h"

#include <sys/types.h>

struct client {
	pid_t pid;
	int sock;
	uint32_t serial;
	uint64_t message[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
};

/* Starts the program with its standard error appended to the file "stderr", waits for READY. */
void client_start(struct client *client);
/* As above, by a shell command that ends in the program's path. */
void client_start_by(struct client *client, const char *command);
/* Closes the socket and waits for the end; the wait status, or -1 when it had to be killed. */
int client_stop(struct client *client);

/* The next message, checked; NULL at the end of the process.  -1 in *ret_hung after the deadline. */
const void *client_receive(struct client *client, int *ret_hung);
void client_send(struct client *client, const void *message, size_t len, int fd);
/* As OPEN and RESOLVE say; negative: the process died (-EPIPE) or hangs (-ETIMEDOUT). */
int client_open(struct client *client, uint32_t module, int fd);
int64_t client_resolve(struct client *client, uint32_t module, const uint64_t *addresses, size_t count,
		       void (*each)(void *context, size_t i, const char *function, const char *file,
				    uint32_t line),
		       void *context);

#endif
