/* The parameters of a call, checked once against the method's table, then simply taken. */
#ifndef ALLOCWATCH_DAEMON_PARAMS_H
#define ALLOCWATCH_DAEMON_PARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum param_type {
	PARAM_PID = 1,         /* 1 ... INT32_MAX */
	PARAM_COUNT,           /* 0 ... UINT32_MAX */
	PARAM_MS,              /* 0 ... 100 years */
	PARAM_NS,              /* the same */
	PARAM_BYTES,           /* 0 ... HISTORY_SIZE_MAX */
	PARAM_BOOL,
	PARAM_TEXT,
	PARAM_TEXTS,           /* at most PARAMETER_LIST_MAX */
	PARAM_OBJECT,
};

struct param {
	const char *name;      /* NULL ends a table */
	enum param_type type;
	bool optional;         /* absent or null */
};

/* NULL, or the name of the first parameter that is missing, of a wrong type or range, or unknown;
 * it belongs to `parameters` or the table. */
const char *params_check(const json_t *parameters, const struct param *table);

/* After params_check() only.  Optional ones that are not there read as `otherwise`. */
int param_pid(const json_t *parameters, const char *name, int otherwise);
uint32_t param_count(const json_t *parameters, const char *name, uint32_t otherwise);
/* Milliseconds, as nanoseconds. */
uint64_t param_ms(const json_t *parameters, const char *name);
uint64_t param_ns(const json_t *parameters, const char *name);
uint64_t param_bytes(const json_t *parameters, const char *name);
bool param_bool(const json_t *parameters, const char *name);
const char *param_text(const json_t *parameters, const char *name, const char *otherwise);

#endif
