#include "daemon/symbolize_private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

_Static_assert(SYMBOL_WIRE_BUILD_ID_MAX == BUILD_ID_MAX, "a build-id must fit");
_Static_assert(SYMBOL_WIRE_LOCATIONS_MAX <= SYMBOLIZE_LOCATIONS_MAX, "an answer must fit");

/* In the middle of a question.  -ETIMEDOUT: the module is to blame; -ECANCELED: the process is ended for another
 * user's turn or at the end of the snapshot's time. */
static int may_go_on(struct symbolize *symbolize, const struct symbolize_work *work)
{
	if (clock_passed(work->deadline_ns))
		return -ETIMEDOUT;
	if (!clock_passed(symbolize_current_job(symbolize)->deadline_ns)) {
		if (!symbolize_turn_is_over(symbolize, symbolize_longest_turn_ms(symbolize)))
			return 0;
		/* What has been answered is kept; but to open it once more would come as far again. */
		if (symbolize->phase == OPENING)
			symbolize_note_slow(symbolize);
	}
	symbolize->broken_off = true;
	return -ECANCELED;
}

/* fd: taken over; or negative errno. */
static int send_file(struct symbolize *symbolize, int fd)
{
	const struct symbolize_work *work = symbolize_current_work(symbolize);
	struct symbol_wire_file file = { .head = { SYMBOL_WIRE_FILE, symbolize->serial, (uint32_t)work->file->slot,
						   sizeof(file) }, .result = fd < 0 ? fd : 0 };
	int r = symbolizer_send(symbolize->process, &file, sizeof(file), fd);

	symbolize->needs_file = false;
	fd_close(&fd);
	return r < 0 ? r : symbolize_expect_answer(symbolize);
}

static int take_opened(struct symbolize *symbolize, const struct symbol_wire_opened *opened,
		       struct symbolize_work *work)
{
	if (symbolize->phase != OPENING || (opened->result == -EINPROGRESS && !work->is_later))
		return -EBADMSG;
	if (opened->result == -EINPROGRESS) {
		work->waits = true;
		work->deadline_ns = 0;
		symbolize->moved_on = true;
		symbolize_files_drop_slot(&symbolize->files, work->file);
	} else if (opened->result < 0) {
		/* No memory is its own trouble and may be over in a fresh process. */
		if (opened->result == -ENOMEM)
			return -ENOMEM;
		work->file->unreadable = true;
		symbolize->moved_on = true;
		symbolize_files_drop_slot(&symbolize->files, work->file);
	} else {
		work->file->has_debug = opened->sources & SYMBOL_FROM_DWARF;
	}
	symbolize_step_soon(symbolize);
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
		symbolize->opener.open(symbolize->opener.context, &symbolize_current_job(symbolize)->user, need->path, false);
		return symbolizer_expect(symbolize->process, 0);
	}
	return send_file(symbolize, -EACCES);
}

/* Its own build-id the tracer has told; the other one a file of anybody's says. */
static int note_wanted(struct symbolize_work *work, const struct symbol_wire_need_debug *need)
{
	if (need->build_id_len == 0) {
		work->wanted_len = work->file->build_id_len;
		memcpy(work->wanted, work->file->build_id, work->wanted_len);
		return 0;
	}
	if (work->shared_len == 0) {
		work->shared_len = need->build_id_len;
		memcpy(work->shared, need->build_id, work->shared_len);
	}
	if (work->shared_len != need->build_id_len || memcmp(work->shared, need->build_id, work->shared_len) != 0)
		return -EBADMSG;
	work->wanted_len = work->shared_len;
	memcpy(work->wanted, work->shared, work->wanted_len);
	return 0;
}

/* Answered at once: nobody else's names wait for a server. */
static int take_need_debug(struct symbolize *symbolize, const struct symbol_wire_need_debug *need,
			   struct symbolize_work *work)
{
	struct symbolize_job *job = symbolize_current_job(symbolize);
	int fd, r;

	if (symbolize->phase != OPENING || symbolize->needs_file)
		return -EBADMSG;
	r = may_go_on(symbolize, work);
	if (r == 0)
		r = note_wanted(work, need);
	if (r < 0)
		return r;
	fd = symbolize_debug_of(symbolize, job, work);
	work->is_later = fd == -EINPROGRESS && !job->is_out_of_patience;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	} else if (!work->is_later) {
		if (fd != -ENOENT)
			work->is_partial = work->file->lacks_debug = job->is_partial = true;
		fd = -ENOENT;
	}
	return send_file(symbolize, fd);
}

void symbolize_opened(struct symbolize *symbolize, int fd)
{
	struct symbolize_work *work = symbolize_current_work(symbolize);

	if (symbolize->phase == SEEKING) {
		symbolize_found(symbolize, fd);
		return;
	}
	if (!symbolize->needs_file) {
		fd_close(&fd);
		return;
	}
	if (fd == -ETIMEDOUT && work)
		work->mute = true;
	if (send_file(symbolize, fd) < 0)
		symbolize_on_end(symbolize);
}

static void take_answer(struct symbolize *symbolize, struct symbolize_work *work,
			const struct symbol_wire_location *from, size_t count, const char *text)
{
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];
	struct symbolize_key key = symbolize_work_key(symbolize_current_job(symbolize), work, work->answered);
	uint32_t frame = work->frames.items[work->answered++];

	for (size_t i = 0; i < count; i++)
		locations[i] = (struct symbolize_location){
			text + from[i].function, text + from[i].file, from[i].line,
			from[i].function_offset, i + 1 < count };
	if (symbolize_job_name(symbolize_current_job(symbolize), frame, locations, count) == -ENOMEM)
		symbolize_current_job(symbolize)->result = -ENOMEM;
	/* What the cache has no memory for will be asked again. */
	if (!work->is_partial && symbolize_cache_add(symbolize->cache, &key, locations, count) == 0)
		symbolize->named++;
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
	work->file->incomplete |= answers->incomplete;
	symbolize->answered += answers->count;
	symbolize->moved_on = true;
	if (symbolize->answered < symbolize->asked)
		return may_go_on(symbolize, work);
	work->file->crashes = 0;
	symbolize_step_soon(symbolize);
	return symbolizer_expect(symbolize->process, 0);
}

static int take_ready(struct symbolize *symbolize, const struct symbol_wire_head *ready)
{
	symbolize->is_other_version = ready->serial != SYMBOL_WIRE_VERSION;
	if (symbolize->is_other_version)
		return -EPROTONOSUPPORT;
	symbolize_step_soon(symbolize);
	return symbolizer_expect(symbolize->process, 0);
}

int symbolize_on_message(void *context, const void *data, size_t len)
{
	struct symbolize *symbolize = context;
	const struct symbol_wire_head *head = data;
	struct symbolize_work *work = symbolize_current_work(symbolize);

	(void)len;
	if (head->type == SYMBOL_WIRE_READY && symbolize->phase == STARTING)
		return take_ready(symbolize, head);
	if (!work || head->serial != symbolize->serial || work->file->slot < 0 ||
	    head->module != (uint32_t)work->file->slot)
		return -EBADMSG;
	if (head->type == SYMBOL_WIRE_NEED)
		return take_need(symbolize, data, work);
	if (head->type == SYMBOL_WIRE_NEED_DEBUG)
		return take_need_debug(symbolize, data, work);
	if (symbolize->needs_file)
		return -EBADMSG;
	if (head->type == SYMBOL_WIRE_OPENED)
		return take_opened(symbolize, data, work);
	if (head->type == SYMBOL_WIRE_ANSWERS)
		return take_answers(symbolize, data, work);
	return -EBADMSG;
}
