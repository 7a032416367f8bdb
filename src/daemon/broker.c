#include "daemon/broker.h"

#include "base/fd.h"
#include "daemon/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct broker {
	sd_event *event;
	struct tracers *tracers;
	struct tracer *tracer;         /* NULL: none runs */
	uint64_t user_key;             /* whose rights it has */
	uint32_t serial;
	void (*opened)(void *context, int fd);         /* NULL: nothing is asked */
	void *context;
	int result;                    /* told from the event loop when the tracer could not even be asked */
	sd_event_source *deadline, *idle, *failed;
};

static void let_go(struct broker *broker)
{
	tracer_let_go(broker->tracer);
	broker->tracer = NULL;
}

/* A file that was opened in vain is closed. */
static void tell(struct broker *broker, int fd)
{
	void (*opened)(void *context, int fd) = broker->opened;

	broker->opened = NULL;
	sd_event_source_set_enabled(broker->deadline, SD_EVENT_OFF);
	sd_event_source_set_enabled(broker->failed, SD_EVENT_OFF);
	sd_event_source_set_time_relative(broker->idle, BROKER_IDLE_US);
	sd_event_source_set_enabled(broker->idle, SD_EVENT_ONESHOT);
	if (opened)
		opened(broker->context, fd);
	else
		fd_close(&fd);
}

static void on_message(void *context, const struct wire_head *message, int *fd)
{
	const struct wire_opened *answer = (const struct wire_opened *)message;
	struct broker *broker = context;
	int taken = *fd;

	if (message->type != WIRE_OPENED || message->serial != broker->serial || (answer->result == 0) != (taken >= 0))
		return;
	*fd = -1;
	tell(broker, answer->result < 0 ? answer->result : taken);
}

static void on_lost(void *context, const char *reason)
{
	struct broker *broker = context;

	(void)reason;
	let_go(broker);
	if (broker->opened)
		tell(broker, -EIO);
}

/* It waits in the kernel; the next file is asked of another one. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *context)
{
	struct broker *broker = context;

	(void)source;
	(void)usec;
	let_go(broker);
	tell(broker, -ETIMEDOUT);
	return 0;
}

static int on_idle(sd_event_source *source, uint64_t usec, void *context)
{
	struct broker *broker = context;

	(void)source;
	(void)usec;
	if (!broker->opened)
		let_go(broker);
	return 0;
}

static int on_failed(sd_event_source *source, void *context)
{
	struct broker *broker = context;

	(void)source;
	tell(broker, broker->result);
	return 0;
}

/* 1: one that has to be started first; 0; or negative errno. */
static int start(struct broker *broker, const struct file_user *user)
{
	const struct tracer_owner owner = { broker, on_message, on_lost };
	uint64_t key = file_user_key(user);
	int r;

	if (broker->tracer && broker->user_key == key)
		return 0;
	let_go(broker);
	r = tracer_start(broker->tracers, user->pid, &owner, &broker->tracer);
	if (r < 0)
		return r;
	broker->user_key = key;
	return 1;
}

static int ask(struct broker *broker, const struct file_user *user, const char *path, bool names)
{
	struct wire_open message = { .head = { WIRE_OPEN, ++broker->serial, user->pid, sizeof(message) },
				     .identity = user->identity, .names = names };
	size_t len = strlen(path);
	int r;

	if (len >= sizeof(message.path))
		return -ENAMETOOLONG;
	memcpy(message.path, path, len + 1);
	r = start(broker, user);
	if (r < 0)
		return r;
	sd_event_source_set_time_relative(broker->deadline, r > 0 ? BROKER_START_US : BROKER_TIMEOUT_US);
	sd_event_source_set_enabled(broker->deadline, SD_EVENT_ONESHOT);
	return tracer_send(broker->tracer, &message, sizeof(message), -1);
}

void broker_open(struct broker *broker, const struct file_user *user, const char *path, bool names,
		 void (*opened)(void *context, int fd), void *context)
{
	broker->opened = opened;
	broker->context = context;
	broker->result = ask(broker, user, path, names);
	if (broker->result < 0)
		sd_event_source_set_enabled(broker->failed, SD_EVENT_ONESHOT);
}

void broker_cancel(struct broker *broker)
{
	/* What comes for it now has a serial that is no longer asked for. */
	++broker->serial;
	if (broker->opened) {
		broker->opened = NULL;
		tell(broker, -ECANCELED);
	}
}

int broker_new(sd_event *event, struct tracers *tracers, struct broker **ret)
{
	struct broker *broker = calloc(1, sizeof(*broker));
	int r;

	if (!broker)
		return -ENOMEM;
	broker->event = event;
	broker->tracers = tracers;
	r = sd_event_add_time_relative(event, &broker->deadline, CLOCK_MONOTONIC, 0, 0, on_deadline, broker);
	if (r >= 0)
		r = sd_event_source_set_enabled(broker->deadline, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &broker->idle, CLOCK_MONOTONIC, 0, 0, on_idle, broker);
	if (r >= 0)
		r = sd_event_source_set_enabled(broker->idle, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_defer(event, &broker->failed, on_failed, broker);
	if (r >= 0)
		r = sd_event_source_set_enabled(broker->failed, SD_EVENT_OFF);
	if (r < 0) {
		broker_free(broker);
		return r;
	}
	*ret = broker;
	return 0;
}

void broker_free(struct broker *broker)
{
	if (!broker)
		return;
	let_go(broker);
	sd_event_source_disable_unref(broker->deadline);
	sd_event_source_disable_unref(broker->idle);
	sd_event_source_disable_unref(broker->failed);
	free(broker);
}
