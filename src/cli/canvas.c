#define _GNU_SOURCE              /* wcwidth */
#include "cli/canvas.h"

#include "export/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One thing to draw: a character, or an escaped byte. */
struct glyph {
	wchar_t text[5];
	int width;              /* 0: a mark on the one before */
};

static int into_range(int side)
{
	return side < 1 ? 1 : side > CANVAS_SIDE_MAX ? CANVAS_SIDE_MAX : side;
}

int canvas_init(struct canvas *canvas, int width, int height)
{
	width = into_range(width);
	height = into_range(height);
	canvas->cells = calloc((size_t)width * (size_t)height, sizeof(*canvas->cells));
	if (!canvas->cells)
		return -ENOMEM;
	canvas->width = width;
	canvas->height = height;
	for (int i = 0; i < width * height; i++) {
		canvas->cells[i].text[0] = L' ';
		canvas->cells[i].width = 1;
	}
	return 0;
}

void canvas_fini(struct canvas *canvas)
{
	free(canvas->cells);
	memset(canvas, 0, sizeof(*canvas));
}

static struct canvas_cell *cell_at(const struct canvas *canvas, int y, int x)
{
	return &canvas->cells[y * canvas->width + x];
}

const struct canvas_cell *canvas_cell(const struct canvas *canvas, int y, int x)
{
	return cell_at(canvas, y, x);
}

/* Characters without a shape of their own that change how others are shown: a name could read as another
 * by them. */
static bool is_format(uint32_t code)
{
	return code == 0xad || code == 0x61c || code == 0x180e || (code >= 0x200b && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
	       (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
	       code >= 0xe0000;
}

/* The next one of a text, and how many bytes it takes; 0 at the end. */
static size_t next_glyph(const char *text, struct glyph *ret)
{
	uint32_t code;
	size_t n;

	if (!*text)
		return 0;
	memset(ret, 0, sizeof(*ret));
	n = printable_decode(text, &code);
	if (n > 0 && code == '\t')
		code = ' ';
	ret->width = n > 0 && !is_format(code) ? wcwidth((wchar_t)code) : -1;
	if (ret->width >= 0) {
		ret->text[0] = (wchar_t)code;
		return n;
	}
	swprintf(ret->text, sizeof(ret->text) / sizeof(ret->text[0]), L"\\x%02x", (unsigned)(unsigned char)*text);
	ret->width = 4;
	return 1;
}

int canvas_text_width(const char *text)
{
	struct glyph glyph;
	int width = 0;
	size_t n;

	while ((n = next_glyph(text, &glyph)) > 0 && width < CANVAS_SIDE_MAX * 16) {
		width += glyph.width;
		text += n;
	}
	return width;
}

static void set_cell(struct canvas *canvas, int y, int x, enum canvas_style style, wchar_t code, int width)
{
	struct canvas_cell *cell = cell_at(canvas, y, x);

	*cell = (struct canvas_cell){ { code }, (uint8_t)width, (uint8_t)style };
	if (width == 2)
		cell[1] = (struct canvas_cell){ { 0 }, 0, (uint8_t)style };
}

/* A mark belongs to what was drawn before it; what has one already takes no other. */
static void add_mark(struct canvas *canvas, int y, int x, wchar_t mark)
{
	struct canvas_cell *cell;

	if (x < 0)
		return;
	cell = cell_at(canvas, y, x);
	if (cell->width == 0 && x > 0)
		cell--;
	if (!cell->text[1])
		cell->text[1] = mark;
}

static void draw_glyph(struct canvas *canvas, int y, int x, enum canvas_style style, const struct glyph *glyph)
{
	if (!glyph->text[1]) {
		set_cell(canvas, y, x, style, glyph->text[0], glyph->width);
		return;
	}
	for (int i = 0; glyph->text[i]; i++)
		set_cell(canvas, y, x + i, style, glyph->text[i], 1);
}

int canvas_put(struct canvas *canvas, int y, int x, int end, enum canvas_style style, const char *text, int skip)
{
	struct glyph glyph;
	int last = -1;          /* where a mark would go */
	size_t n;

	if (end > canvas->width)
		end = canvas->width;
	if (y < 0 || y >= canvas->height || x < 0)
		return x;
	for (; (n = next_glyph(text, &glyph)) > 0; text += n) {
		if (glyph.width == 0) {
			add_mark(canvas, y, last, glyph.text[0]);
			continue;
		}
		if (skip >= glyph.width) {
			skip -= glyph.width;
			continue;
		}
		if (skip > 0) {         /* half of it is left out: it cannot be shown */
			x += glyph.width - skip;
			skip = 0;
			continue;
		}
		if (x + glyph.width > end)
			break;
		draw_glyph(canvas, y, x, style, &glyph);
		last = x + glyph.width - 1;
		x += glyph.width;
	}
	return x;
}

void canvas_put_cut(struct canvas *canvas, int y, int x, int end, enum canvas_style style, const char *text,
		    bool at_start)
{
	int width = canvas_text_width(text), space = (end < canvas->width ? end : canvas->width) - x;

	if (width <= space) {
		canvas_put(canvas, y, x, end, style, text, 0);
	} else if (space > 0 && at_start) {
		canvas_put(canvas, y, x, end, style, "<", 0);
		canvas_put(canvas, y, x + 1, end, style, text, width - space + 1);
	} else if (space > 0) {
		canvas_put(canvas, y, x, x + space - 1, style, text, 0);
		canvas_put(canvas, y, x + space - 1, end, style, ">", 0);
	}
}

void canvas_put_right(struct canvas *canvas, int y, int x, int end, enum canvas_style style, const char *text)
{
	int width = canvas_text_width(text);

	canvas_put(canvas, y, end - width > x ? end - width : x, end, style, text, 0);
}

void canvas_set_style(struct canvas *canvas, int y, enum canvas_style style)
{
	for (int x = 0; y >= 0 && y < canvas->height && x < canvas->width; x++)
		cell_at(canvas, y, x)->style = (uint8_t)style;
}

static void write_code(FILE *out, uint32_t code)
{
	if (code < 0x80)
		fprintf(out, "%c", (int)code);
	else if (code < 0x800)
		fprintf(out, "%c%c", 0xc0 | (int)(code >> 6), 0x80 | (int)(code & 0x3f));
	else if (code < 0x10000)
		fprintf(out, "%c%c%c", 0xe0 | (int)(code >> 12), 0x80 | (int)(code >> 6 & 0x3f),
			0x80 | (int)(code & 0x3f));
	else
		fprintf(out, "%c%c%c%c", 0xf0 | (int)(code >> 18), 0x80 | (int)(code >> 12 & 0x3f),
			0x80 | (int)(code >> 6 & 0x3f), 0x80 | (int)(code & 0x3f));
}

char *canvas_line(const struct canvas *canvas, int y)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (int x = 0; x < canvas->width; x++)
		for (const wchar_t *code = cell_at(canvas, y, x)->text; *code; code++)
			write_code(out, (uint32_t)*code);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	while (len > 0 && text[len - 1] == ' ')
		text[--len] = '\0';
	return text;
}
