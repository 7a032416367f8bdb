#include "export/text.h"

#include "base/clock.h"
#include "export/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void print_name(FILE *out, const char *text)
{
	printable_write(out, text, strlen(text), false);
}

const char *text_size(char text[TEXT_SIZE_MAX], double bytes, bool sign)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t last = sizeof(units) / sizeof(units[0]) - 1;
	size_t unit = 0;
	int digits;

	/* Below 100 one decimal, but bytes are whole; 10240 and more belong to the next unit. */
	for (; unit < last && fabs(bytes) >= 10 * 1024; unit++)
		bytes /= 1024;
	digits = fabs(bytes) < 100 && unit > 0 ? 1 : 0;
	snprintf(text, TEXT_SIZE_MAX, sign ? "%+.*f %s" : "%.*f %s", digits, bytes, units[unit]);
	return text;
}

/* As Python divides: exact below 2^53, and beyond that with the 64 bits of a long double. */
static double average(uint64_t size, uint64_t count)
{
	if (size <= 1ULL << 53 && count <= 1ULL << 53)
		return (double)size / (double)count;
	return (double)((long double)size / (long double)count);
}

const char *text_age(char text[TEXT_AGE_MAX], uint64_t ns)
{
	static const struct { uint64_t below_ns, unit_ns; const char *name; int digits; } steps[] = {
		{ 100 * NSEC_PER_SEC, NSEC_PER_SEC, "s", 1 },
		{ 6000 * NSEC_PER_SEC, 60 * NSEC_PER_SEC, "min", 0 },
		{ 48 * 3600 * NSEC_PER_SEC, 3600 * NSEC_PER_SEC, "h", 0 },
		{ UINT64_MAX, 86400 * NSEC_PER_SEC, "d", 0 },
	};
	size_t i = 0;

	while (ns >= steps[i].below_ns && steps[i].below_ns != UINT64_MAX)
		i++;
	snprintf(text, TEXT_AGE_MAX, "%.*f %s", steps[i].digits, (double)ns / (double)steps[i].unit_ns, steps[i].name);
	return text;
}

static void print_ages(FILE *out, const struct statistic *row)
{
	char young[TEXT_AGE_MAX], old[TEXT_AGE_MAX];

	fprintf(out, ", age=%s", text_age(young, row->youngest_ns));
	if (row->oldest_ns > row->youngest_ns)
		fprintf(out, " to %s", text_age(old, row->oldest_ns));
}

static void print_churn(FILE *out, const struct statistic *row, bool diff)
{
	char size[TEXT_SIZE_MAX];

	text_size(size, (double)row->made_size, diff);
	if (diff)
		fprintf(out, ", made=%+" PRId64 " (%s), freed=%+" PRId64 ", temporary=%+" PRId64, row->made_count, size,
			row->freed_count, row->temporary_count);
	else
		fprintf(out, ", made=%" PRId64 " (%s), freed=%" PRId64 ", temporary=%" PRId64, row->made_count, size,
			row->freed_count, row->temporary_count);
}

/* What tracemalloc does not print: only when it was asked for. */
static void print_beyond(FILE *out, const struct statistics *statistics, const struct statistic *row, bool diff)
{
	if (statistics->has_ages)
		print_ages(out, row);
	if (statistics->has_churn)
		print_churn(out, row, diff);
	if (diff && (statistics->has_churn || statistics->sort != SORT_ABS) && statistic_is_bigger(row))
		fputs(", bigger, not more", out);
}

static void print_thread(FILE *out, const struct statistic *row)
{
	if (row->thread)
		fprintf(out, "thread %" PRIu32, row->thread);
	else
		fputs("unknown thread", out);
}

/* In place of a line. */
static void print_function(FILE *out, const struct statistics *statistics, const struct statistic_frame *frame)
{
	if (!frame->function)
		return;
	fputc('(', out);
	print_name(out, strtab_get(statistics->strings, frame->function));
	fputc(')', out);
}

/* What a row is about: str(traceback[0]) in tracemalloc, the domain's name or the thread where there
 * is no frame. */
static void print_subject(FILE *out, const struct statistics *statistics, const struct statistic *row)
{
	char domain[DOMAIN_TEXT_MAX];

	if (row->is_thread) {
		print_thread(out, row);
		return;
	}
	if (row->frame_count == 0) {
		print_name(out, domain_name(row->domain, domain));
		return;
	}
	print_name(out, strtab_get(statistics->strings, row->frames[0].name));
	if (statistics->key == KEY_DEFINITION)
		print_function(out, statistics, &row->frames[0]);
	else if (row->frames[0].has_line)
		fprintf(out, ":%" PRIu32, row->frames[0].line);
}

void text_statistic(FILE *out, const struct statistics *statistics, const struct statistic *row,
		    bool diff)
{
	char size[TEXT_SIZE_MAX], size_diff[TEXT_SIZE_MAX];

	print_subject(out, statistics, row);
	fprintf(out, ": size=%s", text_size(size, (double)row->size, false));
	if (diff)
		fprintf(out, " (%s)", text_size(size_diff, (double)row->size_diff, true));
	if (statistics->sample_bytes > 0)
		fprintf(out, " +- %s", text_size(size, (double)row->size_error, false));
	fprintf(out, ", count=%" PRIu64, row->count);
	if (diff)
		fprintf(out, " (%+" PRId64 ")", row->count_diff);
	if (statistics->sample_bytes > 0)
		fprintf(out, " +- %" PRIu64, row->count_error);
	if (row->count > 0)
		fprintf(out, ", average=%s", text_size(size, average(row->size, row->count), false));
	print_beyond(out, statistics, row, diff);
	fputc('\n', out);
}

static void print_source(FILE *out, const struct text_source *source, const char *file, uint32_t line)
{
	const char *text = source->line ? source->line(source->context, file, line) : NULL;

	if (!text || !*text)
		return;
	fputs("    ", out);
	printable_write(out, text, strlen(text), true);
	fputc('\n', out);
}

static void print_frame(FILE *out, const struct text_frame *frame, const struct text_style *style)
{
	fputs("  File \"", out);
	print_name(out, frame->name);
	fputc('"', out);
	if (frame->has_line)
		fprintf(out, ", line %" PRIu32, frame->line);
	if (style->functions && frame->function && *frame->function) {
		fputs(", in ", out);
		print_name(out, frame->function);
	}
	fputc('\n', out);
	if (frame->has_line)
		print_source(out, &style->source, frame->name, frame->line);
}

/* Traceback.format(): a positive limit keeps the most recent frames, a negative one takes that many
 * of the most recent away, zero shows none. */
static void cut_frames(size_t count, const struct text_style *style, size_t *ret_first, size_t *ret_end)
{
	uint64_t shown = (uint64_t)style->frames_shown;

	*ret_first = 0;
	*ret_end = count;
	if (!style->frames_limited)
		return;
	if (style->frames_shown > 0) {
		if (shown < count)
			*ret_first = count - (size_t)shown;
	} else if (shown == 0) {
		*ret_end = 0;
	} else {
		*ret_end = -shown < count ? count - (size_t)-shown : 0;
	}
}

void text_traceback(FILE *out, const struct text_frame *frames, size_t count,
		    const struct text_style *style)
{
	size_t first, end;

	cut_frames(count, style, &first, &end);
	for (size_t i = first; i < end; i++)
		print_frame(out, &frames[style->most_recent_first ? end - 1 - (i - first) : i], style);
}

static void print_heading(FILE *out, const struct statistics *statistics, const struct statistic *row, bool diff)
{
	fprintf(out, "%" PRIu64 " memory blocks", row->count);
	if (diff)
		fprintf(out, " (%+" PRId64 ")", row->count_diff);
	if (statistics->sample_bytes > 0)
		fprintf(out, " +- %" PRIu64, row->count_error);
	fprintf(out, ": %.1f KiB", (double)row->size / 1024);
	if (diff)
		fprintf(out, " (%+.1f KiB)", (double)row->size_diff / 1024);
	if (statistics->sample_bytes > 0)
		fprintf(out, " +- %.1f KiB", (double)row->size_error / 1024);
	print_beyond(out, statistics, row, diff);
	fputc('\n', out);
}

int text_statistic_traceback(FILE *out, const struct statistics *statistics,
			     const struct statistic *row, bool diff, const struct text_style *style)
{
	struct text_frame *frames = calloc(row->frame_count + 1, sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < row->frame_count; i++) {
		const struct statistic_frame *frame = &row->frames[i];

		frames[i].name = strtab_get(statistics->strings, frame->name);
		frames[i].function = strtab_get(statistics->strings, frame->function);
		frames[i].line = frame->line;
		frames[i].has_line = frame->has_line;
	}
	print_heading(out, statistics, row, diff);
	text_traceback(out, frames, row->frame_count, style);
	free(frames);
	return 0;
}

/* The last two parts of a path.  Of a name that reads OBJECT(FUNCTION+0xOFF) only the object is a
 * path: "operator/" is a function's name. */
static const char *last_two_parts(const char *name, size_t path_len)
{
	const char *start = name + path_len;
	int slashes = 0;

	while (start > name) {
		if (start[-1] == '/' && ++slashes == 2)
			break;
		start--;
	}
	return start;
}

static size_t path_length(const struct statistics *statistics, const struct statistic_frame *frame)
{
	const char *name = strtab_get(statistics->strings, frame->name);
	const char *object = strtab_get(statistics->strings, frame->object);

	if (!frame->has_line && *object && strncmp(name, object, strlen(object)) == 0)
		return strlen(object);
	return strlen(name);
}

static void print_pretty_row(FILE *out, const struct statistics *statistics, size_t index,
			     const struct text_source *source)
{
	const struct statistic *row = &statistics->rows[index];
	const struct statistic_frame *frame = row->frame_count > 0 ? &row->frames[0] : NULL;
	char domain[DOMAIN_TEXT_MAX];
	const char *name = frame ? strtab_get(statistics->strings, frame->name) : domain_name(row->domain, domain);

	fprintf(out, "#%zu: ", index + 1);
	if (row->is_thread)
		print_thread(out, row);
	else
		print_name(out, last_two_parts(name, frame ? path_length(statistics, frame) : strlen(name)));
	if (frame && statistics->key == KEY_DEFINITION)
		print_function(out, statistics, frame);
	else if (frame && frame->has_line)
		fprintf(out, ":%" PRIu32, frame->line);
	fprintf(out, ": %.1f KiB\n", (double)row->size / 1024);
	if (frame && frame->has_line && frame->line)
		print_source(out, source, name, frame->line);
}

void text_pretty(FILE *out, const struct statistics *statistics, size_t limit,
		 const struct text_source *source)
{
	size_t shown = limit < statistics->row_count ? limit : statistics->row_count;
	uint64_t other = statistics->rows_size;

	fprintf(out, "Top %zu lines\n", limit);
	for (size_t i = 0; i < shown; i++) {
		print_pretty_row(out, statistics, i, source);
		other -= statistics->rows[i].size < other ? statistics->rows[i].size : other;
	}
	if (shown < statistics->all_rows)
		fprintf(out, "%zu other: %.1f KiB\n", statistics->all_rows - shown, (double)other / 1024);
	fprintf(out, "Total allocated size: %.1f KiB\n", (double)statistics->rows_size / 1024);
}

#define BAR_WIDTH 40

void text_histogram(FILE *out, const struct statistic *row)
{
	uint64_t most = 1;

	for (unsigned i = 0; row->histogram && i < HISTOGRAM_STEPS; i++) {
		if (row->histogram[i] > most)
			most = row->histogram[i];
	}
	for (unsigned i = 0; row->histogram && i < HISTOGRAM_STEPS; i++) {
		uint64_t count = row->histogram[i];
		int width = (int)((double)count / (double)most * BAR_WIDTH);

		if (count > 0)
			fprintf(out, "    %" PRIu64 " to %" PRIu64 " B: %" PRIu64 " %.*s\n", histogram_least(i), histogram_most(i),
				count, width, "########################################");
	}
}
