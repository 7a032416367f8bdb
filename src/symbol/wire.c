#include "symbol/wire.h"

#include <errno.h>
#include <string.h>

const uint32_t *symbol_wire_counts(const struct symbol_wire_answers *answers)
{
	return (const uint32_t *)(answers + 1);
}

const struct symbol_wire_location *symbol_wire_locations(const struct symbol_wire_answers *answers)
{
	return (const struct symbol_wire_location *)(symbol_wire_counts(answers) + answers->count);
}

const char *symbol_wire_text(const struct symbol_wire_answers *answers)
{
	return (const char *)(symbol_wire_locations(answers) + answers->location_count);
}

static int check_resolve(const struct symbol_wire_resolve *resolve, size_t len)
{
	if (len < sizeof(*resolve) || resolve->count == 0 ||
	    resolve->count > SYMBOL_WIRE_QUERIES_MAX ||
	    len != sizeof(*resolve) + resolve->count * sizeof(resolve->queries[0]))
		return -EBADMSG;
	for (uint32_t i = 0; i < resolve->count; i++) {
		if (resolve->queries[i].is_call > 1)
			return -EBADMSG;
	}
	return 0;
}

static int check_answers_size(const struct symbol_wire_answers *answers, size_t len)
{
	if (len < sizeof(*answers) || answers->count == 0 ||
	    answers->count > SYMBOL_WIRE_QUERIES_MAX || answers->first > SYMBOL_WIRE_QUERIES_MAX ||
	    answers->location_count > SYMBOL_WIRE_MESSAGE_MAX / sizeof(struct symbol_wire_location) ||
	    answers->text_length == 0 || answers->text_length > SYMBOL_WIRE_MESSAGE_MAX || answers->incomplete > 1)
		return -EBADMSG;
	return len == sizeof(*answers) + answers->count * sizeof(uint32_t) +
		      answers->location_count * sizeof(struct symbol_wire_location) +
		      answers->text_length ? 0 : -EBADMSG;
}

static int check_answers(const struct symbol_wire_answers *answers, size_t len)
{
	const struct symbol_wire_location *locations;
	const uint32_t *counts;
	const char *text;
	uint32_t sum = 0;

	if (check_answers_size(answers, len) < 0)
		return -EBADMSG;
	counts = symbol_wire_counts(answers);
	for (uint32_t i = 0; i < answers->count; i++) {
		if (counts[i] > SYMBOL_WIRE_LOCATIONS_MAX)
			return -EBADMSG;
		sum += counts[i];
	}
	text = symbol_wire_text(answers);
	if (sum != answers->location_count || text[0] || text[answers->text_length - 1])
		return -EBADMSG;
	locations = symbol_wire_locations(answers);
	for (uint32_t i = 0; i < answers->location_count; i++) {
		if (locations[i].function >= answers->text_length ||
		    locations[i].file >= answers->text_length || locations[i].inlined > 1)
			return -EBADMSG;
	}
	return 0;
}

static int check_need(const struct symbol_wire_need *need, size_t len)
{
	size_t space = len - sizeof(*need);

	if (space < 2 || space > SYMBOL_WIRE_PATH_MAX || need->path[0] != '/' ||
	    memchr(need->path, '\0', space) != need->path + space - 1)
		return -EBADMSG;
	return 0;
}

static int check_need_debug(const struct symbol_wire_need_debug *need, size_t len)
{
	return len == sizeof(*need) && need->build_id_len <= SYMBOL_WIRE_BUILD_ID_MAX ? 0 : -EBADMSG;
}

int symbol_wire_check(const void *data, size_t len, bool from_symbolizer)
{
	const struct symbol_wire_head *head = data;

	if (len < sizeof(*head) || len > SYMBOL_WIRE_MESSAGE_MAX || head->length != len ||
	    head->module >= SYMBOL_WIRE_MODULES_MAX ||
	    (head->type >= SYMBOL_WIRE_READY) != from_symbolizer)
		return -EBADMSG;
	switch (head->type) {
	case SYMBOL_WIRE_OPEN:
	case SYMBOL_WIRE_OPEN_NAMES:
	case SYMBOL_WIRE_CLOSE:
	case SYMBOL_WIRE_READY:
		return len == sizeof(*head) ? 0 : -EBADMSG;
	case SYMBOL_WIRE_RESOLVE:
		return check_resolve(data, len);
	case SYMBOL_WIRE_OPENED:
		return len == sizeof(struct symbol_wire_opened) ? 0 : -EBADMSG;
	case SYMBOL_WIRE_ANSWERS:
		return check_answers(data, len);
	case SYMBOL_WIRE_NEED:
		return check_need(data, len);
	case SYMBOL_WIRE_NEED_DEBUG:
		return check_need_debug(data, len);
	case SYMBOL_WIRE_FILE:
		return len == sizeof(struct symbol_wire_file) && ((const struct symbol_wire_file *)data)->result <= 0
			       ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}
