/* Children of each kind that look at themselves: are their text, their SIGTRAP action and mask as in a process that
 * nobody ever traced?
 *
 * 'g': one child of each kind.  's': a storm of children that live at the same time.  Tally: children, bad (exit
 * codes that were not the expected one), first (what the first bad one was: kind * 1000 + exit code), blocks and
 * bytes (kept by a child of vfork whose exec has failed).
 *
 *   forks [--block-trap] [--threads N] [--storm N] [--blind]
 *       with SIGTRAP blocked by the main thread; beside N threads that allocate all the time; the children of
 *       fork only allocate, and do not look
 *   forks --look MASKED                        what the others execute */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOOD 21
#define WRONG_ACTION 1
#define WRONG_MASK 2
#define WRONG_TEXT 3
#define WRONG_MALLOC 4
#define AFTER_FAILURE 23
#define KEPT_BYTES 168
#define STORM_MAX 2000
#define STACK_BYTES (256 * 1024)

extern char **environ;

static uint64_t clean_text;
static int masked, blind;
static long children, bad, first, blocks, storm;

static int trap_is_masked(void)
{
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, SIGTRAP);
}

static int look_at_oneself(void)
{
	struct sigaction action;

	sigaction(SIGTRAP, NULL, &action);
	if (!blind && action.sa_handler != SIG_DFL)
		return WRONG_ACTION;
	if (!blind && trap_is_masked() != masked)
		return WRONG_MASK;
	if (!blind && clean_text != 0 && text_hash() != clean_text)
		return WRONG_TEXT;
	for (int i = 0; i < 50; i++) {
		char *p = malloc((size_t)i + 100);

		if (!p)
			return WRONG_MALLOC;
		memset(p, i, 100);
		free(p);
	}
	return GOOD;
}

static void expect(int kind, pid_t pid, int expected)
{
	int status = 0, code;

	children++;
	if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
		die("kind %d: %s", kind, strerror(errno));
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
	if (code == expected)
		return;
	bad++;
	if (first == 0)
		first = kind * 1000 + code;
}

static pid_t fork_one(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_at_oneself());
	return pid;
}

static pid_t clone_one(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(look_at_oneself());
	return pid;
}

static void *fork_in_thread(void *argument)
{
	*(pid_t *)argument = fork_one();
	return NULL;
}

/* A thread inherits the mask. */
static pid_t fork_from_thread(void)
{
	pid_t pid = -1;
	pthread_t thread;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (pthread_create(&thread, &attr, fork_in_thread, &pid) || pthread_join(thread, NULL))
		die("no thread");
	return pid;
}

/* The child ends, its child goes on in a session of its own and tells through a pipe. */
static pid_t daemonise(void)
{
	int ends[2];
	unsigned char told = 0;
	pid_t pid;

	if (pipe(ends))
		die("no pipe");
	pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			setsid();
			told = (unsigned char)look_at_oneself();
			if (write(ends[1], &told, 1) != 1)
				_exit(1);
		}
		_exit(GOOD);
	}
	close(ends[1]);
	if (read(ends[0], &told, 1) != 1 || told != GOOD) {
		bad++;
		first = first ? first : 9000 + told;
	}
	close(ends[0]);
	return pid;
}

static char look[] = "--look", masked_text[] = "0", name[] = "forks", blind_text[] = "--blind";
static char *look_argv[] = { name, look, masked_text, NULL, NULL };

static pid_t vfork_and_exec(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execv("/proc/self/exe", look_argv);
		_exit(127);
	}
	return pid;
}

static pid_t spawn(void)
{
	pid_t pid;

	return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, look_argv, environ) ? -1 : pid;
}

static __attribute__((noinline)) void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* after a failed exec */

	if (!p)
		_exit(1);
	p[0] = 1;
	blocks++;
}

/* As a shell does that looks for a command in each folder of its path. */
static pid_t vfork_and_fail(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			execl("/nonexistent/program", "program", (char *)NULL);
			keep_one();
		}
		_exit(AFTER_FAILURE);
	}
	return pid;
}

static void by_system(void)
{
	char command[96];
	int status;

	snprintf(command, sizeof(command), "exec /proc/%d/exe --look %d %s", (int)getpid(), masked,
		 blind ? blind_text : "");
	status = system(command);
	children++;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != GOOD) {
		bad++;
		first = first ? first : 8000 + WEXITSTATUS(status);
	}
}

static void answer(void)
{
	say("children=%ld bad=%ld first=%ld blocks=%ld bytes=%ld", children, bad, first, blocks, blocks * KEPT_BYTES);
}

static void one_of_each(void)
{
	expect(1, fork_one(), GOOD);
	expect(2, clone_one(), GOOD);
	expect(3, fork_from_thread(), GOOD);
	expect(4, daemonise(), GOOD);
	expect(5, vfork_and_exec(), GOOD);
	expect(6, spawn(), GOOD);
	expect(7, vfork_and_fail(), AFTER_FAILURE);
	by_system();
	answer();
}

static void raise_storm(void)
{
	static pid_t pids[STORM_MAX];
	int gate[2];
	char byte;

	if (pipe(gate))
		die("no pipe");
	for (long i = 0; i < storm; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork: %s", strerror(errno));
		if (pids[i] == 0) {
			close(gate[1]);
			if (read(gate[0], &byte, 1) != 0)
				_exit(1);
			_exit(look_at_oneself());
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (long i = 0; i < storm; i++)
		expect(10, pids[i], GOOD);
	answer();
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(64));
	return argument;
}

int main(int argc, char **argv)
{
	sigset_t trap;
	int command;

	blind = option_given(argc, argv, "--blind");
	if (argc >= 3 && strcmp(argv[1], look) == 0) {
		masked = argv[2][0] == '1';
		return look_at_oneself();
	}
	masked = option_given(argc, argv, "--block-trap");
	look_argv[3] = blind ? blind_text : NULL;
	masked_text[0] = masked ? '1' : '0';
	storm = option_number(argc, argv, "--storm", 100);
	if (storm > STORM_MAX)
		die("too many children");
	for (long i = option_number(argc, argv, "--threads", 0); i > 0; i--)
		start_thread(churn, NULL, STACK_BYTES);
	if (masked) {
		sigemptyset(&trap);
		sigaddset(&trap, SIGTRAP);
		pthread_sigmask(SIG_BLOCK, &trap, NULL);
	}
	clean_text = text_hash();
	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 's')
			raise_storm();
		else
			one_of_each();
	}
	return 0;
}
