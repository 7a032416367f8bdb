/* A sample daemon that leaks: what the demo and the tests attach to.
 *
 * It answers made-up requests.  Each keeps a session (freed in the end), a log line (freed) and a
 * header value that is never freed: the line marked "leak" is the one to find.
 *
 *   leaky --every MS       a request each MS milliseconds until SIGTERM
 *   leaky --commands       obeys bytes on stdin: 'g' handles 100 requests and answers "handled=N
 *                          leaked=BYTES blocks=N header=ADDRESS" (of the block leaked last), 'q' or the
 *                          end of input quits.  Writes "R" when ready.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS_PER_COMMAND 100
#define SESSIONS 64
#define HEADER_BYTES 1000

struct session {
	unsigned number;
	char peer[112];
};

static struct session *sessions[SESSIONS];
static unsigned handled;
static unsigned long leaked_bytes, leaked_blocks;
static void *last_header;

static __attribute__((noinline)) char *copy_header(const char *value)
{
	char *copy = malloc(HEADER_BYTES); /* leak */

	if (!copy)
		abort();
	leaked_bytes += HEADER_BYTES;
	leaked_blocks++;
	last_header = copy;
	return strncpy(copy, value, HEADER_BYTES);
}

static __attribute__((noinline)) struct session *open_session(unsigned number)
{
	struct session *session = calloc(1, sizeof(*session)); /* session */

	if (!session)
		abort();
	session->number = number;
	memcpy(session->peer, "192.0.2.1", 10);
	return session;
}

static __attribute__((noinline)) void write_log(const struct session *session, const char *header)
{
	char *line = malloc(256); /* log line */

	if (!line)
		abort();
	snprintf(line, 256, "%u %s %.40s", session->number, session->peer, header);
	free(line);
}

static __attribute__((noinline)) void handle_request(unsigned number)
{
	struct session **slot = &sessions[number % SESSIONS];
	char *header;

	free(*slot);
	*slot = open_session(number);
	header = copy_header("text/html; charset=utf-8");
	write_log(*slot, header);
	/* header is forgotten here */
}

static void handle_requests(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		handle_request(handled++);
}

static void answer(const char *text)
{
	size_t len = strlen(text);

	if (write(STDOUT_FILENO, text, len) != (ssize_t)len)
		_exit(1);
}

static int obey_commands(void)
{
	char command, line[128];

	answer("R\n");
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		if (command != 'g')
			continue;
		handle_requests(REQUESTS_PER_COMMAND);
		snprintf(line, sizeof(line), "handled=%u leaked=%lu blocks=%lu header=%p\n", handled, leaked_bytes,
			 leaked_blocks, last_header);
		answer(line);
	}
	return 0;
}

static __attribute__((noreturn)) void serve_every(int interval_ms)
{
	for (;;) {
		poll(NULL, 0, interval_ms);
		handle_requests(1);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--commands"))
		return obey_commands();
	if (argc == 3 && !strcmp(argv[1], "--every") && atoi(argv[2]) > 0)
		serve_every(atoi(argv[2]));
	fprintf(stderr, "usage: leaky --every MS | --commands\n");
	return 2;
}
