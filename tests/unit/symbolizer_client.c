#define _GNU_SOURCE

#include "symbolizer_client.h"

#include "base/clock.h"
#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 20000

void client_start(struct client *client)
{
	client_start_by(client, "exec " SYMBOLIZER);
}

void client_start_by(struct client *client, const char *command)
{
	const struct symbol_wire_head *ready;
	int pair[2], hung;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	client->pid = fork();
	ck_assert_int_ge(client->pid, 0);
	if (client->pid == 0) {
		int log = open("stderr", O_WRONLY | O_CREAT | O_APPEND, 0666);

		dup2(log, STDERR_FILENO);
		dup3(pair[1], 3, 0);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	client->sock = pair[0];
	client->serial = 0;
	ready = client_receive(client, &hung);
	ck_assert_msg(ready && ready->type == SYMBOL_WIRE_READY && ready->serial == SYMBOL_WIRE_VERSION, "%s does not start", SYMBOLIZER);
}

int client_stop(struct client *client)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_MS * NSEC_PER_MSEC;
	int status;
	pid_t pid;

	close(client->sock);
	while ((pid = waitpid(client->pid, &status, WNOHANG)) == 0 && !clock_passed(deadline))
		poll(NULL, 0, 1);
	if (pid == client->pid)
		return status;
	kill(client->pid, SIGKILL);
	waitpid(client->pid, &status, 0);
	return -1;
}

const void *client_receive(struct client *client, int *ret_hung)
{
	struct pollfd poller = { .fd = client->sock, .events = POLLIN };
	ssize_t n;
	int fd;

	*ret_hung = poll(&poller, 1, DEADLINE_MS) == 0;
	if (*ret_hung)
		return NULL;
	n = fd_receive_message(client->sock, client->message, sizeof(client->message), &fd);
	if (n <= 0)
		return NULL;
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(symbol_wire_check(client->message, (size_t)n, true), 0);
	return client->message;
}

void client_send(struct client *client, const void *message, size_t len, int fd)
{
	int r = fd_send_message(client->sock, message, len, fd);

	ck_assert_msg(r == 0 || r == -EPIPE || r == -ECONNRESET, "sending: %d", r);
}

/* In the daemon's place, with this process's rights. */
static void give_file(struct client *client, const struct symbol_wire_need *need)
{
	struct symbol_wire_file file = { .head = { SYMBOL_WIRE_FILE, need->head.serial, need->head.module, sizeof(file) } };
	int fd = need->head.type == SYMBOL_WIRE_NEED ? file_open_plain(need->path) : -ENOENT;

	file.result = fd < 0 ? fd : 0;
	client_send(client, &file, sizeof(file), fd);
	fd_close(&fd);
}

static const void *receive_answer(struct client *client, int *ret_hung)
{
	const struct symbol_wire_head *head = client_receive(client, ret_hung);

	for (; head && head->type >= SYMBOL_WIRE_NEED; head = client_receive(client, ret_hung))
		give_file(client, (const struct symbol_wire_need *)head);
	return head;
}

int client_open(struct client *client, uint32_t module, int fd)
{
	struct symbol_wire_head head = { SYMBOL_WIRE_OPEN, ++client->serial, module, sizeof(head) };
	const struct symbol_wire_opened *opened;
	int hung;

	client_send(client, &head, sizeof(head), fd);
	opened = receive_answer(client, &hung);
	if (!opened)
		return hung ? -ETIMEDOUT : -EPIPE;
	ck_assert_uint_eq(opened->head.type, SYMBOL_WIRE_OPENED);
	ck_assert_uint_eq(opened->head.serial, client->serial);
	return opened->result;
}

static void send_resolve(struct client *client, uint32_t module, const uint64_t *addresses,
			 size_t count)
{
	size_t len = sizeof(struct symbol_wire_resolve) + count * sizeof(struct symbol_wire_query);
	struct symbol_wire_resolve *resolve = calloc(1, len);

	resolve->head = (struct symbol_wire_head){ SYMBOL_WIRE_RESOLVE, ++client->serial, module,
						   (uint32_t)len };
	resolve->count = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		resolve->queries[i].address = addresses[i];
	client_send(client, resolve, len, -1);
	free(resolve);
}

int64_t client_resolve(struct client *client, uint32_t module, const uint64_t *addresses, size_t count,
		       void (*each)(void *context, size_t i, const char *function, const char *file,
				    uint32_t line),
		       void *context)
{
	size_t done = 0;
	int64_t locations = 0;

	send_resolve(client, module, addresses, count);
	while (done < count) {
		int hung;
		const struct symbol_wire_answers *answers = receive_answer(client, &hung);
		const struct symbol_wire_location *location;

		if (!answers)
			return hung ? -ETIMEDOUT : -EPIPE;
		ck_assert_uint_eq(answers->head.type, SYMBOL_WIRE_ANSWERS);
		ck_assert_uint_eq(answers->head.serial, client->serial);
		ck_assert_uint_eq(answers->first, done);
		ck_assert_uint_le(answers->count, count - done);
		location = symbol_wire_locations(answers);
		for (uint32_t i = 0; i < answers->count; i++) {
			for (uint32_t j = 0; j < symbol_wire_counts(answers)[i]; j++, location++) {
				if (each)
					each(context, done + i,
					     symbol_wire_text(answers) + location->function,
					     symbol_wire_text(answers) + location->file, location->line);
			}
		}
		done += answers->count;
		locations += answers->location_count;
	}
	return locations;
}
