/* Varlink's framing: JSON objects, each ended by a NUL byte, in a stream of bytes.
 *
 * Both sides use it: the daemon on nonblocking sockets, the client on a blocking one.  No sockets
 * in here.  The peer is hostile: a message is at most VARLINK_MESSAGE_MAX bytes, NUL included,
 * and memory grows only with what has arrived. */
#ifndef ALLOCWATCH_VARLINK_FRAMING_H
#define ALLOCWATCH_VARLINK_FRAMING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define VARLINK_MESSAGE_MAX (1u << 20)

struct varlink_input {
	char *data;
	size_t start, end, space;    /* [start, end) is received and not consumed */
	size_t scanned;              /* no NUL before it */
};

void varlink_input_init(struct varlink_input *input);
void varlink_input_fini(struct varlink_input *input);

/* Where to receive to: *ret_space > 0 bytes, or NULL when there is no memory. */
char *varlink_input_space(struct varlink_input *input, size_t *ret_space);
void varlink_input_received(struct varlink_input *input, size_t len);
/* Some bytes of a message have come and its end has not. */
bool varlink_input_is_partial(const struct varlink_input *input);

/* 1: *ret_message is the next message (a new reference); 0: it has not arrived wholly; -EMSGSIZE;
 * -EPROTO: not a JSON object; -ENOMEM.  After an error the stream cannot be used further. */
int varlink_input_next(struct varlink_input *input, json_t **ret_message);

/* The message as bytes, the ending NUL counted in *ret_len; to be freed.  -EMSGSIZE, -ENOMEM. */
int varlink_encode(const json_t *message, char **ret_text, size_t *ret_len);

#endif
