#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/tracing.h"

#include "base/proc.h"
#include "export/printable.h"
#include "export/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char what[] = "cannot follow what happens";

static void print_text(const char *before, const char *text)
{
	if (!*text)
		return;
	fputs(before, stdout);
	printable_write(stdout, text, strlen(text), false);
}

static void print_snapshot(const json_t *info)
{
	char size[TEXT_SIZE_MAX];

	print_text(" ", answer_text(info, "id"));
	print_text(" ", answer_text(info, "name"));
	printf(" size=%s, count=%" PRIu64, text_size(size, (double)answer_number(info, "size"), false),
	       answer_number(info, "count"));
}

static void print_event(const json_t *event)
{
	const json_t *snapshot = json_object_get(event, "snapshot"), *status = json_object_get(event, "exit_status");
	char time[ANSWER_TIME_MAX], end[PROC_END_MAX];

	fputs(answer_time(time, answer_number(event, "time")), stdout);
	print_text(" ", answer_text(event, "kind"));
	if (answer_number(event, "pid") > 0)
		printf(" %" PRIu64, answer_number(event, "pid"));
	print_text(" ", answer_text(event, "command"));
	if (snapshot)
		print_snapshot(snapshot);
	if (json_is_integer(status))
		printf(" %s", proc_end_text(end, (int)json_integer_value(status)));
	print_text(", its last snapshot is ", answer_text(event, "last_snapshot"));
	print_text(": ", answer_text(event, "reason"));
	print_text(" ", answer_text(event, "limit"));
	print_text(": ", answer_text(event, "message"));
	if (answer_number(event, "count") > 0)
		printf(" %" PRIu64 ", which this command was too slow for", answer_number(event, "count"));
	putchar('\n');
}

/* Each is out before the next is waited for: who reads a pipe must not wait for a full buffer. */
static int take_event(void *context, json_t *reply)
{
	const struct options *options = context;
	json_t *event = json_object_get(reply, "event");

	if (!json_is_object(event))
		return -EBADMSG;
	if (options_have(options, OPTION(JSON))) {
		if (json_dumpf(event, stdout, JSON_COMPACT) < 0)
			return -EIO;
		putchar('\n');
	} else {
		print_event(event);
	}
	return fflush(stdout) == 0 ? 0 : -EIO;
}

static int follow(const struct options *options, struct session *session, json_t *parameters)
{
	json_t *error = NULL;
	int r;

	/* Nothing may happen for days. */
	varlink_client_set_patience(session->client, 0);
	r = varlink_client_stream(session->client, "Subscribe", parameters, take_event, (void *)options, &error);
	if (error)
		fail_remote(what, error);
	else if (r == -EIO)
		fail("cannot write what happens: %s", strerror(errno));
	else if (r == -EBADMSG)
		fail("%s: the daemon on %s sent something else; client and daemon may be of different versions", what,
		     session->path);
	else if (r < 0)
		session_fail_transport(session, what, r);
	json_decref(error);
	return r < 0 ? EXIT_FAILED : show_finish();
}

int cmd_events(const struct options *options, int argc, char **argv)
{
	struct session session;
	json_t *parameters;
	pid_t pid = 0;
	int r = argc > 0 ? tracing_pid("events", argv[0], &pid) : EXIT_DONE;

	if (r == EXIT_DONE)
		r = session_open(options, &session);
	if (r != EXIT_DONE)
		return r;
	parameters = argc > 0 ? json_pack("{s:i}", "pid", (int)pid) : json_object();
	r = parameters ? follow(options, &session, parameters) : fail_memory();
	json_decref(parameters);
	session_close(&session);
	return r;
}
