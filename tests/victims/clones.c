/* Children by every combination of clone's flags that makes a process: with a copy of the memory they look at themselves
 * (text, SIGTRAP action and mask as in a process that nobody ever traced), with a share of it they allocate.
 *
 * 'g': one child of each kind.  Tally: children, bad (not the expected exit code), first (what the first bad one was:
 * kind * 1000 + exit code), skipped (kinds that the kernel does not have or permit here), parented (a child whose
 * parent is ours, unwaited for).
 *
 *   clones [--own-trap] [--blind]     with a SIGTRAP handler of its own; those with a copy only allocate, too
 *   clones --look ACTION BLIND        what others execute */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

#define GOOD 21
#define WRONG_ACTION 1
#define WRONG_MASK 2
#define WRONG_TEXT 3
#define WRONG_MALLOC 4
#define WRONG_NUMBER 5
#define WRONG_FILE 6
#define STACK_BYTES (256 * 1024)
#define CGROUPS "/sys/fs/cgroup/unified", "/sys/fs/cgroup"

extern char **environ;

static uint64_t clean_text;
static bool blind, own_trap, cleared;
static long children, bad, first, skipped, parented;
static char *stack;

static void on_trap(int sig)
{
	(void)sig;
}

static int allocate(void)
{
	for (int i = 0; i < 50; i++) {
		char *p = malloc((size_t)i + 100);

		if (!p)
			return WRONG_MALLOC;
		memset(p, i, 100);
		free(p);
	}
	return GOOD;
}

static int look_at_oneself(void)
{
	struct sigaction action;
	uint64_t hash;
	sigset_t set;

	sigaction(SIGTRAP, NULL, &action);
	sigprocmask(SIG_SETMASK, NULL, &set);
	if (!blind && action.sa_handler != (own_trap && !cleared ? on_trap : SIG_DFL))
		return WRONG_ACTION;
	if (!blind && sigismember(&set, SIGTRAP))
		return WRONG_MASK;
	hash = blind ? 0 : text_hash();
	/* In a PID namespace that /proc is not of, there is none. */
	if (hash != 0 && clean_text != 0 && hash != clean_text)
		return WRONG_TEXT;
	return allocate();
}

static void note(int kind, int code)
{
	children++;
	if (code == GOOD)
		return;
	bad++;
	if (first == 0)
		first = kind * 1000 + code;
}

static void expect(int kind, pid_t pid)
{
	int status = 0;

	if (pid < 0) {
		skipped++;
		return;
	}
	if (waitpid(pid, &status, __WALL) != pid)
		die("kind %d: %s", kind, strerror(errno));
	note(kind, WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status));
}

/* --- a copy of the memory --- */

static pid_t clone_copy(unsigned long flags)
{
	pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(look_at_oneself());
	return pid;
}

static pid_t clone3_copy(struct clone_args *args)
{
	pid_t pid = (pid_t)syscall(SYS_clone3, args, sizeof(*args));

	if (pid == 0)
		_exit(look_at_oneself());
	return pid;
}

static pid_t clone3_flags(uint64_t flags)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };

	return clone3_copy(&args);
}

static pid_t cleared_copy(void)
{
	pid_t pid;

	cleared = true;
	pid = clone3_flags(CLONE_CLEAR_SIGHAND);
	cleared = false;
	return pid;
}

/* Nobody tells a tracer of it. */
static pid_t clone_untraced(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(allocate());
	return pid;
}

/* Waited for by its descriptor. */
static void with_pidfd(int kind)
{
	int pidfd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD };
	siginfo_t si = { 0 };
	pid_t pid = clone3_copy(&args);

	if (pid < 0) {
		skipped++;
		return;
	}
	if (waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED) || si.si_pid != pid)
		die("kind %d: %s", kind, strerror(errno));
	close(pidfd);
	note(kind, si.si_code == CLD_EXITED ? si.si_status : 100 + si.si_status);
}

static void with_numbers(int kind)
{
	static int in_parent, in_child;
	struct clone_args args = { .flags = CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
				   .parent_tid = (uintptr_t)&in_parent, .child_tid = (uintptr_t)&in_child,
				   .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(in_child == getpid() ? look_at_oneself() : WRONG_NUMBER);
	if (pid > 0 && in_parent != pid)
		note(kind, WRONG_NUMBER);
	expect(kind, pid);
}

static void with_files(int kind)
{
	int ends[2];
	char byte = 0;
	pid_t pid;

	if (pipe(ends))
		die("no pipe");
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_FS | CLONE_IO | CLONE_SYSVSEM | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		int code = look_at_oneself();

		/* Nobody else may close it in the meantime: it is the parent's, too. */
		if (write(ends[1], "x", 1) != 1 || dup2(ends[0], 99) != 99)
			code = WRONG_FILE;
		_exit(code);
	}
	expect(kind, pid);
	if (read(99, &byte, 1) != 1 || byte != 'x')
		note(kind, WRONG_FILE);
	close(99);
	close(ends[0]);
	close(ends[1]);
}

static void into_cgroup(int kind)
{
	static const char *const roots[] = { CGROUPS };
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	pid_t pid = -1;
	char path[64];

	for (size_t i = 0; pid < 0 && i < 2; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/clones-%d", roots[i], (int)getpid());
		if (mkdir(path, 0755))
			continue;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		args.cgroup = (uint64_t)fd;
		pid = clone3_copy(&args);
		close(fd);
		if (pid > 0) {
			expect(kind, pid);
			rmdir(path);
			return;
		}
		rmdir(path);
	}
	skipped++;
}

/* Ours to look at by its exit code, but not to wait for. */
static void for_our_parent(void)
{
	pid_t pid = clone_copy(CLONE_PARENT | SIGCHLD);

	if (pid > 0)
		parented = pid;
	children++;
}

/* Its number in its own namespace is 1, and that of its child 2. */
static int first_of_namespace(void)
{
	int status = 0, code = getpid() == 1 ? look_at_oneself() : WRONG_NUMBER;
	pid_t pid;

	if (code != GOOD)
		return code;
	pid = fork();
	if (pid == 0)
		_exit(getpid() == 2 ? look_at_oneself() : WRONG_NUMBER);
	if (pid != 2 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return WRONG_NUMBER;
	return WEXITSTATUS(status);
}

static pid_t in_namespaces(unsigned long flags)
{
	pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(first_of_namespace());
	return pid;
}

/* For the next child, and then no more. */
static void unshared(int kind)
{
	int before = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	if (unshare(CLONE_NEWPID)) {
		close(before);
		skipped++;
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(first_of_namespace());
	if (setns(before, CLONE_NEWPID))
		die("setns: %s", strerror(errno));
	close(before);
	expect(kind, pid);
}

static pid_t with_set_number(void)
{
	pid_t wanted = getpid() > 16000 ? getpid() - 9000 : getpid() + 9000, pid = -1;
	struct clone_args args = { .set_tid = (uintptr_t)&wanted, .set_tid_size = 1, .exit_signal = SIGCHLD };

	for (int i = 0; i < 500 && pid < 0 && (i == 0 || errno == EEXIST); i++, wanted++) {
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (pid == 0)
			_exit(getpid() == wanted ? look_at_oneself() : WRONG_NUMBER);
	}
	return pid;
}

/* No SIGCHLD when it ends: for the kernel's tracing, a clone. */
static void told_otherwise(int kind)
{
	signal(SIGUSR1, SIG_IGN);
	expect(kind, clone_copy(0));
	expect(kind, clone_copy(SIGUSR1));
	signal(SIGUSR1, SIG_DFL);
}

/* --- a share of the memory --- */

static int run_sharing(void *argument)
{
	(void)argument;
	return allocate();
}

static pid_t clone_share(int flags)
{
	return clone(run_sharing, stack + STACK_BYTES, CLONE_VM | flags, NULL);
}

/* clone3 has no function in libc. */
static pid_t clone3_share(uint64_t flags)
{
	struct clone_args args = { .flags = CLONE_VM | flags, .exit_signal = SIGCHLD,
				   .stack = (uintptr_t)stack, .stack_size = STACK_BYTES };
	long pid;

	asm volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\txor %%edi, %%edi\n\tcall *%[run]\n\t"
		     "mov %%eax, %%edi\n\tmov %[end], %%eax\n\tsyscall\n\t1:"
		     : "=a"(pid)
		     : "a"((long)SYS_clone3), "D"(&args), "S"(sizeof(args)), [run] "r"(run_sharing), [end] "i"(SYS_exit_group)
		     : "rcx", "r11", "memory");
	return pid < 0 ? -1 : (pid_t)pid;
}

static char look[] = "--look", name[] = "clones", zero[] = "0", one[] = "1";
static char *look_argv[5] = { name, look, zero, zero, NULL };

static int execute(void *argument)
{
	(void)argument;
	execve("/proc/self/exe", look_argv, environ);
	return 127;
}

/* As posix_spawn does. */
static pid_t spawned(int flags)
{
	return clone(execute, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | flags | SIGCHLD, NULL);
}

static int unshare_and_look(void *argument)
{
	(void)argument;
	/* From here on it has a copy of the files, and still a share of the memory. */
	return unshare(CLONE_FILES | CLONE_FS) ? WRONG_FILE : allocate();
}

static void one_of_each(void)
{
	expect(1, clone3_flags(0));
	with_pidfd(2);
	with_numbers(3);
	with_files(4);
	into_cgroup(5);
	for_our_parent();
	expect(7, cleared_copy());
	told_otherwise(8);
	expect(9, with_set_number());
	expect(10, in_namespaces(CLONE_NEWPID));
	expect(11, in_namespaces(CLONE_NEWUSER | CLONE_NEWPID));
	expect(12, clone_copy(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | SIGCHLD));
	expect(13, clone_copy(CLONE_NEWUSER | SIGCHLD));
	unshared(14);
	expect(15, clone_copy(CLONE_PTRACE | SIGCHLD));
	expect(16, clone_untraced());

	expect(20, clone_share(SIGCHLD));
	expect(21, clone_share(0));
	expect(22, clone_share(CLONE_FILES | CLONE_FS | CLONE_SYSVSEM | SIGCHLD));
	expect(23, clone_share(CLONE_SIGHAND | SIGCHLD));
	expect(24, clone_share(CLONE_SIGHAND | CLONE_FILES | CLONE_FS | CLONE_VFORK | SIGCHLD));
	expect(25, clone3_share(0));
	expect(26, clone3_share(CLONE_CLEAR_SIGHAND));
	expect(27, clone_share(CLONE_PTRACE | SIGCHLD));
	expect(28, clone_share(CLONE_NEWPID | SIGCHLD));
	expect(32, clone_share(CLONE_UNTRACED | SIGCHLD));
	expect(29, spawned(0));
	expect(30, spawned(CLONE_FILES));
	expect(31, clone(unshare_and_look, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, NULL));
	say("children=%ld bad=%ld first=%ld skipped=%ld parented=%ld", children, bad, first, skipped, parented);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], look) == 0) {
		blind = argv[3][0] == '1';
		return look_at_oneself();
	}
	blind = option_given(argc, argv, "--blind");
	own_trap = option_given(argc, argv, "--own-trap");
	look_argv[3] = blind ? one : zero;
	if (own_trap)
		signal(SIGTRAP, on_trap);
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		die("no stack");
	clean_text = text_hash();
	obey(one_of_each);
	return 0;
}
