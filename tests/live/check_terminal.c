/* A command under `allocwatch run` keeps its terminal: a real interactive shell in tmux sees the job stop and go
 * on as it would without us. */
#include "live.h"
#include "subject.h"
#include "terminal.h"

#include "../victims/tallies.h"

#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCREEN_MS 30000
#define TMUX_EDITOR "vim.tiny"

static const char *home;

/* With a private daemon of its own. */
static void start_shell(void)
{
	home = live_text("%s/home", live_folder());
	if (mkdir(home, 0700) && errno != EEXIST)
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
		/* Another word each time: that of the last round is on the screen until it is cleared, and what is typed too
		 * early the shell reads as keys. */
		terminal_keys(live_text("'clear; echo in-$((1000+%u))-shell; fg' Enter", i));
		terminal_expect(live_text("in-%u-shell", 1000 + i));
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
	/* Another word: the first one is on the screen until the shell has cleared it, and ^C would come to the shell.  No
	 * `read': bash may begin one after the signal has come, untraced as well, and runs the trap when it ends. */
	type_run("bash -c 'trap \\\"echo cau\\$((6*7))ght; exit 3\\\" INT; echo rea\\$((6*7))dy; while :; do sleep 0.05; done'");
	terminal_expect("rea42dy");
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

/* Asks again: what is typed may come before the signal that tells of the window, untraced as well. */
static bool editor_has_grown(void *unused)
{
	(void)unused;
	terminal_keys("':set columns? lines?' Enter");
	return terminal_shows("columns=100");
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
	if (!live_wait(editor_has_grown, NULL, SCREEN_MS))
		live_fail("the editor does not see its window:\n%s", terminal_screen());
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
	/* It does not exit before it has heard of the end: fg waits for that. */
	terminal_keys("'kill -KILL %1; fg; exit 7' Enter");
	terminal_expect("still allocated");
	terminal_expect_status(7);
	terminal_end();
}

/* --- what the command is told, against what it is told without us --- */

struct awaited {
	const struct tallies *seen;
	int sig, count;
};

static bool has_come(void *context)
{
	const struct awaited *awaited = context;

	return __atomic_load_n(&awaited->seen->count[awaited->sig], __ATOMIC_SEQ_CST) >= awaited->count;
}

static void await(const struct tallies *seen, int sig, int count)
{
	struct awaited awaited = { seen, sig, count };

	if (!live_wait(has_come, &awaited, SCREEN_MS))
		live_fail("signal %d came %d times of %d", sig, seen->count[sig], count);
}

static bool is_ready(void *context)
{
	return __atomic_load_n(&((const struct tallies *)context)->pid, __ATOMIC_SEQ_CST) != 0;
}

static bool is_gone(void *context)
{
	char state = proc_stat_state(live_text("/proc/%d/stat", *(pid_t *)context));

	return state == '\0' || state == 'Z';
}

/* Everything that a terminal sends, and at last its end. */
static const struct tallies *tally(const char *runner, const char *name)
{
	const char *path = live_text("%s/tallies-%s", live_folder(), name);
	const struct tallies *seen = subject_tallies(path);
	pid_t shell;

	start_shell();
	shell = (pid_t)strtol(terminal_tmux("display -p '#{pane_pid}'"), NULL, 10);
	terminal_keys(live_text("\"%s%s/tests/victims/tallies %s --all\" Enter", runner, live_build(), path));
	if (!live_wait(is_ready, (void *)seen, SCREEN_MS))
		live_fail("the command does not start:\n%s", terminal_screen());
	for (int i = 1; i <= (int)live_rounds(5, 100); i++) {
		terminal_keys("C-c");
		await(seen, SIGINT, i);
		terminal_keys("'C-\\'");
		await(seen, SIGQUIT, i);
		terminal_keys("C-z");
		await(seen, SIGTSTP, i);
		terminal_resize(100 - i % 50, 30);
		await(seen, SIGWINCH, i);
	}
	terminal_end();
	await(seen, SIGHUP, 1);
	if (!live_wait(is_gone, &shell, SCREEN_MS))
		live_fail("the shell %d does not end", shell);
	return seen;
}

static void the_terminals_signals_come_as_often_as_untraced(void)
{
	const struct tallies *plain = tally("", "plain"), *traced = tally("allocwatch run -- ", "traced");
	int sum = 0;

	for (int sig = 1; sig < TALLIES_SIGNALS; sig++) {
		/* The shell sends it when it ends, and the kernel when the shell has: one or two, as it comes. */
		if (sig == SIGHUP && traced->count[sig] <= 2)
			continue;
		/* The last ones may still be on their way through the tracer when the shell is gone. */
		await(traced, sig, plain->count[sig]);
		if (traced->count[sig] != plain->count[sig])
			live_fail("signal %d came %d times, untraced %d times", sig, traced->count[sig],
				  plain->count[sig]);
		sum += traced->count[sig];
	}
	live_note("%d signals, SIGHUP %d, SIGCONT %d", sum, traced->count[SIGHUP], traced->count[SIGCONT]);
	kill(plain->pid, SIGKILL);
	kill(traced->pid, SIGKILL);
	live_survey("run: signals of a terminal", (unsigned)sum, 0, 2, 2);
}

static const struct live_case cases[] = {
	LIVE_CASE(cat_reads_stops_and_goes_on),
	LIVE_CASE(ctrl_c_ends_the_command_and_not_us),
	LIVE_CASE(a_command_that_stops_itself_gives_the_shell_back),
	LIVE_CASE(an_editor_edits_stops_and_sees_its_window_grow),
	LIVE_CASE(a_shell_has_its_own_job_control),
	LIVE_CASE(the_terminals_signals_come_as_often_as_untraced),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
