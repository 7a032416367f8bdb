#define _GNU_SOURCE              /* open_memstream */
#include "cli/top_layout.h"

#include "base/clock.h"
#include "base/units.h"
#include "cli/show.h"
#include "cli/top_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define NAME_WIDTH_LEAST 10
/* Later answers than this are mentioned. */
#define WAITING_LEAST_NS NSEC_PER_SEC

/* A line that is put together piece by piece. */
struct line {
	char text[LINE_MAX_BYTES];
	size_t len;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->text + line->len, sizeof(line->text) - line->len, format, args);
	va_end(args);
	if (n > 0)
		line->len += (size_t)n;
	if (line->len >= sizeof(line->text))
		line->len = sizeof(line->text) - 1;
}

static void add_duration(struct line *line, uint64_t from_ns, uint64_t to_ns)
{
	char text[UNITS_TEXT_MAX];

	add(line, "%s", units_duration_text(text, to_ns > from_ns ? to_ns - from_ns : 0));
}

/* --- the heading --- */

static const char *state_text(const struct top *top)
{
	switch (top->link) {
	case TOP_STARTING:
		return "STARTING";
	case TOP_ENDED:
		return "ENDED";
	case TOP_CUT:
		return "NO DAEMON";
	default:
		return top->frozen ? "FROZEN" : "";
	}
}

static void draw_target(const struct top *top, const struct top_scene *scene, struct canvas *canvas)
{
	const struct snapshot *newest = top->newest;
	const char *state = state_text(top);
	struct line line = { .len = 0 };
	int end = canvas->width;
	uint64_t now;

	if (*state) {
		end -= canvas_text_width(state);
		canvas_put(canvas, 0, end > 0 ? end : 0, canvas->width, STYLE_WARNING, state, 0);
		end--;
	}
	add(&line, "%s", scene->target);
	if (newest) {
		now = top->link == TOP_LIVE ? scene->now_ns : newest->taken_ns;
		add(&line, "  traced ");
		add_duration(&line, newest->attached_ns, now);
		add(&line, "  %s", newest->command);
	}
	canvas_put_cut(canvas, 0, 0, end, STYLE_STRONG, line.text, false);
}

static void add_growth(struct line *line, const struct top *top)
{
	const struct snapshot *from = top->baseline, *to = top->newest;
	char text[TEXT_SIZE_MAX];
	double growth = (double)to->counters.live_bytes - (double)from->counters.live_bytes;
	uint64_t elapsed = to->taken_ns > from->taken_ns ? to->taken_ns - from->taken_ns : 0;

	if (elapsed == 0)
		return;
	add(line, "  %s/min", text_size(text, growth * 60 * NSEC_PER_SEC / (double)elapsed, true));
	add(line, " (%s in ", text_size(text, growth, true));
	add_duration(line, 0, elapsed);
	add(line, ")");
}

static void draw_memory(const struct top *top, struct canvas *canvas)
{
	const struct heap_counters *counters = &top->newest->counters;
	char size[TEXT_SIZE_MAX];
	struct line line = { .len = 0 };

	add(&line, "live %s in %" PRIu64 " blocks", text_size(size, (double)counters->live_bytes, false),
	    counters->live_blocks);
	add(&line, "  peak %s", text_size(size, (double)counters->peak_bytes, false));
	add_growth(&line, top);
	canvas_put_cut(canvas, 1, 0, canvas->width, STYLE_PLAIN, line.text, false);
}

/* "Exact", or what is not known, as under every table. */
static int add_exactness(struct line *line, const struct snapshot *snapshot)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return -ENOMEM;
	show_unknown(out, snapshot->exact, &snapshot->unknown);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	text[strcspn(text, "\n")] = '\0';
	add(line, "  %s", *text ? text : "Exact");
	free(text);
	return 0;
}

static int draw_events(const struct top *top, struct canvas *canvas)
{
	struct line line = { .len = 0 };
	int r;

	if (top->events_per_second >= 0)
		add(&line, "%.0f events/s", top->events_per_second);
	else
		add(&line, "- events/s");
	add(&line, "  lost %" PRIu64, top->newest->unknown.lost_events);
	r = add_exactness(&line, top->newest);
	canvas_put_cut(canvas, 2, 0, canvas->width, top->newest->exact ? STYLE_PLAIN : STYLE_WARNING, line.text,
		       false);
	return r;
}

static void draw_settings(const struct top *top, struct canvas *canvas)
{
	struct line line = { .len = 0 };

	add(&line, "by %s%s, sorted by %s%s", top_key_name(top->settings.key),
	    top->settings.cumulative ? ", cumulative" : "", top_sort_name(top->settings.sort),
	    top->reverse ? ", reversed" : "");
	if (top->settings.filter_count > 0)
		add(&line, ", %zu filter%s given", top->settings.filter_count,
		    top->settings.filter_count == 1 ? "" : "s");
	if (*top->filter_text)
		add(&line, ", filter %s", top->filter_text);
	if (top->statistics)
		add(&line, ", %zu groups", top->row_count);
	canvas_put_cut(canvas, 3, 0, canvas->width, STYLE_FAINT, line.text, false);
}

static int draw_heading(const struct top *top, const struct top_scene *scene, struct canvas *canvas)
{
	int lines = top_heading_lines(top);

	if (lines > 0)
		draw_target(top, scene, canvas);
	if (lines > 3)
		draw_settings(top, canvas);
	if (lines > 1 && top->newest)
		draw_memory(top, canvas);
	return lines > 2 && top->newest ? draw_events(top, canvas) : 0;
}

/* --- the table --- */

/* The least importance of the columns that there is room for; the most important one always stays. */
static int least_importance(int width)
{
	int least = 0, used;

	for (;; least++) {
		int next = COLUMN_IMPORTANCE_MAX;

		used = 0;
		for (const struct top_column *column = top_columns; column->title; column++) {
			if (column->importance < least)
				continue;
			used += column->width + 1;
			if (column->importance < next)
				next = column->importance;
		}
		if (used + NAME_WIDTH_LEAST <= width || next == COLUMN_IMPORTANCE_MAX)
			return least;
		least = next;
	}
}

static int draw_titles(const struct top *top, struct canvas *canvas, int y, int least)
{
	int x = 0;

	canvas_set_style(canvas, y, STYLE_TITLES);
	for (const struct top_column *column = top_columns; column->title; column++) {
		if (column->importance < least)
			continue;
		canvas_put_right(canvas, y, x, x + column->width, STYLE_TITLES, column->title);
		x += column->width + 1;
	}
	canvas_put(canvas, y, x, canvas->width, STYLE_TITLES, top_key_name(top->settings.key), 0);
	return x;
}

static enum canvas_style growth_style(const struct statistic *row)
{
	if (row->size_diff > 0)
		return STYLE_GROWN;
	return row->size_diff < 0 ? STYLE_SHRUNK : STYLE_PLAIN;
}

static int draw_row(const struct top *top, struct canvas *canvas, int y, size_t place, int least, int name_at)
{
	const struct statistic *row = &top->statistics->rows[place];
	char *name = top_row_name(top->statistics, row, top->settings.key);
	int x = 0;

	if (!name)
		return -ENOMEM;
	for (const struct top_column *column = top_columns; column->title; column++) {
		char cell[TOP_CELL_MAX];

		if (column->importance < least)
			continue;
		column->cell(top, row, cell);
		canvas_put_right(canvas, y, x, x + column->width,
				 column->is_growth ? growth_style(row) : STYLE_PLAIN, cell);
		x += column->width + 1;
	}
	if (top->shift > 0)
		canvas_put(canvas, y, name_at, canvas->width, STYLE_PLAIN, name, top->shift);
	else
		canvas_put_cut(canvas, y, name_at, canvas->width, STYLE_PLAIN, name,
			       top_name_is_path(top->settings.key));
	free(name);
	if (place == top->cursor)
		canvas_set_style(canvas, y, STYLE_CURSOR);
	return 0;
}

static int draw_table(const struct top *top, struct canvas *canvas, int y)
{
	int least = least_importance(canvas->width);
	int name_at = draw_titles(top, canvas, y, least);
	size_t body = top_body_lines(top);

	if (!top->statistics)
		return 0;
	if (top->row_count == 0)
		canvas_put_cut(canvas, y + 1, 0, canvas->width, STYLE_PLAIN,
			       top->filters.count > 0 ? "Nothing matches the filters" :
			       "Nothing that was traced is live", false);
	for (size_t i = 0; i < body && top->first + i < top->row_count; i++) {
		int r = draw_row(top, canvas, y + 1 + (int)i, top->first + i, least, name_at);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- the other pages --- */

static int draw_stacks(const struct top *top, struct canvas *canvas, int y)
{
	struct line line = { .len = 0 };

	add(&line, "Tracebacks of %s", top->group.title);
	canvas_put_cut(canvas, y, 0, canvas->width, STYLE_TITLES, line.text, false);
	canvas_set_style(canvas, y, STYLE_TITLES);
	for (size_t i = 0; i < top_body_lines(top) && top->scroll + i < top->lines.count; i++) {
		const char *text = top->lines.items[top->scroll + i];

		canvas_put(canvas, y + 1 + (int)i, 0, canvas->width, *text == ' ' ? STYLE_PLAIN : STYLE_STRONG, text,
			   top->shift);
	}
	return 0;
}

static int draw_help(const struct top *top, struct canvas *canvas, int y)
{
	canvas_put(canvas, y, 0, canvas->width, STYLE_TITLES, "Keys", 0);
	canvas_set_style(canvas, y, STYLE_TITLES);
	for (size_t i = 0; i < top_body_lines(top) && top_help_line(top->scroll + i); i++)
		canvas_put(canvas, y + 1 + (int)i, 0, canvas->width, STYLE_PLAIN, top_help_line(top->scroll + i),
			   top->shift);
	return 0;
}

/* --- the last line --- */

static const char *prompt_text(const struct top *top)
{
	return top->prompt == TOP_FILTER_PROMPT ? "Filter: " : "Name (Enter for none): ";
}

static void draw_last_line(const struct top *top, const struct top_scene *scene, struct canvas *canvas)
{
	int y = canvas->height - 1;
	struct line line = { .len = 0 };
	enum canvas_style style = STYLE_FAINT;

	if (*top->message) {
		add(&line, "%s", top->message);
		style = STYLE_STRONG;
	} else if (top->prompt != TOP_NO_PROMPT) {
		add(&line, "%s%s", prompt_text(top), top->typing);
		canvas_put_cut(canvas, y, 0, canvas->width - 1, STYLE_PLAIN, line.text, true);
		return;
	} else if (*top->over) {
		add(&line, "%s", top->over);
		style = STYLE_WARNING;
	} else if (scene->waiting_ns >= WAITING_LEAST_NS) {
		add(&line, "Waiting for the daemon since ");
		add_duration(&line, 0, scene->waiting_ns);
		style = STYLE_WARNING;
	} else if (top->page == TOP_TABLE) {
		add(&line, "?help q:quit Enter:tracebacks g:group s:sort /filter b:baseline f:freeze S:save");
	} else {
		add(&line, "q:back ?help");
	}
	canvas_put_cut(canvas, y, 0, canvas->width, style, line.text, false);
}

void top_layout_cursor(const struct top *top, int *ret_y, int *ret_x)
{
	int x = canvas_text_width(prompt_text(top)) + canvas_text_width(top->typing);

	*ret_y = top->height - 1;
	if (top->prompt == TOP_NO_PROMPT || *top->message)
		*ret_x = -1;
	else
		*ret_x = x < top->width ? x : top->width - 1;
}

int top_layout(const struct top *top, const struct top_scene *scene, struct canvas *canvas)
{
	int y = top_heading_lines(top);
	int r = draw_heading(top, scene, canvas);

	if (r == 0 && top->page == TOP_TABLE)
		r = draw_table(top, canvas, y);
	else if (r == 0 && top->page == TOP_STACKS)
		r = draw_stacks(top, canvas, y);
	else if (r == 0)
		r = draw_help(top, canvas, y);
	draw_last_line(top, scene, canvas);
	return r;
}
