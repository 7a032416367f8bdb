/* In the place of daemon/tracer.c, daemon/symbolizer.c and daemon/log.c: no process is started, nothing is logged. */
#include "daemon.h"
#include "fuzz.h"

#include "base/fd.h"
#include "base/vec.h"
#include "daemon/log.h"
#include "daemon/symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* --- tracers --- */

struct tracers {
	VEC_OF(struct tracer *) running;
};

struct tracer {
	struct tracers *tracers;
	struct tracer_owner owner;
	int target_pid;
	bool lost, let_go, speaks;
};

static VEC_OF(struct asked) asked;
static struct tracers *all;

static void forget_asked(const struct tracer *tracer)
{
	size_t kept = 0;

	for (size_t i = 0; i < asked.count; i++) {
		if (asked.items[i].tracer != tracer)
			asked.items[kept++] = asked.items[i];
	}
	asked.count = kept;
}

int tracers_new(sd_event *event, const char *program, const char *service, void (*gone)(void *context),
		void *context, struct tracers **ret)
{
	(void)event;
	(void)program;
	(void)service;
	(void)gone;
	(void)context;
	all = calloc(1, sizeof(*all));
	MUST(all);
	*ret = all;
	return 0;
}

static void tracer_free(struct tracer *tracer)
{
	forget_asked(tracer);
	for (size_t i = 0; i < tracer->tracers->running.count; i++) {
		if (tracer->tracers->running.items[i] == tracer)
			vec_remove_unordered(&tracer->tracers->running, i);
	}
	free(tracer);
}

void tracers_free(struct tracers *tracers)
{
	if (!tracers)
		return;
	while (tracers->running.count > 0)
		tracer_free(tracers->running.items[0]);
	vec_fini(&tracers->running);
	vec_fini(&asked);
	free(tracers);
	all = NULL;
}

size_t tracers_running(const struct tracers *tracers)
{
	return tracers->running.count;
}

int tracer_start(struct tracers *tracers, int pid, const struct tracer_owner *owner, struct tracer **ret)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer)), **slot = vec_push(&tracers->running);

	MUST(tracer && slot);
	*tracer = (struct tracer){ .tracers = tracers, .owner = *owner, .target_pid = pid };
	*slot = tracer;
	*ret = tracer;
	return 0;
}

/* The process leaves at once; from within its own message it is freed behind that. */
void tracer_let_go(struct tracer *tracer)
{
	if (!tracer)
		return;
	tracer->let_go = true;
	forget_asked(tracer);
	if (!tracer->speaks)
		tracer_free(tracer);
}

int tracer_send(struct tracer *tracer, const void *message, size_t len, int fd)
{
	struct asked *one;

	if (tracer->lost)
		return -ENOTCONN;
	MUST(wire_check(message, len, 0) == 0);
	MUST(fd < 0 || fcntl(fd, F_GETFD) >= 0);
	one = vec_push(&asked);
	MUST(one);
	one->tracer = tracer;
	memcpy(&one->head, message, sizeof(one->head));
	one->with_blocks = one->head.type == WIRE_SNAPSHOT && ((const struct wire_snapshot_request *)message)->with_blocks;
	return 0;
}

pid_t tracer_pid(const struct tracer *tracer)
{
	(void)tracer;
	return 0;
}

/* No child of the parent's. */
int tracer_adopt(struct tracers *tracers, const struct tracer *parent, int target_pid, pid_t pid, int sock,
		 const struct tracer_owner *owner, struct tracer **ret)
{
	(void)parent;
	if (pid % 2) {
		close(sock);
		return -EPERM;
	}
	close(sock);
	return tracer_start(tracers, target_pid, owner, ret);
}

void tracers_heal(struct tracers *tracers, int pid)
{
	(void)tracers;
	(void)pid;
}

bool stand_in_next(struct asked *ret)
{
	if (asked.count == 0)
		return false;
	*ret = asked.items[0];
	memmove(asked.items, asked.items + 1, --asked.count * sizeof(*asked.items));
	return true;
}

struct tracer *stand_in_tracer(void)
{
	for (size_t i = 0; all && i < all->running.count; i++) {
		struct tracer *tracer = all->running.items[i];

		if (tracer->target_pid == HOST_PID && !tracer->lost && !tracer->let_go)
			return tracer;
	}
	return NULL;
}

bool stand_in_say(struct tracer *tracer, void *message, size_t len, int fd)
{
	bool good = wire_check(message, len, 1) == 0;

	tracer->speaks = true;
	if (good && ((struct wire_head *)message)->type != WIRE_HEARTBEAT) {
		tracer->owner.message(tracer->owner.context, message, &fd);
	} else if (!good) {
		tracer->lost = true;
		tracer->owner.lost(tracer->owner.context, "it sent a malformed message");
	}
	fd_close(&fd);
	tracer->speaks = false;
	if (tracer->let_go)
		tracer_free(tracer);
	return good;
}

/* --- the symbolizer --- */

struct symbolizer {
	const struct symbolizer_handler *handler;
	void *context;
	bool fresh;
};

static struct symbolizer *symbolizer;
static VEC_OF(struct named) named;
static struct symbol_wire_head last_named;

int symbolizer_start(sd_event *event, const char *program, const struct symbolizer_handler *handler,
		     void *context, struct symbolizer **ret)
{
	(void)event;
	(void)program;
	MUST(!symbolizer);
	symbolizer = calloc(1, sizeof(*symbolizer));
	MUST(symbolizer);
	*symbolizer = (struct symbolizer){ handler, context, true };
	*ret = symbolizer;
	return 0;
}

void symbolizer_free(struct symbolizer *ours)
{
	if (!ours)
		return;
	MUST(ours == symbolizer);
	free(symbolizer);
	symbolizer = NULL;
	vec_fini(&named);
}

int symbolizer_send(struct symbolizer *ours, const void *message, size_t len, int fd)
{
	struct named *one = vec_push(&named);

	MUST(ours == symbolizer && one && symbol_wire_check(message, len, false) == 0);
	MUST(fd < 0 || fcntl(fd, F_GETFD) >= 0);
	memcpy(&one->head, message, sizeof(one->head));
	one->count = one->head.type == SYMBOL_WIRE_RESOLVE ? ((const struct symbol_wire_resolve *)message)->count : 0;
	last_named = one->head;
	return 0;
}

int symbolizer_expect(struct symbolizer *ours, uint64_t interval_us)
{
	(void)ours;
	(void)interval_us;
	return 0;
}

pid_t symbolizer_pid(const struct symbolizer *ours)
{
	(void)ours;
	return 0;
}

bool stand_in_end_symbolizer(void)
{
	if (!symbolizer)
		return false;
	symbolizer->handler->end(symbolizer->context);
	return true;
}

bool stand_in_is_fresh(void)
{
	return symbolizer && symbolizer->fresh;
}

bool stand_in_next_name(struct named *ret)
{
	if (named.count == 0)
		return false;
	*ret = named.items[0];
	memmove(named.items, named.items + 1, --named.count * sizeof(*named.items));
	return true;
}

bool stand_in_say_name(void *message, size_t len)
{
	struct symbol_wire_head *head = message;
	int r = -EBADMSG;

	if (!symbolizer)
		return false;
	symbolizer->fresh = false;
	if (len >= sizeof(*head) && head->serial == 0)
		head->serial = last_named.serial;
	if (symbol_wire_check(message, len, true) == 0) {
		fuzz_reached(0);
		r = symbolizer->handler->message(symbolizer->context, message, len);
	}
	if (r < 0)
		symbolizer->handler->end(symbolizer->context);
	return r == 0;
}

/* --- the log: lines are made, and seen by nobody --- */

const char *const log_levels[] = { "error", "warning", "notice", "info", "debug", NULL };

void log_init(void)
{
}

void log_set_level(enum log_level level)
{
	(void)level;
}

#define LOG_FUNCTION(name) \
	void name(const char *format, ...) \
	{ \
		char line[4096]; \
		va_list args; \
\
		va_start(args, format); \
		MUST(vsnprintf(line, sizeof(line), format, args) > 0); \
		va_end(args); \
	}

LOG_FUNCTION(log_error)
LOG_FUNCTION(log_warning)
LOG_FUNCTION(log_notice)
LOG_FUNCTION(log_info)
LOG_FUNCTION(log_debug)
