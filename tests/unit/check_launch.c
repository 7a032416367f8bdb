/* The command of `allocwatch run`: nothing of it runs before it may, and nothing it sees is changed. */
#define _GNU_SOURCE              /* pipe2 */
#include "cli/launch.h"

#include "base/clock.h"
#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The command writes to descriptor 9, which is this pipe. */
#define COMMAND_FD 9
#define SILENT_FD 8
static int output_fd;

static void open_output(void)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(fds[1], COMMAND_FD), COMMAND_FD);
	close(fds[1]);
	output_fd = fds[0];
}

/* Reading it waits for ever, and a trapped signal ends the wait. */
static void open_silence(void)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(fds[0], SILENT_FD), SILENT_FD);
	close(fds[0]);
}

static void start_shell(struct launch *launch, const char *script)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };

	ck_assert_int_eq(launch_start(launch, argv), 0);
	close(COMMAND_FD);
}

static char *read_output(void)
{
	char *text;

	ck_assert_int_eq(fd_read_text(output_fd, 65536, &text, NULL), 0);
	return text;
}

static int run_shell(const char *script)
{
	struct launch launch;

	sigset_t none;

	/* A client starts one command only; here the one before has left its signals blocked. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	open_output();
	start_shell(&launch, script);
	ck_assert_int_eq(launch_go(&launch, 0), 0);
	ck_assert_int_eq(launch_wait(&launch, UINT64_MAX), 0);
	return launch_exit_status(&launch);
}

START_TEST(a_command_that_is_not_let_go_never_runs)
{
	struct launch launch;
	char *text;

	open_output();
	start_shell(&launch, "echo ran >&9");
	launch_abandon(&launch);
	text = read_output();
	ck_assert_str_eq(text, "");
	free(text);
	ck_assert_int_eq(waitpid(launch.pid, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(exit_status_is_the_commands_as_a_shell_gives_it)
{
	ck_assert_int_eq(run_shell("exit 0"), 0);
	ck_assert_int_eq(run_shell("exit 7"), 7);
	ck_assert_int_eq(run_shell("exit 126"), 126);
	ck_assert_int_eq(run_shell("kill -TERM $$"), 128 + SIGTERM);
	ck_assert_int_eq(run_shell("kill -KILL $$"), 128 + SIGKILL);
}
END_TEST

START_TEST(a_failed_exec_tells_its_errno)
{
	char *missing[] = { (char *)"/nonexistent/command", NULL };
	char *plain[] = { (char *)"/etc/passwd", NULL };
	struct launch launch;

	ck_assert_int_eq(launch_start(&launch, missing), 0);
	ck_assert_int_eq(launch_go(&launch, 0), -ENOENT);
	ck_assert_int_eq(launch_exit_status(&launch), 127);
	ck_assert_int_eq(launch_start(&launch, plain), 0);
	ck_assert_int_eq(launch_go(&launch, 0), -EACCES);
	ck_assert_int_eq(launch_exit_status(&launch), 126);
}
END_TEST

/* A command that shows how it was started: its own status goes to COMMAND_FD. */
static char *const self_portrait[] = { (char *)"/bin/cp", (char *)"/proc/self/status", (char *)"/dev/fd/9", NULL };

/* The lines from "ShdPnd" to "SigCgt". */
static char *signal_lines(void)
{
	char *text = read_output();
	char *first = strstr(text, "ShdPnd:"), *last = strstr(text, "SigCgt:"), *lines;

	ck_assert(first && last && first < last);
	lines = strndup(first, (size_t)(last - first));
	free(text);
	return lines;
}

static unsigned long long ignored_signals(const char *lines)
{
	const char *line = strstr(lines, "SigIgn:");

	ck_assert_ptr_nonnull(line);
	return strtoull(line + strlen("SigIgn:"), NULL, 16);
}

START_TEST(signals_of_the_command_are_as_without_us)
{
	struct launch launch;
	char *before, *after;
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	open_output();
	pid = fork();
	if (pid == 0)
		execv(self_portrait[0], self_portrait);
	close(COMMAND_FD);
	before = signal_lines();
	open_output();
	ck_assert_int_eq(launch_start(&launch, (char **)self_portrait), 0);
	close(COMMAND_FD);
	ck_assert_int_eq(launch_go(&launch, 0), 0);
	ck_assert_int_eq(launch_wait(&launch, UINT64_MAX), 0);
	ck_assert_int_eq(launch_exit_status(&launch), 0);
	after = signal_lines();
	ck_assert_uint_eq(ignored_signals(before) & 0x10800, 0x10800);
	ck_assert_str_eq(after, before);
	free(before);
	free(after);
}
END_TEST

START_TEST(a_signal_sent_to_us_reaches_the_command)
{
	struct launch launch;
	char byte;

	open_output();
	open_silence();
	start_shell(&launch, "trap 'exit 42' TERM; printf r >&9; read x <&8");
	ck_assert_int_eq(launch_go(&launch, 0), 0);
	ck_assert_int_eq(read(output_fd, &byte, 1), 1);
	kill(getpid(), SIGTERM);
	ck_assert_int_eq(launch_wait(&launch, UINT64_MAX), 0);
	ck_assert_int_eq(launch_exit_status(&launch), 42);
}
END_TEST

START_TEST(a_wait_ends_at_its_deadline_and_can_go_on)
{
	struct launch launch;
	int fds[2];

	open_output();
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(dup2(fds[0], SILENT_FD), SILENT_FD);
	start_shell(&launch, "read line <&8; exit 5");
	ck_assert_int_eq(launch_go(&launch, 0), 0);
	ck_assert_int_eq(launch_wait(&launch, clock_monotonic_ns() + 20 * NSEC_PER_MSEC), -ETIME);
	ck_assert_int_eq(fd_write_all(fds[1], "x\n", 2), 0);
	ck_assert_int_eq(launch_wait(&launch, UINT64_MAX), 0);
	ck_assert_int_eq(launch_exit_status(&launch), 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("launch");
	TCase *tcase = tcase_create("launch");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 30);
	tcase_add_test(tcase, a_command_that_is_not_let_go_never_runs);
	tcase_add_test(tcase, exit_status_is_the_commands_as_a_shell_gives_it);
	tcase_add_test(tcase, a_failed_exec_tells_its_errno);
	tcase_add_test(tcase, signals_of_the_command_are_as_without_us);
	tcase_add_test(tcase, a_signal_sent_to_us_reaches_the_command);
	tcase_add_test(tcase, a_wait_ends_at_its_deadline_and_can_go_on);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
