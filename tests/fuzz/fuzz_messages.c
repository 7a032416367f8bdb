/* What a tracer says that its target has taken over, and what the symbolizer says that a file has taken over, while
 * clients ask. */
#define _GNU_SOURCE              /* F_ADD_SEALS */
#include "daemon.h"
#include "fuzz.h"

#include "model/snapshot_image.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *const calls[] = {
	"{\"method\":\"org.allocwatch.Tracer.TakeSnapshot\",\"parameters\":{\"pid\":1,\"blocks\":true}}",
	"{\"method\":\"org.allocwatch.Tracer.GetStatus\",\"parameters\":{\"pid\":1}}",
	"{\"method\":\"org.allocwatch.Tracer.FindBlock\",\"parameters\":{\"pid\":1,\"address\":\"0x40\"}}",
	"{\"method\":\"org.allocwatch.Tracer.Detach\",\"parameters\":{\"pid\":1,\"keep\":true}}",
	"{\"method\":\"org.allocwatch.Tracer.List\"}",
	"{\"method\":\"org.allocwatch.Tracer.WaitGone\",\"parameters\":{\"pid\":1},\"oneway\":true}",
	"{\"method\":\"org.allocwatch.Tracer.Attach\",\"parameters\":{\"pid\":1}}",
	"{\"method\":\"org.allocwatch.Tracer.Clear\",\"parameters\":{\"pid\":1}}",
	"{\"method\":\"org.allocwatch.Tracer.Statistics\",\"parameters\":{\"snapshot\":\"1\",\"query\":{\"key\":\"thread\"}}}",
	"{\"method\":\"org.allocwatch.Tracer.Detach\",\"parameters\":{\"pid\":1}}",
	"{\"method\":\"org.allocwatch.Tracer.ListMismatches\",\"parameters\":{\"pid\":1}}",
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* --- a tracer --- */

static size_t size_of(uint32_t type)
{
	switch (type) {
	case WIRE_ATTACHED: case WIRE_EXECED: return sizeof(struct wire_attached);
	case WIRE_FAILED: case WIRE_LOG: return sizeof(struct wire_failed);
	case WIRE_MODULE: return sizeof(struct wire_module);
	case WIRE_SNAPSHOT_READY: return sizeof(struct wire_snapshot_ready);
	case WIRE_STATUS_REPLY: return sizeof(struct wire_status);
	case WIRE_BLOCKS: return sizeof(struct wire_blocks);
	case WIRE_MISUSES_REPLY: return sizeof(struct wire_misuses);
	case WIRE_DETACHED: return sizeof(struct wire_detached);
	case WIRE_TARGET_GONE: return sizeof(struct wire_gone);
	case WIRE_HEARTBEAT: return sizeof(struct wire_heartbeat);
	case WIRE_FORKED: return sizeof(struct wire_forked);
	default: return sizeof(struct wire_head);
	}
}

/* An image is of this process, and sealed, if the input does not say otherwise. */
static int take_file(struct fuzz_bytes *bytes)
{
	unsigned how = (unsigned)fuzz_take_number(bytes, 1);
	struct image_head head;
	const uint8_t *from;
	size_t len;
	int fd;

	if (how % 4 == 0)
		return -1;
	if (how % 4 == 1)
		return host_image(how & 4);
	from = fuzz_take(bytes, fuzz_take_number(bytes, 2), &len);
	fd = fuzz_file(from, len);
	if (how % 4 == 2 && len >= sizeof(head)) {
		memcpy(&head, from, sizeof(head));
		head.pid = HOST_PID;
		head.start_time = host_start_time();
		MUST(pwrite(fd, &head, sizeof(head), 0) == sizeof(head));
		fuzz_reached(2);
	}
	if (!(how & 8))
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	return fd;
}

/* A byte for the type, one for what it answers, then what its body begins with. */
static void say_one(struct tracer *tracer, struct fuzz_bytes *bytes)
{
	_Alignas(8) union {
		struct wire_head head;
		uint8_t bytes[WIRE_MESSAGE_MAX];
	} message = { .bytes = { 0 } };
	uint32_t type = WIRE_ATTACHED + fuzz_take_number(bytes, 1) % 16;
	unsigned what = (unsigned)fuzz_take_number(bytes, 1);
	size_t size = size_of(type), len;
	const uint8_t *body = fuzz_take(bytes, fuzz_take_number(bytes, 2) % (size - sizeof(struct wire_head) + 1), &len);
	struct asked asked;
	uint32_t serial = what % 4 == 0 ? 0 : what >> 2;

	if (what % 4 >= 2 && stand_in_next(&asked)) {
		if (asked.tracer != tracer)
			return;
		serial = asked.head.serial;
	}
	memcpy(message.bytes + sizeof(struct wire_head), body, len);
	message.head = (struct wire_head){ type, serial, HOST_PID, (uint32_t)size };
	/* What would end it at once is left to the last bytes of an input. */
	if (wire_check(&message, size, 1) == 0)
		fuzz_reached(serial ? 1 : 0);
	stand_in_say(tracer, &message, size, take_file(bytes));
}

static struct fuzz_bytes script;

static bool answer_by_script(struct host *host)
{
	struct tracer *tracer = stand_in_tracer();
	struct asked asked;

	(void)host;
	if (tracer && script.left > 0) {
		say_one(tracer, &script);
		return true;
	}
	/* Others, of children and of later attaches, and the symbolizer, mean no harm. */
	return (tracer && stand_in_next(&asked)) || host_answer_well(host);
}

void fuzz_messages_run(const uint8_t *data, size_t len)
{
	struct host host;
	size_t first;

	script = (struct fuzz_bytes){ data, len };
	first = fuzz_take_number(&script, 1);
	host_start(&host);
	if (first & 1)
		host_settle(&host, host_answer_well);
	for (size_t i = 0; i < CALLS && script.left > 0; i++) {
		host_call(&host, calls[(first / 2 + i) % CALLS]);
		host_settle(&host, answer_by_script);
	}
	if (snapshots_count(host.daemon->snapshots) > 0)
		fuzz_reached(3);
	host_end(&host);
}

/* --- the symbolizer --- */

static void say_name(struct fuzz_bytes *bytes, const struct named *named)
{
	static _Alignas(8) uint8_t message[SYMBOL_WIRE_MESSAGE_MAX];
	struct symbol_wire_head *head = (struct symbol_wire_head *)message;
	size_t want = fuzz_take_number(bytes, 2), len;
	const uint8_t *from = fuzz_take(bytes, want < sizeof(message) - sizeof(*head) ? want : 0, &len);

	memset(message, 0, sizeof(*head));
	memcpy(message + sizeof(*head), from, len);
	head->type = SYMBOL_WIRE_READY + (uint32_t)fuzz_take_number(bytes, 1) % 4;
	if (named)
		head->module = named->head.module;
	head->length = (uint32_t)(sizeof(*head) + len);
	if (stand_in_say_name(message, head->length) && head->type == SYMBOL_WIRE_ANSWERS)
		fuzz_reached(1);
}

/* The first words are as they should be, so that it is asked; but not always. */
static bool answer_names_by_script(struct host *host)
{
	_Alignas(8) struct symbol_wire_head ready = { SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION, 0, sizeof(ready) };
	_Alignas(8) struct symbol_wire_opened opened = { .head = { SYMBOL_WIRE_OPENED, 0, 0, sizeof(opened) } };
	static struct named named;
	unsigned how;

	if (script.left == 0)
		return host_answer_well(host);
	if (stand_in_is_fresh()) {
		how = (unsigned)fuzz_take_number(&script, 1);
		if (how % 8)
			stand_in_say_name(&ready, sizeof(ready));
		else
			say_name(&script, NULL);
		return true;
	}
	if (stand_in_next_name(&named)) {
		opened.head.module = named.head.module;
		if (named.head.type == SYMBOL_WIRE_OPEN && fuzz_take_number(&script, 1) % 8)
			stand_in_say_name(&opened, sizeof(opened));
		else
			say_name(&script, &named);
		return true;
	}
	return host_answer_well(host);
}

/* Its own file, so that it is one that there is. */
static void tell_module(struct tracer *tracer)
{
	struct wire_module module = { .head = { WIRE_MODULE, 0, HOST_PID, sizeof(module) }, .path = "/sbin/init" };

	MUST(stand_in_say(tracer, &module, sizeof(module), fuzz_file((const uint8_t *)"x", 1)));
}

void fuzz_names_run(const uint8_t *data, size_t len)
{
	struct host host;

	script = (struct fuzz_bytes){ data, len };
	host_start(&host);
	host_settle(&host, host_answer_well);
	tell_module(stand_in_tracer());
	for (unsigned i = 0; i < 2; i++) {
		host_call(&host, calls[0]);
		host_settle(&host, answer_names_by_script);
		host_call(&host, "{\"method\":\"org.allocwatch.Tracer.Statistics\",\"parameters\":{\"snapshot\":\"s1\","
				 "\"query\":{\"key\":\"traceback\",\"show_runtime\":true}}}");
		host_settle(&host, answer_names_by_script);
	}
	if (host.named)
		fuzz_reached(2);
	host_end(&host);
}
