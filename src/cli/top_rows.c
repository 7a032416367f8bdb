#define _GNU_SOURCE              /* qsort_r */
#include "cli/top_rows.h"

#include "base/hash.h"
#include "model/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* --- which group it is --- */

static uint64_t text_hash(const struct statistics *statistics, uint32_t text)
{
	const char *bytes = strtab_get(statistics->strings, text);

	return hash_bytes(bytes, strlen(bytes));
}

uint64_t top_row_id(const struct statistics *statistics, const struct statistic *row)
{
	uint64_t id = hash_pair(hash_pair(row->frame_count, row->domain), row->thread);

	for (uint32_t i = 0; i < row->frame_count; i++) {
		id = hash_pair(id, text_hash(statistics, row->frames[i].name));
		id = hash_pair(id, row->frames[i].line);
		if (statistics->key == KEY_DEFINITION)
			id = hash_pair(id, text_hash(statistics, row->frames[i].function));
	}
	return id;
}

/* --- what it is called --- */

static void print_frame(FILE *out, const struct statistics *statistics, const struct statistic_frame *frame)
{
	fputs(strtab_get(statistics->strings, frame->name), out);
	if (frame->has_line)
		fprintf(out, ":%" PRIu32, frame->line);
}

static void print_definition(FILE *out, const struct statistics *statistics, const struct statistic_frame *frame)
{
	fputs(strtab_get(statistics->strings, frame->name), out);
	if (frame->function)
		fprintf(out, "(%s)", strtab_get(statistics->strings, frame->function));
}

char *top_row_name(const struct statistics *statistics, const struct statistic *row, enum statistics_key key)
{
	char *text = NULL, domain[DOMAIN_TEXT_MAX];
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	if (row->is_thread && row->thread)
		fprintf(out, "thread %" PRIu32, row->thread);
	else if (row->is_thread)
		fputs("unknown thread", out);
	else if (row->frame_count == 0)
		fputs(domain_name(row->domain, domain), out);
	else if (key == KEY_DEFINITION)
		print_definition(out, statistics, &row->frames[0]);
	else if (key == KEY_LINENO)
		print_frame(out, statistics, &row->frames[0]);
	else if (key != KEY_TRACEBACK)
		fputs(strtab_get(statistics->strings, row->frames[0].name), out);
	for (uint32_t i = row->frame_count; key == KEY_TRACEBACK && i-- > 0;) {
		print_frame(out, statistics, &row->frames[i]);
		if (i > 0)
			fputs(" < ", out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

bool top_name_is_path(enum statistics_key key)
{
	return key == KEY_LINENO || key == KEY_FILENAME || key == KEY_OBJECT;
}

/* --- order --- */

static double average(const struct statistic *row)
{
	return row->count > 0 ? (double)row->size / (double)row->count : 0;
}

static int compare_names(const struct statistics *statistics, const struct statistic *a, const struct statistic *b)
{
	int r = COMPARE(a->frame_count, b->frame_count);

	if (r == 0 && a->frame_count == 0)
		r = a->is_thread ? COMPARE(a->thread, b->thread) : COMPARE(a->domain, b->domain);
	for (uint32_t i = a->frame_count; r == 0 && i-- > 0;) {
		r = utf8_compare(strtab_get(statistics->strings, a->frames[i].name),
				 strtab_get(statistics->strings, b->frames[i].name));
		if (r == 0)
			r = COMPARE(a->frames[i].line, b->frames[i].line);
		if (r == 0 && statistics->key == KEY_DEFINITION)
			r = utf8_compare(strtab_get(statistics->strings, a->frames[i].function),
					 strtab_get(statistics->strings, b->frames[i].function));
	}
	return r;
}

/* The largest first, but names in their order. */
static int compare_by(const struct top *top, const struct statistic *a, const struct statistic *b)
{
	switch (top->settings.sort) {
	case TOP_BY_GROWTH:
		return COMPARE(b->size_diff, a->size_diff);
	case TOP_BY_SHRINK:
		return COMPARE(a->size_diff, b->size_diff);
	case TOP_BY_COUNT:
		return COMPARE(b->count, a->count);
	case TOP_BY_COUNT_GROWTH:
		return COMPARE(b->count_diff, a->count_diff);
	case TOP_BY_AVERAGE:
		return COMPARE(average(b), average(a));
	case TOP_BY_NAME:
		return compare_names(top->statistics, a, b);
	default:
		return COMPARE(b->size, a->size);
	}
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct statistic *a = left, *b = right;
	const struct top *top = context;
	int r = compare_by(top, a, b);

	if (r == 0)
		r = COMPARE(b->size, a->size);
	/* By name, not by growth: what is equal shall stand still. */
	if (r == 0)
		r = compare_names(top->statistics, a, b);
	return top->reverse ? -r : r;
}

void top_rows_sort(struct top *top)
{
	struct statistics *statistics = top->statistics;

	if (statistics->row_count > 0)
		qsort_r(statistics->rows, statistics->row_count, sizeof(*statistics->rows), compare_rows, top);
}

/* --- columns --- */

static void size_cell(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX])
{
	(void)top;
	text_size(text, (double)row->size, false);
}

static void growth_cell(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX])
{
	(void)top;
	if (row->size_diff == 0)
		snprintf(text, TOP_CELL_MAX, "0");
	else
		text_size(text, (double)row->size_diff, true);
}

static void count_cell(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX])
{
	(void)top;
	snprintf(text, TOP_CELL_MAX, "%" PRIu64, row->count);
}

static void count_growth_cell(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX])
{
	(void)top;
	snprintf(text, TOP_CELL_MAX, row->count_diff == 0 ? "0" : "%+" PRId64, row->count_diff);
}

static void average_cell(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX])
{
	(void)top;
	if (row->count == 0)
		snprintf(text, TOP_CELL_MAX, "-");
	else
		text_size(text, average(row), false);
}

static void share_cell(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX])
{
	uint64_t total = top->statistics->total_size;

	snprintf(text, TOP_CELL_MAX, "%.1f", total > 0 ? 100.0 * (double)row->size / (double)total : 0);
}

const struct top_column top_columns[] = {
	{ "SIZE", 9, COLUMN_IMPORTANCE_MAX, false, size_cell },
	{ "%", 5, 3, false, share_cell },
	{ "GROWTH", 10, 8, true, growth_cell },
	{ "BLOCKS", 9, 6, false, count_cell },
	{ "GROWTH", 9, 5, true, count_growth_cell },
	{ "AVERAGE", 9, 2, false, average_cell },
	{ NULL, 0, 0, false, NULL },
};
