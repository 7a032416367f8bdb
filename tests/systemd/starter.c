/* A service that knows each of its allocations, from before main() on, and tells what an exec has handed on to it.
 * usage: starter FILE STATUS [ARG...]: writes FILE, says that it is ready, and ends with STATUS at SIGTERM. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* tests/systemd/from_start_cases counts these. */
#define BLOCKS 1000
#define BLOCK_SIZE 100
#define FIRST_SIZE 12345

static void *volatile kept[BLOCKS + 1];

__attribute__((constructor)) static void first(void)
{
	kept[BLOCKS] = malloc(FIRST_SIZE);
}

static void copy_file(const char *path, int out)
{
	static char text[16384];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0) {
		if (write(out, text, (size_t)n) != n)
			_exit(99);
	}
	close(fd);
}

static void put(int out, const char *text)
{
	if (write(out, text, strlen(text)) < 0)
		_exit(99);
}

static void put_all(int out, const char *what, char **list)
{
	for (; *list; list++) {
		put(out, what);
		put(out, *list);
		put(out, ">\n");
	}
}

/* No stdio, which allocates. */
static void tell(const char *file, char **argv, char **environment)
{
	static char beside[4096];
	int out;

	if (strlen(file) + sizeof(".new") > sizeof(beside))
		_exit(97);
	strcpy(stpcpy(beside, file), ".new");
	out = open(beside, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	put_all(out, "argument <", argv);
	put_all(out, "environment <", environment);
	copy_file("/proc/self/limits", out);
	copy_file("/proc/self/status", out);
	close(out);
	/* There at once and whole. */
	if (rename(beside, file) < 0)
		_exit(99);
}

static void say_ready(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (!path || fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return;
	strcpy(address.sun_path, path);
	if (*path == '@')
		address.sun_path[0] = '\0';
	if (sendto(fd, "READY=1", 7, 0, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) != 7)
		_exit(98);
	close(fd);
}

int main(int argc, char **argv, char **environment)
{
	sigset_t end;
	int sig;

	if (argc < 3)
		return 97;
	for (int i = 0; i < BLOCKS; i++)
		kept[i] = malloc(BLOCK_SIZE);
	tell(argv[1], argv, environment);
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	say_ready();
	/* One of several commands. */
	if (argc > 3 && strcmp(argv[3], "ends") == 0)
		return atoi(argv[2]);
	sigwait(&end, &sig);
	return atoi(argv[2]);
}
