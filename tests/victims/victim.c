#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define STATUS_BROKEN 99

static __attribute__((format(printf, 3, 0))) void write_line(int fd, const char *prefix,
								const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];
	int head = snprintf(line, sizeof(line), "%s", prefix);
	int n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, args);
	size_t len = (size_t)(head + n);

	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (write(fd, line, len) != (ssize_t)len)
		_exit(STATUS_BROKEN);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(STDOUT_FILENO, "", format, args);
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(STDERR_FILENO, "failed: ", format, args);
	va_end(args);
	_exit(STATUS_BROKEN);
}

int next_command(void)
{
	char c = ' ';
	ssize_t n;

	do {
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0)
			die("reading a command: %s", strerror(errno));
		if (n == 0)
			return VICTIM_CLOSED;
	} while (c == ' ' || c == '\n');
	return c;
}

/* The bytes of one mapping that differ from its file; -1: it has no readable file. */
static long compare_mapping(const char *start, size_t len, off_t offset, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	long different = 0;

	if (fd < 0)
		return -1;
	for (size_t at = 0; at < len; at += sizeof(chunk)) {
		ssize_t n = pread(fd, chunk, sizeof(chunk), offset + (off_t)at);

		for (ssize_t i = 0; i < n; i++)
			different += chunk[i] != start[at + (size_t)i];
	}
	close(fd);
	return different;
}

/* Its own text against the files, for those who may not read it from outside.  The kernel gives whole lines. */
void compare_text(long *ret_compared, long *ret_different)
{
	static char maps[65536];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	long compared = 0, different = 0;
	size_t len = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, maps + len, sizeof(maps) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	maps[len] = '\0';
	for (char *line = maps, *end; (end = strchr(line, '\n')); line = end + 1) {
		unsigned long start, stop, offset;
		char permissions[5], path[512];
		long r;

		*end = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*u %511s", &start, &stop, permissions, &offset, path) != 5 ||
		    permissions[2] != 'x' || path[0] != '/')
			continue;
		r = compare_mapping((const char *)start, stop - start, (off_t)offset, path);
		if (r < 0)
			continue;
		compared += (long)(stop - start);
		different += r;
	}
	*ret_compared = compared;
	*ret_different = different;
}

void obey(void (*round)(void))
{
	say("R");
	for (;;) {
		int command = next_command();

		if (command == 'q')
			return;
		if (command != 'g')
			die("unknown command '%c'", command);
		round();
	}
}

long option_number(int argc, char **argv, const char *name, long fallback)
{
	for (int i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], name))
			return atol(argv[i + 1]);
	}
	return fallback;
}

int option_given(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
	}
	return 0;
}

struct start {
	void *(*run)(void *);
	void *argument;
	atomic_int begun;
};

static void *begin(void *argument)
{
	struct start *shared = argument, own = { .run = shared->run, .argument = shared->argument };

	atomic_store(&shared->begun, 1);
	return own.run(own.argument);
}

/* A new thread blocks every signal for a moment; when this returns, that is over. */
pthread_t start_thread(void *(*run)(void *), void *argument, size_t stack_bytes)
{
	struct start start = { .run = run, .argument = argument };
	pthread_attr_t attributes;
	pthread_t thread;
	void *stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	int r;

	if (stack == MAP_FAILED)
		die("mapping a stack: %s", strerror(errno));
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, stack_bytes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attributes, begin, &start);
	if (r)
		die("starting a thread: %s", strerror(r));
	pthread_attr_destroy(&attributes);
	while (!atomic_load(&start.begun))
		sched_yield();
	return thread;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}
