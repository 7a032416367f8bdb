#include "cli/tracing.h"

#include "base/clock.h"
#include "base/fd.h"
#include "cli/answer.h"
#include "cli/failure.h"
#include "cli/snap.h"
#include "cli/terminal.h"
#include "export/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT_MAX 160
#define COMM_MAX 64                    /* of a thread of the kernel's; others have 15 bytes */
#define PRINTABLE_COMM_MAX (4 * COMM_MAX + 1)

int tracing_pid(const char *command, const char *text, pid_t *ret_pid)
{
	if (snap_parse_pid(text, ret_pid) == 0)
		return EXIT_DONE;
	return fail_usage(command, "'%s' is no PID: a positive number is expected, such as pidof(1) prints for a name", text);
}

/* A process may call itself anything. */
static void printable_comm(const char *comm, size_t len, char text[PRINTABLE_COMM_MAX])
{
	FILE *out = fmemopen(text, PRINTABLE_COMM_MAX, "w");

	text[0] = '\0';
	if (!out)
		return;
	printable_write(out, comm, len, false);
	fclose(out);
}

const char *tracing_name(char text[TRACING_NAME_MAX], pid_t pid)
{
	char path[32], *comm, printable[PRINTABLE_COMM_MAX];
	size_t len;

	snprintf(text, TRACING_NAME_MAX, "%d", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (file_read_text(path, COMM_MAX, &comm, &len) < 0)
		return text;
	/* The kernel adds a newline; the name itself may hold others. */
	printable_comm(comm, len > 0 ? len - 1 : 0, printable);
	snprintf(text, TRACING_NAME_MAX, "%d (%.60s)", (int)pid, printable);
	free(comm);
	return text;
}

static json_t *make_texts(const struct options *options)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < options->allocators.count; i++) {
		if (json_array_append_new(list, json_string(options->allocators.items[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *attach_parameters(const struct options *options, pid_t pid, bool wait_for_exec)
{
	json_t *parameters = json_pack("{s:i, s:s*, s:s*}", "pid", (int)pid, "domains", options->domains,
				       "engine", options->engine);
	int r = parameters ? 0 : -1;

	if (r == 0 && options->frames > 0)
		r = json_object_set_new(parameters, "frames", json_integer(options->frames));
	if (r == 0 && options_have(options, OPTION(FOLLOW_FORKS)))
		r = json_object_set_new(parameters, "follow_forks", json_true());
	if (r == 0 && options_have(options, OPTION(RELEASE)))
		r = json_object_set_new(parameters, "release", json_true());
	if (r == 0 && options_have(options, OPTION(HOLD)))
		r = json_object_set_new(parameters, "hold", json_true());
	if (r == 0 && options->ring_wait_ns > 0)
		r = json_object_set_new(parameters, "ring_wait_ms", json_integer((json_int_t)(options->ring_wait_ns / NSEC_PER_MSEC)));
	if (r == 0 && options_have(options, OPTION(RING_READERS)))
		r = json_object_set_new(parameters, "ring_readers", json_integer((json_int_t)options->ring_readers));
	if (r == 0 && options_have(options, OPTION(SAMPLE_BYTES)))
		r = json_object_set_new(parameters, "sample_bytes", json_integer((json_int_t)options->sample_bytes));
	if (r == 0 && wait_for_exec)
		r = json_object_set_new(parameters, "wait_for_exec", json_true());
	if (r == 0 && options->allocators.count > 0)
		r = json_object_set_new(parameters, "allocators", make_texts(options));
	if (r == 0)
		return parameters;
	json_decref(parameters);
	return NULL;
}

int tracing_attach(struct session *session, const struct options *options, pid_t pid, const char *name,
		   bool wait_for_exec, json_t **ret_reply)
{
	char what[WHAT_MAX];
	json_t *error;
	int r;

	snprintf(what, sizeof(what), "cannot attach to %s", name);
	progress("attaching to %s", name);
	r = session_try(session, what, "Attach", attach_parameters(options, pid, wait_for_exec), ret_reply, &error);
	if (error && session->shared && session_error_is(error, "NotPermitted")) {
		json_decref(error);
		error = NULL;
		session_close(session);
		r = session_open_private(session);
		if (r == EXIT_DONE)
			r = session_try(session, what, "Attach", attach_parameters(options, pid, wait_for_exec),
					ret_reply, &error);
	}
	progress_clear();
	if (error) {
		r = fail_remote(what, error);
		json_decref(error);
	}
	return r;
}

int tracing_detach(struct session *session, pid_t pid, const char *name, bool keep, json_t **ret_reply)
{
	char what[WHAT_MAX];
	json_t *reply;
	int r;

	snprintf(what, sizeof(what), "cannot detach from %s", name);
	progress("detaching from %s", name);
	r = session_call(session, what, "Detach", json_pack("{s:i, s:o*}", "pid", (int)pid, "keep", keep ? json_true() : NULL),
			 &reply);
	progress_clear();
	if (r != EXIT_DONE)
		return r;
	if (!answer_true(reply, "clean")) {
		const char *message = answer_text(reply, "message");

		/* Where there is a better remedy it says so itself. */
		r = fail("detached from %s, but not all of it is as it was: %s%s", name,
			 *message ? message : "the daemon does not say what",
			 strchr(message, ';') ? "" : "; restart it when it can be spared");
	}
	if (ret_reply)
		*ret_reply = json_incref(reply);
	json_decref(reply);
	return r;
}

int tracing_attach_if_need_be(struct session *session, const struct options *options, pid_t pid, const char *name,
			      const char *purpose, bool *ret_attached)
{
	json_t *error, *reply = NULL;
	char what[96];
	int r;

	*ret_attached = false;
	snprintf(what, sizeof(what), "cannot %s process %d", purpose, (int)pid);
	r = session_try(session, what, "GetStatus", json_pack("{s:i}", "pid", (int)pid), &reply, &error);
	json_decref(reply);
	if (r == EXIT_DONE || !error)
		return r;
	if (session_error_is(error, "NotTraced") || session->shared) {
		reply = NULL;
		r = tracing_attach(session, options, pid, name, false, &reply);
		*ret_attached = r == EXIT_DONE;
		json_decref(reply);
	} else {
		r = fail_remote(what, error);
	}
	json_decref(error);
	return r;
}
