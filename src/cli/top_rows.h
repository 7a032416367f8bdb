/* The rows of `allocwatch top`: their order, their columns, and which group one is. */
#ifndef ALLOCWATCH_CLI_TOP_ROWS_H
#define ALLOCWATCH_CLI_TOP_ROWS_H

#include "cli/top_model.h"

#define TOP_CELL_MAX 64
#define COLUMN_IMPORTANCE_MAX 9

/* Brings the rows of top->statistics into the order of the settings. */
void top_rows_sort(struct top *top);

/* The same number for the same group in all statistics of one key. */
uint64_t top_row_id(const struct statistics *statistics, const struct statistic *row);
/* What a group is about; to be freed, NULL when there is no memory. */
char *top_row_name(const struct statistics *statistics, const struct statistic *row, enum statistics_key key);
/* Does the name say most at its end, as a path does? */
bool top_name_is_path(enum statistics_key key);

struct top_column {
	const char *title;
	int width;
	int importance;         /* columns of the lowest leave first when there is no room */
	bool is_growth;         /* coloured by its sign */
	void (*cell)(const struct top *top, const struct statistic *row, char text[TOP_CELL_MAX]);
};
/* In the order in which they stand; ends with a NULL title. */
extern const struct top_column top_columns[];

#endif
