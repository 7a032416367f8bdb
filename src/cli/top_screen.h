/* The terminal of `allocwatch top`: the only place that knows curses. */
#ifndef ALLOCWATCH_CLI_TOP_SCREEN_H
#define ALLOCWATCH_CLI_TOP_SCREEN_H

#include "cli/canvas.h"

#include <stdbool.h>
#include <stdint.h>

struct screen;

/* Are standard input and output a terminal that can be drawn on?  If not, *ret_reason (static) says why. */
bool screen_check(const char **ret_reason);
/* Takes standard input and output.  NULL with *ret_reason (static) when they cannot be drawn on. */
struct screen *screen_open(bool colours, const char **ret_reason);
/* Gives the terminal back as it was; accepts NULL. */
void screen_close(struct screen *screen);

/* For a while, for a shell; resume asks for the size, too. */
void screen_suspend(struct screen *screen);
void screen_resume(struct screen *screen);
/* The window may have another size now. */
void screen_measure(struct screen *screen);
void screen_size(const struct screen *screen, int *ret_width, int *ret_height);
/* Everything is drawn anew next time, whatever is on it. */
void screen_forget(struct screen *screen);

/* cursor_x negative: no cursor is shown. */
void screen_draw(struct screen *screen, const struct canvas *canvas, int cursor_y, int cursor_x);
/* The next key as a character or one of enum top_key; false when none waits. */
bool screen_key(struct screen *screen, uint32_t *ret_key);

#endif
