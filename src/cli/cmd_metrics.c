#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"

#include "export/openmetrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char what[] = "cannot get the metrics";

/* The pieces of the text, joined. */
struct text {
	FILE *out;
	char *bytes;
	size_t len;
};

static int take_piece(void *context, json_t *reply)
{
	struct text *text = context;
	const json_t *piece = json_object_get(reply, "text");

	if (!json_is_string(piece))
		return -EBADMSG;
	fwrite(json_string_value(piece), 1, json_string_length(piece), text->out);
	return ferror(text->out) ? -ENOMEM : 0;
}

static int fetch(struct session *session, const char *format, struct text *text)
{
	json_t *error;
	int r = session_stream(session, "Metrics", json_pack("{s:s}", "format", format), take_piece, text, &error);

	if (r < 0)
		session_fail_stream(session, what, r, error, NULL);
	json_decref(error);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

static int show(const struct options *options, enum openmetrics_format format, const struct text *text)
{
	if (options_have(options, OPTION(JSON)))
		return show_json(json_pack("{s:s, s:s%}", "content_type", format == OPENMETRICS_1_0 ?
					   OPENMETRICS_CONTENT_TYPE : OPENMETRICS_PROMETHEUS_CONTENT_TYPE, "text",
					   text->bytes, text->len));
	fwrite(text->bytes, 1, text->len, stdout);
	return show_finish();
}

int cmd_metrics(const struct options *options, int argc, char **argv)
{
	const char *name = options->format ? options->format : "openmetrics";
	enum openmetrics_format format;
	struct session session;
	struct text text;
	int r;

	(void)argc;
	(void)argv;
	if (openmetrics_format_parse(name, &format) < 0)
		return fail_usage("metrics", "--format '%s': there is no such format: openmetrics, prometheus", name);
	r = session_open(options, &session);
	if (r != EXIT_DONE)
		return r;
	text.out = open_memstream(&text.bytes, &text.len);
	if (!text.out) {
		session_close(&session);
		return fail_memory();
	}
	r = fetch(&session, name, &text);
	session_close(&session);
	if (fclose(text.out) != 0 && r == EXIT_DONE)
		r = fail_memory();
	if (r == EXIT_DONE)
		r = show(options, format, &text);
	free(text.bytes);
	return r;
}
