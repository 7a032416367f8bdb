/* The targets of fuzz_daemon, and the daemon that they are about: whole, but for the processes that it starts.
 *
 * A tracer and the symbolizer are part of the target here (stand_ins.c): what they are asked waits in a list until the
 * target has them answer. */
#ifndef ALLOCWATCH_TESTS_FUZZ_DAEMON_H
#define ALLOCWATCH_TESTS_FUZZ_DAEMON_H

#include "daemon/daemon.h"
#include "symbol/wire.h"
#include "tracer/wire.h"

#include <stddef.h>
#include <stdint.h>

void fuzz_socket_run(const uint8_t *data, size_t len);
uint8_t *fuzz_socket_restructure(const uint8_t *data, size_t len, size_t *ret_len);
void fuzz_messages_run(const uint8_t *data, size_t len);
void fuzz_names_run(const uint8_t *data, size_t len);
void fuzz_wire_run(const uint8_t *data, size_t len);

union wire_bytes {
	struct wire_head head;
	struct wire_attached attached;
	struct wire_failed failed;
	struct wire_module module;
	struct wire_status status;
	struct wire_blocks blocks;
	struct wire_misuses misuses;
	struct wire_detached detached;
};

#define HOST_PID 1               /* a process that is always there: the one that is traced */

/* --- the processes that it starts (stand_ins.c) --- */

/* A request to a tracer, in the order of their coming. */
struct asked {
	struct tracer *tracer;
	struct wire_head head;
	bool with_blocks;
};

/* The oldest one that was not answered; false: there is none. */
bool stand_in_next(struct asked *ret);
/* The only tracer, of HOST_PID; NULL: there is none now. */
struct tracer *stand_in_tracer(void);
/* What a tracer says, as daemon/tracer.c hands it over: false: it is malformed, and the tracer is lost. */
bool stand_in_say(struct tracer *tracer, void *message, size_t len, int fd);

/* A request to the symbolizer. */
struct named {
	struct symbol_wire_head head;
	uint32_t count;          /* addresses asked for */
};

bool stand_in_next_name(struct named *ret);
/* The same for it; head.serial and head.module are those of the last request when they are 0. */
bool stand_in_say_name(void *message, size_t len);
/* It was silent for too long.  False: there is none. */
bool stand_in_end_symbolizer(void);
/* It is started and has said nothing yet. */
bool stand_in_is_fresh(void);

/* --- the daemon (host.c) --- */

struct host {
	struct daemon *daemon;
	int client;              /* a connection to it */
	char *said;              /* what it said there */
	size_t said_len;
	unsigned replies, errors, refused_methods, refused_parameters;
	bool named;              /* a name of a function was in an answer */
};

/* With a session of HOST_PID, whose tracer has been asked to attach. */
void host_start(struct host *host);
void host_end(struct host *host);
/* Goes on until there is nothing to do but wait for somebody, who is `answer`: false: it has nothing to say. */
void host_settle(struct host *host, bool (*answer)(struct host *host));
void host_send(struct host *host, const void *data, size_t len);
/* Sends one call. */
void host_call(struct host *host, const char *call);

/* An image of a small heap of HOST_PID, as a sealed memfd. */
int host_image(bool with_blocks);
uint64_t host_start_time(void);

/* Answers as a tracer and a symbolizer do that mean no harm. */
bool host_answer_well(struct host *host);

#endif
