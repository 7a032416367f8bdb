#define _GNU_SOURCE              /* memfd_create */
#include "daemon.h"
#include "fuzz.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "daemon/process.h"
#include "model/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SAID_MAX (16u << 20)
#define WAIT_US 20000            /* for threads at work */
#define DEATHS_MAX 32            /* of the symbolizer, by its silence */
#define TURNS_MAX 20000          /* of the event loop: more are a finding */

/* --- a heap of the process --- */

uint64_t host_start_time(void)
{
	static uint64_t start_time;

	if (start_time == 0)
		MUST(proc_start_time(HOST_PID, &start_time) == 0);
	return start_time;
}

static uint32_t push(struct stack_table *stacks, uint32_t parent, uint32_t module, uint64_t offset)
{
	const struct frame frame = { .module = module, .kind = FRAME_CALL, .offset = offset };

	return (uint32_t)stack_table_push(stacks, parent, (uint32_t)stack_table_frame(stacks, &frame));
}

static int write_to(void *context, const void *data, size_t len)
{
	return fd_write_all(*(int *)context, data, len);
}

static int write_image(const struct heap *heap, const struct stack_table *stacks, const struct module_map *modules,
		       uint64_t clock_ns, bool with_blocks)
{
	const struct snapshot_source source = {
		.heap = heap, .stacks = stacks, .modules = modules, .command = "init", .exe = "/sbin/init", .pid = HOST_PID,
		.start_time = host_start_time(), .taken_ns = 1700000000000000000, .attached_ns = 1600000000000000000,
		.clock_ns = clock_ns, .frames_limit = 25, .exact = true, .with_blocks = with_blocks,
	};
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING), sealed = -1;

	MUST(fd >= 0 && snapshot_image_write(&source, write_to, &fd) == 0);
	MUST(fd_seal(fd, 0, &sealed) == 0);
	return sealed;
}

int host_image(bool with_blocks)
{
	static int images[2] = { -1, -1 };
	struct heap *heap;
	struct stack_table *stacks;
	struct module_map modules;

	if (images[with_blocks] < 0) {
		uint32_t outer, inner;

		heap = heap_new(NULL, true, 1000);
		stacks = stack_table_new(64);
		module_map_init(&modules);
		MUST(heap && stacks && module_map_add(&modules, &(struct module){ .path = (char *)"/sbin/init" }) == 0);
		outer = push(stacks, STACK_ROOT, 0, 0x1234);
		inner = push(stacks, outer, 0, 0x2345);
		for (uint64_t i = 1; i < 20; i++) {
			const struct alloc_event event = { .kind = ALLOC_BORN, .tid = (int32_t)(i % 3), .domain = (uint32_t)(i % 4),
							   .stack = i % 2 ? outer : inner, .time_ns = 2000, .address = i * 64,
							   .size = i };

			MUST(heap_apply(heap, &event) == 0);
		}
		images[with_blocks] = write_image(heap, stacks, &modules, heap_cut(heap, 5000000000), with_blocks);
		heap_free(heap);
		stack_table_free(stacks);
		module_map_fini(&modules);
	}
	return fcntl(images[with_blocks], F_DUPFD_CLOEXEC, 0);
}

/* --- the daemon --- */

static void make_listener(int *ret_fd, struct sockaddr_un *ret_address, socklen_t *ret_len)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* A name that the kernel chooses, in no folder. */
	*ret_len = sizeof(*ret_address);
	MUST(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(fd, 4) == 0);
	MUST(getsockname(fd, (struct sockaddr *)ret_address, ret_len) == 0);
	*ret_fd = fd;
}

static void on_attached(void *context, const struct answer *answer)
{
	(void)context;
	(void)answer;
}

static void attach(struct host *host)
{
	struct wire_attach message = { .frames_limit = 25, .domains = 7 };
	struct process process;
	int leader;
	bool zombie;

	MUST(process_open(HOST_PID, &process, &zombie, &leader) == 0);
	MUST(session_attach(host->daemon->sessions, HOST_PID, &process, geteuid(), &message, on_attached, host) == 0);
}

static struct options options;
static sigset_t signals_before;

void host_start(struct host *host)
{
	struct sockaddr_un address;
	socklen_t len;
	int fd;

	options = (struct options){ .line.private_daemon = true,
				    .limits = { SESSIONS_MAX, CLIENTS_MAX, SNAPSHOTS_MAX, 64u << 20, 64u << 20, 0 } };
	options.tracer_program = options.symbolizer_program = (char *)"/nowhere";
	sigprocmask(SIG_BLOCK, NULL, &signals_before);
	MUST(daemon_hold_signals() == 0);
	make_listener(&fd, &address, &len);
	*host = (struct host){ .client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
	MUST(daemon_new(&options, fd, -1, "fuzz", &host->daemon) == 0);
	MUST(host->client >= 0 && connect(host->client, (struct sockaddr *)&address, len) == 0);
	attach(host);
}

static bool is_settled(const struct host *host)
{
	return intakes_running(host->daemon->intakes) == 0 && snapshots_are_settled(host->daemon->snapshots);
}

void host_end(struct host *host)
{
	for (unsigned i = 0; i < DEATHS_MAX && !is_settled(host) && stand_in_end_symbolizer(); i++)
		host_settle(host, host_answer_well);
	/* Whatever was said: no image stays half read, and no snapshot without names for ever. */
	MUST(is_settled(host));
	fd_close(&host->client);
	daemon_free(host->daemon);
	free(host->said);
	sigprocmask(SIG_SETMASK, &signals_before, NULL);
}

/* --- its client --- */

/* Each thing that it says is a Varlink reply. */
static void take_reply(struct host *host, const char *text, size_t len)
{
	json_t *reply = json_loadb(text, len, 0, NULL);
	const char *error = json_string_value(json_object_get(reply, "error"));

	MUST(json_is_object(reply));
	MUST(error || json_is_object(json_object_get(reply, "parameters")));
	host->replies++;
	host->errors += error != NULL;
	host->refused_methods += error && (strstr(error, "MethodNotFound") || strstr(error, "InterfaceNotFound"));
	host->named |= memmem(text, len, "\"function\":\"", 12) != NULL;
	host->refused_parameters += error && strstr(error, "InvalidParameter");
	json_decref(reply);
}

static void take_replies(struct host *host)
{
	char *end;

	while (host->said_len > 0 && (end = memchr(host->said, '\0', host->said_len))) {
		size_t len = (size_t)(end - host->said);

		take_reply(host, host->said, len);
		host->said_len -= len + 1;
		memmove(host->said, end + 1, host->said_len);
	}
}

/* Whether something came. */
static bool receive(struct host *host)
{
	char bytes[65536];
	ssize_t n = recv(host->client, bytes, sizeof(bytes), 0);

	if (n <= 0)
		return false;
	MUST(host->said_len + (size_t)n < SAID_MAX);
	host->said = realloc(host->said, host->said_len + (size_t)n);
	MUST(host->said);
	memcpy(host->said + host->said_len, bytes, (size_t)n);
	host->said_len += (size_t)n;
	take_replies(host);
	return true;
}

void host_settle(struct host *host, bool (*answer)(struct host *host))
{
	unsigned turns = 0;
	bool more = true;

	while (more) {
		MUST(++turns < TURNS_MAX);
		more = sd_event_run(host->daemon->event, work_is_idle(host->daemon->work) ? 0 : WAIT_US) > 0;
		more = receive(host) || more;
		more = (answer && answer(host)) || more || !work_is_idle(host->daemon->work);
	}
}

void host_send(struct host *host, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = send(host->client, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return;                /* it has hung up */
		if (n < 0) {
			/* It takes no more before it has answered. */
			host_settle(host, host_answer_well);
			n = send(host->client, at, len, MSG_NOSIGNAL);
			if (n < 0)
				return;
		}
		at += n;
		len -= (size_t)n;
	}
}

void host_call(struct host *host, const char *call)
{
	host_send(host, call, strlen(call) + 1);
}

/* --- a tracer and a symbolizer that mean no harm --- */

static void say(const struct asked *asked, enum wire_type type, void *message, size_t len, int fd)
{
	struct wire_head *head = message;

	*head = (struct wire_head){ type, asked->head.serial, asked->head.pid, (uint32_t)len };
	MUST(stand_in_say(asked->tracer, message, len, fd));
}

static void answer_blocks(const struct asked *asked)
{
	struct wire_blocks blocks = { .count = 1, .block[0] = { .address = 64, .size = 1, .age_ns = 1000, .thread = 7 } };

	say(asked, WIRE_BLOCKS, &blocks, sizeof(blocks), host_image(false));
}

static void answer_misuses(const struct asked *asked)
{
	struct wire_misuses misuses = { .count = 1, .misuse[0] = { .address = 64, .count = 1, .made_trace = UINT32_MAX } };

	say(asked, WIRE_MISUSES_REPLY, &misuses, sizeof(misuses), host_image(false));
}

static void answer_one(const struct asked *asked)
{
	struct wire_attached attached = { .tasks = 1, .probes = 9, .exe = "/sbin/init", .command = "init" };
	struct wire_status status = { .counters = { .live_bytes = 190, .live_blocks = 19 }, .exact = 1, .crash_safe = 1 };
	struct wire_snapshot_ready ready = { .reason = SNAPSHOT_ASKED };
	struct wire_detached detached = { .clean = 1 };
	struct wire_head done;

	switch (asked->head.type) {
	case WIRE_ATTACH:
		say(asked, WIRE_ATTACHED, &attached, sizeof(attached), -1);
		break;
	case WIRE_STATUS:
		say(asked, WIRE_STATUS_REPLY, &status, sizeof(status), -1);
		break;
	case WIRE_SNAPSHOT:
		say(asked, WIRE_SNAPSHOT_READY, &ready, sizeof(ready), host_image(asked->with_blocks));
		break;
	case WIRE_BLOCK:
		answer_blocks(asked);
		break;
	case WIRE_MISUSES:
		answer_misuses(asked);
		break;
	case WIRE_DETACH:
	case WIRE_SET_ASIDE:
		say(asked, WIRE_DETACHED, &detached, sizeof(detached), -1);
		break;
	case WIRE_CLEAR:
	case WIRE_RESET_PEAK:
		say(asked, WIRE_DONE, &done, sizeof(done), -1);
		break;
	default:
		break;
	}
}

/* A file that it cannot read; one that it has opened before is the end of it. */
static bool answer_name(void)
{
	struct named named;
	_Alignas(8) struct symbol_wire_head ready = { SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION, 0, sizeof(ready) };
	_Alignas(8) struct symbol_wire_opened opened = { .head = { SYMBOL_WIRE_OPENED, 0, 0, sizeof(opened) },
							 .result = -ENOEXEC };

	if (stand_in_is_fresh())
		return stand_in_say_name(&ready, sizeof(ready));
	if (!stand_in_next_name(&named))
		return false;
	opened.head.module = named.head.module;
	if (named.head.type == SYMBOL_WIRE_RESOLVE)
		opened.head.length = 0;
	stand_in_say_name(&opened, sizeof(opened));
	return true;
}

bool host_answer_well(struct host *host)
{
	struct asked asked;

	(void)host;
	if (stand_in_next(&asked)) {
		answer_one(&asked);
		return true;
	}
	return answer_name();
}
