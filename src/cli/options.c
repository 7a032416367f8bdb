#include "cli/options.h"

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/snap.h"
#include "cli/top_fetch.h"
#include "model/allocators.h"
#include "model/domain_names.h"
#include "model/engine_kind.h"
#include "model/sampling.h"
#include "model/hidden_rules.h"
#include "model/snapshot_name.h"
#include "store/history.h"
#include "varlink/codec.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct option_kind {
	const char *name;
	const char *value;              /* NULL: it takes none */
	const char *help;
	/* 0, or -1 with a sentence in *ret_reason that follows "--name=value: ". */
	int (*set)(struct options *options, const char *value, const char **ret_reason);
};

static int refuse(const char **ret_reason, const char *reason)
{
	*ret_reason = reason;
	return -1;
}

/* The reason has words of the text in it, so it is said in place of one. */
static int set_allocator(struct options *options, const char *value, const char **ret_reason)
{
	static char text[1024];
	struct allocator allocator;
	const char **slot;
	char *reason = NULL;
	int r = allocator_parse(value, &allocator, &reason);

	snprintf(text, sizeof(text), "%s", reason ? reason : "out of memory");
	free(reason);
	if (r < 0)
		return refuse(ret_reason, text);
	if (options->allocators.count >= ALLOCATORS_MAX)
		return refuse(ret_reason, "more than 8 allocators");
	slot = vec_push(&options->allocators);
	if (!slot)
		return refuse(ret_reason, "out of memory");
	*slot = value;
	return 0;
}

static int set_by(struct options *options, const char *value, const char **ret_reason)
{
	if (statistics_key_parse(value, &options->key) < 0)
		return refuse(ret_reason, "not a key: use lineno, filename, traceback, function, definition, "
					  "object, thread or domain");
	return 0;
}

static int set_domains(struct options *options, const char *value, const char **ret_reason)
{
	if (domain_list_parse(value) == 0)
		return refuse(ret_reason, "not a list of malloc, new and mmap, such as malloc,mmap");
	options->domains = value;
	return 0;
}

static int set_duration(struct options *options, const char *value, const char **ret_reason)
{
	int r = units_parse_duration(value, &options->duration_ns);

	if (r == -ERANGE)
		return refuse(ret_reason, "longer than 100 years");
	if (r < 0)
		return refuse(ret_reason, "not a duration: write 90s, 10min or '1h 30min'");
	if (options->duration_ns == 0)
		return refuse(ret_reason, "a duration must be longer than nothing");
	return 0;
}

static int set_engine(struct options *options, const char *value, const char **ret_reason)
{
	if (engine_kind_by_name(value) < 0)
		return refuse(ret_reason, "not an engine: use " ENGINE_KINDS_TEXT);
	options->engine = value;
	return 0;
}

/* As much as the daemon takes, in whole milliseconds. */
static int set_ring_wait(struct options *options, const char *value, const char **ret_reason)
{
	if (units_parse_duration(value, &options->ring_wait_ns) < 0 || options->ring_wait_ns < NSEC_PER_MSEC ||
	    options->ring_wait_ns > CODEC_RING_WAIT_MS_MAX * NSEC_PER_MSEC)
		return refuse(ret_reason, "not a time from 1ms to 1h: write 100ms or 2s");
	return 0;
}

static int set_ring_readers(struct options *options, const char *value, const char **ret_reason)
{
	int64_t number = 0;

	if (strcmp(value, "auto") != 0 && units_parse_number(value, 1, CODEC_RING_READERS_MAX, &number) < 0)
		return refuse(ret_reason, "neither auto nor a number from 1 to 16");
	options->ring_readers = (unsigned)number;
	return 0;
}

static int set_sample_bytes(struct options *options, const char *value, const char **ret_reason)
{
	if (units_parse_size(value, &options->sample_bytes) < 0 || options->sample_bytes > SAMPLE_BYTES_MAX)
		return refuse(ret_reason, "not a size up to 1G: write 512K, or 0 for no sampling");
	return 0;
}

static int set_every(struct options *options, const char *value, const char **ret_reason)
{
	if (units_parse_duration(value, &options->every_ns) < 0 || options->every_ns < NSEC_PER_SEC / 10)
		return refuse(ret_reason, "not an interval of at least 100ms: write 10min or 1h");
	return 0;
}

static int set_exe(struct options *options, const char *value, const char **ret_reason)
{
	if (!*value)
		return refuse(ret_reason, "a program's path cannot be empty");
	options->exe = value;
	return 0;
}

static int set_keep_age(struct options *options, const char *value, const char **ret_reason)
{
	if (units_parse_duration(value, &options->keep_age_ns) < 0 || options->keep_age_ns < NSEC_PER_SEC)
		return refuse(ret_reason, "not an age of at least a second: write 12h or 7d");
	return 0;
}

static int set_keep_count(struct options *options, const char *value, const char **ret_reason)
{
	int64_t keep;

	if (units_parse_number(value, 1, 1000000, &keep) < 0)
		return refuse(ret_reason, "not a number of snapshots, at least 1");
	options->keep = (uint32_t)keep;
	return 0;
}

static int set_size(const char *value, uint64_t *ret_bytes, const char **ret_reason)
{
	if (units_parse_size(value, ret_bytes) < 0 || *ret_bytes == 0 || *ret_bytes > HISTORY_SIZE_MAX)
		return refuse(ret_reason, "not a size up to " HISTORY_SIZE_MAX_TEXT ": write 500M or 2G (steps of 1024)");
	return 0;
}

static int set_keep_size(struct options *options, const char *value, const char **ret_reason)
{
	return set_size(value, &options->keep_bytes, ret_reason);
}

static int set_rss_limit(struct options *options, const char *value, const char **ret_reason)
{
	return set_size(value, &options->rss_limit, ret_reason);
}

static int set_rss_slope(struct options *options, const char *value, const char **ret_reason)
{
	return set_size(value, &options->rss_slope, ret_reason);
}

static int set_fail_over(struct options *options, const char *value, const char **ret_reason)
{
	int r = units_parse_size(value, &options->fail_over);

	if (r == -ERANGE)
		return refuse(ret_reason, "too large for a size");
	if (r < 0)
		return refuse(ret_reason, "not a size: write 4096, 64K or 1MiB (steps of 1024)");
	return 0;
}

/* What users have called their domains is known to daemons: a name that may be one is taken for one, and is compared with
 * theirs when they have told them. */
static void learn_domain(const char *filter)
{
	const char *at = strstr(filter, "@domain=");
	char name[DOMAIN_NAME_SPACE];

	if (!at)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + strlen("@domain="), "@"), at + strlen("@domain="));
	if (domain_name_is_well_formed(name))
		(void)domain_of_user(name);
}

static int set_filter(struct options *options, const char *value, const char **ret_reason)
{
	struct filter filter;
	int r;

	if (options->filters.count >= FILTERS_MAX)
		return refuse(ret_reason, "more than 1000 filters");
	learn_domain(value);
	r = filter_parse(value, &filter, ret_reason);
	if (r == -ENOMEM)
		return refuse(ret_reason, "out of memory");
	if (r < 0)
		return -1;
	if (vec_reserve(&options->filters, 1) < 0 || vec_reserve(&options->filter_texts, 1) < 0) {
		filter_fini(&filter);
		return refuse(ret_reason, "out of memory");
	}
	options->filters.items[options->filters.count++] = filter;
	options->filter_texts.items[options->filter_texts.count++] = value;
	return 0;
}

static int set_format(struct options *options, const char *value, const char **ret_reason)
{
	if (!*value)
		return refuse(ret_reason, "a format's name cannot be empty");
	options->format = value;
	return 0;
}

static int set_frames(struct options *options, const char *value, const char **ret_reason)
{
	int64_t frames;

	if (units_parse_number(value, 1, FRAMES_MAX, &frames) < 0)
		return refuse(ret_reason, "not a number from 1 to 1024");
	options->frames = (uint32_t)frames;
	return 0;
}

static int set_frames_shown(struct options *options, const char *value, const char **ret_reason)
{
	if (units_parse_number(value, INT32_MIN, INT32_MAX, &options->frames_shown) < 0)
		return refuse(ret_reason, "not a whole number");
	return 0;
}

static int set_interval(struct options *options, const char *value, const char **ret_reason)
{
	if (units_parse_duration(value, &options->interval_ns) < 0)
		return refuse(ret_reason, "not a duration: write 2s, 500ms or 1min");
	if (options->interval_ns < TOP_INTERVAL_MIN_NS || options->interval_ns > TOP_INTERVAL_MAX_NS)
		return refuse(ret_reason, "an interval is from 50ms to 1d");
	return 0;
}

static int set_iterations(struct options *options, const char *value, const char **ret_reason)
{
	int64_t iterations;

	if (units_parse_number(value, 1, INT32_MAX, &iterations) < 0)
		return refuse(ret_reason, "not a number of refreshes, at least 1");
	options->iterations = (uint64_t)iterations;
	return 0;
}

static int set_limit(struct options *options, const char *value, const char **ret_reason)
{
	int64_t limit;

	if (units_parse_number(value, 1, INT32_MAX, &limit) < 0)
		return refuse(ret_reason, "not a number of rows, at least 1");
	options->limit = (uint64_t)limit;
	return 0;
}

static int set_name(struct options *options, const char *value, const char **ret_reason)
{
	if (!snapshot_name_is_valid(value))
		return refuse(ret_reason, "a snapshot's name consists of letters, digits, '.', '_' and '-'");
	if (!snapshot_name_may_be_given(value))
		return refuse(ret_reason, "the daemon gives this name to snapshots that it takes by itself; choose another");
	options->name = value;
	return 0;
}

static int set_older_than(struct options *options, const char *value, const char **ret_reason)
{
	int r = units_parse_duration(value, &options->older_than_ns);

	if (r == -ERANGE)
		return refuse(ret_reason, "longer than 100 years");
	if (r < 0)
		return refuse(ret_reason, "not an age: write 60s, 10min or '1h 30min'");
	return 0;
}

/* The rules are the process's, and a process of the client answers one question. */
static int set_hide(struct options *options, const char *value, const char **ret_reason)
{
	int r = hidden_rules_add(value, ret_reason);

	(void)options;
	if (r == -E2BIG)
		return refuse(ret_reason, "more than 256 rules");
	return r == -ENOMEM ? refuse(ret_reason, "out of memory") : r;
}

static int set_output(struct options *options, const char *value, const char **ret_reason)
{
	if (!*value)
		return refuse(ret_reason, "a file's name cannot be empty");
	options->output = value;
	return 0;
}

static int set_python(struct options *options, const char *value, const char **ret_reason)
{
	int64_t minor;

	if (strncmp(value, "3.", 2) != 0 || units_parse_number(value + 2, 4, 999, &minor) < 0)
		return refuse(ret_reason, "not a version of Python from 3.4 on, such as 3.8");
	options->python = (unsigned)minor;
	return 0;
}

static int set_socket(struct options *options, const char *value, const char **ret_reason)
{
	if (!*value)
		return refuse(ret_reason, "a socket's path cannot be empty");
	options->socket = value;
	return 0;
}

static int set_sort(struct options *options, const char *value, const char **ret_reason)
{
	if (diff_sort_parse(value, &options->sort) < 0)
		return refuse(ret_reason, "not an order: use abs, growth, shrink or churn");
	return 0;
}

static int set_top_sort(struct options *options, const char *value, const char **ret_reason)
{
	if (top_sort_parse(value, &options->top_sort) < 0)
		return refuse(ret_reason, "not an order: use size, growth, shrink, count, new, average or name");
	return 0;
}

static const struct option_kind kinds[OPTION_COUNT] = {
	[OPTION_ALL] = { "all", NULL, "every traced process", NULL },
	[OPTION_ALLOCATOR] = { "allocator", "TEXT", "trace an allocator of the program's own, too: NAME FUNCTION(ARGUMENT, ...)... "
			  "(see the manual); can be repeated", set_allocator },
	[OPTION_APPEND] = { "append", NULL, "add to a file of the same process, whose snapshots then share "
			    "their stacks", NULL },
	[OPTION_BLOCKS] = { "blocks", NULL, "keep every block with its address, size, age and thread, too", NULL },
	[OPTION_BORN] = { "born", NULL, "show only blocks that were allocated after OLD and are there in NEW, "
			  "with their ages", NULL },
	[OPTION_BY] = { "by", "KEY", "group by lineno (default; by diff and trend of builds of a program, definition), "
			"filename, traceback, function, definition, object, thread or domain", set_by },
	[OPTION_CHURN] = { "churn", NULL, "show what was ever made and freed, too, and what was gone at once", NULL },
	[OPTION_CUMULATIVE] = { "cumulative", NULL, "count a block for every frame of its traceback, not "
				"for the most recent one only", NULL },
	[OPTION_DOMAINS] = { "domains", "LIST", "what to trace: malloc (default, always), new to tell new and new[] from it, mmap",
			     set_domains },
	[OPTION_DURATION] = { "duration", "T", "detach after T, such as 90s, 10min, 2h", set_duration },
	[OPTION_ENGINE] = { "engine", "ENGINE", "how to trace: " ENGINE_KINDS_TEXT " (auto unless the configuration says otherwise)", set_engine },
	[OPTION_EVERY] = { "every", "T", "take a snapshot every T (10min unless given, at least 100ms)", set_every },
	[OPTION_EXE] = { "exe", "PATH", "not a service, but each process that runs this program", set_exe },
	[OPTION_FAIL_OVER] = { "fail-over", "SIZE", "exit with status 3 when the command leaves more than "
			       "SIZE (such as 64K, 1MiB) allocated", set_fail_over },
	[OPTION_FILTER] = { "filter", "F", "keep traces that match [+-]PATTERN[:LINE][@all][@domain=NAME]; "
			    "can be repeated", set_filter },
	[OPTION_FOLLOW_FORKS] = { "follow-forks", NULL, "trace the children it starts, too, each as a target of its own", NULL },
	[OPTION_FORMAT] = { "format", "FORMAT", "what to write: tracemalloc (a pickle that Python's "
			    "tracemalloc.Snapshot.load() reads)", set_format },
	[OPTION_METRICS_FORMAT] = { "format", "FORMAT", "openmetrics (default) or prometheus", set_format },
	[OPTION_FRAMES] = { "frames", "N", "at most N frames of each stack (when tracing: 25)", set_frames },
	[OPTION_FRAMES_SHOWN] = { "frames-shown", "N", "print the N most recent frames; -N leaves the N "
				  "most recent ones out", set_frames_shown },
	[OPTION_FROM_START] = { "from-start", NULL, "of a service, from its next start on: trace each process from its first "
				"instruction", NULL },
	[OPTION_FUNCTIONS] = { "functions", NULL, "name the function of each line of a traceback", NULL },
	[OPTION_HIDE] = { "hide", "RULE", "hide further leading frames: GLOB or @function=GLOB, @object=GLOB, "
			  "@file=GLOB; can be repeated", set_hide },
	[OPTION_HISTOGRAM] = { "histogram", NULL, "under each row, how many of its blocks have which size", NULL },
	[OPTION_HOLD] = { "hold", NULL, "keep it traced by ptrace where it would be let go", NULL },
	[OPTION_INTERVAL] = { "interval", "T", "refresh every T (2s unless given, at least 50ms)", set_interval },
	[OPTION_ITERATIONS] = { "iterations", "N", "leave after N refreshes", set_iterations },
	[OPTION_KEY] = { "key", "KEY", "the same as --by", set_by },
	[OPTION_KEEP] = { "keep", NULL, "keep what is known: 'allocwatch attach' of the same process goes on with it",
			  NULL },
	[OPTION_KEEP_AGE] = { "keep-age", "T", "keep no snapshot that is older than T, such as 12h, 7d", set_keep_age },
	[OPTION_KEEP_COUNT] = { "keep", "N", "keep the newest N of these snapshots (50 unless given)", set_keep_count },
	[OPTION_KEEP_SIZE] = { "keep-size", "SIZE", "keep no more of them than take SIZE together, such as 500M", set_keep_size },
	[OPTION_LIMIT] = { "limit", "N", "at most N rows", set_limit },
	[OPTION_MOST_RECENT_FIRST] = { "most-recent-first", NULL, "print tracebacks from the allocation "
				       "outwards", NULL },
	[OPTION_NAME] = { "name", "NAME", "name it, so that PID:NAME means it", set_name },
	[OPTION_OLDER_THAN] = { "older-than", "T", "count only blocks older than T, such as 60s, 10min", set_older_than },
	[OPTION_OUTPUT] = { "output", "FILE", "write to FILE", set_output },
	[OPTION_PEAK] = { "peak", NULL, "show what lived when most bytes did, in place of what lives", NULL },
	[OPTION_PRETTY] = { "pretty", NULL, "short names, source lines, and what the rest adds up to "
			    "(10 rows unless --limit is given)", NULL },
	[OPTION_PYTHON] = { "python", "VERSION", "the version of Python that will read it; 3.8 and older know "
			    "less of a trace", set_python },
	[OPTION_RELEASE] = { "release", NULL, "let go of ptrace, also where something is given up by that: with the ring engine "
			     "alone", NULL },
	[OPTION_SAMPLE_BYTES] = { "sample-bytes", "N", "record one sample for N bytes on average, such as 512K, and estimate "
			      "the rest; 0: all", set_sample_bytes },
	[OPTION_RING_READERS] = { "ring-readers", "N", "how many threads read the ring; auto, unless given: more when one cannot keep up and "
				  "processors are left", set_ring_readers },
	[OPTION_RING_WAIT] = { "ring-wait", "T", "how long, with the ring engine, a thread waits for room (100ms unless given); then calls "
			       "are lost", set_ring_wait },
	[OPTION_RSS_LIMIT] = { "rss-limit", "SIZE", "take one, too, when resident memory passes SIZE, such as 2G", set_rss_limit },
	[OPTION_RSS_SLOPE] = { "rss-slope", "SIZE", "take one, too, when resident memory grows by more than SIZE a minute, such as "
			       "50M", set_rss_slope },
	[OPTION_SHOW_RUNTIME] = { "show-runtime", NULL, "do not hide the frames of the allocator, libc and "
				  "the languages' runtimes", NULL },
	[OPTION_SORT] = { "sort", "ORDER", "abs (default), growth, shrink or churn (most blocks made first)", set_sort },
	[OPTION_STRICT] = { "strict", NULL, "exit with status 3 when the answer is not exact", NULL },
	[OPTION_TOP_SORT] = { "sort", "ORDER", "size (default), growth, shrink, count, new (count's growth), average or "
			      "name", set_top_sort },
	[OPTION_HELP] = { "help", NULL, "show this help", NULL },
	[OPTION_JSON] = { "json", NULL, "answer with one JSON document", NULL },
	[OPTION_SOCKET] = { "socket", "PATH", "the daemon's socket", set_socket },
	[OPTION_VERSION] = { "version", NULL, "show the version", NULL },
};

/* getopt's numbers for the options, clear of its own '?' and ':'. */
#define FIRST_CODE 256

/* Two options may have one name: then it is the one that the command takes. */
static bool has_meaning(int id, uint64_t allowed)
{
	for (int other = 0; !(allowed & (1ULL << id)) && other < OPTION_COUNT; other++) {
		if (other != id && strcmp(kinds[other].name, kinds[id].name) == 0 &&
		    ((allowed & (1ULL << other)) || other < id))
			return false;
	}
	return true;
}

/* Each name once: getopt takes an abbreviation of two as one of several. */
static void long_options(struct option longs[OPTION_COUNT + 1], uint64_t allowed)
{
	size_t count = 0;

	memset(longs, 0, (OPTION_COUNT + 1) * sizeof(*longs));
	for (int id = 0; id < OPTION_COUNT; id++) {
		if (!has_meaning(id, allowed))
			continue;
		longs[count].name = kinds[id].name;
		longs[count].has_arg = kinds[id].value ? required_argument : no_argument;
		longs[count++].val = FIRST_CODE + id;
	}
}

static int code_of_letter(int letter)
{
	switch (letter) {
	case 'h':
		return FIRST_CODE + OPTION_HELP;
	case 'n':
		return FIRST_CODE + OPTION_ITERATIONS;
	case 'o':
		return FIRST_CODE + OPTION_OUTPUT;
	default:
		return letter;
	}
}

static int complain(const char *name, int code, char **argv)
{
	/* getopt_long has moved past the word it complains about, but stays on it inside "-xyz". */
	if (code == ':')
		return fail_usage(name, "option '%s' needs a value", argv[optind - 1]);
	if (optopt >= FIRST_CODE && optopt < FIRST_CODE + OPTION_COUNT)
		return fail_usage(name, "option '--%s' takes no value", kinds[optopt - FIRST_CODE].name);
	if (optopt)
		return fail_usage(name, "there is no option '-%c'", optopt);
	return fail_usage(name, "there is no option '%s', or it stands for several", argv[optind - 1]);
}

static int take(struct options *options, const char *name, uint64_t allowed, int id, const char *value)
{
	const struct option_kind *kind = &kinds[id];
	const char *reason = "";

	if (!(allowed & (1ULL << id)))
		return name ? fail_usage(name, "'%s' takes no option '--%s'", name, kind->name)
			    : fail_usage(name, "option '--%s' belongs behind a command", kind->name);
	if (kind->set && kind->set(options, value, &reason) < 0)
		return fail_usage(name, "--%s '%s': %s", kind->name, value, reason);
	options->given |= 1ULL << id;
	return EXIT_DONE;
}

int options_parse(struct options *options, const struct command *command, int argc, char **argv,
		  int *ret_first)
{
	uint64_t allowed = OPTIONS_COMMON | (command ? command->options : 0);
	const char *name = command ? command->name : NULL;
	/* What follows the name of a command, here or in `run`, is not ours to read. */
	bool ordered = !command || command->runs_another;
	struct option longs[OPTION_COUNT + 1];
	int code;

	long_options(longs, allowed);
	opterr = 0;
	optind = 0;
	while ((code = getopt_long(argc, argv, ordered ? "+:hn:o:" : ":hn:o:", longs, NULL)) != -1) {
		int r;

		code = code_of_letter(code);
		if (code < FIRST_CODE)
			return complain(name, code, argv);
		r = take(options, name, allowed, code - FIRST_CODE, optarg);
		if (r != EXIT_DONE)
			return r;
	}
	*ret_first = optind;
	return EXIT_DONE;
}

void options_fini(struct options *options)
{
	for (size_t i = 0; i < options->filters.count; i++)
		filter_fini(&options->filters.items[i]);
	vec_fini(&options->filters);
	vec_fini(&options->filter_texts);
	vec_fini(&options->allocators);
}

static void print_wrapped(FILE *out, const char *text, int indent, int width)
{
	int column = indent;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > indent && column + 1 + len > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		}
		if (column > indent)
			column += fprintf(out, " ");
		column += fprintf(out, "%.*s", len, text);
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void options_print(FILE *out, uint64_t bits)
{
	for (int id = 0; id < OPTION_COUNT; id++) {
		const struct option_kind *kind = &kinds[id];
		char head[40];

		if (!(bits & (1ULL << id)) || !kind->help)
			continue;
		snprintf(head, sizeof(head), "%s--%s%s%s", id == OPTION_HELP ? "-h, " :
			 id == OPTION_OUTPUT ? "-o, " : id == OPTION_ITERATIONS ? "-n, " : "", kind->name, kind->value ? " " : "",
			 kind->value ? kind->value : "");
		fprintf(out, "  %-22s", head);
		print_wrapped(out, kind->help, 24, 79);
	}
}
