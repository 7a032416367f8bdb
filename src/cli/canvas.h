/* A screen's worth of characters, made without a terminal.
 *
 * Whatever text is put here is harmless: control characters, what is not UTF-8, what would turn the
 * direction of the text and what this locale cannot show become \xNN. */
#ifndef ALLOCWATCH_CLI_CANVAS_H
#define ALLOCWATCH_CLI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define CANVAS_SIDE_MAX 4096     /* characters; a larger terminal is filled no further */

enum canvas_style {
	STYLE_PLAIN,
	STYLE_STRONG,
	STYLE_FAINT,
	STYLE_TITLES,
	STYLE_CURSOR,
	STYLE_GROWN,
	STYLE_SHRUNK,
	STYLE_WARNING,
	STYLE_COUNT
};

struct canvas_cell {
	wchar_t text[3];         /* a character, perhaps a mark on it, and 0 */
	uint8_t width;           /* 1, 2, or 0: covered by the one before */
	uint8_t style;
};

struct canvas {
	int width, height;
	struct canvas_cell *cells;
};

/* Blank; both sides are brought into 1..CANVAS_SIDE_MAX.  0 or -ENOMEM. */
int canvas_init(struct canvas *canvas, int width, int height);
void canvas_fini(struct canvas *canvas);
const struct canvas_cell *canvas_cell(const struct canvas *canvas, int y, int x);

/* How many columns a text takes. */
int canvas_text_width(const char *text);
/* Writes text from column x up to, not including, column `end`, leaving its first `skip` columns out; what
 * lies outside of the canvas is not drawn.  Returns the column behind it. */
int canvas_put(struct canvas *canvas, int y, int x, int end, enum canvas_style style, const char *text, int skip);
/* The same for a text that may be too long: a < or > stands for what is cut off its start (at_start) or end. */
void canvas_put_cut(struct canvas *canvas, int y, int x, int end, enum canvas_style style, const char *text,
		    bool at_start);
/* Its last column is end - 1. */
void canvas_put_right(struct canvas *canvas, int y, int x, int end, enum canvas_style style, const char *text);
/* Changes how a line looks, in all its columns. */
void canvas_set_style(struct canvas *canvas, int y, enum canvas_style style);

/* A line as UTF-8 without the blanks at its end; to be freed, NULL when there is no memory. */
char *canvas_line(const struct canvas *canvas, int y);

#endif
