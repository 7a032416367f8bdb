/* The symbolizer process as the daemon sees it: started, spoken to, watched, killed.  Knows the
 * message boundaries, not what the messages mean. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZER_H
#define ALLOCWATCH_DAEMON_SYMBOLIZER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct symbolizer;

struct symbolizer_handler {
	/* A checked message, aligned for uint64_t, valid during the call.  A negative result means
	 * that it is out of place: `end` follows, as after garbage.  Must not free this object. */
	int (*message)(void *context, const void *data, size_t len);
	/* It died, or sent garbage; it was silent past the deadline.  The last call: free it here. */
	void (*end)(void *context);
	void (*silent)(void *context);
};

/* Starts `program` with its end of the socket as descriptor 3 and nothing else of ours.
 * Negative errno when that fails. */
int symbolizer_start(sd_event *event, const char *program, const struct symbolizer_handler *handler,
		     void *context, struct symbolizer **ret);
/* Kills it; accepts NULL. */
void symbolizer_free(struct symbolizer *symbolizer);

/* fd: passed along, or -1.  Negative errno; -EAGAIN: it does not read. */
int symbolizer_send(struct symbolizer *symbolizer, const void *message, size_t len, int fd);
/* From now on it must send something at least so often; 0: nothing is expected. */
int symbolizer_expect(struct symbolizer *symbolizer, uint64_t interval_us);
pid_t symbolizer_pid(const struct symbolizer *symbolizer);

#endif
