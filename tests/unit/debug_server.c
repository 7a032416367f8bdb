#include "debug_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEBUGINFOD "/usr/bin/debuginfod"

static int listen_somewhere(char *url, size_t space)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(sock, (const struct sockaddr *)&address, len) < 0 || listen(sock, 8) < 0 ||
	    getsockname(sock, (struct sockaddr *)&address, &len) < 0)
		abort();
	snprintf(url, space, "http://127.0.0.1:%u", ntohs(address.sin_port));
	return sock;
}

static void say(int client, const char *text)
{
	if (write(client, text, strlen(text)) < 0)
		return;
}

static void answer(enum debug_server_way way, int client)
{
	char bytes[4096] = { 0 };

	if (read(client, bytes, sizeof(bytes)) <= 0)
		return;
	if (way == DEBUG_SERVER_RUBBISH)
		say(client, "HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nrubbish\n");
	else if (way == DEBUG_SERVER_SLOW)
		say(client, "HTTP/1.0 200 OK\r\nContent-Length: 80000\r\n\r\n\177ELF");
	else
		say(client, "HTTP/1.0 200 OK\r\n\r\n\177ELF");
	while (way == DEBUG_SERVER_ENDLESS && write(client, bytes, sizeof(bytes)) > 0)
		;
	/* To its peer's end. */
	while (way == DEBUG_SERVER_SLOW && read(client, bytes, sizeof(bytes)) > 0)
		;
}

static void serve(enum debug_server_way way, int sock)
{
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int client;

		if (way == DEBUG_SERVER_SILENT)
			pause();
		client = accept(sock, NULL, NULL);
		if (client >= 0 && fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			answer(way, client);
			_exit(0);
		}
		close(client);
	}
}

static pid_t begin(void)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		abort();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return child;
}

pid_t debug_server_misbehave(enum debug_server_way way, char *url, size_t space)
{
	int sock = listen_somewhere(url, space);
	pid_t server = begin();

	if (server == 0)
		serve(way, sock);
	close(sock);
	return server;
}

static void become_debuginfod(const char *folder, const char *port)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	unsetenv("DEBUGINFOD_URLS");
	/* What it could not take in while it was asked, or was not whole yet, it looks at again in a second. */
	execl(DEBUGINFOD, "debuginfod", "-F", "-c", "1", "-p", port, "-d", ":memory:", "-t", "1", folder, (char *)NULL);
	_exit(127);
}

pid_t debug_server_start(const char *folder, char *url, size_t space)
{
	pid_t server;
	int sock;

	if (access(DEBUGINFOD, X_OK) < 0)
		return -1;
	sock = listen_somewhere(url, space);
	close(sock);
	server = begin();
	if (server == 0)
		become_debuginfod(folder, strrchr(url, ':') + 1);
	return server;
}

int debug_server_status(const char *url, const char *build_id)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0;
	char text[256];
	ssize_t n;

	address.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
	snprintf(text, sizeof(text), "GET /buildid/%s/debuginfo HTTP/1.0\r\n\r\n", build_id);
	if (connect(sock, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		say(sock, text);
		n = read(sock, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		sscanf(text, "HTTP/%*s %d", &status);
	}
	close(sock);
	return status;
}

void debug_server_stop(pid_t server)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}
