#include "symbol/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "symbol/answers.h"
#include "symbol/jit_names.h"
#include "symbol/opener.h"
#include "symbol/symbol.h"
#include "symbol/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(SYMBOL_LOCATIONS_MAX <= SYMBOL_WIRE_LOCATIONS_MAX, "an answer must fit");

/* The daemon hears of us at least so often, unless a single address takes longer. */
#define FLUSH_INTERVAL_NS (100 * NSEC_PER_MSEC)

/* One of the two. */
struct opened {
	struct symbol_module *elf;
	struct jit_names *names;
};

struct server {
	int sock;
	const char *debug_root;
	struct opened modules[SYMBOL_WIRE_MODULES_MAX];
	struct answers *answers;
	uint64_t sent_ns;
	struct symbol_wire_head asked;       /* what is being answered */
	int broken;                          /* negative errno: the daemon did not answer in turn */
	uint64_t request[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
};

/* --- files that belong to a module --- */

static int send_need(const struct server *server, const char *path)
{
	union {
		struct symbol_wire_need need;
		char space[sizeof(struct symbol_wire_need) + SYMBOL_WIRE_PATH_MAX];
	} message;
	size_t len = strlen(path) + 1;

	if (path[0] != '/')
		return -ENOENT;
	if (len > SYMBOL_WIRE_PATH_MAX)
		return -ENAMETOOLONG;
	message.need.head = (struct symbol_wire_head){ SYMBOL_WIRE_NEED, server->asked.serial, server->asked.module,
						       (uint32_t)(sizeof(message.need) + len) };
	memcpy(message.need.path, path, len);
	return fd_send_message(server->sock, &message, message.need.head.length, -1);
}

/* The daemon sends nothing else now. */
static int receive_file(struct server *server)
{
	struct symbol_wire_file file;
	int fd = -1;
	ssize_t n = fd_receive_message(server->sock, &file, sizeof(file), &fd);

	if (n != (ssize_t)sizeof(file) || symbol_wire_check(&file, sizeof(file), false) < 0 ||
	    file.head.type != SYMBOL_WIRE_FILE || file.head.serial != server->asked.serial ||
	    (file.result == 0) != (fd >= 0)) {
		fd_close(&fd);
		server->broken = -EBADMSG;
		return -EIO;
	}
	return file.result < 0 ? file.result : fd;
}

static int fetch_debug(void *context, const void *build_id, size_t len)
{
	struct server *server = context;
	struct symbol_wire_need_debug need = {
		.head = { SYMBOL_WIRE_NEED_DEBUG, server->asked.serial, server->asked.module, sizeof(need) },
		.build_id_len = (uint32_t)len,
	};
	int r = server->broken < 0 ? -EIO : 0;

	if (len > sizeof(need.build_id))
		return -ENOENT;
	if (len > 0)
		memcpy(need.build_id, build_id, len);
	if (r == 0)
		r = fd_send_message(server->sock, &need, sizeof(need), -1);
	return r < 0 ? r : receive_file(server);
}

static int open_elsewhere(void *context, const char *path)
{
	struct server *server = context;
	int r = server->broken < 0 ? -EIO : send_need(server, path);

	return r < 0 ? r : receive_file(server);
}

/* --- requests --- */

static void close_module(struct server *server, uint32_t module)
{
	symbol_module_free(server->modules[module].elf);
	jit_names_free(server->modules[module].names);
	server->modules[module] = (struct opened){ 0 };
}

static int open_file(struct server *server, const struct symbol_wire_head *head, int fd)
{
	struct opened *opened = &server->modules[head->module];
	struct stat st;

	if (fd < 0)
		return -EBADF;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		fd_close(&fd);
		return -ENOEXEC;
	}
	return head->type == SYMBOL_WIRE_OPEN_NAMES ? jit_names_open(fd, &opened->names) :
	       symbol_module_open(fd, server->debug_root, &opened->elf);
}

static int handle_open(struct server *server, const struct symbol_wire_head *head, int fd)
{
	struct symbol_wire_opened opened = {
		.head = { SYMBOL_WIRE_OPENED, head->serial, head->module, sizeof(opened) },
	};

	close_module(server, head->module);
	opened.result = open_file(server, head, fd);
	if (server->modules[head->module].elf)
		opened.sources = symbol_module_sources(server->modules[head->module].elf);
	return fd_send_message(server->sock, &opened, sizeof(opened), -1);
}

static int flush(struct server *server)
{
	const struct symbol_module *elf = server->modules[server->asked.module].elf;
	const void *message;
	size_t len;

	if (elf && symbol_module_is_incomplete(elf))
		answers_set_incomplete(server->answers);
	message = answers_finish(server->answers, &len);
	server->sent_ns = clock_monotonic_ns();
	return fd_send_message(server->sock, message, len, -1);
}

/* Adds one query's answer; sends what there is when the message is full. */
static int add_answer(struct server *server, const struct symbol_wire_head *head, uint32_t query,
		      const struct symbol_location *locations, size_t count)
{
	int r;

	if (answers_add(server->answers, locations, count))
		return 0;
	r = flush(server);
	answers_begin(server->answers, head->serial, head->module, query);
	answers_add(server->answers, locations, count);
	return r;
}

static int resolve_one(const struct opened *opened, const struct symbol_wire_query *query,
		       struct symbol_location *locations)
{
	return opened->names ? jit_names_resolve(opened->names, query->address, query->is_call, locations) :
	       symbol_module_resolve(opened->elf, query->address, query->is_call, locations);
}

static int handle_resolve(struct server *server, const struct symbol_wire_resolve *resolve)
{
	const struct symbol_wire_head *head = &resolve->head;
	const struct opened *opened = &server->modules[head->module];

	if (!opened->elf && !opened->names)
		return -EBADMSG;
	server->sent_ns = clock_monotonic_ns();
	answers_begin(server->answers, head->serial, head->module, 0);
	for (uint32_t i = 0; i < resolve->count; i++) {
		struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
		int r = resolve_one(opened, &resolve->queries[i], locations);

		/* This process is then of no more use; the daemon starts a fresh one. */
		if (r >= 0)
			r = add_answer(server, head, i, locations, (size_t)r);
		if (r == 0 && i + 1 < resolve->count &&
		    clock_monotonic_ns() - server->sent_ns > FLUSH_INTERVAL_NS) {
			r = flush(server);
			answers_begin(server->answers, head->serial, head->module, i + 1);
		}
		if (r < 0)
			return r;
	}
	return flush(server);
}

static int dispatch(struct server *server, int fd)
{
	const struct symbol_wire_head *head = (const void *)server->request;

	server->asked = *head;
	if (head->type == SYMBOL_WIRE_OPEN || head->type == SYMBOL_WIRE_OPEN_NAMES)
		return handle_open(server, head, fd);
	fd_close(&fd);
	if (head->type == SYMBOL_WIRE_RESOLVE)
		return handle_resolve(server, (const void *)server->request);
	if (head->type == SYMBOL_WIRE_FILE)
		return -EBADMSG;
	close_module(server, head->module);
	return 0;
}

static int serve(struct server *server)
{
	const struct symbol_wire_head ready = { SYMBOL_WIRE_READY, SYMBOL_WIRE_VERSION, 0, sizeof(ready) };
	int sent = fd_send_message(server->sock, &ready, sizeof(ready), -1);

	if (sent < 0)
		return sent;
	for (;;) {
		int fd = -1, r;
		ssize_t n = fd_receive_message(server->sock, server->request,
					       sizeof(server->request), &fd);

		if (n <= 0)
			return (int)n;
		r = symbol_wire_check(server->request, (size_t)n, false);
		if (r < 0)
			fd_close(&fd);
		else
			r = dispatch(server, fd);
		if (r < 0 || server->broken < 0)
			return r < 0 ? r : server->broken;
	}
}

int server_run(int sock, const char *debug_root)
{
	struct server *server = calloc(1, sizeof(*server));
	int r = -ENOMEM;

	if (!server)
		return r;
	server->sock = sock;
	server->debug_root = debug_root;
	server->answers = answers_new();
	opener_set(&(struct opener){ server, open_elsewhere, fetch_debug });
	if (server->answers)
		r = serve(server);
	opener_set(NULL);
	for (uint32_t i = 0; i < SYMBOL_WIRE_MODULES_MAX; i++)
		close_module(server, i);
	answers_free(server->answers);
	free(server);
	return r;
}
