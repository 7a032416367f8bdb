/* Messages of fixed size, as bytes: what passes the checks of either side can be used as it is. */
#include "daemon.h"
#include "fuzz.h"

#include <string.h>

static bool ends(const char *text, size_t space)
{
	return strnlen(text, space) < space;
}

static void check_from_tracer(const union wire_bytes *m)
{
	switch (m->head.type) {
	case WIRE_ATTACHED:
	case WIRE_EXECED:
		MUST(ends(m->attached.exe, WIRE_PATH_MAX) && ends(m->attached.command, WIRE_TEXT_MAX));
		MUST(ends(m->attached.warning, sizeof(m->attached.warning)));
		break;
	case WIRE_FAILED:
	case WIRE_LOG:
		MUST(ends(m->failed.text, WIRE_TEXT_MAX));
		break;
	case WIRE_MODULE:
		MUST(ends(m->module.path, WIRE_PATH_MAX) && m->module.build_id_len <= BUILD_ID_MAX);
		break;
	case WIRE_STATUS_REPLY:
		MUST(ends(m->status.crash_unsafe_reason, sizeof(m->status.crash_unsafe_reason)));
		break;
	case WIRE_BLOCKS:
		MUST(m->blocks.count <= WIRE_BLOCKS_MAX);
		break;
	case WIRE_MISUSES_REPLY:
		MUST(m->misuses.count <= MISUSES_MAX);
		break;
	case WIRE_DETACHED:
		MUST(ends(m->detached.text, WIRE_TEXT_MAX));
		break;
	default:
		break;
	}
}

static void check_from_symbolizer(const void *message)
{
	const struct symbol_wire_answers *answers = message;
	const struct symbol_wire_location *locations;
	const char *text;

	if (answers->head.type != SYMBOL_WIRE_ANSWERS)
		return;
	locations = symbol_wire_locations(answers);
	text = symbol_wire_text(answers);
	for (uint32_t i = 0; i < answers->location_count; i++) {
		MUST(ends(text + locations[i].function, answers->text_length - locations[i].function));
		MUST(ends(text + locations[i].file, answers->text_length - locations[i].file));
	}
}

/* In memory that ends where the message does. */
void fuzz_wire_run(const uint8_t *data, size_t len)
{
	union wire_bytes *copy = malloc(len ? len : 1);

	MUST(copy);
	memcpy(copy, data, len);
	if (wire_check(copy, len, 0) == 0)
		fuzz_reached(1);
	if (wire_check(copy, len, 1) == 0) {
		fuzz_reached(0);
		check_from_tracer(copy);
	}
	if (symbol_wire_check(copy, len, false) == 0)
		fuzz_reached(2);
	if (symbol_wire_check(copy, len, true) == 0) {
		fuzz_reached(3);
		check_from_symbolizer(copy);
	}
	free(copy);
}
