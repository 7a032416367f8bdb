/* Rules and history in the folder of the snapshots: read once, written after each change. */
#define _GNU_SOURCE              /* asprintf */
#include "daemon/watches_private.h"

#include "daemon/daemon.h"
#include "daemon/limits.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_FILE "history.sqlite"

struct saving {
	struct watches *watches;
	struct history history;
	int error;
	char *reason;
};

static int copy(const struct watches *watches, struct history *ret)
{
	const struct history *past = &watches->past;

	if (vec_reserve(&ret->rules, watches->rules.count) < 0 || vec_reserve(&ret->runs, past->runs.count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < watches->rules.count; i++)
		ret->rules.items[ret->rules.count++] = watches->rules.items[i]->is;
	if (past->runs.count > 0)
		memcpy(ret->runs.items, past->runs.items, past->runs.count * sizeof(*past->runs.items));
	ret->runs.count = past->runs.count;
	return 0;
}

static void run_save(void *context)
{
	struct saving *saving = context;

	saving->error = history_save(saving->watches->path, &saving->history, &saving->reason);
}

static void saving_free(struct saving *saving)
{
	history_fini(&saving->history);
	free(saving->reason);
	free(saving);
}

static int on_save_again(sd_event_source *source, uint64_t usec, void *context)
{
	(void)source;
	(void)usec;
	watches_save(context);
	return 0;
}

/* A rule that was taken back must not come again with the next daemon because a disk was full for a while.  The log says it
 * once. */
static void not_saved(struct watches *watches, const char *reason)
{
	if (!watches->unsaved)
		log_error("what is watched cannot be written to %s, and is tried again every %d s: %s", watches->path,
			  WATCH_SAVE_AGAIN_S, reason);
	watches->unsaved = true;
	if (watches->stopped)
		return;
	sd_event_source_set_time_relative(watches->save_again, WATCH_SAVE_AGAIN_S * 1000000ULL);
	sd_event_source_set_enabled(watches->save_again, SD_EVENT_ONESHOT);
}

static void saved(struct watches *watches)
{
	if (watches->unsaved)
		log_notice("what is watched is written to %s again", watches->path);
	watches->unsaved = false;
	sd_event_source_set_enabled(watches->save_again, SD_EVENT_OFF);
}

static void on_saved(void *context, bool ran)
{
	struct saving *saving = context;
	struct watches *watches = saving->watches;

	if (ran && saving->error < 0)
		not_saved(watches, saving->reason ? saving->reason : strerror(-saving->error));
	else if (ran)
		saved(watches);
	saving_free(saving);
	watches->saving = false;
	if (ran && watches->to_save)
		watches_save(watches);
}

/* One at a time, or an older state could be written last. */
void watches_save(struct watches *watches)
{
	struct saving *saving;

	if (!watches->path)
		return;
	watches->to_save = watches->saving;
	if (watches->saving)
		return;
	saving = calloc(1, sizeof(*saving));
	if (saving) {
		saving->watches = watches;
		if (copy(watches, &saving->history) == 0 &&
		    work_submit(watches->daemon->work, run_save, on_saved, saving) == 0) {
			watches->saving = true;
			return;
		}
		saving_free(saving);
	}
	not_saved(watches, "the daemon is out of memory, or has too much to do");
}

void watches_load(struct watches *watches)
{
	const char *folder = snapshots_folder(watches->daemon->snapshots);
	char *reason = NULL;
	int r;

	if (!folder)
		return;
	if (asprintf(&watches->path, "%s/" HISTORY_FILE, folder) < 0) {
		watches->path = NULL;
		return;
	}
	r = history_load(watches->path, &watches->past, &reason);
	if (r < 0 && r != -ENOENT) {
		log_error("what was watched cannot be read from %s, and what is watched is not remembered: %s", watches->path,
			  reason ? reason : strerror(-r));
		free(watches->path);
		watches->path = NULL;
	}
	free(reason);
}

int watches_prepare_saving(struct watches *watches)
{
	int r = sd_event_add_time_relative(watches->daemon->event, &watches->save_again, CLOCK_MONOTONIC, 0, 0, on_save_again,
					   watches);

	return r < 0 ? r : sd_event_source_set_enabled(watches->save_again, SD_EVENT_OFF);
}
