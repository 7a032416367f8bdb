/* A command under `allocwatch run` keeps its terminal: a real interactive shell in tmux sees the job stop and go
 * on as it would without us. */
#include "live.h"
#include "terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define TMUX_EDITOR "vim.tiny"

static const char *home;

/* With a private daemon of its own. */
static void start_shell(void)
{
	home = live_text("%s/home", live_folder());
	if (mkdir(home, 0700))
		live_fail("mkdir: %s", strerror(errno));
	terminal_start(live_text("env -u ALLOCWATCH_SOCKET -u NO_COLOR XDG_RUNTIME_DIR=%s XDG_STATE_HOME=%s", home,
				 home), 120, 40);
}

static void type_run(const char *command)
{
	terminal_keys(live_text("\"clear; allocwatch run -- %s\" Enter", command));
}

static void cat_reads_stops_and_goes_on(void)
{
	start_shell();
	type_run("sh -c 'echo be\\$((6*7))gun; exec cat'");
	terminal_expect("be42gun");
	terminal_keys("first Enter");
	terminal_expect("first\nfirst");
	for (unsigned int i = 0; i < live_rounds(3, 200); i++) {
		terminal_keys("C-z");
		terminal_expect("Stopped");
		terminal_keys("'clear; echo in-$((20+1))-shell; fg' Enter");
		terminal_expect("in-21-shell");
		terminal_keys(live_text("line%u Enter", i));
		terminal_expect(live_text("line%u\nline%u", i, i));
	}
	terminal_keys("C-d");
	terminal_expect("still allocated");
	terminal_expect_status(0);
	terminal_end();
}

static void ctrl_c_ends_the_command_and_not_us(void)
{
	start_shell();
	type_run("sh -c 'echo be\\$((6*7))gun; exec cat'");
	terminal_expect("be42gun");
	terminal_keys("C-c");
	terminal_expect("still allocated");
	terminal_expect_status(130);
	type_run("bash -c 'trap \\\"echo cau\\$((6*7))ght; exit 3\\\" INT; echo be\\$((6*7))gun; read x'");
	terminal_expect("be42gun");
	terminal_keys("C-c");
	terminal_expect("cau42ght");
	terminal_expect("still allocated");
	terminal_expect_status(3);
	terminal_end();
}

static void a_command_that_stops_itself_gives_the_shell_back(void)
{
	start_shell();
	type_run("sh -c 'kill -STOP \\$\\$; echo on\\$((6*7))ward'");
	terminal_expect("Stopped");
	terminal_keys("fg Enter");
	terminal_expect("on42ward");
	terminal_expect("still allocated");
	terminal_expect_status(0);
	terminal_end();
}

static void an_editor_edits_stops_and_sees_its_window_grow(void)
{
	const char *file;

	start_shell();
	file = live_text("%s/text", home);
	type_run(live_text(TMUX_EDITOR " -u NONE %s", file));
	terminal_expect("[New File]");
	terminal_keys("'ione line' Escape");
	terminal_expect("one line");
	terminal_keys("C-z");
	terminal_expect("Stopped");
	terminal_keys("'clear; fg' Enter");
	terminal_expect("one line\n~");
	terminal_resize(100, 30);
	terminal_keys("':set columns? lines?' Enter");
	terminal_expect("columns=100");
	terminal_keys("Enter");
	terminal_expect("one line\n~");
	terminal_keys("':wq' Enter");
	terminal_expect("still allocated");
	terminal_expect_status(0);
	terminal_keys(live_text("'clear; cat %s; echo si$((6*7))ze' Enter", file));
	terminal_expect("one line\nsi42ze");
	terminal_end();
}

static void a_shell_has_its_own_job_control(void)
{
	start_shell();
	type_run("env PS1='in\\$((6*7))ner: ' bash --norc -i");
	terminal_expect("in42ner:");
	terminal_keys("\"sh -c 'echo st\\$((6*7))art; exec cat'\" Enter");
	terminal_expect("st42art");
	terminal_keys("within Enter");
	terminal_expect("within\nwithin");
	terminal_keys("C-z");
	terminal_expect("Stopped");
	terminal_keys("'kill -KILL %1; exit 7' Enter");
	terminal_expect("still allocated");
	terminal_expect_status(7);
	terminal_end();
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
