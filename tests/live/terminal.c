#include "terminal.h"

#include "live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SCREEN_MS 30000

static const char *server;

const char *terminal_tmux(const char *words)
{
	static char text[1 << 18];
	FILE *pipe = popen(live_text("tmux -S %s -f /dev/null %s 2>&1", server, words), "r");
	size_t n;

	if (!pipe)
		live_fail("tmux: %s", strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	if (pclose(pipe) != 0)
		live_fail("tmux %s: %s", words, text);
	return text;
}

/* Blanks at the end of a line are no difference to look at.  The text begins with a newline. */
static void cut_blanks(char *text)
{
	char *to = text;

	for (; *text; text++) {
		while (*text == '\n' && to[-1] == ' ')
			to--;
		*to++ = *text;
	}
	*to = '\0';
}

const char *terminal_screen(void)
{
	static char text[1 << 18];

	snprintf(text, sizeof(text), "\n%s", terminal_tmux("capture-pane -p -J"));
	cut_blanks(text);
	return text + 1;
}

bool terminal_shows(const char *text)
{
	return strstr(terminal_screen(), text) != NULL;
}

static bool is_shown(void *context)
{
	return terminal_shows(context);
}

static bool is_gone(void *context)
{
	return !terminal_shows(context);
}

void terminal_expect(const char *text)
{
	if (!live_wait(is_shown, (void *)text, SCREEN_MS))
		live_fail("'%s' is not on the screen:\n%s", text, terminal_screen());
}

void terminal_expect_gone(const char *text)
{
	if (!live_wait(is_gone, (void *)text, SCREEN_MS))
		live_fail("'%s' is still on the screen:\n%s", text, terminal_screen());
}

void terminal_keys(const char *words)
{
	terminal_tmux(live_text("send-keys %s", words));
}

void terminal_start(const char *wrapper, int width, int height)
{
	static unsigned started;

	/* One that is told to end still listens for a moment, and whoever comes to it then ends with it. */
	server = live_text("%s/tmux-%u", live_folder(), started++);
	terminal_tmux(live_text("new-session -d -x %d -y %d \"%s env PS1='" TERMINAL_READY " ' PATH=%s/src:$PATH bash "
				"--norc -i\"", width, height, wrapper, live_build()));
	terminal_expect(TERMINAL_READY);
}

void terminal_end(void)
{
	terminal_tmux("kill-server");
}

void terminal_resize(int width, int height)
{
	terminal_tmux(live_text("resize-window -x %d -y %d", width, height));
}

void terminal_expect_status(int status)
{
	terminal_keys("'echo \"status=$?.\"' Enter");
	terminal_expect(live_text("status=%d.", status));
}
