/* Aligned columns of text. */
#ifndef ALLOCWATCH_CLI_TABLE_H
#define ALLOCWATCH_CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct table_column {
	const char *title;
	bool right;             /* numbers stand to the right */
};

struct table;

/* columns is borrowed and ends with a NULL title. */
struct table *table_new(const struct table_column *columns);
void table_free(struct table *table);            /* accepts NULL */
/* Adds the next cell, row by row.  0 or -ENOMEM. */
int table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *table, FILE *out);

#endif
