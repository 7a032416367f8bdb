#include "daemon/events.h"

#include "base/clock.h"
#include "base/vec.h"
#include "daemon/events_queue.h"
#include "daemon/failures.h"
#include "daemon/permit.h"
#include "varlink/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What a subscriber may be interested in, and whether it is the last of its process. */
struct event {
	uid_t owner;
	int pid;                       /* 0: of no process */
	uint64_t start_time;
	bool last;
	json_t *body;                  /* NULL: there is no memory for it */
};

struct subscription {
	struct events *events;
	struct call *call;
	int pid;                       /* 0: all */
	uint64_t start_time;
	bool idle;                     /* the client has taken all that was sent */
	struct events_queue queue;
	bool over;                     /* its process is no longer traced, which is told after all of that: */
	json_t *last;
};

struct events {
	VEC_OF(struct subscription *) list;
};

int events_new(struct events **ret)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return -ENOMEM;
	*ret = events;
	return 0;
}

void events_free(struct events *events)
{
	if (!events)
		return;
	assert(events->list.count == 0);
	vec_fini(&events->list);
	free(events);
}

size_t events_subscribers(const struct events *events)
{
	return events->list.count;
}

/* --- one subscriber --- */

/* Gives the call back. */
static struct call *subscription_end(struct subscription *subscription)
{
	struct events *events = subscription->events;
	struct call *call = subscription->call;

	for (size_t i = 0; i < events->list.count; i++) {
		if (events->list.items[i] == subscription) {
			vec_remove_unordered(&events->list, i);
			break;
		}
	}
	events_queue_fini(&subscription->queue);
	json_decref(subscription->last);
	free(subscription);
	call->context = NULL;
	call->pull = NULL;
	call->abandoned = NULL;
	return call;
}

static void on_reader_gone(struct call *call)
{
	call_drop(subscription_end(call->context));
}

static json_t *body_new(const char *kind)
{
	return json_pack("{s:s, s:I}", "kind", kind, "time", (json_int_t)clock_realtime_ns());
}

static json_t *body_of_missed(uint64_t count)
{
	return json_pack("{s:s, s:I, s:I}", "kind", "missed", "time", (json_int_t)clock_realtime_ns(), "count",
			 (json_int_t)count);
}

/* The next one, whose reference is the caller's.  False: there is none. */
static bool take_next(struct subscription *subscription, json_t **ret_body, bool *ret_last)
{
	uint64_t missed;

	*ret_last = false;
	if (events_queue_take(&subscription->queue, ret_body, &missed)) {
		if (missed > 0)
			*ret_body = body_of_missed(missed);
	} else if (subscription->over) {
		*ret_body = subscription->last;
		subscription->last = NULL;
		*ret_last = true;
	} else {
		return false;
	}
	return true;
}

/* Called whenever the client has taken what there was. */
static void send_next(struct call *call)
{
	struct subscription *subscription = call->context;
	json_t *body, *reply;
	bool last;

	subscription->idle = !take_next(subscription, &body, &last);
	if (subscription->idle)
		return;
	reply = json_pack("{s:o}", "event", body);
	if (last)
		call_reply(subscription_end(subscription), reply);
	else if (!reply || call_reply_part(call, reply) < 0)
		fail_memory(subscription_end(subscription));
}

/* Whether events of this user must leave room for others. */
static bool shares(const struct subscription *subscription, uid_t owner)
{
	return subscription->pid == 0 && owner != geteuid() && owner != subscription->call->peer.uid;
}

static void offer(struct subscription *subscription, uid_t owner, json_t *body, bool last)
{
	if (last && subscription->pid != 0) {
		subscription->over = true;
		subscription->last = json_incref(body);
	} else {
		events_queue_add(&subscription->queue, owner, shares(subscription, owner), body);
	}
	if (subscription->idle)
		send_next(subscription->call);
}

static bool concerns(const struct subscription *subscription, const struct event *event)
{
	if (subscription->pid != 0 &&
	    (subscription->pid != event->pid || subscription->start_time != event->start_time || subscription->over))
		return false;
	return permit_sees(subscription->call, event->owner);
}

/* Takes over the body.  From the end: who is told the last one leaves the list. */
static void tell(struct events *events, const struct event *event)
{
	for (size_t i = events->list.count; i-- > 0;) {
		if (concerns(events->list.items[i], event))
			offer(events->list.items[i], event->owner, event->body, event->last);
	}
	json_decref(event->body);
}

int events_subscribe(struct events *events, struct call *call, const struct session *session)
{
	struct subscription *subscription = calloc(1, sizeof(*subscription)), **slot;
	json_t *body = body_new("subscribed");

	if (!subscription || !body || vec_reserve(&events->list, 1) < 0) {
		free(subscription);
		json_decref(body);
		return -ENOMEM;
	}
	slot = vec_push(&events->list);
	*slot = subscription;
	subscription->events = events;
	subscription->call = call;
	subscription->pid = session ? session_pid(session) : 0;
	subscription->start_time = session ? session_start_time(session) : 0;
	subscription->idle = true;
	call->context = subscription;
	call->pull = send_next;
	call->abandoned = on_reader_gone;
	offer(subscription, call->peer.uid, body, false);
	json_decref(body);
	return 0;
}

/* --- what happens --- */

static struct event event_of(const struct session *session, const char *kind)
{
	struct event event = { .owner = session_owner(session), .pid = session_pid(session),
			       .start_time = session_start_time(session), .body = body_new(kind) };

	json_object_set_new(event.body, "pid", json_integer(event.pid));
	json_object_set_new(event.body, "command", codec_bytes(session_command(session)));
	return event;
}

void events_attached(struct events *events, const struct session *session)
{
	struct event event;

	if (events->list.count == 0)
		return;
	event = event_of(session, "attached");
	tell(events, &event);
}

static const char *kind_of(const struct ending *ending)
{
	if (ending->error < 0)
		return "lost";
	return ending->exited ? "exited" : "detached";
}

void events_ended(struct events *events, const struct session *session, const struct ending *ending)
{
	struct event event;

	if (events->list.count == 0)
		return;
	event = event_of(session, kind_of(ending));
	event.last = true;
	if (ending->exited && ending->wait_status != -1)
		json_object_set_new(event.body, "exit_status", json_integer(ending->wait_status));
	if (ending->snapshot[0])
		json_object_set_new(event.body, "last_snapshot", json_string(ending->snapshot));
	if (ending->reason[0])
		json_object_set_new(event.body, "reason", codec_bytes(ending->reason));
	tell(events, &event);
}

void events_kept(struct events *events, const struct kept *kept)
{
	struct kept_facts facts = kept_facts(kept);
	struct event event = { .owner = kept_owner(kept), .pid = facts.pid, .start_time = facts.start_time };

	if (events->list.count == 0)
		return;
	event.body = body_new("snapshot");
	json_object_set_new(event.body, "pid", json_integer(event.pid));
	json_object_set_new(event.body, "snapshot", kept_info(kept));
	tell(events, &event);
}

void events_limit(struct events *events, uid_t owner, int pid, uint64_t start_time, const char *limit,
		  const char *message)
{
	struct event event = { .owner = owner, .pid = pid, .start_time = start_time };

	if (events->list.count == 0)
		return;
	event.body = body_new("limit");
	if (pid != 0)
		json_object_set_new(event.body, "pid", json_integer(pid));
	json_object_set_new(event.body, "limit", json_string(limit));
	json_object_set_new(event.body, "message", codec_bytes(message));
	tell(events, &event);
}
