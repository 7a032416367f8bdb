#include "programs.h"

#include "live.h"
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define VALUE_BYTES_MAX 1000
#define ANSWER_MS 60000

const char *program_find(const char *const *candidates)
{
	for (size_t i = 0; candidates[i]; i++) {
		if (access(candidates[i], X_OK) == 0)
			return candidates[i];
	}
	live_fail("%s is not installed; contrib/install-deps --test installs it", candidates[0]);
}

static int try_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool is_listening(void *context)
{
	int fd = try_connect(context);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int program_connect(const char *path)
{
	int fd;

	if (!live_wait(is_listening, (void *)path, ANSWER_MS))
		live_fail("nobody listens on %s", path);
	fd = try_connect(path);
	if (fd < 0)
		live_fail("%s: %s", path, strerror(errno));
	return fd;
}

void program_send(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			live_fail("sending a request: %s", strerror(errno));
		data += n;
		len -= (size_t)n;
	}
}

void program_expect_lines(int fd, int lines)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	char buf[4096];

	while (lines > 0) {
		ssize_t n;

		if (poll(&pollfd, 1, ANSWER_MS) != 1)
			live_fail("no answer to a request");
		n = recv(fd, buf, sizeof(buf), 0);
		if (n <= 0)
			live_fail("the connection was closed: %s", strerror(errno));
		for (ssize_t i = 0; i < n; i++)
			lines -= buf[i] == '\n';
	}
}

/* --- redis --- */

void program_set_key(struct program *redis, int key, int bytes)
{
	char value[VALUE_BYTES_MAX + 1], request[VALUE_BYTES_MAX + 64];
	int n;

	if (bytes > VALUE_BYTES_MAX)
		live_fail("a value of %d bytes is too long", bytes);
	memset(value, 'v', (size_t)bytes);
	value[bytes] = '\0';
	n = snprintf(request, sizeof(request), "SET key:%d %s\r\n", key, value);
	program_send(redis->connection, request, (size_t)n);
	program_expect_lines(redis->connection, 1);
}

void program_start_redis(struct program *program, uid_t uid)
{
	static const char *const candidates[] = { "/usr/bin/redis-server", NULL };
	const char *const argv[] = {
		program_find(candidates), "--port", "0", "--unixsocket", program->socket, "--unixsocketperm",
		"777", "--save", "", "--appendonly", "no", "--logfile", "/dev/null", NULL,
	};

	program->subject = subject_start(uid, argv);
	program->connection = program_connect(program->socket);
	program->object = "redis";
	/* It listens before it has all of its threads, and answers when it has. */
	program_send(program->connection, "PING\r\n", strlen("PING\r\n"));
	program_expect_lines(program->connection, 1);
}

/* --- nginx --- */

static void write_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void write_file(const char *path, const char *format, ...)
{
	FILE *f = fopen(path, "w");
	va_list args;

	if (!f)
		live_fail("%s: %s", path, strerror(errno));
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fclose(f);
}

void program_start_nginx(struct program *program)
{
	static const char *const candidates[] = { "/usr/sbin/nginx", NULL };
	const char *folder = live_folder();
	const char *conf = live_text("%s/conf", folder);
	const char *const argv[] = { program_find(candidates), "-p", folder, "-c", conf, NULL };

	write_file(live_text("%s/index.html", folder), "hello\nworld\n");
	write_file(conf,
		   "daemon off; master_process off; error_log /dev/null; pid %s/pid;\n"
		   "events { worker_connections 900; }\n"
		   "http { access_log off; client_header_timeout 600s; keepalive_timeout 3600s; keepalive_requests 100000000;\n"
		   "client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;\n"
		   "uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
		   "server { listen unix:%s; root %s; } }\n",
		   folder, folder, folder, folder, folder, folder, program->socket, folder);
	program->subject = subject_start(geteuid(), argv);
	program->connection = program_connect(program->socket);
	program->object = "nginx";
}

/* The page is the last thing of the answer. */
void program_get_page(int connection)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
	static const char end[] = "hello\nworld\n";
	struct pollfd pollfd = { .fd = connection, .events = POLLIN };
	char answer[4096];
	size_t len = 0;

	program_send(connection, request, sizeof(request) - 1);
	do {
		ssize_t n;

		if (poll(&pollfd, 1, ANSWER_MS) != 1)
			live_fail("no answer to a request for a page");
		n = recv(connection, answer + len, sizeof(answer) - 1 - len, 0);
		if (n <= 0)
			live_fail("the connection was closed: %s", n < 0 ? strerror(errno) : "by the server");
		len += (size_t)n;
		answer[len] = '\0';
	} while (!strstr(answer, end));
}

/* --- python --- */

void program_start_python(struct program *program, const char *script)
{
	static const char *const candidates[] = { "/usr/bin/python3", NULL };
	const char *const argv[] = { program_find(candidates), "-I", "-S", "-c", script, NULL };

	program->subject = subject_start(geteuid(), argv);
	program->object = "python";
	if (strcmp(subject_line(program->subject), "R") != 0)
		live_fail("python said '%s' instead of R", program->subject->line);
}
