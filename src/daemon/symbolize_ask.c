#include "daemon/symbolize_private.h"

#include "base/clock.h"

#include <string.h>

static const struct symbolizer_handler handler = { symbolize_on_message, symbolize_on_end, symbolize_on_silence };

int symbolize_expect_answer(const struct symbolize *symbolize)
{
	uint64_t silence_ms = symbolize->times.silence_ms;

	/* To start takes as long as the machine has much to do. */
	if (symbolize->phase != STARTING && symbolize_is_hurried(symbolize) &&
	    symbolize->times.long_turn_ms < silence_ms)
		silence_ms = symbolize->times.long_turn_ms;
	return symbolizer_expect(symbolize->process, silence_ms * 1000);
}

static int ask_start(struct symbolize *symbolize)
{
	int r = symbolizer_start(symbolize->event, symbolize->program, &handler, symbolize,
				 &symbolize->process);

	if (r < 0)
		return r;
	symbolize->phase = STARTING;
	symbolize->is_other_version = false;
	symbolize->user_key = symbolize_current_job(symbolize)->user_key;
	return symbolize_expect_answer(symbolize);
}

static int ask(struct symbolize *symbolize, enum symbolize_phase phase, const struct symbol_wire_head *head,
	       int fd)
{
	int r = symbolizer_send(symbolize->process, head, head->length, fd);

	if (r < 0)
		return r;
	symbolize->phase = phase;
	return symbolize_expect_answer(symbolize);
}

static int ask_open(struct symbolize *symbolize, const struct symbolize_work *work)
{
	struct symbol_wire_head head = { SYMBOL_WIRE_OPEN, ++symbolize->serial, 0, sizeof(head) };

	symbolize_files_drop_slot(&symbolize->files, work->file);
	symbolize_files_take_slot(&symbolize->files, work->file);
	work->file->lacks_debug = false;
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
		struct symbolize_key key = symbolize_work_key(symbolize_current_job(symbolize), work,
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

int symbolize_ask_next(struct symbolize *symbolize, struct symbolize_work *work)
{
	if (symbolize->process && symbolize->user_key != symbolize_current_job(symbolize)->user_key)
		symbolize_end_process(symbolize);
	if (!symbolize->process)
		return ask_start(symbolize);
	if (work->deadline_ns == 0)
		work->deadline_ns = work->left_ns > 0 ? clock_monotonic_ns() + work->left_ns :
				    clock_in_ms(symbolize->times.module_ms);
	work->left_ns = 0;
	if (work->file->slot < 0 || (work->file->lacks_debug && !work->is_partial))
		return ask_open(symbolize, work);
	return ask_resolve(symbolize, work);
}
