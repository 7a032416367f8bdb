#define _GNU_SOURCE              /* vasprintf */
#include "cli/table.h"

#include "base/vec.h"
#include "cli/terminal.h"
#include "export/printable.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 16
#define GAP "  "

struct table {
	const struct table_column *columns;
	size_t column_count;
	VEC_OF(char *) cells;
};

struct table *table_new(const struct table_column *columns)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->columns = columns;
	while (table->column_count < COLUMNS_MAX && columns[table->column_count].title)
		table->column_count++;
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->cells.count; i++)
		free(table->cells.items[i]);
	vec_fini(&table->cells);
	free(table);
}

/* Cells are kept as they are printed: harmless for a terminal. */
static char *clean_text(const char *text)
{
	char *clean = NULL;
	size_t len;
	FILE *out = open_memstream(&clean, &len);

	if (!out)
		return NULL;
	printable_write(out, text, strlen(text), false);
	if (fclose(out) == 0)
		return clean;
	free(clean);
	return NULL;
}

int table_cell(struct table *table, const char *format, ...)
{
	char *text, *clean, **slot = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	clean = clean_text(text);
	free(text);
	if (clean)
		slot = vec_push(&table->cells);
	if (!slot) {
		free(clean);
		return -ENOMEM;
	}
	*slot = clean;
	return 0;
}

static int text_width(const char *text)
{
	uint32_t code;
	int width = 0;

	for (size_t n; (n = printable_decode(text, &code)) > 0; text += n)
		width++;
	return width;
}

static void print_cell(FILE *out, const struct table_column *column, const char *text, int width, bool last)
{
	int pad = width - text_width(text);

	if (column->right)
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "" : GAP, out);
}

static int column_width(const struct table *table, size_t column)
{
	int width = text_width(table->columns[column].title);

	for (size_t i = column; i < table->cells.count; i += table->column_count) {
		int cell = text_width(table->cells.items[i]);

		if (cell > width)
			width = cell;
	}
	return width;
}

void table_print(const struct table *table, FILE *out)
{
	bool bold = terminal_colours(out);
	int widths[COLUMNS_MAX];
	size_t last = table->column_count - 1;

	for (size_t i = 0; i <= last; i++)
		widths[i] = column_width(table, i);
	fputs(bold ? COLOUR_BOLD : "", out);
	for (size_t i = 0; i <= last; i++)
		print_cell(out, &table->columns[i], table->columns[i].title, widths[i], i == last);
	fprintf(out, "%s\n", bold ? COLOUR_OFF : "");
	for (size_t i = 0; i < table->cells.count; i++) {
		size_t column = i % table->column_count;

		print_cell(out, &table->columns[column], table->cells.items[i], widths[column], column == last);
		if (column == last)
			fputc('\n', out);
	}
}
