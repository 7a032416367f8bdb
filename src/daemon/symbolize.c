#include "daemon/symbolize.h"

#include "base/clock.h"
#include "base/fd.h"
#include "daemon/symbolize_cache.h"
#include "daemon/symbolize_files.h"
#include "daemon/symbolize_job.h"
#include "daemon/symbolize_queue.h"
#include "daemon/symbolizer.h"
#include "symbol/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SYMBOL_WIRE_LOCATIONS_MAX <= SYMBOLIZE_LOCATIONS_MAX, "an answer must fit");

#define IDLE_US 60000000ULL      /* then the process ends, and gives its memory back */

enum phase {
	IDLE,                    /* nothing has been asked */
	SEEKING,                 /* waiting for a file with the names of generated code; the process has nothing to do */
	STARTING,                /* waiting for READY */
	OPENING,                 /* waiting for OPENED */
	RESOLVING,               /* waiting for the rest of the ANSWERS */
};

struct symbolize {
	sd_event *event;
	char *program;
	struct symbolize_times times;
	struct symbolizer *process;
	struct symbolize_cache *cache;
	struct symbolize_files files;
	struct symbolize_queue queue;            /* the first one is worked on */
	sd_event_source *step_source, *idle_source;
	enum phase phase;
	uint32_t serial;
	uint32_t asked, answered;                /* of the current RESOLVE */
	uint64_t deaths;
	uint64_t user_key;                       /* for whom the process works */
	struct symbolize_opener opener;
	bool needs_file;                         /* the process waits for one */
	bool moved_on;                           /* something was settled in this turn */
	bool broken_off;                         /* it is ended, and its file is not to blame */
};

static int on_message(void *context, const void *data, size_t len);
static void on_end(void *context);

static const struct symbolizer_handler handler = { on_message, on_end };

/* Everything that goes on does so from the event loop, a step at a time. */
static void step_soon(struct symbolize *symbolize)
{
	symbolize->phase = IDLE;
	sd_event_source_set_enabled(symbolize->step_source, SD_EVENT_ONESHOT);
}

static struct symbolize_job *current_job(const struct symbolize *symbolize)
{
	return symbolize_queue_first(&symbolize->queue);
}

static struct symbolize_work *current_work(const struct symbolize *symbolize)
{
	struct symbolize_job *job = current_job(symbolize);

	return job ? symbolize_job_work(job) : NULL;
}

static int expect_answer(const struct symbolize *symbolize)
{
	return symbolizer_expect(symbolize->process, symbolize->times.silence_ms * 1000);
}

static uint64_t deadline_in(uint64_t ms)
{
	return clock_monotonic_ns() + ms * NSEC_PER_MSEC;
}

static bool turn_is_over(const struct symbolize *symbolize, uint64_t after_ms)
{
	return symbolize_queue_turn_ns(&symbolize->queue) > after_ms * NSEC_PER_MSEC;
}

/* --- asking --- */

static int ask_start(struct symbolize *symbolize)
{
	int r = symbolizer_start(symbolize->event, symbolize->program, &handler, symbolize,
				 &symbolize->process);

	if (r < 0)
		return r;
	symbolize->phase = STARTING;
	symbolize->user_key = current_job(symbolize)->user_key;
	return expect_answer(symbolize);
}

static int ask(struct symbolize *symbolize, enum phase phase, const struct symbol_wire_head *head,
	       int fd)
{
	int r = symbolizer_send(symbolize->process, head, head->length, fd);

	if (r < 0)
		return r;
	symbolize->phase = phase;
	return expect_answer(symbolize);
}

static int ask_open(struct symbolize *symbolize, const struct symbolize_work *work)
{
	struct symbol_wire_head head = { SYMBOL_WIRE_OPEN, ++symbolize->serial, 0, sizeof(head) };

	symbolize_files_take_slot(&symbolize->files, work->file);
	head.module = (uint32_t)work->file->slot;
	if (work->file->names)
		head.type = SYMBOL_WIRE_OPEN_NAMES;
	return ask(symbolize, OPENING, &head, work->fd);
}

static int ask_resolve(struct symbolize *symbolize, const struct symbolize_work *work)
{
	union {
		struct symbol_wire_resolve resolve;
		unsigned char space[sizeof(struct symbol_wire_resolve) +
				    SYMBOL_WIRE_QUERIES_MAX * sizeof(struct symbol_wire_query)];
	} message;
	struct symbol_wire_resolve *resolve = &message.resolve;
	size_t left = work->frames.count - work->answered;

	memset(resolve, 0, sizeof(*resolve));
	resolve->count = left < SYMBOL_WIRE_QUERIES_MAX ? (uint32_t)left : SYMBOL_WIRE_QUERIES_MAX;
	for (uint32_t i = 0; i < resolve->count; i++) {
		struct symbolize_key key = symbolize_work_key(current_job(symbolize), work,
							      work->answered + i);

		resolve->queries[i] = (struct symbol_wire_query){ key.address, key.is_call, 0 };
	}
	resolve->head = (struct symbol_wire_head){
		SYMBOL_WIRE_RESOLVE, ++symbolize->serial, (uint32_t)work->file->slot,
		(uint32_t)(sizeof(*resolve) + resolve->count * sizeof(resolve->queries[0])) };
	symbolize->asked = resolve->count;
	symbolize->answered = 0;
	return ask(symbolize, RESOLVING, &resolve->head, -1);
}

static void end_process(struct symbolize *symbolize);

static int ask_next(struct symbolize *symbolize, struct symbolize_work *work)
{
	if (symbolize->process && symbolize->user_key != current_job(symbolize)->user_key)
		end_process(symbolize);
	if (!symbolize->process)
		return ask_start(symbolize);
	if (work->deadline_ns == 0)
		work->deadline_ns = deadline_in(symbolize->times.module_ms);
	if (work->file->slot < 0)
		return ask_open(symbolize, work);
	return ask_resolve(symbolize, work);
}

/* --- the end of a job, of a process --- */

static void finish_first(struct symbolize *symbolize)
{
	struct symbolize_job *job = symbolize_queue_take_first(&symbolize->queue);
	struct snapshot *snapshot = snapshot_ref(job->snapshot);
	void (*done)(void *context, struct snapshot *snapshot, int result) = job->done;
	void *context = job->context;
	int result = job->result;

	symbolize_job_free(job);
	symbolize->moved_on = true;
	snapshot->symbolized = result == 0;
	if (current_job(symbolize))
		step_soon(symbolize);
	/* Last, since it may ask for another snapshot or free this object. */
	done(context, snapshot, result);
	snapshot_put(snapshot);
}

/* The whole job cannot go on: what is left of it stays unnamed. */
static void fail_first(struct symbolize *symbolize, int result)
{
	struct symbolize_job *job = current_job(symbolize);

	job->result = result;
	job->generated = NULL;
	job->current = job->work_count;
}

static void end_process(struct symbolize *symbolize)
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
	struct symbolize_work *work = current_work(symbolize);

	symbolize->deaths++;
	if (symbolize->phase == STARTING)
		fail_first(symbolize, -ECHILD);
	else if (symbolize->phase != SEEKING && work && symbolize->user_key == current_job(symbolize)->user_key)
		work->file->crashes++;
}

static void on_end(void *context)
{
	struct symbolize *symbolize = context;

	if (!symbolize->broken_off)
		blame(symbolize);
	/* Else the one whose time is over would be begun again at once, and broken off again. */
	symbolize->moved_on = true;
	symbolize->broken_off = false;
	end_process(symbolize);
	if (symbolize->phase != SEEKING)
		step_soon(symbolize);
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
	if (!current_job(symbolize))
		end_process(symbolize);
	return 0;
}

/* --- files with the names of generated code --- */

/* Asks for the next one; false when nothing more is to be waited for. */
static bool seek(struct symbolize *symbolize)
{
	struct symbolize_job *job = current_job(symbolize);
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
static void found(struct symbolize *symbolize, int fd)
{
	struct symbolize_job *job = current_job(symbolize);
	enum generated_kind kind = generated_place_kind(job->place);

	if (fd >= 0 && generated_take(job->generated, kind, fd))
		job->found |= 1u << kind;
	job->place = fd == -ETIMEDOUT ? GENERATED_PLACES : job->place + 1;
	symbolize->moved_on = true;
	step_soon(symbolize);
}

/* In the middle of a module the next turn would have to open it again. */
static uint64_t turn_ms(const struct symbolize *symbolize)
{
	const struct symbolize_work *work = current_work(symbolize);
	bool begun = work && work->deadline_ns > 0;

	return begun ? symbolize->times.long_turn_ms : symbolize->times.turn_ms;
}

/* Between two questions: who is next, and whether there is still time for it.  A process that has only been started, or has
 * only opened a file, would have to do the same again in each turn. */
static void keep_times(struct symbolize *symbolize)
{
	struct symbolize_job *job;

	if (symbolize->moved_on && turn_is_over(symbolize, turn_ms(symbolize))) {
		symbolize_queue_next_turn(&symbolize->queue);
		symbolize->moved_on = false;
	}
	job = current_job(symbolize);
	if (job->deadline_ns == 0)
		job->deadline_ns = deadline_in(symbolize->times.snapshot_ms);
	else if (clock_passed(job->deadline_ns))
		fail_first(symbolize, -ETIMEDOUT);
}

static int on_step(sd_event_source *source, void *userdata)
{
	struct symbolize *symbolize = userdata;
	struct symbolize_work *work;
	int r;

	(void)source;
	if (symbolize->phase != IDLE || !current_job(symbolize))
		return 0;
	keep_times(symbolize);
	if (seek(symbolize))
		return 0;
	work = current_work(symbolize);
	if (!work) {
		rest(symbolize);
		finish_first(symbolize);
		return 0;
	}
	sd_event_source_set_enabled(symbolize->idle_source, SD_EVENT_OFF);
	if (work->deadline_ns != 0 && clock_passed(work->deadline_ns)) {
		symbolize_work_drop(work);
		step_soon(symbolize);
		return 0;
	}
	r = ask_next(symbolize, work);
	if (r < 0 && symbolize->process) {
		on_end(symbolize);
	} else if (r < 0) {
		fail_first(symbolize, r);
		step_soon(symbolize);
	}
	return 0;
}

/* --- its answers --- */

/* In the middle of a question.  -ETIMEDOUT: the module is to blame; -ECANCELED: the process is ended for another
 * user's turn or at the end of the snapshot's time. */
static int may_go_on(struct symbolize *symbolize, const struct symbolize_work *work)
{
	if (clock_passed(work->deadline_ns))
		return -ETIMEDOUT;
	symbolize->broken_off = clock_passed(current_job(symbolize)->deadline_ns) ||
				turn_is_over(symbolize, symbolize->times.long_turn_ms);
	return symbolize->broken_off ? -ECANCELED : 0;
}

/* fd: taken over; or negative errno. */
static int send_file(struct symbolize *symbolize, int fd)
{
	const struct symbolize_work *work = current_work(symbolize);
	struct symbol_wire_file file = { .head = { SYMBOL_WIRE_FILE, symbolize->serial, (uint32_t)work->file->slot,
						   sizeof(file) }, .result = fd < 0 ? fd : 0 };
	int r = symbolizer_send(symbolize->process, &file, sizeof(file), fd);

	symbolize->needs_file = false;
	fd_close(&fd);
	return r < 0 ? r : expect_answer(symbolize);
}

static int take_opened(struct symbolize *symbolize, const struct symbol_wire_opened *opened,
		       struct symbolize_work *work)
{
	if (symbolize->phase != OPENING)
		return -EBADMSG;
	if (opened->result < 0) {
		/* No memory is its own trouble and may be over in a fresh process. */
		if (opened->result == -ENOMEM)
			return -ENOMEM;
		work->file->unreadable = true;
		symbolize->moved_on = true;
		symbolize_files_drop_slot(&symbolize->files, work->file);
	}
	step_soon(symbolize);
	return symbolizer_expect(symbolize->process, 0);
}

/* The process waits, and so does its deadline. */
static int take_need(struct symbolize *symbolize, const struct symbol_wire_need *need, const struct symbolize_work *work)
{
	int r;

	if ((symbolize->phase != OPENING && symbolize->phase != RESOLVING) || symbolize->needs_file)
		return -EBADMSG;
	r = may_go_on(symbolize, work);
	if (r < 0)
		return r;
	symbolize->needs_file = true;
	if (symbolize->opener.open && !work->mute) {
		symbolize->opener.open(symbolize->opener.context, &current_job(symbolize)->user, need->path, false);
		return symbolizer_expect(symbolize->process, 0);
	}
	return send_file(symbolize, -EACCES);
}

void symbolize_opened(struct symbolize *symbolize, int fd)
{
	struct symbolize_work *work = current_work(symbolize);

	if (symbolize->phase == SEEKING) {
		found(symbolize, fd);
		return;
	}
	if (!symbolize->needs_file) {
		fd_close(&fd);
		return;
	}
	if (fd == -ETIMEDOUT && work)
		work->mute = true;
	if (send_file(symbolize, fd) < 0)
		on_end(symbolize);
}

static void take_answer(struct symbolize *symbolize, struct symbolize_work *work,
			const struct symbol_wire_location *from, size_t count, const char *text)
{
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];
	struct symbolize_key key = symbolize_work_key(current_job(symbolize), work, work->answered);
	uint32_t frame = work->frames.items[work->answered++];

	for (size_t i = 0; i < count; i++)
		locations[i] = (struct symbolize_location){
			text + from[i].function, text + from[i].file, from[i].line,
			from[i].function_offset, i + 1 < count };
	if (symbolize_job_name(current_job(symbolize), frame, locations, count) == -ENOMEM)
		current_job(symbolize)->result = -ENOMEM;
	/* What the cache has no memory for will be asked again. */
	symbolize_cache_add(symbolize->cache, &key, locations, count);
}

static int take_answers(struct symbolize *symbolize, const struct symbol_wire_answers *answers,
			struct symbolize_work *work)
{
	const struct symbol_wire_location *location = symbol_wire_locations(answers);
	const uint32_t *counts = symbol_wire_counts(answers);

	if (symbolize->phase != RESOLVING || answers->first != symbolize->answered ||
	    answers->count > symbolize->asked - symbolize->answered)
		return -EBADMSG;
	for (uint32_t i = 0; i < answers->count; location += counts[i], i++)
		take_answer(symbolize, work, location, counts[i], symbol_wire_text(answers));
	symbolize->answered += answers->count;
	symbolize->moved_on = true;
	if (symbolize->answered < symbolize->asked)
		return may_go_on(symbolize, work);
	work->file->crashes = 0;
	step_soon(symbolize);
	return symbolizer_expect(symbolize->process, 0);
}

static int on_message(void *context, const void *data, size_t len)
{
	struct symbolize *symbolize = context;
	const struct symbol_wire_head *head = data;
	struct symbolize_work *work = current_work(symbolize);

	(void)len;
	if (head->type == SYMBOL_WIRE_READY && symbolize->phase == STARTING) {
		step_soon(symbolize);
		return symbolizer_expect(symbolize->process, 0);
	}
	if (!work || head->serial != symbolize->serial || work->file->slot < 0 ||
	    head->module != (uint32_t)work->file->slot)
		return -EBADMSG;
	if (head->type == SYMBOL_WIRE_NEED)
		return take_need(symbolize, data, work);
	if (symbolize->needs_file)
		return -EBADMSG;
	if (head->type == SYMBOL_WIRE_OPENED)
		return take_opened(symbolize, data, work);
	if (head->type == SYMBOL_WIRE_ANSWERS)
		return take_answers(symbolize, data, work);
	return -EBADMSG;
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
						     SYMBOLIZE_TURN_MS, SYMBOLIZE_LONG_TURN_MS };
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
	else if (current_job(symbolize) == job)
		step_soon(symbolize);
	return r;
}
