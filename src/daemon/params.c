#include "daemon/params.h"

#include "base/clock.h"
#include "daemon/limits.h"
#include "store/history.h"

#include <string.h>

static bool in_range(const json_t *value, json_int_t from, json_int_t to)
{
	return json_is_integer(value) && json_integer_value(value) >= from && json_integer_value(value) <= to;
}

static bool are_texts(const json_t *value)
{
	if (!json_is_array(value) || json_array_size(value) > PARAMETER_LIST_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(value); i++) {
		if (!json_is_string(json_array_get(value, i)))
			return false;
	}
	return true;
}

static bool is_of_type(const json_t *value, enum param_type type)
{
	switch (type) {
	case PARAM_PID:
		return in_range(value, 1, INT32_MAX);
	case PARAM_COUNT:
		return in_range(value, 0, UINT32_MAX);
	case PARAM_MS:
		return in_range(value, 0, AGE_MAX_MS);
	case PARAM_NS:
		return in_range(value, 0, AGE_MAX_MS * NSEC_PER_MSEC);
	case PARAM_BYTES:
		return in_range(value, 0, HISTORY_SIZE_MAX);
	case PARAM_BOOL:
		return json_is_boolean(value);
	case PARAM_TEXT:
		return json_is_string(value);
	case PARAM_TEXTS:
		return are_texts(value);
	case PARAM_OBJECT:
		return json_is_object(value);
	}
	return false;
}

static bool is_known(const char *name, const struct param *table)
{
	for (; table->name; table++) {
		if (strcmp(table->name, name) == 0)
			return true;
	}
	return false;
}

static const char *find_unknown(const json_t *parameters, const struct param *table)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)parameters, name, value) {
		if (!is_known(name, table))
			return name;
	}
	return NULL;
}

const char *params_check(const json_t *parameters, const struct param *table)
{
	const char *unknown = find_unknown(parameters, table);

	if (unknown)
		return unknown;
	for (const struct param *param = table; param->name; param++) {
		const json_t *value = json_object_get(parameters, param->name);

		if (!value || json_is_null(value)) {
			if (!param->optional)
				return param->name;
		} else if (!is_of_type(value, param->type)) {
			return param->name;
		}
	}
	return NULL;
}

int param_pid(const json_t *parameters, const char *name, int otherwise)
{
	const json_t *value = json_object_get(parameters, name);

	return json_is_integer(value) ? (int)json_integer_value(value) : otherwise;
}

uint32_t param_count(const json_t *parameters, const char *name, uint32_t otherwise)
{
	const json_t *value = json_object_get(parameters, name);

	return json_is_integer(value) ? (uint32_t)json_integer_value(value) : otherwise;
}

uint64_t param_ms(const json_t *parameters, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(parameters, name)) * NSEC_PER_MSEC;
}

uint64_t param_ns(const json_t *parameters, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(parameters, name));
}

uint64_t param_bytes(const json_t *parameters, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(parameters, name));
}

bool param_bool(const json_t *parameters, const char *name)
{
	return json_is_true(json_object_get(parameters, name));
}

const char *param_text(const json_t *parameters, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(parameters, name));

	return text ? text : otherwise;
}
