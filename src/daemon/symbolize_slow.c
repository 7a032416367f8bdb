/* Modules that take longer than a turn before anything is heard of them: they go behind all others, and have a longer turn then. */
#include "daemon/symbolize_private.h"

#include "base/clock.h"

bool symbolize_is_hurried(const struct symbolize *symbolize)
{
	return symbolize_queue_is_shared(&symbolize->queue) && !symbolize_current_job(symbolize)->has_slow_turn;
}

void symbolize_note_slow(struct symbolize *symbolize)
{
	struct symbolize_work *work = symbolize_current_work(symbolize);

	work->file->slow = true;
	symbolize_work_put_off(work);
}

bool symbolize_let_others_first(struct symbolize *symbolize, struct symbolize_work *work)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);

	if (!work->file->slow || work->file->slot >= 0 || job->has_slow_turn)
		return false;
	if (symbolize_queue_has_others(&symbolize->queue, job)) {
		symbolize_work_put_off(work);
		return true;
	}
	job->has_slow_turn = true;
	return false;
}

static bool has_put_off(const struct symbolize_job *job)
{
	for (size_t i = 0; i < job->work_count; i++) {
		if (job->works[i].is_put_off)
			return true;
	}
	return false;
}

bool symbolize_wake_slow(const struct symbolize *symbolize, struct symbolize_job *job)
{
	if (!has_put_off(job))
		return false;
	if (job->slow_deadline_ns == 0)
		job->slow_deadline_ns = clock_in_ms(symbolize->times.put_off_ms);
	if (symbolize_queue_has_others(&symbolize->queue, job) && !clock_passed(job->slow_deadline_ns))
		return false;
	for (size_t i = 0; i < job->work_count; i++)
		job->works[i].is_put_off = false;
	job->slow_deadline_ns = 0;
	job->has_slow_turn = true;
	return true;
}
