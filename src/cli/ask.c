#define _GNU_SOURCE              /* asprintf */
#include "cli/ask.h"

#include "cli/failure.h"
#include "cli/terminal.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Not an exit status: the daemon cannot be asked so. */
#define ASK_OTHERWISE (-1)

/* --- here --- */

static int make_here(struct fetch *fetch, const char *command, const struct statistics_query *query, char **names, size_t count,
		     struct statistics **ret)
{
	struct snapshot *snapshots[2] = { NULL, NULL };
	const char *reason = NULL;
	int r = EXIT_DONE;

	for (size_t i = 0; r == EXIT_DONE && i < count; i++)
		r = fetch_snapshot(fetch, command, names[i], &snapshots[i]);
	if (r == EXIT_DONE) {
		r = count == 1 ? statistics_make(snapshots[0], query, ret, &reason) :
		    statistics_compare(snapshots[0], snapshots[1], query, ret, &reason);
		if (r == -EINVAL)
			r = fail_usage(command, "%s", reason);
		else if (r < 0)
			r = fail_memory();
	}
	snapshot_put(snapshots[0]);
	snapshot_put(snapshots[1]);
	return r;
}

/* --- by the daemon --- */

static json_t *make_filters(const struct options *options)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < options->filter_texts.count; i++) {
		/* Jansson takes no text that is not UTF-8: the daemon cannot be asked so. */
		if (json_array_append_new(list, json_string(options->filter_texts.items[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *make_query(const struct statistics_query *query, json_t *filters)
{
	const char *key = query->key_is_open ? NULL : statistics_key_name(query->key);
	json_t *json = json_pack("{s:s*, s:b, s:s, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:b, s:O}",
				 "key", key, "cumulative", query->cumulative,
				 "sort", diff_sort_name(query->sort), "limit", (json_int_t)query->limit,
				 "frames", (json_int_t)query->traceback.limit, "show_runtime", query->traceback.show_runtime,
				 "born", query->born, "churn", query->churn, "peak", query->peak,
				 "histogram", query->histogram, "tables", 1, "filters", filters);

	if (json && query->ages.given &&
	    json_object_set_new(json, "older_than_ns", json_integer((json_int_t)(query->ages.least_ns - 1))) < 0) {
		json_decref(json);
		return NULL;
	}
	return json;
}

static bool can_be_asked(const struct options *options, const struct statistics_query *query)
{
	/* A daemon has rules of its own, and one index for everybody. */
	if (options_have(options, OPTION(HIDE)))
		return false;
	return query->limit <= UINT32_MAX && options->filters.count <= CODEC_FILTERS_MAX &&
	       (!query->ages.given || query->ages.least_ns - 1 <= INT64_MAX);
}

struct answer {
	struct codec_rows_reader *reader;
	const char *what;
	unsigned pieces;
};

static int take_reply(void *context, json_t *reply)
{
	struct answer *answer = context;

	progress("reading %s: piece %u", answer->what, ++answer->pieces);
	return codec_rows_reader_feed(answer->reader, reply);
}

/* Which of the snapshots the daemon complains about. */
static const char *blamed(json_t *error, char **names, size_t count)
{
	const json_t *parameters = json_object_get(error, "parameters");
	const char *name = json_string_value(json_object_get(parameters, "snapshot"));
	char pid[24];

	snprintf(pid, sizeof(pid), "%lld", (long long)json_integer_value(json_object_get(parameters, "pid")));
	for (size_t i = 0; i < count; i++) {
		if (strcmp(name ? name : pid, names[i]) == 0)
			return names[i];
	}
	return names[0];
}

static int explain(struct session *session, const char *command, char **names, size_t count, int result, json_t *error)
{
	json_t *message = json_object_get(json_object_get(error, "parameters"), "message");
	char *what;

	if (result == -EREMOTEIO && session_error_is(error, "InvalidQuery") && json_is_string(message))
		return fail_usage(command, "%s", json_string_value(message));
	if (asprintf(&what, "cannot get snapshot %s", error ? blamed(error, names, count) : names[0]) < 0)
		return fail_memory();
	session_fail_stream(session, what, result, error, NULL);
	free(what);
	return EXIT_FAILED;
}

static json_t *make_parameters(const struct fetch *fetch, const struct statistics_query *query, json_t *filters, char **names,
			       size_t count)
{
	json_t *blocks = fetch->blocks ? json_true() : NULL;

	if (count == 1)
		return json_pack("{s:s, s:o, s:o*}", "snapshot", names[0], "query", make_query(query, filters), "blocks", blocks);
	return json_pack("{s:s, s:s, s:o, s:o*}", "old", names[0], "new", names[1], "query", make_query(query, filters), "blocks",
			 blocks);
}

/* An exit status, or ASK_OTHERWISE. */
static int make_there(struct fetch *fetch, const char *command, const struct statistics_query *query, json_t *filters,
		      char **names, size_t count, struct statistics **ret)
{
	struct session *session = &fetch->session;
	struct answer answer = { .reader = codec_rows_reader_new(query, count == 2 && !query->born),
				 .what = count == 2 ? "the differences" : names[0] };
	json_t *error = NULL;
	int r = -ENOMEM;

	if (answer.reader)
		r = session_stream(session, count == 2 ? "Compare" : "Statistics", make_parameters(fetch, query, filters, names, count),
				   take_reply, &answer, &error);
	if (r == 0)
		r = codec_rows_reader_finish(answer.reader, ret);
	progress_clear();
	/* Older ones do not know what is asked for here. */
	if (r == -EREMOTEIO && session_error_is(error, "InvalidParameter"))
		r = ASK_OTHERWISE;
	else if (r < 0)
		r = explain(session, command, names, count, r, error);
	json_decref(error);
	codec_rows_reader_free(answer.reader);
	return r;
}

/* --- either --- */

static int open_session(struct fetch *fetch)
{
	return fetch->session.client ? EXIT_DONE : session_open_kept(fetch->options, &fetch->session);
}

int ask_statistics(struct fetch *fetch, const char *command, const struct statistics_query *query, char **names, size_t count,
		   struct statistics **ret)
{
	json_t *filters = can_be_asked(fetch->options, query) ? make_filters(fetch->options) : NULL;
	bool there = filters != NULL;
	int r = EXIT_DONE;

	for (size_t i = 0; r == EXIT_DONE && i < count; i++) {
		struct snap snap;

		r = fetch_check(command, names[i], &snap);
		there &= r == EXIT_DONE && snap.kind != SNAP_FILE;
	}
	if (r == EXIT_DONE && there)
		r = open_session(fetch);
	if (r == EXIT_DONE)
		r = there ? make_there(fetch, command, query, filters, names, count, ret) : ASK_OTHERWISE;
	json_decref(filters);
	return r == ASK_OTHERWISE ? make_here(fetch, command, query, names, count, ret) : r;
}
