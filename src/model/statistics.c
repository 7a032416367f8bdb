#include "model/statistics.h"

#include "model/grouping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const key_names[] = {
	[KEY_LINENO] = "lineno", [KEY_FILENAME] = "filename", [KEY_TRACEBACK] = "traceback",
	[KEY_FUNCTION] = "function", [KEY_DEFINITION] = "definition", [KEY_OBJECT] = "object", [KEY_THREAD] = "thread",
	[KEY_DOMAIN] = "domain",
};

const char *statistics_key_name(enum statistics_key key)
{
	return key_names[key];
}

int statistics_key_parse(const char *name, enum statistics_key *ret_key)
{
	for (size_t i = 0; i < sizeof(key_names) / sizeof(*key_names); i++) {
		if (strcmp(key_names[i], name) == 0) {
			*ret_key = (enum statistics_key)i;
			return 0;
		}
	}
	return -EINVAL;
}

struct statistics *statistics_new(const struct snapshot *snapshot, enum statistics_key key)
{
	struct statistics *statistics = calloc(1, sizeof(*statistics));

	if (!statistics)
		return NULL;
	statistics->strings = strtab_new();
	if (!statistics->strings) {
		free(statistics);
		return NULL;
	}
	statistics->key = key;
	statistics->exact = snapshot->exact;
	statistics->sample_bytes = snapshot->sample_bytes;
	statistics->unknown = snapshot->unknown;
	statistics->unnamed = !snapshot->symbolized;
	return statistics;
}

void statistics_free(struct statistics *statistics)
{
	if (!statistics)
		return;
	for (size_t i = 0; i < statistics->row_count; i++)
		free(statistics->rows[i].histogram);
	free(statistics->rows);
	free(statistics->frames);
	strtab_free(statistics->strings);
	free(statistics);
}

int statistics_make(const struct snapshot *snapshot, const struct statistics_query *query,
		    struct statistics **ret, const char **ret_reason)
{
	struct statistics *statistics = statistics_new(snapshot, query->key);
	struct grouping grouping;
	int r;

	if (!statistics)
		return -ENOMEM;
	r = grouping_init(&grouping, query, statistics->strings, ret_reason);
	if (r < 0)
		goto free_statistics;
	grouping.alone = true;
	r = grouping_add(&grouping, snapshot, query->traceback.limit, false, ret_reason);
	if (r == 0)
		r = grouping_take_first(&grouping, false, statistics);
	grouping_fini(&grouping);
	if (r < 0)
		goto free_statistics;
	*ret = statistics;
	return 0;

free_statistics:
	statistics_free(statistics);
	return r;
}
