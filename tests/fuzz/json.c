#include "json.h"

#include "fuzz.h"

#include <string.h>

#define DEPTH_MAX 8

json_t *fuzz_pick_json(void)
{
	static const char *const values[] = {
		"1", "0", "-1", "2147483648", "4294967295", "9223372036854775807", "-9223372036854775808", "1e300", "true",
		"false", "null", "[]", "{}", "\"\"", "\"s1\"", "\"s2\"", "\"1:exit\"", "\"1\"", "\"1:n\"", "\"/x\"", "\"0x40\"",
		"\"lineno\"", "\"traceback\"", "\"thread\"", "\"churn\"", "\"abs\"", "\"+*.c:1@all\"", "\"-@domain=malloc\"",
		"\"[\"", "[\"s1\",\"s2\",\"s3\"]", "[\"*\",\"-[!a]*?\"]", "\"auto\"", "\"malloc,mmap\"", "[1]", "\"\\u0000\"",
		"\"\\ud83d\\ude00\"", "\"\\u001b[31m\\u009b\\u007f\\n\"", "\"\\\\xff\\\\x5c\"", "\"%s%n\"", "[[0,0]]", "[0,1,2,3,4,5,6,7,8]",
	};

	return json_loads(values[fuzz_pick(sizeof(values) / sizeof(values[0]))], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static json_t *step(const json_t *number)
{
	return json_integer((json_int_t)((uint64_t)json_integer_value(number) + fuzz_pick(3) - 1));
}

static void change_member(json_t *object, const char *key, json_t *value)
{
	if (fuzz_pick(4) == 0)
		json_object_del(object, key);
	else if (json_is_integer(value) && fuzz_pick(2))
		json_object_set_new(object, key, step(value));
	else
		json_object_set_new(object, key, fuzz_pick_json());
}

static void change_element(json_t *array, size_t i, json_t *value)
{
	switch (fuzz_pick(6)) {
	case 0:
		json_array_remove(array, i);
		break;
	case 1:
		json_array_insert_new(array, i, json_deep_copy(value));
		break;
	case 2:
		json_array_set_new(array, i, fuzz_pick_json());
		break;
	default:
		if (json_is_integer(value))
			json_array_set_new(array, i, step(value));
		break;
	}
}

static void change_within(json_t *json, unsigned depth)
{
	if (json_is_object(json) && json_object_size(json) > 0) {
		unsigned skip = fuzz_pick((unsigned)json_object_size(json));
		void *at = json_object_iter(json);

		while (skip-- > 0)
			at = json_object_iter_next(json, at);
		if (depth < DEPTH_MAX && json_object_iter_value(at) && fuzz_pick(5))
			change_within(json_object_iter_value(at), depth + 1);
		if (!json_is_object(json_object_iter_value(at)) && !json_is_array(json_object_iter_value(at)))
			change_member(json, json_object_iter_key(at), json_object_iter_value(at));
		else if (fuzz_pick(12) == 0)
			change_member(json, json_object_iter_key(at), json_object_iter_value(at));
	} else if (json_is_array(json) && json_array_size(json) > 0) {
		size_t i = fuzz_pick((unsigned)json_array_size(json));
		json_t *value = json_array_get(json, i);

		if (depth < DEPTH_MAX && fuzz_pick(5) && (json_is_object(value) || json_is_array(value)))
			change_within(value, depth + 1);
		else
			change_element(json, i, value);
	}
}

void fuzz_change_json(json_t *json)
{
	change_within(json, 0);
}

/* Where it is: [start, end), without its NUL. */
static void find_message(const uint8_t *data, size_t len, size_t skip, size_t *ret_start, size_t *ret_end)
{
	size_t at = skip < len ? skip : len;
	unsigned before = fuzz_pick(4);

	*ret_start = *ret_end = len;
	while (at < len) {
		const uint8_t *nul = memchr(data + at, '\0', len - at);

		*ret_start = at;
		*ret_end = nul ? (size_t)(nul - data) : len;
		if (before-- == 0)
			return;
		at = *ret_end + 1;
	}
}

uint8_t *fuzz_change_message(const uint8_t *data, size_t len, size_t skip, void (*change)(json_t *message),
			     const char *otherwise, size_t *ret_len)
{
	size_t start, end, size;
	uint8_t *copy;
	char *text;
	json_t *message;

	find_message(data, len, skip, &start, &end);
	message = json_loadb((const char *)data + start, end - start, JSON_ALLOW_NUL, NULL);
	if (!json_is_object(message)) {
		json_decref(message);
		message = json_loads(otherwise, 0, NULL);
	}
	for (unsigned i = 1 + fuzz_pick(3); i > 0; i--)
		change(message);
	text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	MUST(text);
	size = strlen(text) + 1;
	copy = malloc(len + size + 1);
	MUST(copy);
	memcpy(copy, data, start);
	memcpy(copy + start, text, size);
	*ret_len = start + size;
	if (end < len) {
		memcpy(copy + *ret_len, data + end + 1, len - end - 1);
		*ret_len += len - end - 1;
	}
	free(text);
	return copy;
}
