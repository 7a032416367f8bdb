/* Debug information that is on its way: the snapshot stands aside meanwhile, and is in nobody's way. */
#include "daemon/symbolize_private.h"

#include "base/clock.h"

#include <errno.h>

/* There was no memory to go on. */
#define AGAIN_MS 1000

int symbolize_debug_of(const struct symbolize *symbolize, const struct symbolize_job *job, const struct symbolize_work *work)
{
	if (!symbolize->debug.get || work->file->names || work->wanted_len == 0)
		return -ENOENT;
	return symbolize->debug.get(symbolize->debug.context, &job->user, work->wanted, work->wanted_len);
}

/* Whether something of it can be asked about now. */
static bool wake(const struct symbolize *symbolize, struct symbolize_job *job)
{
	bool woken = false;

	for (size_t i = 0; i < job->work_count; i++) {
		struct symbolize_work *work = &job->works[i];

		if (work->waits && (job->is_out_of_patience || symbolize_debug_of(symbolize, job, work) != -EINPROGRESS)) {
			work->waits = false;
			woken = true;
		}
	}
	if (woken)
		job->current = 0;
	return woken;
}

static void set_timer(struct symbolize *symbolize)
{
	uint64_t first_ns = UINT64_MAX;

	for (const struct symbolize_job *job = symbolize->waiting; job; job = job->next) {
		if (job->debug_deadline_ns < first_ns)
			first_ns = job->debug_deadline_ns;
	}
	sd_event_source_set_time(symbolize->wait_source, first_ns / NSEC_PER_USEC);
	sd_event_source_set_enabled(symbolize->wait_source, symbolize->waiting ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

bool symbolize_set_aside(struct symbolize *symbolize)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);

	if (!symbolize_job_waits(job))
		return false;
	if (wake(symbolize, job)) {
		symbolize_step_soon(symbolize);
		return true;
	}
	symbolize_queue_take_first(&symbolize->queue);
	symbolize_job_pause(job);
	if (job->debug_deadline_ns == 0)
		job->debug_deadline_ns = clock_in_ms(symbolize->times.debug_ms);
	job->next = symbolize->waiting;
	symbolize->waiting = job;
	symbolize->moved_on = true;
	set_timer(symbolize);
	if (symbolize_current_job(symbolize))
		symbolize_step_soon(symbolize);
	return true;
}

/* To the end of its user's line. */
static void take_back(struct symbolize *symbolize, struct symbolize_job **at)
{
	struct symbolize_job *job = *at, *next = job->next;

	if (symbolize_queue_add(&symbolize->queue, job) < 0) {
		job->next = next;
		job->debug_deadline_ns = clock_in_ms(AGAIN_MS);
		return;
	}
	*at = next;
	if (symbolize_current_job(symbolize) == job)
		symbolize_step_soon(symbolize);
}

static void look_through(struct symbolize *symbolize)
{
	struct symbolize_job *job, **at = &symbolize->waiting;

	while ((job = *at)) {
		job->is_out_of_patience |= clock_passed(job->debug_deadline_ns);
		if (wake(symbolize, job) || !symbolize_job_waits(job))
			take_back(symbolize, at);
		/* Else it is still there. */
		if (*at == job)
			at = &job->next;
	}
	set_timer(symbolize);
}

void symbolize_debug_arrived(struct symbolize *symbolize)
{
	look_through(symbolize);
}

static int on_time(sd_event_source *source, uint64_t at, void *context)
{
	(void)source, (void)at;
	look_through(context);
	return 0;
}

int symbolize_wait_init(struct symbolize *symbolize)
{
	int r = sd_event_add_time(symbolize->event, &symbolize->wait_source, CLOCK_MONOTONIC, 0, 0, on_time, symbolize);

	return r < 0 ? r : sd_event_source_set_enabled(symbolize->wait_source, SD_EVENT_OFF);
}

void symbolize_wait_fini(struct symbolize *symbolize)
{
	while (symbolize->waiting) {
		struct symbolize_job *job = symbolize->waiting;

		symbolize->waiting = job->next;
		symbolize_job_free(job);
	}
	sd_event_source_disable_unref(symbolize->wait_source);
}
