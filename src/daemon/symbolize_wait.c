/* Debug information that is on its way, or a turn that is long enough: the snapshot stands aside meanwhile, and is in nobody's
 * way. */
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
	bool woken = symbolize_wake_slow(symbolize, job);

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

static uint64_t earlier(uint64_t a_ns, uint64_t deadline_ns)
{
	return deadline_ns > 0 && deadline_ns < a_ns ? deadline_ns : a_ns;
}

static void set_timer(struct symbolize *symbolize)
{
	uint64_t first_ns = UINT64_MAX;

	for (const struct symbolize_job *job = symbolize->waiting; job; job = job->next)
		first_ns = earlier(earlier(first_ns, job->slow_deadline_ns), job->debug_deadline_ns);
	sd_event_source_set_time(symbolize->wait_source, first_ns / NSEC_PER_USEC);
	sd_event_source_set_enabled(symbolize->wait_source, symbolize->waiting ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static bool waits_for_debug(const struct symbolize_job *job)
{
	for (size_t i = 0; i < job->work_count; i++) {
		if (job->works[i].waits)
			return true;
	}
	return false;
}

/* The last, so that who has waited longest is the first to be looked at. */
static void append(struct symbolize_job **at, struct symbolize_job *job)
{
	while (*at)
		at = &(*at)->next;
	job->next = NULL;
	*at = job;
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
	job->has_slow_turn = false;
	if (job->debug_deadline_ns == 0 && waits_for_debug(job))
		job->debug_deadline_ns = clock_in_ms(symbolize->times.debug_ms);
	append(&symbolize->waiting, job);
	symbolize->moved_on = true;
	set_timer(symbolize);
	if (symbolize_current_job(symbolize))
		symbolize_step_soon(symbolize);
	else
		symbolize_look_through(symbolize);
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

void symbolize_look_through(struct symbolize *symbolize)
{
	struct symbolize_job *job, **at = &symbolize->waiting;

	while ((job = *at)) {
		if (job->debug_deadline_ns > 0 && clock_passed(job->debug_deadline_ns)) {
			job->is_out_of_patience = true;
			job->debug_deadline_ns = 0;
		}
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
	symbolize_look_through(symbolize);
}

static int on_time(sd_event_source *source, uint64_t at, void *context)
{
	(void)source, (void)at;
	symbolize_look_through(context);
	return 0;
}

int symbolize_wait_init(struct symbolize *symbolize)
{
	int r = sd_event_add_time(symbolize->event, &symbolize->wait_source, CLOCK_MONOTONIC, 0, 0, on_time, symbolize);

	/* Steps that follow one another at once, of snapshots whose names are known, would never let it come. */
	if (r >= 0)
		r = sd_event_source_set_priority(symbolize->wait_source, SD_EVENT_PRIORITY_IMPORTANT);
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
