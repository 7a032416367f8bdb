#include "daemon/events_queue.h"

static const struct queued_event *item(const struct events_queue *queue, size_t i)
{
	return &queue->items[(queue->first + i) % EVENTS_QUEUED_MAX];
}

void events_queue_fini(struct events_queue *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		json_decref(item(queue, i)->body);
	queue->count = 0;
}

static bool has_room(const struct events_queue *queue, uid_t owner, bool shares)
{
	size_t of_owner = 0, sharing = 0;

	if (queue->count == EVENTS_QUEUED_MAX || !shares)
		return queue->count < EVENTS_QUEUED_MAX;
	for (size_t i = 0; i < queue->count; i++) {
		sharing += item(queue, i)->shares;
		of_owner += item(queue, i)->shares && item(queue, i)->owner == owner;
	}
	return of_owner < OWNER_SHARE(EVENTS_QUEUED_MAX) &&
	       sharing < EVENTS_QUEUED_MAX - OWNER_SHARE(EVENTS_QUEUED_MAX);
}

void events_queue_add(struct events_queue *queue, uid_t owner, bool shares, json_t *body)
{
	if (body && has_room(queue, owner, shares)) {
		size_t slot = (queue->first + queue->count++) % EVENTS_QUEUED_MAX;

		queue->items[slot] = (struct queued_event){ owner, shares, json_incref(body) };
	} else if (queue->missed++ == 0) {
		queue->missed_after = queue->count;
	}
}

bool events_queue_take(struct events_queue *queue, json_t **ret_body, uint64_t *ret_missed)
{
	*ret_body = NULL;
	*ret_missed = 0;
	if (queue->missed > 0 && queue->missed_after == 0) {
		*ret_missed = queue->missed;
		queue->missed = 0;
	} else if (queue->count > 0) {
		*ret_body = item(queue, 0)->body;
		queue->first = (queue->first + 1) % EVENTS_QUEUED_MAX;
		queue->count--;
		queue->missed_after -= queue->missed > 0;
	} else {
		return false;
	}
	return true;
}
