#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/table.h"

#include "export/text.h"
#include "export/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int add_target(struct table *table, const json_t *target)
{
	char since[ANSWER_TIME_MAX], live[TEXT_SIZE_MAX];

	if (table_cell(table, "%" PRIu64, answer_number(target, "pid")) < 0 ||
	    table_cell(table, "%s", answer_text(target, "command")) < 0 ||
	    table_cell(table, "%s", answer_time(since, answer_number(target, "since"))) < 0 ||
	    table_cell(table, "%s", text_size(live, (double)answer_number(target, "live_bytes"), false)) < 0 ||
	    table_cell(table, "%" PRIu64, answer_number(target, "blocks")) < 0 ||
	    table_cell(table, "%s", answer_text(target, "state")) < 0)
		return -ENOMEM;
	return 0;
}

static int print_targets(const json_t *targets)
{
	static const struct table_column columns[] = {
		{ "PID", true }, { "COMMAND", false }, { "SINCE", false }, { "LIVE", true }, { "BLOCKS", true },
		{ "STATE", false }, { NULL, false },
	};
	struct table *table = table_new(columns);
	const json_t *target;
	size_t i;
	int r = table ? 0 : -ENOMEM;

	json_array_foreach(targets, i, target) {
		if (r == 0)
			r = add_target(table, target);
	}
	if (r == 0)
		table_print(table, stdout);
	table_free(table);
	return r;
}

static void print_daemon(const struct session *session, const json_t *reply, size_t count)
{
	const char *daemon = answer_text(reply, "daemon");

	printf("%zu traced by ", count);
	printable_write(stdout, daemon, strlen(daemon), false);
	if (!strstr(daemon, session->path))
		printf("%son %s", *daemon ? " " : "the daemon ", session->path);
	putchar('\n');
}

static void print_watched(const json_t *watched)
{
	const json_t *who;
	size_t i;

	json_array_foreach(watched, i, who) {
		fputs(i == 0 ? "watched: " : ", ", stdout);
		if (json_is_string(who))
			printable_write(stdout, json_string_value(who), json_string_length(who), false);
	}
	if (json_array_size(watched) > 0)
		putchar('\n');
}

int cmd_list(const struct options *options, int argc, char **argv)
{
	struct session session;
	json_t *reply, *targets;
	int r = session_open(options, &session);

	(void)argc;
	(void)argv;
	if (r != EXIT_DONE)
		return r;
	r = session_call(&session, "cannot list what is traced", "List", json_object(), &reply);
	if (r != EXIT_DONE)
		goto out;
	if (options_have(options, OPTION(JSON))) {
		r = show_json(reply);
		goto out;
	}
	targets = json_object_get(reply, "targets");
	if (json_array_size(targets) > 0 && print_targets(targets) < 0) {
		r = fail_memory();
	} else {
		print_daemon(&session, reply, json_array_size(targets));
		print_watched(json_object_get(reply, "watched"));
		r = show_finish();
	}
	json_decref(reply);
out:
	session_close(&session);
	return r;
}
