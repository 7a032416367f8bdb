/* <curses.h> defines many short names: nothing else is included before what it needs. */
#define _GNU_SOURCE
#define NCURSES_WIDECHAR 1
#include "cli/top_screen.h"

#include "cli/top_model.h"

#include <curses.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

/* How long a lone Escape is waited on: longer sequences arrive at once. */
#define ESCAPE_DELAY_MS 25

struct screen {
	SCREEN *terminal;
	attr_t attributes[STYLE_COUNT];
	short pairs[STYLE_COUNT];
};

static const struct {
	attr_t attributes, without_colours;
	short colour;                   /* -1: the terminal's own */
} styles[STYLE_COUNT] = {
	[STYLE_PLAIN] = { A_NORMAL, A_NORMAL, -1 },
	[STYLE_STRONG] = { A_BOLD, A_BOLD, -1 },
	[STYLE_FAINT] = { A_NORMAL, A_NORMAL, COLOR_CYAN },
	[STYLE_TITLES] = { A_REVERSE, A_REVERSE, -1 },
	[STYLE_CURSOR] = { A_REVERSE | A_BOLD, A_REVERSE | A_BOLD, COLOR_CYAN },
	[STYLE_GROWN] = { A_NORMAL, A_NORMAL, COLOR_RED },
	[STYLE_SHRUNK] = { A_NORMAL, A_NORMAL, COLOR_GREEN },
	[STYLE_WARNING] = { A_BOLD, A_BOLD, COLOR_YELLOW },
};

static void init_styles(struct screen *screen, bool colours)
{
	colours = colours && has_colors() && start_color() == OK;
	if (colours)
		use_default_colors();
	for (int i = 0; i < STYLE_COUNT; i++) {
		screen->attributes[i] = colours ? styles[i].attributes : styles[i].without_colours;
		if (colours && styles[i].colour >= 0 && init_pair((short)(i + 1), styles[i].colour, -1) == OK)
			screen->pairs[i] = (short)(i + 1);
	}
}

/* Asked before curses starts: newterm() ends the program in some cases. */
bool screen_check(const char **ret_reason)
{
	bool capable;
	int error;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		*ret_reason = "standard input and output are not both a terminal";
		return false;
	}
	if (setupterm(NULL, STDOUT_FILENO, &error) != OK) {
		*ret_reason = error == 1 ? "this terminal prints on paper" :
			      "nothing is known of terminals of the type that TERM names";
		return false;
	}
	capable = cursor_address && clear_screen;
	del_curterm(cur_term);
	*ret_reason = "terminals of the type that TERM names cannot be drawn on";
	return capable;
}

struct screen *screen_open(bool colours, const char **ret_reason)
{
	struct screen *screen;

	if (!screen_check(ret_reason))
		return NULL;
	screen = calloc(1, sizeof(*screen));
	*ret_reason = "there is no memory for it";
	if (!screen)
		return NULL;
	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal) {
		free(screen);
		return NULL;
	}
	set_term(screen->terminal);
	set_escdelay(ESCAPE_DELAY_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	intrflush(stdscr, FALSE);
	leaveok(stdscr, FALSE);
	init_styles(screen, colours);
	screen_measure(screen);
	return screen;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen->terminal);
	free(screen);
}

void screen_suspend(struct screen *screen)
{
	(void)screen;
	endwin();
}

void screen_resume(struct screen *screen)
{
	endwin();
	screen_measure(screen);
	screen_forget(screen);
	refresh();
}

void screen_measure(struct screen *screen)
{
	struct winsize size;

	(void)screen;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row < CANVAS_SIDE_MAX ? size.ws_row : CANVAS_SIDE_MAX,
			   size.ws_col < CANVAS_SIDE_MAX ? size.ws_col : CANVAS_SIDE_MAX);
}

void screen_size(const struct screen *screen, int *ret_width, int *ret_height)
{
	(void)screen;
	*ret_width = COLS;
	*ret_height = LINES;
}

void screen_forget(struct screen *screen)
{
	(void)screen;
	clearok(curscr, TRUE);
}

static void draw_cell(const struct screen *screen, int y, int x, const struct canvas_cell *cell)
{
	cchar_t character;

	if (cell->width > 0 &&
	    setcchar(&character, cell->text, screen->attributes[cell->style], screen->pairs[cell->style], NULL) == OK)
		mvadd_wch(y, x, &character);
}

void screen_draw(struct screen *screen, const struct canvas *canvas, int cursor_y, int cursor_x)
{
	erase();
	for (int y = 0; y < canvas->height; y++)
		for (int x = 0; x < canvas->width; x++)
			draw_cell(screen, y, x, canvas_cell(canvas, y, x));
	curs_set(cursor_x >= 0 ? 1 : 0);
	if (cursor_x >= 0)
		move(cursor_y, cursor_x);
	refresh();
}

static bool translate(wint_t code, uint32_t *ret_key)
{
	static const struct {
		wint_t code;
		uint32_t key;
	} keys[] = {
		{ KEY_UP, TOP_KEY_UP },       { KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_LEFT, TOP_KEY_LEFT },   { KEY_RIGHT, TOP_KEY_RIGHT },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME },   { KEY_END, TOP_KEY_END },
		{ KEY_FIND, TOP_KEY_HOME },   { KEY_SELECT, TOP_KEY_END },
		{ KEY_ENTER, TOP_KEY_ENTER }, { KEY_BACKSPACE, TOP_KEY_ERASE },
		{ KEY_DC, TOP_KEY_ERASE },    { KEY_F(1), '?' },
		{ KEY_F(10), 'q' },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].code == code) {
			*ret_key = keys[i].key;
			return true;
		}
	}
	return false;
}

static uint32_t character_key(wint_t code)
{
	switch (code) {
	case '\r':
	case '\n':
		return TOP_KEY_ENTER;
	case 0x1b:
		return TOP_KEY_ESCAPE;
	case 0x08:
	case 0x7f:
		return TOP_KEY_ERASE;
	default:
		return code;
	}
}

bool screen_key(struct screen *screen, uint32_t *ret_key)
{
	wint_t code;
	int kind;

	(void)screen;
	while ((kind = get_wch(&code)) != ERR) {
		if (kind == KEY_CODE_YES && translate(code, ret_key))
			return true;
		if (kind == OK) {
			*ret_key = character_key(code);
			return true;
		}
	}
	return false;
}
