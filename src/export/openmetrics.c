#include "export/openmetrics.h"

#include "base/clock.h"
#include "export/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define USEC_PER_SEC 1000000ULL
#define CUT "..."

enum type { GAUGE, COUNTER, INFO };

/* --- heads of families --- */

struct writer {
	FILE *out;
	enum openmetrics_format format;
};

int openmetrics_format_parse(const char *name, enum openmetrics_format *ret_format)
{
	if (strcmp(name, "openmetrics") == 0)
		*ret_format = OPENMETRICS_1_0;
	else if (strcmp(name, "prometheus") == 0)
		*ret_format = OPENMETRICS_PROMETHEUS;
	else
		return -EINVAL;
	return 0;
}

static const char *suffix_of(enum type type)
{
	return type == COUNTER ? "_total" : type == INFO ? "_info" : "";
}

/* Prometheus' own format names the samples, has no information, and keeps units to the names. */
static void write_head(const struct writer *writer, const char *name, enum type type, const char *unit, const char *help)
{
	static const char *const types[] = { "gauge", "counter", "info" };
	bool old = writer->format == OPENMETRICS_PROMETHEUS;
	const char *suffix = old ? suffix_of(type) : "";

	fprintf(writer->out, "# TYPE allocwatch_%s%s %s\n", name, suffix, old && type == INFO ? "gauge" : types[type]);
	if (*unit && !old)
		fprintf(writer->out, "# UNIT allocwatch_%s %s\n", name, unit);
	fprintf(writer->out, "# HELP allocwatch_%s%s %s\n", name, suffix, help);
}

/* --- labels --- */

/* One character, or one byte that is none. */
static size_t write_character(FILE *out, const char *text)
{
	uint32_t code = 0;
	size_t n = printable_decode(text, &code);

	if (code == '\n' && n > 0)
		fputs("\\n", out);
	else if (code == '"' || code == '\\')
		fprintf(out, "\\%c", *text);
	else if (n > 0 && !printable_is_control(code))
		fwrite(text, 1, n, out);
	else
		for (size_t i = 0; i < (n > 0 ? n : 1); i++)
			fprintf(out, "\\\\x%02x", (unsigned char)text[i]);
	return n > 0 ? n : 1;
}

static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; count++)
		text += printable_length(text);
	return count;
}

/* keep_end: of a path the end tells more than its beginning. */
static void write_value(FILE *out, const char *text, bool keep_end)
{
	size_t count = count_characters(text), skip = 0, left = count;

	if (count > OPENMETRICS_LABEL_MAX) {
		left = OPENMETRICS_LABEL_MAX - strlen(CUT);
		skip = keep_end ? count - left : 0;
	}
	if (skip > 0)
		fputs(CUT, out);
	for (; skip > 0; skip--)
		text += printable_length(text);
	for (; left > 0; left--)
		text += write_character(out, text);
	if (*text)
		fputs(CUT, out);
}

static void write_label(FILE *out, const char *name, const char *value, bool keep_end)
{
	fprintf(out, "%s=\"", name);
	write_value(out, value, keep_end);
	fputc('"', out);
}

/* Not the command line: there may be secrets in it, and a scrape is read by many. */
static const char *program_of(const char *exe)
{
	const char *slash = strrchr(exe, '/');

	return slash ? slash + 1 : exe;
}

/* Those that each sample of a target has. */
static void write_identity(FILE *out, const struct openmetrics_target *target)
{
	fprintf(out, "pid=\"%d\",", target->pid);
	write_label(out, "program", program_of(target->exe), false);
}

/* --- numbers --- */

static void write_seconds(FILE *out, uint64_t value, uint64_t per_second)
{
	fprintf(out, "%" PRIu64 ".%0*" PRIu64 "\n", value / per_second, per_second == USEC_PER_SEC ? 6 : 9,
		value % per_second);
}

static void write_single(const struct writer *writer, const char *name, const char *unit, const char *help, uint64_t value)
{
	write_head(writer, name, GAUGE, unit, help);
	fprintf(writer->out, "allocwatch_%s %" PRIu64 "\n", name, value);
}

/* --- the daemon --- */

static void write_daemon(const struct writer *writer, const struct openmetrics *metrics)
{
	FILE *out = writer->out;

	write_head(writer, "build", INFO, "", "The version of the daemon.");
	fputs("allocwatch_build_info{", out);
	write_label(out, "version", metrics->version, false);
	fputs("} 1\n", out);
	write_single(writer, "targets", "", "Processes that are traced or were until their end.", metrics->target_count);
	write_single(writer, "snapshots", "", "Snapshots that are kept.", metrics->snapshots);
	if (!metrics->whole)
		return;
	write_single(writer, "clients", "", "Connections to the daemon's socket.", metrics->clients);
	write_single(writer, "snapshot_memory_bytes", "bytes", "Memory that snapshots take in the daemon.",
		     metrics->snapshot_memory);
	write_single(writer, "snapshot_disk_bytes", "bytes", "Disk that the files of kept snapshots take.",
		     metrics->snapshot_disk);
	write_single(writer, "daemon_resident_memory_bytes", "bytes", "Memory that the daemon has.",
		     metrics->resident_memory);
	write_head(writer, "daemon_start_time_seconds", GAUGE, "seconds", "When the daemon was started, since 1970.");
	fputs("allocwatch_daemon_start_time_seconds ", out);
	write_seconds(out, metrics->start_ns, NSEC_PER_SEC);
	write_head(writer, "daemon_cpu_seconds", COUNTER, "seconds", "Time that the daemon ran on a processor.");
	fputs("allocwatch_daemon_cpu_seconds_total ", out);
	write_seconds(out, metrics->cpu_us, USEC_PER_SEC);
}

/* --- targets --- */

enum number { WHOLE, MICROSECONDS, NANOSECONDS, TRUTH };

#define VALUE(member) offsetof(struct openmetrics_target, member)

static const struct family {
	const char *name;
	enum type type;
	const char *unit, *help;
	size_t value;
	enum number number;
} families[] = {
	{ "traced", GAUGE, "", "1 while the process is traced, 0 when only what was known of it is left.", VALUE(traced), TRUTH },
	{ "exact", GAUGE, "", "1 when nothing is missing in the figures, else 0.", VALUE(exact), TRUTH },
	{ "crash_safe", GAUGE, "", "1 when the process would live if its tracer died now, else 0.", VALUE(crash_safe), TRUTH },
	{ "since_seconds", GAUGE, "seconds", "When tracing began, since 1970.", VALUE(since_ns), NANOSECONDS },
	{ "live_bytes", GAUGE, "bytes", "Bytes that are allocated.", VALUE(counters.live_bytes), WHOLE },
	{ "live_blocks", GAUGE, "", "Blocks that are allocated.", VALUE(counters.live_blocks), WHOLE },
	{ "peak_bytes", GAUGE, "bytes", "The most bytes that were allocated at once.", VALUE(counters.peak_bytes), WHOLE },
	{ "allocations", COUNTER, "", "Calls that allocated; a resize is one of each.", VALUE(counters.allocations), WHOLE },
	{ "frees", COUNTER, "", "Calls that freed a block whose allocation was seen.", VALUE(counters.frees), WHOLE },
	{ "before_attach_frees", COUNTER, "", "Frees of blocks that were allocated before tracing began.",
	  VALUE(counters.before_attach_frees), WHOLE },
	{ "after_clear_frees", COUNTER, "", "Frees of blocks whose traces were cleared.",
	  VALUE(counters.after_clear_frees), WHOLE },
	{ "unknown_frees", COUNTER, "", "Frees of blocks that nobody allocated.", VALUE(counters.unknown_frees), WHOLE },
	{ "lost_events", COUNTER, "", "Calls that could not be recorded.", VALUE(counters.lost_events), WHOLE },
	{ "truncated_stacks", COUNTER, "", "Stacks that could not be unwound to their end.", VALUE(truncated_stacks), WHOLE },
	{ "probe_gaps", COUNTER, "", "Times in which calls may have been missed.", VALUE(probe_gaps), WHOLE },
	{ "pending_calls", GAUGE, "", "Calls of the allocator that have not returned.", VALUE(pending_calls), WHOLE },
	{ "children_not_followed", COUNTER, "", "Children that should have been followed and were not.",
	  VALUE(children_not_followed), WHOLE },
	{ "stops", COUNTER, "", "Times that a thread was held to record something.", VALUE(stops), WHOLE },
	{ "held_seconds", COUNTER, "seconds", "Time that threads were held, all of them together.", VALUE(held_us),
	  MICROSECONDS },
	{ "longest_stop_seconds", GAUGE, "seconds", "The longest time that a thread was held at once.",
	  VALUE(longest_stop_us), MICROSECONDS },
	{ "tracer_memory_bytes", GAUGE, "bytes", "Memory that the tracer takes for this process.", VALUE(tracer_memory), WHOLE },
};

static void write_number(FILE *out, const struct family *family, const struct openmetrics_target *target)
{
	const void *value = (const char *)target + family->value;

	switch (family->number) {
	case TRUTH:
		fprintf(out, "%d\n", *(const bool *)value);
		break;
	case WHOLE:
		fprintf(out, "%" PRIu64 "\n", *(const uint64_t *)value);
		break;
	case MICROSECONDS:
		write_seconds(out, *(const uint64_t *)value, USEC_PER_SEC);
		break;
	case NANOSECONDS:
		write_seconds(out, *(const uint64_t *)value, NSEC_PER_SEC);
		break;
	}
}

static void write_family(const struct writer *writer, const struct family *family, const struct openmetrics *metrics)
{
	write_head(writer, family->name, family->type, family->unit, family->help);
	for (size_t i = 0; i < metrics->target_count; i++) {
		fprintf(writer->out, "allocwatch_%s%s{", family->name, suffix_of(family->type));
		write_identity(writer->out, &metrics->targets[i]);
		fputs("} ", writer->out);
		write_number(writer->out, family, &metrics->targets[i]);
	}
}

static void write_information(const struct writer *writer, const struct openmetrics *metrics)
{
	FILE *out = writer->out;

	write_head(writer, "target", INFO, "", "Which program it is, who has it traced, and how.");
	for (size_t i = 0; i < metrics->target_count; i++) {
		const struct openmetrics_target *target = &metrics->targets[i];

		fputs("allocwatch_target_info{", out);
		write_identity(out, target);
		fputc(',', out);
		write_label(out, "exe", target->exe, true);
		fprintf(out, ",uid=\"%" PRIu32 "\",", target->uid);
		write_label(out, "engine", target->engine, false);
		fputs("} 1\n", out);
	}
}

/* --- families with further labels --- */

/* A group with its labels as they will be written. */
struct labelled {
	char *labels;
	uint64_t live_bytes, live_blocks;
};

static char *make_labels(const struct openmetrics_target *target, const struct openmetrics_group *group)
{
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	write_identity(out, target);
	fputc(',', out);
	write_label(out, "file", group->file, true);
	fprintf(out, ",line=\"%" PRIu32 "\"", group->line);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Two long names may have become one, and no sample may be there twice. */
static struct labelled *find(struct labelled *rows, size_t count, const char *labels)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[i].labels, labels) == 0)
			return &rows[i];
	}
	return NULL;
}

static void free_rows(struct labelled *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(rows[i].labels);
	free(rows);
}

static int label_groups(const struct openmetrics *metrics, struct labelled **ret_rows, size_t *ret_count)
{
	size_t space = 1, count = 0;
	struct labelled *rows;

	for (size_t i = 0; i < metrics->target_count; i++)
		space += metrics->targets[i].group_count;
	rows = calloc(space, sizeof(*rows));
	for (size_t i = 0; rows && i < metrics->target_count; i++) {
		const struct openmetrics_target *target = &metrics->targets[i];
		size_t first = count;

		for (size_t k = 0; k < target->group_count; k++) {
			char *labels = make_labels(target, &target->groups[k]);
			struct labelled *row = labels ? find(rows + first, count - first, labels) : NULL;

			if (!labels) {
				free_rows(rows, count);
				return -ENOMEM;
			}
			if (row) {
				free(labels);
			} else {
				row = &rows[count++];
				row->labels = labels;
			}
			row->live_bytes += target->groups[k].live_bytes;
			row->live_blocks += target->groups[k].live_blocks;
		}
	}
	*ret_rows = rows;
	*ret_count = count;
	return rows ? 0 : -ENOMEM;
}

static int write_groups(const struct writer *writer, const struct openmetrics *metrics)
{
	struct labelled *rows;
	size_t count;
	int r = label_groups(metrics, &rows, &count);

	if (r < 0)
		return r;
	write_head(writer, "groups_time_seconds", GAUGE, "seconds", "When the groups were as they are shown, since 1970.");
	for (size_t i = 0; i < metrics->target_count; i++) {
		if (metrics->targets[i].groups_ns == 0)
			continue;
		fputs("allocwatch_groups_time_seconds{", writer->out);
		write_identity(writer->out, &metrics->targets[i]);
		fputs("} ", writer->out);
		write_seconds(writer->out, metrics->targets[i].groups_ns, NSEC_PER_SEC);
	}
	write_head(writer, "group_live_bytes", GAUGE, "bytes", "Bytes allocated by one source line, of the largest ones.");
	for (size_t i = 0; i < count; i++)
		fprintf(writer->out, "allocwatch_group_live_bytes{%s} %" PRIu64 "\n", rows[i].labels, rows[i].live_bytes);
	write_head(writer, "group_live_blocks", GAUGE, "", "Blocks allocated by one source line, of the largest ones.");
	for (size_t i = 0; i < count; i++)
		fprintf(writer->out, "allocwatch_group_live_blocks{%s} %" PRIu64 "\n", rows[i].labels,
			rows[i].live_blocks);
	free_rows(rows, count);
	return 0;
}

static void write_domain_family(const struct writer *writer, const struct openmetrics *metrics, bool bytes)
{
	const char *name = bytes ? "domain_live_bytes" : "domain_live_blocks";

	write_head(writer, name, GAUGE, bytes ? "bytes" : "", bytes ? "Bytes allocated in one domain; domains overlap." :
		   "Blocks allocated in one domain; domains overlap.");
	for (size_t i = 0; i < metrics->target_count; i++) {
		const struct openmetrics_target *target = &metrics->targets[i];

		for (size_t k = 0; k < target->domain_count; k++) {
			const struct openmetrics_domain *domain = &target->domains[k];

			fprintf(writer->out, "allocwatch_%s{", name);
			write_identity(writer->out, target);
			fputc(',', writer->out);
			write_label(writer->out, "domain", domain->name, false);
			fprintf(writer->out, "} %" PRIu64 "\n", bytes ? domain->live_bytes : domain->live_blocks);
		}
	}
}

int openmetrics_write(const struct openmetrics *metrics, enum openmetrics_format format, char **ret_text, size_t *ret_len)
{
	struct writer writer = { .format = format };
	size_t len;
	char *text;
	int r;

	writer.out = open_memstream(&text, &len);
	if (!writer.out)
		return -ENOMEM;
	write_daemon(&writer, metrics);
	write_information(&writer, metrics);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		write_family(&writer, &families[i], metrics);
	write_domain_family(&writer, metrics, true);
	write_domain_family(&writer, metrics, false);
	r = write_groups(&writer, metrics);
	if (format == OPENMETRICS_1_0)
		fputs("# EOF\n", writer.out);
	if (ferror(writer.out))
		r = -ENOMEM;
	if (fclose(writer.out) != 0)
		r = -ENOMEM;
	if (r < 0) {
		free(text);
		return r;
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}
