/* Without libc: see shim.h. */
#include "shim/shim.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/time.h>

#define NSEC_PER_MSEC 1000000LL
#define STATUS_MAX 4096

/* start_x86_64.S: the first is what the kernel returned, a negative errno included. */
long shim_syscall(long number, ...);
void shim_main(long *stack);

/* Not on the stack: nothing here may make a compiler ask for a stack protector, whose cookie libc sets up. */
static char status[STATUS_MAX + 1];
static struct timespec now, pause;

static long long now_ms(void)
{
	shim_syscall(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / NSEC_PER_MSEC;
}

static const char *after(const char *text, const char *word)
{
	for (; *text; text++) {
		int i = 0;

		while (word[i] && text[i] == word[i])
			i++;
		if (!word[i])
			return text + i;
	}
	return text;
}

/* 1, 0, or a negative errno: it cannot be known. */
static long is_traced(void)
{
	long fd = shim_syscall(__NR_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0L);
	long n;

	if (fd < 0)
		return fd;
	n = shim_syscall(__NR_read, fd, status, (long)STATUS_MAX);
	shim_syscall(__NR_close, fd);
	if (n < 0)
		return n;
	status[n] = '\0';
	return *after(status, "\nTracerPid:\t") > '0';
}

static void wait_to_be_traced(void)
{
	long long deadline = now_ms() + SHIM_WAIT_MS;

	pause.tv_nsec = SHIM_LOOK_MS * NSEC_PER_MSEC;
	while (is_traced() == 0 && now_ms() < deadline)
		shim_syscall(__NR_clock_nanosleep, CLOCK_MONOTONIC, 0L, &pause, (void *)0);
}

void shim_main(long *stack)
{
	long argc = stack[0];
	char **argv = (char **)(stack + 1), **environment = argv + argc + 1;

	if (argc < 3)
		shim_syscall(__NR_exit_group, (long)SHIM_WRONG_USAGE);
	wait_to_be_traced();
	shim_syscall(__NR_execve, argv[1], argv + 2, environment);
	shim_syscall(__NR_exit_group, (long)SHIM_CANNOT_EXECUTE);
	__builtin_trap();
}
