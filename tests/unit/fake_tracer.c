/* A tracer without ptrace: plays tracer/wire.h with a canned heap, so that the daemon is tested
 * alone.  FAKE_TRACER_FOLDER names a folder: its file "mode" says how this one (mis)behaves, and what
 * it did is written there: "detached", "eof", one line for each. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "model/heap.h"
#include "model/snapshot.h"
#include "model/stack.h"
#include "tracer/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SOCK 3
#define CANNED_BYTES 4096
#define BIG_TRACES 30000

static const char *folder, *mode = "";
static int target_pid, daemon_pid, pidfd = -1;
static uint64_t start_time, attached_ns;
static uint8_t engine;                 /* enum engine_kind that was asked for */
static uint64_t sample_bytes;
static uint32_t ring_wait_ms, ring_readers;
static char wish[32];           /* whether ptrace is to be held */
static struct heap *heap;
static struct stack_table *stacks;
static struct module_map modules;
static uint32_t frames_limit;

static bool mode_is(const char *name)
{
	return strcmp(mode, name) == 0;
}

/* The code that the canned stacks point into. */
__attribute__((noinline)) int fake_allocation_site(int n);
int fake_allocation_site(int n)
{
	return n * 3 + getpid();
}

static void note(const char *what)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/notes", folder);
	file = fopen(path, "a");
	if (!file)
		abort();
	fprintf(file, "%s %d\n", what, target_pid);
	fclose(file);
}

static void read_mode(void)
{
	static char text[64];
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/mode", folder);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(text, sizeof(text), file))
		mode = text;
	fclose(file);
}

static void send_head(void *message, uint32_t type, uint32_t serial, size_t len, int fd)
{
	struct wire_head *head = message;

	head->type = type;
	head->serial = serial;
	head->pid = target_pid;
	head->length = (uint32_t)len;
	if (fd_send_message(SOCK, message, len, fd) < 0)
		exit(0);
}

static void die_if(const char *name)
{
	if (mode_is(name))
		raise(SIGKILL);
}

/* --- the canned heap --- */

/* The program itself comes first. */
static int take_bias(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	*(uint64_t *)context = info->dlpi_addr;
	return 1;
}

static uint64_t bias_of_self(void)
{
	uint64_t bias = 0;

	dl_iterate_phdr(take_bias, &bias);
	return bias;
}

static uint32_t push(uint32_t parent, uint64_t offset, uint16_t kind)
{
	struct frame frame = { .module = 0, .kind = kind, .offset = offset };
	int64_t id = stack_table_frame(stacks, &frame);

	return (uint32_t)stack_table_push(stacks, parent, (uint32_t)id);
}

static void born(uint64_t address, uint64_t size, uint32_t domain, uint32_t stack)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .tid = target_pid, .domain = domain, .stack = stack,
				     .time_ns = clock_monotonic_ns(), .address = address, .size = size };

	if (heap_apply(heap, &event) < 0)
		abort();
}

static void fill_heap(void)
{
	uint64_t site = (uint64_t)(uintptr_t)fake_allocation_site - bias_of_self();
	uint32_t outer = push(STACK_ROOT, site + 4, FRAME_CALL);
	uint32_t inner = push(outer, site + 2, FRAME_CALL);

	born(0x10000, 100, DOMAIN_MALLOC, inner);
	born(0x20000, 200, DOMAIN_MALLOC, inner);
	born(0x30000, 50, DOMAIN_NEW, outer);
	if (!mode_is("big"))
		return;
	for (uint32_t i = 0; i < BIG_TRACES; i++)
		born(0x100000 + i * 64, 64, DOMAIN_MALLOC, push(outer, 0x100000 + i * 16, FRAME_CALL));
}

static void grow_heap(void)
{
	static uint64_t address = 0x8000000;

	born(address, CANNED_BYTES, DOMAIN_MALLOC, 1);
	address += 2 * CANNED_BYTES;
}

static void make_model(void)
{
	struct module self = { .path = (char *)"/proc/self/exe", .mapped = true };
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0) {
		path[n] = '\0';
		self.path = path;
	}
	module_map_init(&modules);
	heap = heap_new(NULL, false, clock_monotonic_ns());
	stacks = stack_table_new(1u << 20);
	if (!heap || !stacks || module_map_add(&modules, &self) != 0)
		abort();
	fill_heap();
}

/* --- images --- */

static int write_fd(void *context, const void *data, size_t len)
{
	return fd_write_all(*(int *)context, data, len);
}

static int make_image(bool with_blocks)
{
	int fd = memfd_create("snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct snapshot_source source = {
		.heap = heap, .stacks = stacks, .modules = &modules, .command = "fake \xff target", .exe = "/bin/fake",
		.pid = mode_is("other-pid-image") ? target_pid + 1 : target_pid, .start_time = start_time,
		.taken_ns = clock_realtime_ns(), .attached_ns = attached_ns, .clock_ns = clock_monotonic_ns(),
		.frames_limit = frames_limit, .exact = true, .with_blocks = with_blocks,
	};

	if (fd < 0)
		abort();
	if (mode_is("garbage-image")) {
		for (int i = 0; i < 1000; i++) {
			long noise = random();

			if (write(fd, &noise, sizeof(noise)) < 0)
				abort();
		}
	} else if (mode_is("huge-image")) {
		if (ftruncate(fd, 1LL << 40) < 0)
			abort();
	} else if (!mode_is("empty-image")) {
		if (snapshot_image_write(&source, write_fd, &fd) < 0)
			abort();
	}
	if (mode_is("cut-image") && ftruncate(fd, lseek(fd, 0, SEEK_END) / 2) < 0)
		abort();
	if (!mode_is("unsealed-image") &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		abort();
	return fd;
}

static void send_snapshot(uint32_t serial, enum wire_snapshot_reason reason, bool with_blocks)
{
	struct wire_snapshot_ready ready = { .reason = reason };
	int fd = mode_is("no-image") ? -1 : make_image(with_blocks);

	send_head(&ready, WIRE_SNAPSHOT_READY, serial, sizeof(ready), fd);
	fd_close(&fd);
}

/* --- hostile messages --- */

static void send_raw(const void *data, size_t len)
{
	if (send(SOCK, data, len, MSG_NOSIGNAL) < 0)
		exit(0);
}

static void flood_modules(void)
{
	struct wire_module message = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (uint32_t i = 0; i < 10000; i++) {
		message.module = i;
		snprintf(message.path, sizeof(message.path), "/lib/module-%u.so", i);
		send_head(&message, WIRE_MODULE, 0, sizeof(message), fd);
	}
	close(fd);
}

static void flood_log(void)
{
	struct wire_failed message = { .failure = FAILURE_INTERNAL, .text = "the same again and again" };

	for (int i = 0; i < 5000; i++)
		send_head(&message, WIRE_LOG, 0, sizeof(message), -1);
	target_pid++;
	for (int i = 0; i < 5000; i++)
		send_head(&message, WIRE_FAILED, 0, sizeof(message), -1);
	target_pid--;
}

static void send_raw_message(void *message, uint32_t type, uint32_t serial, size_t length, size_t len)
{
	struct wire_head *head = message;

	head->type = type;
	head->serial = serial;
	head->pid = target_pid;
	head->length = (uint32_t)length;
	send_raw(message, len);
}

/* True: something was sent in place of the right answer. */
static bool send_nonsense(uint32_t serial)
{
	static union {
		char bytes[WIRE_MESSAGE_MAX * 2];
		struct wire_head head;
		struct wire_failed failed;
		struct wire_status status;
	} m;

	if (mode_is("bad-length")) {
		send_raw_message(&m, WIRE_DONE, serial, 99, sizeof(m.head));
	} else if (mode_is("bad-type")) {
		send_raw_message(&m, 4711, serial, sizeof(m.head), sizeof(m.head));
	} else if (mode_is("wrong-direction")) {
		send_raw_message(&m, WIRE_STATUS, serial, sizeof(m.head), sizeof(m.head));
	} else if (mode_is("too-long")) {
		send_raw(&m, sizeof(m));
	} else if (mode_is("short")) {
		send_raw(&m, 3);
	} else if (mode_is("endless-text")) {
		memset(m.failed.text, 'x', sizeof(m.failed.text));
		m.failed.failure = FAILURE_INTERNAL;
		send_raw_message(&m, WIRE_FAILED, serial, sizeof(m.failed), sizeof(m.failed));
	} else if (mode_is("wrong-answer")) {
		send_raw_message(&m, WIRE_STATUS_REPLY, serial, sizeof(m.status), sizeof(m.status));
	} else if (mode_is("random-bytes")) {
		for (size_t i = 0; i < 64; i++)
			m.bytes[i] = (char)random();
		send_raw(&m, 64);
	} else {
		return false;
	}
	return true;
}

/* --- the ordinary life --- */

static void send_failed(uint32_t serial, enum wire_failure failure, int other, const char *text)
{
	struct wire_failed failed = { .failure = failure, .other_tracer = other };

	snprintf(failed.text, sizeof(failed.text), "%s", text);
	send_head(&failed, WIRE_FAILED, serial, sizeof(failed), -1);
}

static const struct {
	const char *mode;
	enum wire_failure failure;
	int other;
	const char *text;
} refusals[] = {
	{ "no-such-process", FAILURE_NO_SUCH_PROCESS, 0, "it is gone" },
	{ "not-permitted", FAILURE_NOT_PERMITTED, 77, "it is traced by gdb (77); end that" },
	{ "unsupported", FAILURE_UNSUPPORTED, 0, "it is a 32-bit program" },
	{ "no-allocator", FAILURE_NO_ALLOCATOR, 0, "it has no malloc" },
	{ "gone", FAILURE_GONE, 0, "it ended meanwhile" },
	{ "limit", FAILURE_LIMIT, 0, "too many threads" },
	{ "internal", FAILURE_INTERNAL, 0, "broken \xff\x01" },
};

static bool refuse(uint32_t serial)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (!mode_is(refusals[i].mode))
			continue;
		send_failed(serial, refusals[i].failure, refusals[i].other, refusals[i].text);
		return true;
	}
	return false;
}

static void send_module(void)
{
	struct wire_module message = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	snprintf(message.path, sizeof(message.path), "%s", modules.modules.items[0].path);
	send_head(&message, WIRE_MODULE, 0, sizeof(message), fd);
	close(fd);
}

/* The daemon has it by then, who answers a heartbeat. */
static void __attribute__((noreturn)) die_for_child(int sock, int child)
{
	struct wire_heartbeat beat = { .head = { WIRE_HEARTBEAT, 0, child, sizeof(beat) }, .patience_ms = 60000 };
	struct wire_head alive;

	if (fd_send_message(sock, &beat, sizeof(beat), -1) == 0 && recv(sock, &alive, sizeof(alive), 0) > 0)
		note("heard for a child");
	_exit(EXIT_FAILURE);
}

/* A child of the target, whose tracer ends without having taken it. */
static void follow_in_vain(int child)
{
	struct wire_forked forked = { .child = child };
	int socks[2];

	if (proc_start_time(child, &forked.start_time) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0 || (forked.tracer = fork()) < 0)
		abort();
	if (forked.tracer == 0) {
		close(socks[0]);
		die_for_child(socks[1], child);
	}
	close(socks[1]);
	send_head(&forked, WIRE_FORKED, 0, sizeof(forked), socks[0]);
	close(socks[0]);
}

static void attach(const struct wire_attach *request)
{
	struct wire_attached attached = { .start_time = request->start_time, .tasks = 1, .probes = 7 };

	start_time = request->start_time;
	frames_limit = request->frames_limit;
	sample_bytes = request->sample_bytes;
	ring_wait_ms = request->ring_wait_ms ? request->ring_wait_ms : 100;
	ring_readers = request->ring_readers;
	snprintf(wish, sizeof(wish), "%s%s", ptrace_wishes[request->ptrace], request->release_or_fail ? " or fail" : "");
	engine = request->engine;
	attached_ns = attached.attached_realtime_ns = clock_realtime_ns();
	for (unsigned i = 0; i < WIRE_ALLOCATORS_MAX && request->allocators[i].domain != 0; i++)
		note(request->allocators[i].text);
	if (refuse(request->head.serial))
		exit(0);
	die_if("die-at-attach");
	if (mode_is("hang-at-attach")) {
		note("hanging");
		return;
	}
	if (mode_is("nonsense-at-attach")) {
		mode = "random-bytes";
		send_nonsense(request->head.serial);
		return;
	}
	if (mode_is("module-flood"))
		flood_modules();
	send_module();
	snprintf(attached.exe, sizeof(attached.exe), "/bin/fake");
	snprintf(attached.command, sizeof(attached.command), "fake \xff target");
	send_head(&attached, WIRE_ATTACHED, request->head.serial, sizeof(attached), -1);
	die_if("die-when-attached");
	if (mode_is("log-flood"))
		flood_log();
	if (strncmp(mode, "follow ", strlen("follow ")) == 0)
		follow_in_vain(atoi(mode + strlen("follow ")));
	for (int i = 0; mode_is("exec-flood") && i < 200; i++)
		send_snapshot(0, SNAPSHOT_EXEC, false);
}

static void status(uint32_t serial)
{
	struct wire_status reply = { .counters = heap_counters(heap), .tracer_memory = heap_memory(heap),
				     .frames_limit = frames_limit, .exact = 1, .crash_safe = 1, .tasks = 1,
				     .longest_stop_us = 42, .sample_bytes = sample_bytes, .engine = engine == ENGINE_RING ? ENGINE_RING : ENGINE_INT3,
				     .ring_wait_ms = engine == ENGINE_INT3 ? 0 : ring_wait_ms,
				     .ring_readers = ring_readers,
				     .held_us = 4200, .stopped = mode_is("stopped") };

	memcpy(reply.hold_reason, wish, sizeof(wish));
	reply.domains[DOMAIN_MALLOC].live_bytes = 300;
	reply.domains[DOMAIN_MALLOC].live_blocks = 2;
	reply.domains[DOMAIN_NEW].live_bytes = 50;
	reply.domains[DOMAIN_NEW].live_blocks = 1;
	send_head(&reply, WIRE_STATUS_REPLY, serial, sizeof(reply), -1);
}

static void blocks(const struct wire_block_request *request)
{
	struct wire_blocks reply = { 0 };
	int fd = make_image(false);

	if (request->address >= 0x10000 && request->address < 0x10000 + 100) {
		reply.count = 1;
		reply.block[0].address = 0x10000;
		reply.block[0].size = 100;
		reply.block[0].age_ns = 1500000000;
		reply.block[0].trace = mode_is("bad-trace") ? 4000000000u : 0;
	}
	send_head(&reply, WIRE_BLOCKS, request->head.serial, sizeof(reply), reply.count > 0 ? fd : -1);
	close(fd);
}

static void detach(uint32_t serial)
{
	struct wire_detached reply = { .clean = 1 };

	die_if("die-at-detach");
	if (mode_is("unclean")) {
		reply.clean = 0;
		snprintf(reply.text, sizeof(reply.text), "a handler was left");
	}
	note("detached");
	send_head(&reply, WIRE_DETACHED, serial, sizeof(reply), -1);
	while (mode_is("stay") && getppid() == daemon_pid)
		poll(NULL, 0, 50);
	exit(0);
}

/* The deaf ones of other modes have a patience that outlives their tests. */
static void beat(uint32_t patience_ms)
{
	struct wire_heartbeat beat = { .patience_ms = patience_ms };

	send_head(&beat, WIRE_HEARTBEAT, 0, sizeof(beat), -1);
}

/* So long that it is seen in ticks. */
static void work_for_a_moment(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 5;

	while (clock() < end)
		;
}

/* Without a heartbeat from now on. */
static void get_stuck(void)
{
	if (strncmp(mode, "stuck", strlen("stuck")) != 0)
		return;
	beat(1000);
	if (mode_is("stuck-stopped"))
		raise(SIGSTOP);
	while (mode_is("stuck-in-a-loop"))
		;
	if (mode_is("stuck-after-work")) {
		work_for_a_moment();
		poll(NULL, 0, -1);
	}
	while (mode_is("stuck-asleep"))
		poll(NULL, 0, 1000);
}

static void close_socket(void)
{
	if (!mode_is("closes-its-socket"))
		return;
	close(SOCK);
	while (getppid() == daemon_pid)
		poll(NULL, 0, 100);
	exit(0);
}

static void *want_to_run(void *context)
{
	for (;;)
		;
	return context;
}

/* As on a machine whose CPUs others have: this thread waits as it should, and the one that would say so does not get to. */
static void be_starved(void)
{
	pthread_t thread;

	if (!mode_is("starved"))
		return;
	beat(1000);
	if (pthread_create(&thread, NULL, want_to_run, NULL) != 0)
		abort();
	poll(NULL, 0, 2500);
}

static void heal(pid_t pid)
{
	target_pid = pid;
	if (mode_is("healer-stopped")) {
		note("healer stopped");
		raise(SIGSTOP);
	}
	note("healed");
}

static void stand_by_as_service(void)
{
	struct pollfd word = { SOCK, POLLIN, 0 };

	prctl(PR_SET_NAME, "aw-stands-by");
	beat(0);
	note("service stands by");
	poll(&word, 1, -1);
	read_mode();
	note("stand-by");
}

static void handle(const struct wire_head *message)
{
	struct wire_opened opened = { .result = -ENOENT };
	struct wire_head done;

	if (message->type == WIRE_ALIVE || message->type == WIRE_REFUGE)
		return;
	if (message->type != WIRE_ATTACH && message->type != WIRE_DETACH && send_nonsense(message->serial))
		return;
	switch (message->type) {
	case WIRE_STAND_BY:
		stand_by_as_service();
		break;
	case WIRE_HEAL:
		beat(60000);
		heal(message->pid);
		send_head(&done, WIRE_DONE, message->serial, sizeof(done), -1);
		exit(0);
	case WIRE_ATTACH:
		beat(60000);
		attach((const struct wire_attach *)message);
		break;
	case WIRE_SNAPSHOT:
		note("snapshot");
		die_if("die-at-snapshot");
		if (mode_is("growing"))
			grow_heap();
		send_snapshot(message->serial, SNAPSHOT_ASKED,
			      ((const struct wire_snapshot_request *)message)->with_blocks);
		break;
	case WIRE_STATUS:
		die_if("die-at-status");
		get_stuck();
		close_socket();
		be_starved();
		status(message->serial);
		break;
	case WIRE_BLOCK:
		die_if("die-at-block");
		blocks((const struct wire_block_request *)message);
		break;
	case WIRE_CLEAR:
	case WIRE_RESET_PEAK:
		die_if("die-at-clear");
		send_head(&done, WIRE_DONE, message->serial, sizeof(done), -1);
		break;
	case WIRE_DETACH:
		detach(message->serial);
		break;
	case WIRE_OPEN:
		target_pid = message->pid;
		send_head(&opened, WIRE_OPENED, message->serial, sizeof(opened), -1);
		break;
	default:
		abort();
	}
}

static void target_ended(void)
{
	struct wire_gone gone = { .wait_status = 7 << 8 };

	die_if("die-at-exit");
	if (mode_is("deaf-at-exit")) {
		struct pollfd fd = { SOCK, POLLIN, 0 };

		poll(&fd, 1, -1);
	}
	send_snapshot(0, SNAPSHOT_EXIT, false);
	send_head(&gone, WIRE_TARGET_GONE, 0, sizeof(gone), -1);
	exit(0);
}

static void receive(void)
{
	static union {
		char bytes[WIRE_MESSAGE_MAX];
		struct wire_head head;
	} buffer;
	int fd = -1;
	ssize_t n = fd_receive_message(SOCK, &buffer, sizeof(buffer), &fd);

	if (n <= 0) {
		note("eof");
		exit(0);
	}
	if (wire_check(&buffer, (size_t)n, 0) < 0) {
		note("malformed");
		abort();
	}
	if (buffer.head.type == WIRE_ATTACH) {
		pidfd = fd;
		target_pid = buffer.head.pid;
	}
	handle(&buffer.head);
}

static int stand_by(void)
{
	struct wire_head request;
	ssize_t n = recv(SOCK, &request, sizeof(request), 0);

	if (n <= 0)
		return 0;
	if (n != (ssize_t)sizeof(request) || wire_check(&request, sizeof(request), 0) < 0 || request.type != WIRE_HEAL)
		abort();
	read_mode();
	note("stand-by");
	heal(request.pid);
	return 0;
}

int main(int argc, char **argv)
{
	folder = getenv("FAKE_TRACER_FOLDER");
	if (!folder)
		return 2;
	if (argc > 1 && strcmp(argv[1], "--heal") == 0) {
		read_mode();
		heal(argc > 2 ? atoi(argv[2]) : 0);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--stand-by") == 0)
		return stand_by();
	daemon_pid = getppid();
	read_mode();
	die_if("die-at-start");
	make_model();
	for (;;) {
		struct pollfd fds[] = { { SOCK, POLLIN, 0 }, { pidfd, POLLIN, 0 } };

		if (poll(fds, 2, 1000) == 0 && pidfd >= 0)
			beat(60000);
		if (fds[0].revents)
			receive();
		else if (fds[1].revents)
			target_ended();
	}
}
