/* A client's Query, as model/statistics wants it. */
#ifndef ALLOCWATCH_DAEMON_QUERY_H
#define ALLOCWATCH_DAEMON_QUERY_H

#include "model/statistics.h"

#include <jansson.h>

struct query {
	struct statistics_query statistics;
	bool limited;              /* the client named a number of rows */
	size_t limit;              /* 0: all */
	bool tables;               /* rows are wanted as interned tables */
	struct filter *filters;
};

/* json: NULL, or an object.  0 (free with query_fini()); -EINVAL: *ret_reason, to be freed, says what is
 * wrong for a person, and *ret_parameter names a member of the wrong type or range, or is NULL;
 * -ENOMEM. */
int query_parse(const json_t *json, struct query *ret, const char **ret_parameter, char **ret_reason);
/* Whether it can be answered of a snapshot with blocks only; of one that was parsed, or NULL. */
bool query_needs_blocks(const json_t *json);
void query_fini(struct query *query);

#endif
