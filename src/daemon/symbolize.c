#include "daemon/symbolize_private.h"

#include "base/clock.h"
#include "daemon/names_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_US 60000000ULL      /* then the process ends, and gives its memory back */

void symbolize_step_soon(struct symbolize *symbolize)
{
	symbolize->phase = IDLE;
	sd_event_source_set_enabled(symbolize->step_source, SD_EVENT_ONESHOT);
}

struct symbolize_job *symbolize_current_job(const struct symbolize *symbolize)
{
	return symbolize_queue_first(&symbolize->queue);
}

struct symbolize_work *symbolize_current_work(const struct symbolize *symbolize)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);

	return job ? symbolize_job_work(job) : NULL;
}

bool symbolize_turn_is_over(const struct symbolize *symbolize, uint64_t after_ms)
{
	return symbolize_queue_turn_ns(&symbolize->queue) > after_ms * NSEC_PER_MSEC;
}

/* --- the end of a job, of a process --- */

static void finish_first(struct symbolize *symbolize)
{
	struct symbolize_job *job = symbolize_queue_take_first(&symbolize->queue);
	struct snapshot *snapshot = snapshot_ref(job->snapshot);
	void (*done)(void *context, struct snapshot *snapshot, int result) = job->done;
	void *context = job->context;
	int result = job->result;
	bool is_partial = job->is_partial;

	symbolize_job_free(job);
	symbolize->moved_on = true;
	snapshot->symbolized = result == 0 && !is_partial;
	if (symbolize_current_job(symbolize))
		symbolize_step_soon(symbolize);
	else
		symbolize_look_through(symbolize);
	/* Last, since it may ask for another snapshot or free this object. */
	done(context, snapshot, result);
	snapshot_put(snapshot);
}

/* The whole job cannot go on: what is left of it stays unnamed. */
static void fail_first(struct symbolize *symbolize, int result)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);

	job->result = result;
	job->generated = NULL;
	symbolize_job_stop_waiting(job);
	job->current = job->work_count;
}

void symbolize_end_process(struct symbolize *symbolize)
{
	if (symbolize->needs_file)
		symbolize->opener.cancel(symbolize->opener.context);
	symbolize->needs_file = false;
	symbolizer_free(symbolize->process);
	symbolize->process = NULL;
	symbolize_files_drop_slots(&symbolize->files);
}

/* The file that was being asked about is to blame: one that kills the symbolizer twice is left
 * alone.  A process that died before it was asked anything cannot work at all; one that has worked for the user of the
 * turn before says nothing about this one's files. */
static void blame(struct symbolize *symbolize)
{
	struct symbolize_work *work = symbolize_current_work(symbolize);

	symbolize->deaths++;
	if (symbolize->phase == STARTING)
		fail_first(symbolize, symbolize->is_other_version ? -EPROTONOSUPPORT : -ECHILD);
	else if (symbolize->phase != SEEKING && work && symbolize->user_key == symbolize_current_job(symbolize)->user_key)
		work->file->crashes++;
}

void symbolize_on_end(void *context)
{
	struct symbolize *symbolize = context;

	if (!symbolize->broken_off)
		blame(symbolize);
	/* Else the one whose time is over would be begun again at once, and broken off again. */
	symbolize->moved_on = true;
	symbolize->broken_off = false;
	symbolize_end_process(symbolize);
	if (symbolize->phase != SEEKING)
		symbolize_step_soon(symbolize);
}

/* Whoever is hurried for others' sake is not to blame. */
void symbolize_on_silence(void *context)
{
	struct symbolize *symbolize = context;

	if (symbolize_is_asking(symbolize) && symbolize_is_hurried(symbolize)) {
		symbolize_note_slow(symbolize);
		symbolize->broken_off = true;
	}
	symbolize_on_end(symbolize);
}

static void rest(struct symbolize *symbolize)
{
	if (!symbolize->process)
		return;
	sd_event_source_set_time_relative(symbolize->idle_source, IDLE_US);
	sd_event_source_set_enabled(symbolize->idle_source, SD_EVENT_ONESHOT);
}

static int on_idle(sd_event_source *source, uint64_t at, void *userdata)
{
	struct symbolize *symbolize = userdata;

	(void)source, (void)at;
	if (!symbolize_current_job(symbolize))
		symbolize_end_process(symbolize);
	return 0;
}

/* --- files with the names of generated code --- */

/* Asks for the next one; false when nothing more is to be waited for. */
static bool seek(struct symbolize *symbolize)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);
	enum generated_kind kind;
	char path[SYMBOL_WIRE_PATH_MAX];
	int r = -ENOSPC;

	if (!job->generated)
		return false;
	while (symbolize->opener.open &&
	       (r = generated_place(job->generated, job->place, path, sizeof(path), &kind)) != -ENOSPC) {
		if (r == 0 && !(job->found & 1u << kind))
			break;
		job->place++;
	}
	if (r < 0) {
		if (symbolize_job_list_generated(job, &symbolize->files, symbolize->cache) < 0)
			job->result = -ENOMEM;
		return false;
	}
	symbolize->phase = SEEKING;
	symbolize->opener.open(symbolize->opener.context, &job->user, path, true);
	return true;
}

/* fd: taken over; or negative errno.  Whose file system does not answer is not asked for another one. */
void symbolize_found(struct symbolize *symbolize, int fd)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);
	enum generated_kind kind = generated_place_kind(job->place);

	if (fd >= 0 && generated_take(job->generated, kind, fd))
		job->found |= 1u << kind;
	job->place = fd == -ETIMEDOUT ? GENERATED_PLACES : job->place + 1;
	symbolize->moved_on = true;
	symbolize_step_soon(symbolize);
}

uint64_t symbolize_longest_turn_ms(const struct symbolize *symbolize)
{
	return symbolize_current_job(symbolize)->has_slow_turn ? symbolize->times.slow_turn_ms : symbolize->times.long_turn_ms;
}

/* In the middle of a module the next turn would have to open it again. */
static uint64_t turn_ms(const struct symbolize *symbolize)
{
	const struct symbolize_work *work = symbolize_current_work(symbolize);
	bool begun = work && work->deadline_ns > 0;

	return begun ? symbolize_longest_turn_ms(symbolize) : symbolize->times.turn_ms;
}

/* Between two questions: who is next, and whether there is still time for it.  A process that has only been started, or has
 * only opened a file, would have to do the same again in each turn. */
static void keep_times(struct symbolize *symbolize)
{
	struct symbolize_job *job;

	/* One that has waited for debug information. */
	symbolize_job_resume(symbolize_current_job(symbolize));
	if (symbolize->moved_on && symbolize_turn_is_over(symbolize, turn_ms(symbolize))) {
		symbolize_current_job(symbolize)->has_slow_turn = false;
		symbolize_queue_next_turn(&symbolize->queue);
		symbolize->moved_on = false;
	}
	job = symbolize_current_job(symbolize);
	if (job->deadline_ns == 0)
		job->deadline_ns = clock_in_ms(symbolize->times.snapshot_ms);
	else if (clock_passed(job->deadline_ns))
		fail_first(symbolize, -ETIMEDOUT);
}

static int on_step(sd_event_source *source, void *userdata)
{
	struct symbolize *symbolize = userdata;
	struct symbolize_work *work;
	int r;

	(void)source;
	if (symbolize->phase != IDLE || !symbolize_current_job(symbolize))
		return 0;
	keep_times(symbolize);
	if (seek(symbolize))
		return 0;
	work = symbolize_current_work(symbolize);
	if (!work) {
		rest(symbolize);
		if (!symbolize_set_aside(symbolize))
			finish_first(symbolize);
		return 0;
	}
	if (symbolize_let_others_first(symbolize, work)) {
		symbolize_step_soon(symbolize);
		return 0;
	}
	sd_event_source_set_enabled(symbolize->idle_source, SD_EVENT_OFF);
	if (work->deadline_ns != 0 && clock_passed(work->deadline_ns)) {
		symbolize_work_drop(work);
		symbolize_step_soon(symbolize);
		return 0;
	}
	r = symbolize_ask_next(symbolize, work);
	if (r < 0 && symbolize->process) {
		symbolize_on_end(symbolize);
	} else if (r < 0) {
		fail_first(symbolize, r);
		symbolize_step_soon(symbolize);
	}
	return 0;
}

/* --- the object --- */

int symbolize_new(sd_event *event, const char *program, struct symbolize **ret)
{
	struct symbolize *symbolize = calloc(1, sizeof(*symbolize));
	int r = -ENOMEM;

	if (!symbolize)
		return r;
	symbolize->event = sd_event_ref(event);
	symbolize_queue_init(&symbolize->queue);
	symbolize->times = (struct symbolize_times){ SYMBOLIZE_SILENCE_MS, SYMBOLIZE_MODULE_MS, SYMBOLIZE_SNAPSHOT_MS,
						     SYMBOLIZE_TURN_MS, SYMBOLIZE_LONG_TURN_MS, SYMBOLIZE_DEBUG_MS,
						     SYMBOLIZE_PUT_OFF_MS, SYMBOLIZE_SLOW_TURN_MS };
	symbolize->program = strdup(program);
	symbolize->cache = symbolize_cache_new(SYMBOLIZE_CACHE_MAX);
	if (!symbolize->program || !symbolize->cache)
		goto fail;
	r = sd_event_add_defer(event, &symbolize->step_source, on_step, symbolize);
	if (r >= 0)
		r = sd_event_source_set_enabled(symbolize->step_source, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(event, &symbolize->idle_source, CLOCK_MONOTONIC, 0, 0, on_idle,
				      symbolize);
	if (r >= 0)
		r = sd_event_source_set_enabled(symbolize->idle_source, SD_EVENT_OFF);
	if (r >= 0)
		r = symbolize_wait_init(symbolize);
	if (r < 0)
		goto fail;
	*ret = symbolize;
	return 0;
fail:
	symbolize_free(symbolize);
	return r;
}

void symbolize_free(struct symbolize *symbolize)
{
	if (!symbolize)
		return;
	symbolizer_free(symbolize->process);
	symbolize_queue_fini(&symbolize->queue);
	symbolize_wait_fini(symbolize);
	sd_event_source_disable_unref(symbolize->step_source);
	sd_event_source_disable_unref(symbolize->idle_source);
	symbolize_files_fini(&symbolize->files);
	symbolize_cache_free(symbolize->cache);
	free(symbolize->program);
	sd_event_unref(symbolize->event);
	free(symbolize);
}

void symbolize_set_times(struct symbolize *symbolize, const struct symbolize_times *times)
{
	symbolize->times = *times;
}

void symbolize_set_opener(struct symbolize *symbolize, const struct symbolize_opener *opener)
{
	symbolize->opener = *opener;
}

void symbolize_set_debug(struct symbolize *symbolize, const struct symbolize_debug *debug)
{
	symbolize->debug = *debug;
}

int symbolize_encode(const struct symbolize *symbolize, void **ret_data, size_t *ret_len)
{
	return names_file_encode(symbolize->cache, &symbolize->files, ret_data, ret_len);
}

int symbolize_decode(struct symbolize *symbolize, const void *data, size_t len)
{
	return names_file_decode(data, len, symbolize->cache, &symbolize->files);
}

uint64_t symbolize_named(const struct symbolize *symbolize)
{
	return symbolize->named;
}

uint64_t symbolize_deaths(const struct symbolize *symbolize)
{
	return symbolize->deaths;
}

pid_t symbolize_pid(const struct symbolize *symbolize)
{
	return symbolize->process ? symbolizer_pid(symbolize->process) : 0;
}

bool symbolize_is_asking(const struct symbolize *symbolize)
{
	return symbolize->phase == OPENING || symbolize->phase == RESOLVING;
}

int symbolize_snapshot(struct symbolize *symbolize, struct snapshot *snapshot, const int *fds,
		       size_t fd_count, const struct file_user *user, struct generated *generated,
		       void (*done)(void *context, struct snapshot *snapshot, int result),
		       void *context)
{
	bool was_shared = symbolize_queue_is_shared(&symbolize->queue);
	struct symbolize_job *job;
	int r = symbolize_job_new(snapshot, fds, fd_count, user, generated, &symbolize->files, symbolize->cache,
				  &job);

	if (r < 0)
		return r;
	job->done = done;
	job->context = context;
	r = symbolize_queue_add(&symbolize->queue, job);
	if (r < 0)
		symbolize_job_free(job);
	else if (symbolize_current_job(symbolize) == job)
		symbolize_step_soon(symbolize);
	else if (!was_shared && symbolize_is_asking(symbolize) && !symbolize->needs_file)
		symbolize_expect_answer(symbolize);     /* sooner, for there is another user now */
	return r;
}
