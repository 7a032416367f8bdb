#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/new_file.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "export/tracemalloc.h"

#include <errno.h>
#include <string.h>

/* The first Python whose traces say how many frames there were before the cut. */
#define PYTHON_WITH_TOTAL_FRAMES 9

static int write_tracemalloc(FILE *out, const struct snapshot *snapshot, const struct options *options)
{
	const struct tracemalloc_options how = {
		.traceback = { .limit = options->frames,
			       .show_runtime = options_have(options, OPTION(SHOW_RUNTIME)) },
		.filters = options->filters.items,
		.filter_count = options->filters.count,
		.triples = options->python > 0 && options->python < PYTHON_WITH_TOTAL_FRAMES,
	};

	return tracemalloc_write(out, snapshot, &how);
}

static const struct format {
	const char *name;
	bool binary;
	int (*write)(FILE *out, const struct snapshot *snapshot, const struct options *options);
} formats[] = {
	{ "tracemalloc", true, write_tracemalloc },
};

/* NULL: standard output, which can be named as a dash, too. */
static const char *output_of(const struct options *options)
{
	return options->output && strcmp(options->output, "-") != 0 ? options->output : NULL;
}

static int find_format(const struct options *options, const struct format **ret_format)
{
	if (!options->format)
		return fail_usage("export", "which format? --format tracemalloc");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, options->format) != 0)
			continue;
		*ret_format = &formats[i];
		if (formats[i].binary && !output_of(options) && terminal_is(stdout))
			return fail_usage("export", "a terminal cannot show this format; give --output FILE, or a pipe");
		return EXIT_DONE;
	}
	return fail_usage("export", "--format '%s': there is no such format: tracemalloc", options->format);
}

static int fail_output(const struct options *options, int error)
{
	if (output_of(options))
		return fail("cannot write %s: %s; there is none now, or still the old one", options->output,
			    strerror(-error));
	return fail("cannot write to standard output: %s; what was written is not complete", strerror(-error));
}

static int write_it(const struct options *options, const struct format *format,
		    const struct snapshot *snapshot)
{
	struct new_file file;
	int r = new_file_open(&file, output_of(options));

	if (r < 0)
		return fail_output(options, r);
	r = format->write(file.out, snapshot, options);
	if (r < 0) {
		new_file_drop(&file);
		if (r == -E2BIG)
			return fail("cannot export the snapshot: it has more than %u blocks, one trace each; "
				    "--filter leaves some out", TRACEMALLOC_BLOCKS_MAX);
		return fail_memory();
	}
	r = new_file_finish(&file);
	return r < 0 ? fail_output(options, r) : show_verdict(options, snapshot->exact);
}

int cmd_export(const struct options *options, int argc, char **argv)
{
	const struct format *format = NULL;
	struct snapshot *snapshot = NULL;
	struct fetch fetch;
	int r = find_format(options, &format);

	(void)argc;
	if (r != EXIT_DONE)
		return r;
	fetch_init(&fetch, options);
	r = fetch_snapshot(&fetch, "export", argv[0], &snapshot);
	fetch_fini(&fetch);
	if (r == EXIT_DONE)
		r = write_it(options, format, snapshot);
	snapshot_put(snapshot);
	return r;
}
