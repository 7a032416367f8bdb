/* A terminal that is looked at: an interactive shell in a tmux server of the case's own. */
#ifndef ALLOCWATCH_TESTS_TERMINAL_H
#define ALLOCWATCH_TESTS_TERMINAL_H

#include <stdbool.h>

#define TERMINAL_READY "ready>"

/* Starts it with these words in front of the shell ("env NAME=VALUE ..."); allocwatch is in its PATH.  What is
 * typed is on the screen, too: so what is expected must not be part of it. */
void terminal_start(const char *wrapper, int width, int height);
void terminal_end(void);
void terminal_resize(int width, int height);

/* Runs tmux with these words on that server; its output. */
const char *terminal_tmux(const char *words);
const char *terminal_screen(void);
bool terminal_shows(const char *text);
/* Waits until it is on the screen, or no longer there. */
void terminal_expect(const char *text);
void terminal_expect_gone(const char *text);
/* As tmux's send-keys takes them. */
void terminal_keys(const char *words);
/* The exit status of the last command, which has just ended. */
void terminal_expect_status(int status);

#endif
