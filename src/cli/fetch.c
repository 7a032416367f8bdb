#define _GNU_SOURCE              /* asprintf */
#include "cli/fetch.h"

#include "base/units.h"
#include "cli/failure.h"
#include "cli/terminal.h"
#include "model/hidden_rules.h"
#include "store/store.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fetch_init(struct fetch *fetch, const struct options *options)
{
	memset(fetch, 0, sizeof(*fetch));
	fetch->options = options;
	fetch->blocks = options_have(options, OPTION(BLOCKS) | OPTION(BORN) | OPTION(OLDER_THAN) | OPTION(HISTOGRAM)) ||
			options->key == KEY_THREAD;
}

void fetch_fini(struct fetch *fetch)
{
	session_close(&fetch->session);
}

int fetch_take_hidden(const json_t *tables)
{
	const json_t *rules = json_object_get(json_object_get(tables, "info"), "hide"), *rule;
	const char *reason;
	size_t i;

	json_array_foreach(rules, i, rule) {
		const char *text = json_string_value(rule);
		int r = text ? hidden_rules_add(text, &reason) : -EBADMSG;

		if (r < 0 && r != -E2BIG)
			return r == -ENOMEM ? r : -EBADMSG;
	}
	return 0;
}

struct stream {
	struct codec_snapshot_reader *reader;
	const char *name;
	unsigned pieces;
};

static int take_piece(void *context, json_t *reply)
{
	struct stream *stream = context;

	int r = fetch_take_hidden(json_object_get(reply, "tables"));

	progress("reading snapshot %s: piece %u", stream->name, ++stream->pieces);
	return r < 0 ? r : codec_snapshot_reader_feed(stream->reader, json_object_get(reply, "tables"));
}

static int explain(struct session *session, const char *name, int result, json_t *error, const char *reason)
{
	char *what;

	if (asprintf(&what, "cannot get snapshot %s", name) < 0)
		return fail_memory();
	session_fail_stream(session, what, result, error, reason);
	free(what);
	return EXIT_FAILED;
}

int fetch_from_daemon(struct session *session, const char *name, bool blocks, struct snapshot **ret_snapshot)
{
	struct stream stream = { .reader = codec_snapshot_reader_new(), .name = name };
	const char *reason = NULL;
	json_t *error = NULL;
	int r = -ENOMEM;

	if (stream.reader)
		r = session_stream(session, "GetSnapshot", json_pack("{s:s, s:o*}", "snapshot", name, "blocks",
								     blocks ? json_true() : NULL),
				   take_piece, &stream, &error);
	if (r == 0)
		r = codec_snapshot_reader_finish(stream.reader, ret_snapshot, &reason);
	progress_clear();
	if (r < 0)
		r = explain(session, name, r, error, reason);
	json_decref(error);
	codec_snapshot_reader_free(stream.reader);
	return r;
}

/* FILE, or FILE:WHICH for one of several: its number in the file, its id or its name.  A file whose own
 * name reads so goes before. */
static char *split_file(const char *name, const char **ret_which)
{
	const char *colon = strrchr(name, ':');

	*ret_which = NULL;
	if (!colon || strchr(colon, '/') || !colon[1] || access(name, F_OK) == 0)
		return strdup(name);
	*ret_which = colon + 1;
	return strndup(name, (size_t)(colon - name));
}

static int load_file(const char *path, const char *text, struct snapshot **ret_snapshot, char **ret_reason)
{
	int64_t number = 0;
	unsigned which = 0;
	int r = 0;

	if (text && units_parse_number(text, 1, INT32_MAX, &number) == 0)
		which = (unsigned)number;
	else if (text)
		r = store_find(path, text, &which, ret_reason);
	return r < 0 ? r : store_load(path, which, ret_snapshot, ret_reason);
}

static int fetch_from_file(const char *name, struct snapshot **ret_snapshot)
{
	char *reason = NULL, *path;
	const char *which;
	int r;

	path = split_file(name, &which);
	if (!path)
		return fail_memory();
	progress("reading %s", path);
	r = load_file(path, which, ret_snapshot, &reason);
	progress_clear();
	if (r < 0)
		r = fail_file("cannot read the snapshot file", path, r, reason);
	free(path);
	return r;
}

int fetch_check(const char *command, const char *name, struct snap *ret_snap)
{
	const char *reason;

	if (snap_parse(name, ret_snap, &reason) == 0)
		return EXIT_DONE;
	return fail_usage(command, "'%s' is no snapshot: %s", name, reason);
}

int fetch_snapshot(struct fetch *fetch, const char *command, const char *name, struct snapshot **ret_snapshot)
{
	struct snap snap;
	int r = fetch_check(command, name, &snap);

	if (r != EXIT_DONE)
		return r;
	if (snap.kind == SNAP_FILE)
		return fetch_from_file(name, ret_snapshot);
	if (!fetch->session.client) {
		r = session_open_kept(fetch->options, &fetch->session);
		if (r != EXIT_DONE)
			return r;
	}
	return fetch_from_daemon(&fetch->session, name, fetch->blocks, ret_snapshot);
}
