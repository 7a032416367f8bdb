#include "cli/top_stacks.h"

#include "cli/top_rows.h"
#include "model/definition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void top_group_fini(struct top_group *group)
{
	free(group->title);
	free(group->name);
	free(group->function);
	free(group->object);
	memset(group, 0, sizeof(*group));
}

static char *copy_text(const struct statistics *statistics, const struct statistic_frame *frame, uint32_t text)
{
	return strdup(frame ? strtab_get(statistics->strings, text) : "");
}

static int group_init(struct top_group *group, const struct statistics *statistics, const struct statistic *row,
		      enum statistics_key key)
{
	const struct statistic_frame *frame = row->frame_count > 0 ? &row->frames[0] : NULL;

	*group = (struct top_group){ .key = key, .id = top_row_id(statistics, row), .domain = row->domain,
				      .thread = row->thread };
	group->title = top_row_name(statistics, row, key);
	group->name = copy_text(statistics, frame, frame ? frame->name : 0);
	group->function = copy_text(statistics, frame, frame ? frame->function : 0);
	group->object = copy_text(statistics, frame, frame ? frame->object : 0);
	group->line = frame ? frame->line : 0;
	if (group->title && group->name && group->function && group->object)
		return 0;
	top_group_fini(group);
	return -ENOMEM;
}

int top_stacks_choose(struct top *top)
{
	struct top_group group;
	int r;

	if (top->cursor >= top->row_count)
		return 0;
	r = group_init(&group, top->statistics, &top->statistics->rows[top->cursor], top->settings.key);
	if (r < 0)
		return r;
	top_group_fini(&top->group);
	top->group = group;
	return 0;
}

/* --- which tracebacks are the group's --- */

static bool is_text(const struct statistics *statistics, uint32_t text, const char *should)
{
	return strcmp(strtab_get(statistics->strings, text), should) == 0;
}

static bool is_definition(const struct top_group *group, const struct statistics *statistics,
			  const struct statistic_frame *frame)
{
	const char *function = strtab_get(statistics->strings, frame->function);
	size_t len = definition_function_length(function);
	bool is_place = frame->has_line ? is_text(statistics, frame->name, group->name) :
			frame->object ? is_text(statistics, frame->object, group->name) :
			strcmp(group->name, TRACEBACK_NO_OBJECT) == 0;

	return is_place && strlen(group->function) == len && memcmp(group->function, function, len) == 0;
}

/* As the grouping does: a function or an object without a name goes by another. */
static bool frame_belongs(const struct top_group *group, const struct statistics *statistics,
			  const struct statistic_frame *frame)
{
	switch (group->key) {
	case KEY_FILENAME:
		return is_text(statistics, frame->name, group->name);
	case KEY_FUNCTION:
		return is_text(statistics, frame->function ? frame->function : frame->name, group->name);
	case KEY_DEFINITION:
		return is_definition(group, statistics, frame);
	case KEY_OBJECT:
		return frame->object ? is_text(statistics, frame->object, group->name) : !*group->object;
	default:
		return frame->line == group->line && is_text(statistics, frame->name, group->name);
	}
}

static bool row_belongs(const struct top *top, const struct statistics *statistics, const struct statistic *row)
{
	const struct top_group *group = &top->group;
	/* The most recent frame is the last. */
	uint32_t first = top->settings.cumulative || row->frame_count == 0 ? 0 : row->frame_count - 1;

	if (group->key == KEY_DOMAIN || group->key == KEY_THREAD)
		return true;            /* others were left out before */
	if (group->key == KEY_TRACEBACK)
		return top_row_id(statistics, row) == group->id;
	for (uint32_t i = first; i < row->frame_count; i++)
		if (frame_belongs(group, statistics, &row->frames[i]))
			return true;
	return false;
}

/* A pattern that this text alone matches, or with `rest` all that begin with it, too. */
static char *quote_pattern(const char *text, bool rest)
{
	char *pattern = malloc(strlen(text) * 3 + 2), *to = pattern;

	for (; pattern && *text; text++)
		to += sprintf(to, strchr("*?[", *text) ? "[%c]" : "%c", *text);
	if (pattern && rest)
		*to++ = '*';
	if (pattern)
		*to = '\0';
	return pattern;
}

struct stack_filters {
	struct filter *items;           /* only `own` belongs to us */
	size_t count;
	char *own;
};

/* A traceback does not say its domain: all others are left out before, by filters. */
static void leave_out_domains(const struct top *top, struct stack_filters *filters)
{
	for (size_t i = 0; i < top->row_count; i++) {
		uint32_t domain = top->statistics->rows[i].domain;

		if (domain != top->group.domain)
			filters->items[filters->count++] = (struct filter){ .domain = domain };
	}
}

static bool goes_by_function(const struct top_group *group)
{
	return group->key == KEY_FUNCTION || (group->key == KEY_DEFINITION && *group->function);
}

/* The same condition, and the group's function or object.  False when it does not go with them. */
static bool narrow(const struct top_group *group, struct filter *filter, char *pattern)
{
	bool by_function = goes_by_function(group);
	char **slot = by_function ? &filter->function_pattern : &filter->object_pattern;

	/* Of a definition's parts the filter wants one. */
	if (*slot && group->key == KEY_DEFINITION && (*slot)[definition_function_length(*slot)])
		return true;
	if (*slot && !fnmatch_python(*slot, by_function ? group->function : group->object))
		return false;
	*slot = pattern;
	return true;
}

/* Nor whether a line that several functions or objects have in common was run in this one: that is asked for by
 * a filter, which must hold together with each that says what is wanted.  Where these look at all frames
 * that cannot be said, and the traceback's first function or object decides. */
static int ask_for_group(const struct top *top, struct stack_filters *filters)
{
	const char *text = goes_by_function(&top->group) ? top->group.function : top->group.object;
	bool inclusive = false;
	size_t kept = 0;

	for (size_t i = 0; i < filters->count; i++) {
		inclusive |= filters->items[i].inclusive;
		if (filters->items[i].inclusive && (filters->items[i].all_frames || top->settings.cumulative))
			return 0;
	}
	filters->own = quote_pattern(text, top->group.key == KEY_DEFINITION);
	if (!filters->own)
		return -ENOMEM;
	for (size_t i = 0; i < filters->count; i++) {
		struct filter filter = filters->items[i];

		if (!filter.inclusive || narrow(&top->group, &filter, filters->own))
			filters->items[kept++] = filter;
	}
	filters->count = kept;
	if (!inclusive) {
		struct filter filter = { .inclusive = true, .domain = -1, .all_frames = top->settings.cumulative };

		narrow(&top->group, &filter, filters->own);
		filters->items[filters->count++] = filter;
	}
	return 0;
}

static int filters_make(const struct top *top, struct stack_filters *ret)
{
	struct stack_filters filters = { .count = top->filters.count };
	int r = 0;

	filters.items = calloc(filters.count + top->row_count + 1, sizeof(*filters.items));
	if (!filters.items)
		return -ENOMEM;
	if (filters.count > 0)
		memcpy(filters.items, top->filters.items, filters.count * sizeof(*filters.items));
	if (top->group.key == KEY_DOMAIN)
		leave_out_domains(top, &filters);
	else if (top->group.key == KEY_FUNCTION || top->group.key == KEY_DEFINITION || top->group.key == KEY_OBJECT)
		r = ask_for_group(top, &filters);
	if (r < 0)
		free(filters.items);
	else
		*ret = filters;
	return r;
}

/* What one thread allocated of a snapshot: its traces, with this thread's blocks alone.  It borrows all else. */
static int cut_thread(const struct snapshot *snapshot, uint32_t thread, struct snapshot *ret)
{
	struct snapshot cut = *snapshot;

	cut.traces.items = calloc(cut.traces.count + 1, sizeof(*cut.traces.items));
	if (!cut.traces.items)
		return -ENOMEM;
	for (size_t i = 0; i < cut.traces.count; i++) {
		cut.traces.items[i].stack = snapshot->traces.items[i].stack;
		cut.traces.items[i].domain = snapshot->traces.items[i].domain;
	}
	for (size_t i = 0; i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];

		if (block->thread != thread)
			continue;
		cut.traces.items[block->trace].live_blocks++;
		cut.traces.items[block->trace].live_bytes += block->size;
	}
	*ret = cut;
	return 0;
}

static int compare_of_thread(const struct top *top, const struct statistics_query *query, struct statistics **ret)
{
	struct snapshot older, newer;
	const char *reason;
	int r = cut_thread(top->baseline, top->group.thread, &older);

	if (r < 0)
		return r;
	r = cut_thread(top->newest, top->group.thread, &newer);
	if (r == 0) {
		r = statistics_compare(&older, &newer, query, ret, &reason);
		free(newer.traces.items);
	}
	free(older.traces.items);
	return r;
}

static int compare_stacks(struct top *top, struct statistics **ret)
{
	struct statistics_query query = { .key = KEY_TRACEBACK, .traceback = top->settings.traceback };
	struct stack_filters filters = { .count = 0 };
	const char *reason;
	int r = filters_make(top, &filters);

	if (r < 0)
		return r;
	query.filters = filters.items;
	query.filter_count = filters.count;
	if (top->group.key == KEY_THREAD)
		r = compare_of_thread(top, &query, ret);
	else
		r = statistics_compare(top->baseline, top->newest, &query, ret, &reason);
	free(filters.own);
	free(filters.items);
	return r;
}

/* --- their text --- */

static int print_stacks(struct top *top, struct statistics *statistics, FILE *out)
{
	const struct text_style style = {
		.functions = true,
		.most_recent_first = top->settings.most_recent_first,
		.source = top->settings.source,
	};
	struct top sorted = { .settings = top->settings, .reverse = top->reverse, .statistics = statistics };
	uint64_t shown = 0, others = 0;
	int r = 0;

	top_rows_sort(&sorted);
	for (size_t i = 0; r == 0 && i < statistics->row_count; i++) {
		const struct statistic *row = &statistics->rows[i];

		if (!row_belongs(top, statistics, row))
			continue;
		if (shown == TOP_STACKS_MAX) {
			others++;
			continue;
		}
		if (shown++ > 0)
			fputc('\n', out);
		r = text_statistic_traceback(out, statistics, row, true, &style);
	}
	if (r == 0 && others > 0)
		fprintf(out, "\n%" PRIu64 " more tracebacks are not shown\n", others);
	if (r == 0 && shown == 0)
		fputs("No block of this group is live, and none was at the baseline\n", out);
	return r;
}

static int split_lines(struct top *top, const char *text)
{
	while (*text && top->lines.count < TOP_LINES_MAX) {
		size_t len = strcspn(text, "\n");
		char **slot = vec_push(&top->lines);

		if (!slot)
			return -ENOMEM;
		*slot = strndup(text, len);
		if (!*slot) {
			top->lines.count--;
			return -ENOMEM;
		}
		text += len + (text[len] == '\n');
	}
	return 0;
}

void top_stacks_clear(struct top *top)
{
	for (size_t i = 0; i < top->lines.count; i++)
		free(top->lines.items[i]);
	vec_fini(&top->lines);
}

int top_stacks_make(struct top *top)
{
	struct statistics *statistics;
	char *text = NULL;
	size_t len;
	FILE *out;
	int r = compare_stacks(top, &statistics);

	if (r < 0)
		return r;
	out = open_memstream(&text, &len);
	r = out ? print_stacks(top, statistics, out) : -ENOMEM;
	if (out && fclose(out) != 0)
		r = -ENOMEM;
	statistics_free(statistics);
	top_stacks_clear(top);
	if (r == 0)
		r = split_lines(top, text);
	free(text);
	return r;
}
