#include "varlink/framing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SPACE 4096
/* An idle connection gives back more than this. */
#define KEPT_SPACE 65536

void varlink_input_init(struct varlink_input *input)
{
	memset(input, 0, sizeof(*input));
}

void varlink_input_fini(struct varlink_input *input)
{
	free(input->data);
	varlink_input_init(input);
}

static void move_to_front(struct varlink_input *input)
{
	if (input->start == 0)
		return;
	memmove(input->data, input->data + input->start, input->end - input->start);
	input->end -= input->start;
	input->scanned -= input->start;
	input->start = 0;
}

char *varlink_input_space(struct varlink_input *input, size_t *ret_space)
{
	move_to_front(input);
	if (input->end == input->space) {
		size_t space = input->space ? input->space * 2 : FIRST_SPACE;
		char *grown = realloc(input->data, space);

		if (!grown)
			return NULL;
		input->data = grown;
		input->space = space;
	}
	*ret_space = input->space - input->end;
	return input->data + input->end;
}

void varlink_input_received(struct varlink_input *input, size_t len)
{
	input->end += len;
}

bool varlink_input_is_partial(const struct varlink_input *input)
{
	return input->end > input->start;
}

static void consume(struct varlink_input *input, size_t len)
{
	input->start += len;
	input->scanned = input->start;
	if (input->start == input->end && input->space > KEPT_SPACE)
		varlink_input_fini(input);
}

/* Numbers are integers and reals as jansson reads them; nesting is bounded by jansson (2048). */
static int parse(const char *text, size_t len, json_t **ret_message)
{
	json_error_t error;
	json_t *message = json_loadb(text, len, 0, &error);

	if (!message)
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EPROTO;
	if (!json_is_object(message)) {
		json_decref(message);
		return -EPROTO;
	}
	*ret_message = message;
	return 1;
}

int varlink_input_next(struct varlink_input *input, json_t **ret_message)
{
	const char *nul = NULL;
	size_t len;
	int r;

	if (input->scanned < input->end)
		nul = memchr(input->data + input->scanned, '\0', input->end - input->scanned);
	input->scanned = input->end;
	len = (nul ? (size_t)(nul - input->data) : input->end) - input->start;
	if (len >= VARLINK_MESSAGE_MAX)
		return -EMSGSIZE;
	if (!nul)
		return 0;
	r = parse(input->data + input->start, len, ret_message);
	if (r > 0)
		consume(input, len + 1);
	return r;
}

int varlink_encode(const json_t *message, char **ret_text, size_t *ret_len)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t len;

	if (!text)
		return -ENOMEM;
	len = strlen(text) + 1;
	if (len > VARLINK_MESSAGE_MAX) {
		free(text);
		return -EMSGSIZE;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}
