#include "cli/answer.h"

#include "base/clock.h"
#include "cli/table.h"
#include "export/text.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

uint64_t answer_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

uint64_t answer_duration_ns(const json_t *object, const char *key)
{
	double ns = json_number_value(json_object_get(object, key)) * (double)NSEC_PER_SEC;

	if (!(ns > 0))
		return 0;
	return ns < (double)UINT64_MAX ? (uint64_t)ns : UINT64_MAX;
}

const char *answer_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

bool answer_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

const char *answer_time(char text[ANSWER_TIME_MAX], uint64_t ns)
{
	time_t seconds = (time_t)(ns / NSEC_PER_SEC);
	struct tm tm;

	if (ns == 0 || !localtime_r(&seconds, &tm) ||
	    strftime(text, ANSWER_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(text, ANSWER_TIME_MAX, "-");
	return text;
}

static int add_snapshot(struct table *table, const json_t *info)
{
	char time[ANSWER_TIME_MAX], size[TEXT_SIZE_MAX];
	const char *name = answer_text(info, "name");
	const char *id = answer_text(info, "id");

	if (table_cell(table, "%s", *id ? id : "-") < 0 ||
	    table_cell(table, "%" PRIu64, answer_number(info, "pid")) < 0 ||
	    table_cell(table, "%s", *name ? name : "-") < 0 ||
	    table_cell(table, "%s", answer_time(time, answer_number(info, "time"))) < 0 ||
	    table_cell(table, "%s", text_size(size, (double)answer_number(info, "size"), false)) < 0 ||
	    table_cell(table, "%" PRIu64, answer_number(info, "count")) < 0 ||
	    table_cell(table, "%s", answer_text(info, "command")) < 0)
		return -ENOMEM;
	return 0;
}

int answer_print_snapshots(const json_t *snapshots)
{
	static const struct table_column columns[] = {
		{ "ID", false }, { "PID", true }, { "NAME", false }, { "TIME", false }, { "SIZE", true },
		{ "BLOCKS", true }, { "COMMAND", false }, { NULL, false },
	};
	struct table *table = table_new(columns);
	const json_t *info;
	size_t i;
	int r = table ? 0 : -ENOMEM;

	json_array_foreach(snapshots, i, info) {
		if (r == 0)
			r = add_snapshot(table, info);
	}
	if (r == 0)
		table_print(table, stdout);
	table_free(table);
	return r;
}
