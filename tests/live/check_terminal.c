/* A command under `allocwatch run` keeps its terminal: a real interactive shell in tmux sees the job stop and go
 * on as it would without us. */
#include "live.h"
#include "subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCREEN_MS 30000
#define TMUX_EDITOR "vim.tiny"

static const char *server, *home;

/* Runs tmux with these words; its output. */
static const char *tmux(const char *words)
{
	static char text[65536];
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

static const char *screen(void)
{
	return tmux("capture-pane -p -J");
}

static bool is_shown(void *context)
{
	return strstr(screen(), context) != NULL;
}

static void expect(const char *text)
{
	if (!live_wait(is_shown, (void *)text, SCREEN_MS))
		live_fail("'%s' is not on the screen:\n%s", text, screen());
}

static void keys(const char *words)
{
	tmux(live_text("send-keys %s", words));
}

/* A shell with a private daemon of its own.  What is typed is on the screen, too: so what is expected must not
 * be part of it. */
static void start_shell(void)
{
	home = live_text("%s/home", live_folder());
	server = live_text("%s/tmux", live_folder());
	if (mkdir(home, 0700))
		live_fail("mkdir: %s", strerror(errno));
	tmux(live_text("new-session -d -x 120 -y 40 \"env -u ALLOCWATCH_SOCKET -u NO_COLOR PS1='ready> ' "
		       "XDG_RUNTIME_DIR=%s XDG_STATE_HOME=%s PATH=%s/src:$PATH bash --norc -i\"", home, home,
		       live_build()));
	expect("ready>");
}

static void end_shell(void)
{
	tmux("kill-server");
}

static void type_run(const char *command)
{
	keys(live_text("\"clear; allocwatch run -- %s\" Enter", command));
}

static void expect_status(int status)
{
	keys("'echo \"status=$?.\"' Enter");
	expect(live_text("status=%d.", status));
}

static void cat_reads_stops_and_goes_on(void)
{
	start_shell();
	type_run("sh -c 'echo be\\$((6*7))gun; exec cat'");
	expect("be42gun");
	keys("first Enter");
	expect("first\nfirst");
	for (unsigned int i = 0; i < live_rounds(3, 200); i++) {
		keys("C-z");
		expect("Stopped");
		keys("'clear; echo in-$((20+1))-shell; fg' Enter");
		expect("in-21-shell");
		keys(live_text("line%u Enter", i));
		expect(live_text("line%u\nline%u", i, i));
	}
	keys("C-d");
	expect("still allocated");
	expect_status(0);
	end_shell();
}

static void ctrl_c_ends_the_command_and_not_us(void)
{
	start_shell();
	type_run("sh -c 'echo be\\$((6*7))gun; exec cat'");
	expect("be42gun");
	keys("C-c");
	expect("still allocated");
	expect_status(130);
	type_run("bash -c 'trap \\\"echo cau\\$((6*7))ght; exit 3\\\" INT; echo be\\$((6*7))gun; read x'");
	expect("be42gun");
	keys("C-c");
	expect("cau42ght");
	expect("still allocated");
	expect_status(3);
	end_shell();
}

static void a_command_that_stops_itself_gives_the_shell_back(void)
{
	start_shell();
	type_run("sh -c 'kill -STOP \\$\\$; echo on\\$((6*7))ward'");
	expect("Stopped");
	keys("fg Enter");
	expect("on42ward");
	expect("still allocated");
	expect_status(0);
	end_shell();
}

static void an_editor_edits_stops_and_sees_its_window_grow(void)
{
	const char *file;

	start_shell();
	file = live_text("%s/text", home);
	type_run(live_text(TMUX_EDITOR " -u NONE %s", file));
	expect("[New File]");
	keys("'ione line' Escape");
	expect("one line");
	keys("C-z");
	expect("Stopped");
	keys("'clear; fg' Enter");
	expect("one line\n~");
	tmux("resize-window -x 100 -y 30");
	keys("':set columns? lines?' Enter");
	expect("columns=100");
	keys("Enter");
	expect("one line\n~");
	keys("':wq' Enter");
	expect("still allocated");
	expect_status(0);
	keys(live_text("'clear; cat %s; echo si$((6*7))ze' Enter", file));
	expect("one line\nsi42ze");
	end_shell();
}

static void a_shell_has_its_own_job_control(void)
{
	start_shell();
	type_run("env PS1='in\\$((6*7))ner: ' bash --norc -i");
	expect("in42ner:");
	keys("\"sh -c 'echo st\\$((6*7))art; exec cat'\" Enter");
	expect("st42art");
	keys("within Enter");
	expect("within\nwithin");
	keys("C-z");
	expect("Stopped");
	keys("'kill -KILL %1; exit 7' Enter");
	expect("still allocated");
	expect_status(7);
	end_shell();
}

static const struct live_case cases[] = {
	LIVE_CASE(cat_reads_stops_and_goes_on),
	LIVE_CASE(ctrl_c_ends_the_command_and_not_us),
	LIVE_CASE(a_command_that_stops_itself_gives_the_shell_back),
	LIVE_CASE(an_editor_edits_stops_and_sees_its_window_grow),
	LIVE_CASE(a_shell_has_its_own_job_control),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
