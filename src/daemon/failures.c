#define _GNU_SOURCE              /* asprintf */
#include "daemon/failures.h"

#include "base/proc.h"
#include "daemon/daemon.h"
#include "varlink/codec.h"
#include "varlink/interface.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD_START_TIME 22      /* in /proc/PID/stat */

static json_t *text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Texts of targets and tracers need not be UTF-8. */
static json_t *text(const char *format, va_list args)
{
	json_t *json;
	char *line;

	if (vasprintf(&line, format, args) < 0)
		return json_string("out of memory");
	json = codec_bytes(line);
	free(line);
	return json;
}

#define FORMATTED(message, format)           \
	do {                                 \
		va_list args;                \
		va_start(args, format);      \
		message = text(format, args); \
		va_end(args);                \
	} while (0)

static void fail_pid(struct call *call, const char *error, int pid, json_t *message)
{
	call_error(call, error, json_pack("{s:i, s:o}", "pid", pid, "message", message));
}

void fail_invalid_parameter(struct call *call, const char *parameter)
{
	call_error(call, VARLINK_SERVICE_INTERFACE ".InvalidParameter",
		   json_pack("{s:o}", "parameter", codec_bytes(parameter)));
}

void fail_no_such_process(struct call *call, int pid, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	fail_pid(call, "NoSuchProcess", pid, message);
}

void fail_not_traced(struct call *call, int pid, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	fail_pid(call, "NotTraced", pid, message);
}

void fail_already_traced(struct call *call, int pid, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	fail_pid(call, "AlreadyTraced", pid, message);
}

void fail_no_such_snapshot(struct call *call, const char *snapshot, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	call_error(call, "NoSuchSnapshot",
		   json_pack("{s:o, s:o}", "snapshot", codec_bytes(snapshot), "message", message));
}

void fail_limit(struct call *call, const char *limit, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	call_error(call, "LimitReached", json_pack("{s:s, s:o}", "limit", limit, "message", message));
}

void fail_unsupported(struct call *call, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	call_error(call, "Unsupported", json_pack("{s:o}", "message", message));
}

void fail_query(struct call *call, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	call_error(call, "InvalidQuery", json_pack("{s:o}", "message", message));
}

void fail(struct call *call, const char *format, ...)
{
	json_t *message;

	FORMATTED(message, format);
	call_error(call, "Failed", json_pack("{s:o}", "message", message));
}

void fail_memory(struct call *call)
{
	fail(call, "the daemon is out of memory");
}

void fail_not_permitted(struct call *call, int pid, const char *reason, const char *remedy, int tracer_pid)
{
	char *message;

	if (asprintf(&message, "%s%s%s", reason, *remedy ? "; " : "", remedy) < 0) {
		fail_memory(call);
		return;
	}
	call_error(call, "NotPermitted",
		   json_pack("{s:i, s:o, s:o, s:o, s:o}", "pid", pid, "reason", codec_bytes(reason), "remedy",
			     codec_bytes(remedy), "tracer_pid", tracer_pid > 0 ? json_integer(tracer_pid) : json_null(),
			     "message", codec_bytes(message)));
	free(message);
}

/* A tracer's line reads "why; what to do". */
static void not_permitted_by_tracer(struct call *call, int pid, const struct wire_failed *failed)
{
	char reason[WIRE_TEXT_MAX];
	char *remedy;

	snprintf(reason, sizeof(reason), "%s", failed->text);
	remedy = strstr(reason, "; ");
	if (remedy) {
		*remedy = '\0';
		remedy += 2;
	}
	fail_not_permitted(call, pid, reason, remedy ? remedy : "", failed->other_tracer);
}

static void fail_as_told(struct call *call, int pid, const struct wire_failed *failed)
{
	switch ((enum wire_failure)failed->failure) {
	case FAILURE_NO_SUCH_PROCESS:
	case FAILURE_GONE:
		fail_no_such_process(call, pid, "%s", failed->text);
		return;
	case FAILURE_NOT_PERMITTED:
		not_permitted_by_tracer(call, pid, failed);
		return;
	case FAILURE_UNSUPPORTED:
		fail_unsupported(call, "%s", failed->text);
		return;
	case FAILURE_NO_ALLOCATOR:
		call_error(call, "NoAllocator",
			   json_pack("{s:i, s:o}", "pid", pid, "message", codec_bytes(failed->text)));
		return;
	case FAILURE_NOT_TRACED:
		fail_not_traced(call, pid, "%s", failed->text);
		return;
	case FAILURE_LIMIT:
		fail_limit(call, "tracer", "%s", failed->text);
		return;
	case FAILURE_INTERNAL:
		break;
	}
	fail(call, "%s", failed->text);
}

void fail_ended(struct call *call, int pid)
{
	const struct ending *ending = sessions_ending(call->daemon->sessions, pid);
	char end[PROC_END_MAX];

	proc_end_text(end, ending && ending->exited ? ending->wait_status : -1);
	fail_no_such_process(call, pid, "process %d %s; its last snapshot is %d:exit", pid, end, pid);
}

/* It was traced to its end, and its number has not been given to another process since. */
static bool is_known_as_ended(struct call *call, int pid)
{
	const struct ending *ending = sessions_ending(call->daemon->sessions, pid);
	uint64_t start_time;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return ending && ending->exited &&
	       (proc_stat_number(path, FIELD_START_TIME, &start_time) < 0 || start_time == ending->start_time);
}

void fail_no_session(struct call *call, int pid, const struct session *session)
{
	if (session ? session_state(session) == SESSION_ENDING : is_known_as_ended(call, pid))
		fail_ended(call, pid);
	else
		fail_not_traced(call, pid, "process %d is %s", pid,
				session ? session_state_name(session) : "not traced");
}

void fail_answer(struct call *call, int pid, const struct answer *answer)
{
	switch (answer->error) {
	case -EREMOTEIO:
		fail_as_told(call, pid, (const struct wire_failed *)answer->message);
		break;
	case -ESRCH:
		fail_ended(call, pid);
		break;
	case -ECANCELED:
		fail_not_traced(call, pid, "process %d was detached meanwhile", pid);
		break;
	case -ECONNRESET:
		fail(call, "the tracer of process %d has died, or nothing ends it; the log of the daemon says how, and "
			   "'allocwatch attach %d' starts anew", pid, pid);
		break;
	case -ETIMEDOUT:
		fail(call, "the tracer of process %d did not answer in time; the log of the daemon may say why", pid);
		break;
	case -EAGAIN:
		fail_limit(call, "requests", "process %d is asked for more than its tracer can answer; try again", pid);
		break;
	default:
		fail(call, "the tracer of process %d cannot be asked: %s", pid, strerror(-answer->error));
	}
}
