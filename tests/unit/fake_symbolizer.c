/* A symbolizer that misbehaves in the way its own name says, for the daemon to survive. */
#include "base/fd.h"
#include "symbol/answers.h"
#include "symbol/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCK 3

static uint64_t request[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
static const struct symbol_wire_head *const head = (const void *)request;

static void send_head(uint32_t type, uint32_t serial)
{
	struct symbol_wire_head message = { type, serial, 0, sizeof(message) };

	fd_send_message(SOCK, &message, sizeof(message), -1);
}

static void await_any(void)
{
	int fd;

	if (fd_receive_message(SOCK, request, sizeof(request), &fd) <= 0)
		exit(0);
	fd_close(&fd);
}

static void await(uint32_t type)
{
	do
		await_any();
	while (head->type != type);
}

static void send_opened(int32_t result, uint32_t serial)
{
	struct symbol_wire_opened message = {
		{ SYMBOL_WIRE_OPENED, serial, head->module, sizeof(message) }, result, 0 };

	fd_send_message(SOCK, &message, sizeof(message), -1);
}

static void send_answers(uint32_t first, uint32_t count, uint32_t serial)
{
	static const struct symbol_location location = { "lie", "/lie.c", 1, 0, true };
	struct answers *answers = answers_new();
	const void *message;
	size_t len;

	answers_begin(answers, serial, head->module, first);
	for (uint32_t i = 0; i < count; i++)
		answers_add(answers, &location, 1);
	message = answers_finish(answers, &len);
	fd_send_message(SOCK, message, len, -1);
	answers_free(answers);
}

static uint32_t asked(void)
{
	return ((const struct symbol_wire_resolve *)head)->count;
}

static void open_well(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(SYMBOL_WIRE_OPEN);
	send_opened(0, head->serial);
}

static void resolve_well(void)
{
	open_well();
	await(SYMBOL_WIRE_RESOLVE);
}

static void exits(void)
{
}

static void mute(void)
{
	await(0);
}

static void other_version(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION + 1);
	await(0);
}

static void silent(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(0);
}

static void silent_later(void)
{
	resolve_well();
	send_answers(0, 1, head->serial);
	await(0);
}

static void garbage(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(SYMBOL_WIRE_OPEN);
	fd_send_message(SOCK, "garbage", 7, -1);
	await(0);
}

static void garbage_first(void)
{
	fd_send_message(SOCK, "garbage", 7, -1);
	await(0);
}

static void too_long(void)
{
	static char much[SYMBOL_WIRE_MESSAGE_MAX + 1000];

	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(SYMBOL_WIRE_OPEN);
	fd_send_message(SOCK, much, sizeof(much), -1);
	await(0);
}

static void wrong_serial(void)
{
	resolve_well();
	send_answers(0, 1, head->serial + 1);
	await(0);
}

static void wrong_type(void)
{
	resolve_well();
	send_opened(0, head->serial);
	await(0);
}

static void too_many(void)
{
	resolve_well();
	send_answers(0, asked() + 1, head->serial);
	await(0);
}

static void not_in_turn(void)
{
	resolve_well();
	send_answers(1, 1, head->serial);
	await(0);
}

static void unasked(void)
{
	open_well();
	send_opened(0, head->serial);
	await(0);
}

static void ready_twice(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(0);
}

static void dies_opening(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(SYMBOL_WIRE_OPEN);
}

static void dies_resolving(void)
{
	resolve_well();
	abort();
}

/* Answers one address each time it is asked for many, and then dies. */
static void dies_often(void)
{
	resolve_well();
	send_answers(0, 1, head->serial);
}

static void no_memory(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(SYMBOL_WIRE_OPEN);
	send_opened(-12, head->serial);
	await(0);
}

/* Well-behaved but endless: a bit is heard from it now and then. */
static void slow(void)
{
	resolve_well();
	for (uint32_t i = 0; i < asked(); i++) {
		send_answers(i, 1, head->serial);
		usleep(20000);
	}
	await(0);
}

/* Has to have one more file for as long as it is given an answer. */
static void needy(void)
{
	struct {
		struct symbol_wire_head head;
		char path[8];
	} need = { .path = "/no/one" };

	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	await(SYMBOL_WIRE_OPEN);
	need.head = (struct symbol_wire_head){ SYMBOL_WIRE_NEED, head->serial, head->module, sizeof(need) };
	for (;;) {
		usleep(20000);
		fd_send_message(SOCK, &need, sizeof(need), -1);
		await(SYMBOL_WIRE_FILE);
	}
}

/* Answers everything, a third of a second after the last. */
static void sleepy(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	for (;;) {
		await_any();
		if (head->type != SYMBOL_WIRE_RESOLVE)
			send_opened(0, head->serial);
		for (uint32_t i = 0; head->type == SYMBOL_WIRE_RESOLVE && i < asked(); i++) {
			usleep(333333);
			send_answers(i, 1, head->serial);
		}
	}
}

static void open_slowly(int fd)
{
	char link[32], path[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) <= 0)
		return;
	if (strstr(path, "/slowest"))
		pause();
	else if (strstr(path, "/slow"))
		sleep(2);
}

/* Does all that it should, and takes two seconds to open what is called slow, or for ever. */
static void slow_to_open(void)
{
	send_head(SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION);
	for (;;) {
		int fd = -1;

		if (fd_receive_message(SOCK, request, sizeof(request), &fd) <= 0)
			exit(0);
		if (fd >= 0)
			open_slowly(fd);
		fd_close(&fd);
		if (head->type == SYMBOL_WIRE_OPEN)
			send_opened(0, head->serial);
		else
			send_answers(0, asked(), head->serial);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "exits", exits }, { "mute", mute }, { "silent", silent }, { "silent_later", silent_later },
	{ "garbage", garbage }, { "garbage_first", garbage_first }, { "too_long", too_long },
	{ "wrong_serial", wrong_serial }, { "wrong_type", wrong_type }, { "too_many", too_many },
	{ "not_in_turn", not_in_turn }, { "unasked", unasked }, { "ready_twice", ready_twice },
	{ "dies_opening", dies_opening }, { "dies_resolving", dies_resolving },
	{ "dies_often", dies_often }, { "no_memory", no_memory }, { "slow", slow }, { "needy", needy },
	{ "sleepy", sleepy }, { "slow_to_open", slow_to_open }, { "other_version", other_version },
};

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;

	for (size_t i = 0; name && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(name + 1, ways[i].name) == 0) {
			ways[i].run();
			return 0;
		}
	}
	fprintf(stderr, "fake_symbolizer: link it to one of its ways to misbehave\n");
	return 2;
}
