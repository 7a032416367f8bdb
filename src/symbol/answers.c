#include "symbol/answers.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Enough for one answer of SYMBOL_WIRE_LOCATIONS_MAX locations beside any text. */
#define TEXT_SPACE 49152
#define TABLE_SPACE (SYMBOL_WIRE_MESSAGE_MAX - TEXT_SPACE - sizeof(struct symbol_wire_answers))
#define RECENT_TEXTS 512

struct answers {
	struct symbol_wire_answers head;
	uint32_t counts[SYMBOL_WIRE_QUERIES_MAX];
	struct symbol_wire_location locations[TABLE_SPACE / sizeof(struct symbol_wire_location)];
	char text[TEXT_SPACE];
	/* Texts are interned by the module, so that the pointer tells which are in already. */
	struct recent_text { const char *text; uint32_t offset; } recent[RECENT_TEXTS];
	uint64_t message[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
};

struct answers *answers_new(void)
{
	return calloc(1, sizeof(struct answers));
}

void answers_free(struct answers *answers)
{
	free(answers);
}

void answers_begin(struct answers *answers, uint32_t serial, uint32_t module, uint32_t first)
{
	answers->head = (struct symbol_wire_answers){
		.head = { SYMBOL_WIRE_ANSWERS, serial, module, 0 },
		.first = first,
		.text_length = 1,        /* offset 0 is the empty text */
	};
	answers->text[0] = '\0';
	memset(answers->recent, 0, sizeof(answers->recent));
}

/* The text's offset in the message; 0 when there is none or no room. */
static uint32_t add_text(struct answers *answers, const char *text)
{
	struct recent_text *recent = &answers->recent[hash_u64((uintptr_t)text) % RECENT_TEXTS];
	size_t len;

	if (!text || !text[0])
		return 0;
	if (recent->text == text)
		return recent->offset;
	len = strlen(text) + 1;
	if (len > sizeof(answers->text) - answers->head.text_length)
		return 0;
	memcpy(answers->text + answers->head.text_length, text, len);
	*recent = (struct recent_text){ text, answers->head.text_length };
	answers->head.text_length += (uint32_t)len;
	return recent->offset;
}

static bool add_location(struct answers *answers, const struct symbol_location *location)
{
	struct symbol_wire_location *added =
		&answers->locations[answers->head.location_count++];

	added->function = add_text(answers, location->function);
	added->file = add_text(answers, location->file);
	added->line = added->file ? location->line : 0;
	added->function_offset = location->function_offset > UINT32_MAX ?
				 UINT32_MAX : (uint32_t)location->function_offset;
	added->inlined = location->inlined;
	return (added->function || !location->function || !location->function[0]) &&
	       (added->file || !location->file || !location->file[0]);
}

static bool has_table_room(const struct answers *answers, size_t count)
{
	return answers->head.count < SYMBOL_WIRE_QUERIES_MAX &&
	       (answers->head.count + 1) * sizeof(uint32_t) +
	       (answers->head.location_count + count) * sizeof(struct symbol_wire_location) <=
	       TABLE_SPACE;
}

bool answers_add(struct answers *answers, const struct symbol_location *locations, size_t count)
{
	struct symbol_wire_answers before = answers->head;
	bool fits = true;

	if (!has_table_room(answers, count)) {
		assert(before.count > 0);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		fits = add_location(answers, &locations[i]) && fits;
	if (!fits && before.count > 0) {
		/* The remembered texts past the end are not in the message: the caller begins anew. */
		answers->head = before;
		return false;
	}
	answers->counts[answers->head.count++] = (uint32_t)count;
	return true;
}

void answers_set_incomplete(struct answers *answers)
{
	answers->head.incomplete = 1;
}

uint32_t answers_count(const struct answers *answers)
{
	return answers->head.count;
}

static char *append(char *to, const void *data, size_t len)
{
	memcpy(to, data, len);
	return to + len;
}

const void *answers_finish(struct answers *answers, size_t *ret_len)
{
	struct symbol_wire_answers *head = &answers->head;
	size_t counts = head->count * sizeof(answers->counts[0]);
	size_t locations = head->location_count * sizeof(answers->locations[0]);
	char *at = (char *)answers->message;

	head->head.length = (uint32_t)(sizeof(*head) + counts + locations + head->text_length);
	at = append(at, head, sizeof(*head));
	at = append(at, answers->counts, counts);
	at = append(at, answers->locations, locations);
	append(at, answers->text, head->text_length);
	*ret_len = head->head.length;
	return answers->message;
}
