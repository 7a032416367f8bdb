/* Long work (reading images, statistics, files) in a few threads, so that nobody waits for the event
 * loop.  A job runs in a thread; its `done` is called from the event loop.  Jobs touch only what
 * their context owns: snapshots are immutable, their references are counted by the event loop, and a job
 * sees the hidden rules that were in force when it was submitted. */
#ifndef ALLOCWATCH_DAEMON_WORK_H
#define ALLOCWATCH_DAEMON_WORK_H

#include <stdbool.h>
#include <systemd/sd-event.h>

struct work;

int work_new(sd_event *event, struct work **ret);
/* Waits for the jobs that run; the others are not run, and `done` is told so. */
void work_free(struct work *work);
/* -ENOSPC past WORK_QUEUE_MAX jobs, -ENOMEM; `done` is then not called. */
int work_submit(struct work *work, void (*run)(void *context), void (*done)(void *context, bool ran),
		void *context);
bool work_is_idle(const struct work *work);

#endif
