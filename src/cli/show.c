#include "cli/show.h"

#include "cli/failure.h"
#include "cli/terminal.h"
#include "varlink/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PRETTY_ROWS 10

/* How many rows will be shown; 0: all. */
static size_t show_limit(const struct options *options)
{
	bool pretty = options_have(options, OPTION(PRETTY)) && !options_have(options, OPTION(JSON));

	return pretty && options->limit == 0 ? PRETTY_ROWS : options->limit;
}

int show_query(const struct options *options, const char *command, struct statistics_query *ret_query)
{
	struct statistics_query query = {
		.key = options->key,
		.key_is_open = !options_have(options, OPTION(BY) | OPTION(KEY)),
		.cumulative = options_have(options, OPTION(CUMULATIVE)),
		.sort = options->sort,
		.churn = options_have(options, OPTION(CHURN)) || options->sort == SORT_CHURN,
		.histogram = options_have(options, OPTION(HISTOGRAM)),
		.peak = options_have(options, OPTION(PEAK)),
		.born = options_have(options, OPTION(BORN)),
		.limit = show_limit(options),
		.filters = options->filters.items,
		.filter_count = options->filters.count,
		.traceback = { .limit = options->frames,
			       .show_runtime = options_have(options, OPTION(SHOW_RUNTIME)) },
	};

	if (options_have(options, OPTION(OLDER_THAN)))
		query.ages = statistics_older_than(options->older_than_ns);
	if (query.churn && !options_have(options, OPTION(SORT)) && !query.born && strcmp(command, "stats") == 0)
		query.sort = SORT_CHURN;
	if (query.born && options_have(options, OPTION(SORT)))
		return fail_usage(command, "--born cannot be combined with --sort: there are no differences to sort by");
	if (options_have(options, OPTION(PRETTY)) && (query.churn || query.histogram))
		return fail_usage(command, "--pretty shows sizes alone: it cannot be combined with --churn or --histogram");
	if (query.cumulative && query.key == KEY_TRACEBACK)
		return fail_usage(command, "--cumulative cannot be combined with --by traceback: a traceback is "
				  "counted once as it is");
	if (query.cumulative && query.key == KEY_THREAD)
		return fail_usage(command, "--cumulative cannot be combined with --by thread: a block has one thread");
	if (query.cumulative && query.key == KEY_DOMAIN)
		return fail_usage(command, "--cumulative cannot be combined with --by domain: a block has one domain");
	*ret_query = query;
	return EXIT_DONE;
}

struct text_style show_style(const struct options *options, struct source *source)
{
	struct text_style style = {
		.functions = options_have(options, OPTION(FUNCTIONS)),
		.most_recent_first = options_have(options, OPTION(MOST_RECENT_FIRST)),
		.frames_limited = options_have(options, OPTION(FRAMES_SHOWN)),
		.frames_shown = options->frames_shown,
		.source = { source_line, source },
	};

	return style;
}

int show_finish(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	return fail("cannot write the answer to standard output: %s; it is not complete", strerror(errno));
}

int show_json_to(FILE *out, json_t *document)
{
	size_t flags = JSON_ENCODE_ANY | (terminal_is(out) ? JSON_INDENT(2) : JSON_COMPACT);
	int r;

	if (!document)
		return fail_memory();
	r = json_dumpf(document, out, flags);
	json_decref(document);
	if (r == 0 && fputc('\n', out) != EOF && fflush(out) == 0)
		return EXIT_DONE;
	return fail("cannot write the answer: %s; it is not complete", strerror(errno));
}

int show_json(json_t *document)
{
	return show_json_to(stdout, document);
}

static void print_counter(FILE *out, bool *first, uint64_t value, const char *singular, const char *plural)
{
	if (value == 0)
		return;
	fprintf(out, "%s%" PRIu64 " %s", *first ? "" : ", ", value, value == 1 ? singular : plural);
	*first = false;
}

void show_unknown(FILE *out, bool exact, const struct snapshot_unknown *unknown)
{
	const struct {
		uint64_t value;
		const char *singular, *plural;
	} counters[] = {
		{ unknown->lost_events, "lost event", "lost events" },
		{ unknown->unknown_frees, "free of an unknown block", "frees of unknown blocks" },
		{ unknown->probe_gaps, "gap in a probe", "gaps in probes" },
		{ unknown->truncated_stacks, "stack cut short", "stacks cut short" },
		{ unknown->before_attach_frees, "free of a block older than the attach",
		  "frees of blocks older than the attach" },
		{ unknown->after_clear_frees, "free of a block that was cleared",
		  "frees of blocks that were cleared" },
	};
	bool first = true;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		if (first && counters[i].value > 0)
			fputs(exact ? "Exact, with " : "Not exact: ", out);
		print_counter(out, &first, counters[i].value, counters[i].singular, counters[i].plural);
	}
	if (first && !exact)
		fputs("Not exact", out);
	if (!first || !exact)
		fputc('\n', out);
}

void show_sampling(FILE *out, uint64_t sample_bytes)
{
	char size[TEXT_SIZE_MAX];

	if (sample_bytes > 0)
		fprintf(out, "Estimates from one sample for %s; in 95 of 100 the truth is within +-\n",
			text_size(size, (double)sample_bytes, false));
}

int show_verdict(const struct options *options, bool exact)
{
	if (exact || !options_have(options, OPTION(STRICT)))
		return EXIT_DONE;
	fail("the answer is not exact, which --strict does not accept; without it, what could not be known is "
	     "shown");
	return EXIT_INEXACT;
}

static int print_rows(const struct options *options, const struct statistics *statistics, bool diff,
		      const struct text_style *style)
{
	size_t count = statistics->row_count;

	if (options->limit > 0 && options->limit < count)
		count = options->limit;
	for (size_t i = 0; i < count; i++) {
		const struct statistic *row = &statistics->rows[i];

		if (options->key != KEY_TRACEBACK)
			text_statistic(stdout, statistics, row, diff);
		else if (text_statistic_traceback(stdout, statistics, row, diff, style) < 0)
			return fail_memory();
		text_histogram(stdout, row);
	}
	return EXIT_DONE;
}

static int print_text(const struct options *options, const struct statistics *statistics, bool diff)
{
	struct source *source = source_new();
	struct text_style style = show_style(options, source);
	int r = EXIT_DONE;

	if (!source)
		return fail_memory();
	if (options_have(options, OPTION(PRETTY)))
		text_pretty(stdout, statistics, options->limit > 0 ? options->limit : PRETTY_ROWS, &style.source);
	else
		r = print_rows(options, statistics, diff, &style);
	source_free(source);
	if (r == EXIT_DONE && terminal_is(stdout)) {
		if (statistics->row_count == 0)
			puts(options->filters.count > 0 ? "Nothing matches the filters" :
			     "Nothing that was traced is live");
		show_sampling(stdout, statistics->sample_bytes);
		if (statistics->sample_bytes == 0 || statistics->unknown.lost_events > 0)
			show_unknown(stdout, statistics->exact, &statistics->unknown);
	}
	return r == EXIT_DONE ? show_finish() : r;
}

void show_limits(const struct statistics *statistics)
{
	if (statistics->limits_differ)
		note("the snapshots were taken with different frames limits; their tracebacks are compared at the "
		     "smallest one");
}

void show_names(const struct statistics *statistics)
{
	if (statistics->unnamed)
		note("not all names were found, since the symbolizer could not be started or had no more time for the "
		     "snapshot, or debug information did not come from its server; the frames without one are shown as "
		     "OBJECT(+0xOFFSET)");
}

void show_key(const struct options *options, const struct statistics *statistics)
{
	if (statistics->key != options->key)
		note("the program, or a library of it, was built anew between them: they are compared by %s, since lines "
		     "have moved; --by %s compares those all the same", statistics_key_name(statistics->key),
		     statistics_key_name(options->key));
}

int show_statistics(const struct options *options, const struct statistics *statistics, bool diff)
{
	int r;

	show_limits(statistics);
	show_names(statistics);
	show_key(options, statistics);
	if (options_have(options, OPTION(JSON)))
		r = show_json(codec_statistics(statistics, options->limit, diff));
	else
		r = print_text(options, statistics, diff);
	return r == EXIT_DONE ? show_verdict(options, statistics->exact) : r;
}
