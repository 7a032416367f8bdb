#include "cli/top_model.h"

#include "base/clock.h"
#include "cli/top_filter.h"
#include "cli/top_rows.h"
#include "cli/top_stacks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sort_names[TOP_SORT_COUNT] = {
	[TOP_BY_SIZE] = "size",       [TOP_BY_GROWTH] = "growth",
	[TOP_BY_SHRINK] = "shrink",   [TOP_BY_COUNT] = "count",
	[TOP_BY_COUNT_GROWTH] = "new", [TOP_BY_AVERAGE] = "average",
	[TOP_BY_NAME] = "name",
};

const char *top_sort_name(enum top_sort sort)
{
	return sort_names[sort];
}

int top_sort_parse(const char *name, enum top_sort *ret_sort)
{
	for (int i = 0; i < TOP_SORT_COUNT; i++) {
		if (strcmp(sort_names[i], name) == 0) {
			*ret_sort = (enum top_sort)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* In the order in which the key for it goes through them; by thread only with blocks at hand. */
static const char *const key_names[] = {
	"lineno", "filename", "function", "definition", "traceback", "object", "thread", "domain",
};
#define KEY_NAMES (sizeof(key_names) / sizeof(key_names[0]))

static size_t key_place(enum statistics_key key)
{
	enum statistics_key parsed;

	for (size_t i = 0; i < KEY_NAMES; i++)
		if (statistics_key_parse(key_names[i], &parsed) == 0 && parsed == key)
			return i;
	return 0;
}

const char *top_key_name(enum statistics_key key)
{
	return key_names[key_place(key)];
}

enum statistics_key top_key_after(enum statistics_key key)
{
	size_t place = key_place(key);
	enum statistics_key after;

	do {
		place = (place + 1) % KEY_NAMES;
	} while (statistics_key_parse(key_names[place], &after) < 0);
	return after;
}

struct top *top_new(const struct top_settings *settings)
{
	struct top *top = calloc(1, sizeof(*top));
	const char *reason;

	if (!top)
		return NULL;
	top->settings = *settings;
	top->with_blocks = settings->key == KEY_THREAD;
	top->width = 80;
	top->height = 24;
	top->events_per_second = -1;
	if (top_filter_set(top, "", &reason) == 0)
		return top;
	top_free(top);
	return NULL;
}

void top_free(struct top *top)
{
	if (!top)
		return;
	snapshot_put(top->baseline);
	snapshot_put(top->newest);
	statistics_free(top->statistics);
	top_filter_clear(top);
	top_group_fini(&top->group);
	top_stacks_clear(top);
	free(top);
}

bool top_wants_blocks(const struct top *top)
{
	return top->with_blocks;
}

void top_say(struct top *top, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(top->message, sizeof(top->message), format, args);
	va_end(args);
}

/* --- the window --- */

int top_heading_lines(const struct top *top)
{
	if (top->height >= 12)
		return 4;
	if (top->height >= 8)
		return 2;
	return top->height >= 4 ? 1 : 0;
}

size_t top_body_lines(const struct top *top)
{
	/* titles above, a line for messages below */
	int lines = top->height - top_heading_lines(top) - 2;

	return lines > 1 ? (size_t)lines : 1;
}

static size_t scrolled_lines(const struct top *top)
{
	return top->page == TOP_HELP ? top_help_lines() : top->lines.count;
}

/* Nothing lies outside of what there is, and the cursor inside of what is shown. */
static void keep_in_sight(struct top *top)
{
	size_t body = top_body_lines(top), lines = scrolled_lines(top);

	if (top->cursor >= top->row_count)
		top->cursor = top->row_count > 0 ? top->row_count - 1 : 0;
	if (top->first > top->cursor)
		top->first = top->cursor;
	if (top->cursor >= top->first + body)
		top->first = top->cursor - body + 1;
	if (top->first + body > top->row_count)
		top->first = top->row_count > body ? top->row_count - body : 0;
	if (top->scroll + body > lines)
		top->scroll = lines > body ? lines - body : 0;
}

void top_resize(struct top *top, int width, int height)
{
	top->width = width > 0 ? width : 1;
	top->height = height > 0 ? height : 1;
	keep_in_sight(top);
}

/* --- figures --- */

static uint64_t row_id(const struct top *top, size_t place)
{
	return top_row_id(top->statistics, &top->statistics->rows[place]);
}

static void select_row(struct top *top)
{
	top->selected = top->cursor < top->row_count ? row_id(top, top->cursor) : 0;
}

void top_settle(struct top *top)
{
	keep_in_sight(top);
	select_row(top);
}

/* A cursor on the first line stays there, whatever comes up to it; any other goes with its group. */
static void follow_group(struct top *top)
{
	for (size_t i = 0; top->cursor > 0 && i < top->row_count; i++) {
		if (row_id(top, i) == top->selected) {
			top->cursor = i;
			break;
		}
	}
	top_settle(top);
}

void top_reorder(struct top *top)
{
	if (!top->statistics)
		return;
	top_rows_sort(top);
	top->row_count = top->statistics->row_count;
	follow_group(top);
}

int top_regroup(struct top *top, const char **ret_reason)
{
	struct statistics_query query = {
		.key = top->settings.key,
		.cumulative = top->settings.cumulative,
		.filters = top->filters.items,
		.filter_count = top->filters.count,
		.traceback = top->settings.traceback,
	};
	struct statistics *statistics;
	int r;

	if (!top->newest)
		return 0;
	r = statistics_compare(top->baseline, top->newest, &query, &statistics, ret_reason);
	if (r < 0)
		return r;
	statistics_free(top->statistics);
	top->statistics = statistics;
	top_reorder(top);
	if (top->page == TOP_STACKS)
		r = top_stacks_make(top);
	keep_in_sight(top);
	return r;
}

static uint64_t events(const struct heap_counters *counters)
{
	return counters->allocations + counters->frees + counters->before_attach_frees +
	       counters->after_clear_frees + counters->unknown_frees;
}

static double rate(const struct snapshot *before, const struct snapshot *after)
{
	uint64_t old = events(&before->counters), new = events(&after->counters);

	if (after->taken_ns <= before->taken_ns || new < old)
		return -1;
	return (double)(new - old) * NSEC_PER_SEC / (double)(after->taken_ns - before->taken_ns);
}

/* An exec may be of the same file: then what was counted before is no longer. */
static bool same_program(const struct snapshot *before, const struct snapshot *after)
{
	return before->start_time == after->start_time && before->attached_ns == after->attached_ns &&
	       strcmp(before->exe, after->exe) == 0 && events(&after->counters) >= events(&before->counters);
}

static void set_baseline(struct top *top, struct snapshot *snapshot)
{
	snapshot_put(top->baseline);
	top->baseline = snapshot_ref(snapshot);
}

void top_set_baseline(struct top *top)
{
	set_baseline(top, top->newest);
}

int top_take_snapshot(struct top *top, struct snapshot *snapshot)
{
	const char *reason;
	int r;

	if (top->frozen && top->newest)
		return 0;
	if (!top->newest) {
		set_baseline(top, snapshot);
	} else if (!same_program(top->newest, snapshot)) {
		set_baseline(top, snapshot);
		top->events_per_second = -1;
		top_say(top, "Another program, or another attach: the baseline is new");
	} else {
		top->events_per_second = rate(top->newest, snapshot);
	}
	snapshot_put(top->newest);
	top->newest = snapshot_ref(snapshot);
	if (top->link == TOP_STARTING)
		top->link = TOP_LIVE;
	r = top_regroup(top, &reason);
	if (r == -EINVAL)
		top_say(top, "These are older figures: %s", reason);
	return r == -EINVAL ? 0 : r;
}

void top_end(struct top *top, enum top_link link, const char *reason)
{
	top->link = link;
	top->events_per_second = -1;
	snprintf(top->over, sizeof(top->over), "%s", reason);
}
