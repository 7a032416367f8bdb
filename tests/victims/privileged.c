/* Executes a program that has more rights than it has.
 *
 *   privileged PROGRAM [exec | raw | script | descriptor]
 *                'g': by fork, vfork and posix_spawn, by path, folder and descriptor, by libc and without it; with a
 *                second word at the end by itself: by libc, without it, as the interpreter of PROGRAM, by descriptor
 *
 * A copy of the same file, set-uid or with capabilities, is that program: without an argument it says by its exit
 * code whether it has any rights.
 * Tally: runs, good (ended as a program with its rights does). */
#define _GNU_SOURCE
#include "victim.h"

#include <fcntl.h>
#include <libgen.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIGHTS 41
#define NO_RIGHTS 40

extern char **environ;

static char *program;
static long runs, good;

static bool has_rights(void)
{
	char line[256];
	unsigned long capabilities = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "CapEff: %lx", &capabilities);
	return geteuid() == 0 || capabilities != 0;
}

static void expect(pid_t pid)
{
	int status;

	runs++;
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == RIGHTS)
		good++;
}

static void by_path(char **argv)
{
	execv(program, argv);
}

/* An open file of it, by libc's own function. */
static void by_descriptor(char **argv)
{
	fexecve(open(program, O_RDONLY | O_CLOEXEC), argv, environ);
}

static void by_folder(char **argv)
{
	int folder = open(dirname(strdup(program)), O_RDONLY | O_DIRECTORY);

	execveat(folder, strrchr(program, '/') + 1, argv, environ, 0);
}

/* By no function of libc's for it. */
static void by_call(char **argv)
{
	syscall(SYS_execve, program, argv, environ);
}

static void by_call_with_descriptor(char **argv)
{
	syscall(SYS_execveat, open(program, O_RDONLY | O_CLOEXEC), "", argv, environ, AT_EMPTY_PATH);
}

/* Names that each process has of its own. */
static void by_own_name(char **argv)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", open(program, O_RDONLY));
	execv(path, argv);
}

static void by_other_own_name(char **argv)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/fd/%d", open(program, O_RDONLY));
	execv(path, argv);
}

static void execute_as_child(pid_t pid, void (*execute)(char **argv))
{
	char *argv[] = { program, NULL };

	if (pid == 0) {
		execute(argv);
		_exit(127);
	}
	expect(pid);
}

static void turn(void)
{
	char *argv[] = { program, NULL };
	pid_t pid;

	execute_as_child(fork(), by_path);
	execute_as_child(fork(), by_descriptor);
	execute_as_child(fork(), by_folder);
	execute_as_child(fork(), by_call);
	execute_as_child(fork(), by_call_with_descriptor);
	execute_as_child(fork(), by_own_name);
	execute_as_child(fork(), by_other_own_name);
	pid = vfork();
	if (pid == 0) {
		execveat(AT_FDCWD, program, argv, environ, 0);
		_exit(127);
	}
	expect(pid);
	pid = vfork();
	if (pid == 0) {
		by_call(argv);
		_exit(127);
	}
	expect(pid);
	if (posix_spawn(&pid, program, NULL, NULL, argv, environ))
		pid = -1;
	expect(pid);
	say("runs=%ld good=%ld", runs, good);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return has_rights() ? RIGHTS : NO_RIGHTS;
	program = argv[1];
	obey(turn);
	if (argc > 2 && strcmp(argv[2], "exec") == 0)
		execl(program, program, (char *)NULL);
	else if (argc > 2 && strcmp(argv[2], "descriptor") == 0)
		by_call_with_descriptor((char *[]){ program, NULL });
	else if (argc > 2)
		by_call((char *[]){ program, NULL });
	return 0;
}
