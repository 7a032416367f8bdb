/* watch, unwatch, history: rules about services and programs, and what was traced for them. */
#define _GNU_SOURCE              /* realpath */
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/table.h"

#include "base/clock.h"
#include "base/proc.h"
#include "base/units.h"
#include "export/printable.h"
#include "export/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define RULE_OPTIONS (OPTION(EVERY) | OPTION(KEEP_COUNT) | OPTION(KEEP_AGE) | OPTION(KEEP_SIZE) | OPTION(FRAMES) | \
		      OPTION(ENGINE) | OPTION(FOLLOW_FORKS) | OPTION(FROM_START) | OPTION(RSS_LIMIT) | OPTION(RSS_SLOPE))

/* Whom a command is about: a unit, or a program by its path.  The caller has PATH_MAX bytes for it. */
static int take_who(const struct options *options, const char *command, int argc, char **argv, char who[PATH_MAX])
{
	bool program = options_have(options, OPTION(EXE));

	if (program == (argc > 0))
		return fail_usage(command, program ? "'%s' wants a unit or --exe, not both" : "'%s' wants a unit, or --exe PATH",
				  command);
	/* A rule outlives its program, and is then known by the path alone. */
	if (program && !realpath(options->exe, who)) {
		if (strcmp(command, "watch") == 0 || options->exe[0] != '/' || strlen(options->exe) >= PATH_MAX)
			return fail("cannot find %s: %s", options->exe, strerror(errno));
		strcpy(who, options->exe);
	}
	if (!program && (strchr(argv[0], '/') || !*argv[0] || strlen(argv[0]) >= PATH_MAX))
		return fail_usage(command, "'%s' is no unit; a program is named by --exe", argv[0]);
	if (!program)
		strcpy(who, argv[0]);
	return EXIT_DONE;
}

/* --- watch --- */

static json_t *watch_parameters(const struct options *options, const char *who)
{
	json_t *parameters = json_pack("{s:s, s:b}", "who", who, "follow_forks", options_have(options, OPTION(FOLLOW_FORKS)));
	int r = parameters ? 0 : -1;

	if (r == 0 && options->every_ns)
		r = json_object_set_new(parameters, "every_ms", json_integer((json_int_t)(options->every_ns / NSEC_PER_MSEC)));
	if (r == 0 && options->keep)
		r = json_object_set_new(parameters, "keep", json_integer(options->keep));
	if (r == 0 && options->keep_age_ns)
		r = json_object_set_new(parameters, "keep_ms", json_integer((json_int_t)(options->keep_age_ns / NSEC_PER_MSEC)));
	if (r == 0 && options->keep_bytes)
		r = json_object_set_new(parameters, "keep_bytes", json_integer((json_int_t)options->keep_bytes));
	if (r == 0 && options->rss_limit)
		r = json_object_set_new(parameters, "rss_limit", json_integer((json_int_t)options->rss_limit));
	if (r == 0 && options->rss_slope)
		r = json_object_set_new(parameters, "rss_slope", json_integer((json_int_t)options->rss_slope));
	if (r == 0 && options->frames)
		r = json_object_set_new(parameters, "frames", json_integer(options->frames));
	if (r == 0 && options->engine)
		r = json_object_set_new(parameters, "engine", json_string(options->engine));
	if (r == 0 && options_have(options, OPTION(FROM_START)))
		r = json_object_set_new(parameters, "from_start", json_true());
	if (r < 0) {
		json_decref(parameters);
		return NULL;
	}
	return parameters;
}

static void print_text(const char *text)
{
	printable_write(stdout, text, strlen(text), false);
}

static int add_rule(const struct options *options, const char *who)
{
	struct session session;
	json_t *reply;
	int r = session_open_or_start(options, &session);

	if (r != EXIT_DONE)
		return r;
	r = session_call(&session, "cannot watch it", "Watch", watch_parameters(options, who), &reply);
	session_close(&session);
	if (r != EXIT_DONE)
		return r;
	if (*answer_text(reply, "problem"))
		note("%s: %s; it is watched as soon as that changes", answer_text(reply, "who"), answer_text(reply, "problem"));
	if (options_have(options, OPTION(JSON)))
		return show_json(reply);
	printf("watching ");
	print_text(answer_text(reply, "who"));
	if (*answer_text(reply, "drop_in")) {
		printf(", from its start by ");
		print_text(answer_text(reply, "drop_in"));
	}
	putchar('\n');
	if (*answer_text(reply, "drop_in"))
		note("it is traced from its first instruction after its next start: 'systemctl restart %s' is left to you",
		     answer_text(reply, "who"));
	json_decref(reply);
	return show_finish();
}

static int cell_of_limit(struct table *table, const json_t *rule)
{
	char size[TEXT_SIZE_MAX], age[UNITS_TEXT_MAX];
	uint64_t count = answer_number(rule, "keep"), ms = answer_number(rule, "keep_ms"), bytes = answer_number(rule, "keep_bytes");
	char text[TEXT_SIZE_MAX + UNITS_TEXT_MAX + 32] = "";
	int at = 0;

	if (count > 0)
		at += snprintf(text, sizeof(text), "%" PRIu64, count);
	if (ms > 0)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s", at ? ", " : "",
			       units_duration_text(age, ms * NSEC_PER_MSEC));
	if (bytes > 0)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s", at ? ", " : "",
			       text_size(size, (double)bytes, false));
	return table_cell(table, "%s", at ? text : "-");
}

static int cell_of_pids(struct table *table, const json_t *pids)
{
	char text[128] = "-";
	size_t at = 0, i;
	json_t *pid;

	json_array_foreach(pids, i, pid) {
		if (at + 16 < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%" JSON_INTEGER_FORMAT, at ? " " : "",
					       json_integer_value(pid));
	}
	return table_cell(table, "%s", text);
}

/* A drop-in may be missing for a moment, or as long as systemd's answers forbid it. */
static const char *is_from_start(const json_t *rule)
{
	if (!answer_true(rule, "from_start"))
		return "-";
	return *answer_text(rule, "drop_in") ? "yes" : "not now";
}

static int print_rules(const json_t *rules)
{
	static const struct table_column columns[] = {
		{ "WATCHED", false }, { "EVERY", true }, { "KEPT", true }, { "FROM START", false }, { "PID", false }, { NULL, false },
	};
	struct table *table = table_new(columns);
	char every[UNITS_TEXT_MAX];
	const json_t *rule;
	size_t i;
	int r = table ? 0 : -ENOMEM;

	json_array_foreach(rules, i, rule) {
		if (r == 0)
			r = table_cell(table, "%s", answer_text(rule, "who"));
		if (r == 0)
			r = table_cell(table, "%s", units_duration_text(every, answer_number(rule, "every_ms") * NSEC_PER_MSEC));
		if (r == 0)
			r = cell_of_limit(table, rule);
		if (r == 0)
			r = table_cell(table, "%s", is_from_start(rule));
		if (r == 0)
			r = cell_of_pids(table, json_object_get(rule, "pids"));
	}
	if (r == 0)
		table_print(table, stdout);
	table_free(table);
	return r;
}

static int list_rules(const struct options *options)
{
	struct session session;
	json_t *reply;
	int r = session_open(options, &session);

	if (r != EXIT_DONE)
		return r;
	r = session_call(&session, "cannot list what is watched", "ListWatches", json_object(), &reply);
	session_close(&session);
	if (r != EXIT_DONE)
		return r;
	if (options_have(options, OPTION(JSON)))
		return show_json(reply);
	r = print_rules(json_object_get(reply, "watches")) < 0 ? fail_memory() : show_finish();
	json_decref(reply);
	return r;
}

int cmd_watch(const struct options *options, int argc, char **argv)
{
	char who[PATH_MAX];
	int r;

	if (argc == 0 && !options_have(options, OPTION(EXE) | RULE_OPTIONS))
		return list_rules(options);
	if (options_have(options, OPTION(FROM_START)) && options_have(options, OPTION(EXE)))
		return fail_usage("watch", "--from-start is for services; a program is traced as soon as it is seen");
	r = take_who(options, "watch", argc, argv, who);
	return r == EXIT_DONE ? add_rule(options, who) : r;
}

/* --- unwatch --- */

int cmd_unwatch(const struct options *options, int argc, char **argv)
{
	struct session session;
	char who[PATH_MAX];
	int r = take_who(options, "unwatch", argc, argv, who);

	if (r == EXIT_DONE)
		r = session_open(options, &session);
	if (r != EXIT_DONE)
		return r;
	r = session_call(&session, "cannot end watching", "Unwatch", json_pack("{s:s}", "who", who), NULL);
	session_close(&session);
	if (r == EXIT_DONE && options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:s}", "unwatched", who));
	return r;
}

/* --- history --- */

static const char *end_of(const json_t *run, char text[PROC_END_MAX])
{
	const json_t *status = json_object_get(run, "exit_status");

	if (answer_true(run, "traced"))
		return "is traced";
	if (json_is_integer(status))
		return proc_end_text(text, (int)json_integer_value(status));
	return json_is_integer(json_object_get(run, "until")) ? "was let go" : "was not seen to its end";
}

static int print_run(const json_t *run)
{
	char since[ANSWER_TIME_MAX], until[ANSWER_TIME_MAX], end[PROC_END_MAX];
	const json_t *snapshots = json_object_get(run, "snapshots");
	uint64_t until_ns = answer_number(run, "until");

	printf("process %" PRIu64 ", traced since %s%s%s, %s\n", answer_number(run, "pid"),
	       answer_time(since, answer_number(run, "since")), until_ns ? " until " : "",
	       until_ns ? answer_time(until, until_ns) : "", end_of(run, end));
	return json_array_size(snapshots) > 0 ? answer_print_snapshots(snapshots) : 0;
}

static int print_history(const json_t *reply)
{
	const json_t *run;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(reply, "runs"), i, run) {
		if (i > 0)
			putchar('\n');
		if (r == 0)
			r = print_run(run);
	}
	if (json_array_size(json_object_get(reply, "runs")) == 0)
		note("%s is watched, and no process of it was traced yet", answer_text(reply, "who"));
	return r;
}

int cmd_history(const struct options *options, int argc, char **argv)
{
	struct session session;
	char who[PATH_MAX];
	json_t *reply;
	int r = take_who(options, "history", argc, argv, who);

	if (r == EXIT_DONE)
		r = session_open_kept(options, &session);
	if (r != EXIT_DONE)
		return r;
	r = session_call(&session, "cannot show the history", "GetHistory", json_pack("{s:s}", "who", who), &reply);
	session_close(&session);
	if (r != EXIT_DONE)
		return r;
	if (options_have(options, OPTION(JSON)))
		return show_json(reply);
	r = print_history(reply) < 0 ? fail_memory() : show_finish();
	json_decref(reply);
	return r;
}
