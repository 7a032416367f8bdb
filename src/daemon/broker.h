/* Opens files that belong to a process's objects (debug files, .dwo files) for the symbolizer, with the rights of a user:
 * by a tracer that has nothing else to do and becomes that user.  One file at a time. */
#ifndef ALLOCWATCH_DAEMON_BROKER_H
#define ALLOCWATCH_DAEMON_BROKER_H

#include "daemon/file_user.h"
#include "daemon/tracer.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

struct broker;

int broker_new(sd_event *event, struct tracers *tracers, struct broker **ret);
void broker_free(struct broker *broker);               /* accepts NULL; nobody is told anything any more */

/* names: any regular file in which a process tells names (generated.h); else an ELF file.
 * opened: told once, from the event loop: a descriptor, which is the receiver's, or negative errno; -ETIMEDOUT: who serves
 * the file system does not answer.  None may be under way. */
void broker_open(struct broker *broker, const struct file_user *user, const char *path, bool names,
		 void (*opened)(void *context, int fd), void *context);
/* It is of no interest any more: `opened` is not told. */
void broker_cancel(struct broker *broker);

#endif
