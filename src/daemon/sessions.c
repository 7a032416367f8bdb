/* The set of sessions, and how the last of them have ended. */
#include "daemon/session_private.h"

#include "base/vec.h"
#include "daemon/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int sessions_new(sd_event *event, struct tracers *tracers, size_t max, const struct sessions_owner *owner,
		 struct sessions **ret)
{
	struct sessions *sessions = calloc(1, sizeof(*sessions));

	if (!sessions)
		return -ENOMEM;
	sessions->event = event;
	sessions->tracers = tracers;
	sessions->max = max;
	sessions->owner = *owner;
	*ret = sessions;
	return 0;
}

void sessions_set_max(struct sessions *sessions, size_t max)
{
	sessions->max = max;
}

void sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return;
	sessions->closing = true;
	while (sessions->list.count > 0)
		session_end(sessions->list.items[sessions->list.count - 1], -ECONNRESET);
	vec_fini(&sessions->list);
	free(sessions);
}

size_t sessions_count(const struct sessions *sessions)
{
	return sessions->list.count;
}

size_t sessions_live_count(const struct sessions *sessions)
{
	size_t count = 0;

	for (size_t i = 0; i < sessions->list.count; i++)
		count += sessions->list.items[i]->state != SESSION_LOST;
	return count;
}

struct session *sessions_get(const struct sessions *sessions, size_t i)
{
	return sessions->list.items[i];
}

struct session *sessions_find(const struct sessions *sessions, int pid)
{
	for (size_t i = 0; i < sessions->list.count; i++) {
		if (sessions->list.items[i]->pid == pid)
			return sessions->list.items[i];
	}
	return NULL;
}

int sessions_have_room(const struct sessions *sessions, uid_t owner)
{
	size_t owned = 0;

	if (sessions_live_count(sessions) >= sessions->max)
		return -ENOSPC;
	for (size_t i = 0; owner != geteuid() && i < sessions->list.count; i++)
		owned += sessions->list.items[i]->owner == owner && sessions->list.items[i]->state != SESSION_LOST;
	return owned > 0 && owned >= OWNER_SHARE(sessions->max) ? -EDQUOT : 0;
}

void sessions_remove(struct session *session)
{
	struct sessions *sessions = session->sessions;

	for (size_t i = 0; i < sessions->list.count; i++) {
		if (sessions->list.items[i] == session) {
			vec_remove_unordered(&sessions->list, i);
			return;
		}
	}
}

const struct ending *sessions_ending(const struct sessions *sessions, int pid)
{
	const struct session *session = sessions_find(sessions, pid);
	const struct ending *found = NULL;
	size_t count = sessions->ending_count < ENDINGS_MAX ? sessions->ending_count : ENDINGS_MAX;

	if (session && session->state == SESSION_ENDING)
		return &session->ending;
	for (size_t i = 0; i < count; i++) {
		size_t slot = (sessions->ending_count - 1 - i) % ENDINGS_MAX;

		if (sessions->endings[slot].pid == pid) {
			found = &sessions->endings[slot];
			break;
		}
	}
	return found;
}

void sessions_remember_ending(struct sessions *sessions, const struct ending *ending)
{
	sessions->endings[sessions->ending_count++ % ENDINGS_MAX] = *ending;
}
