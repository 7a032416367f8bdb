/* The printed formats against tracemalloc itself, and what is ours alone. */
#define _GNU_SOURCE              /* asprintf */
#include "cli/source.h"
#include "export/text.h"
#include "export/printable.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define CASES_OF_A_KIND 2000
#define ROWS_MAX 16
#define FRAMES_MAX 16

/* What is printed into memory. */
struct output {
	char *text;
	size_t len;
	FILE *file;
};

static void output_open(struct output *output)
{
	output->file = open_memstream(&output->text, &output->len);
	ck_assert_ptr_nonnull(output->file);
}

static void output_close(struct output *output, const char *expected, const char *input)
{
	ck_assert_int_eq(fclose(output->file), 0);
	if (strcmp(output->text, expected) != 0)
		ck_abort_msg("printed:\n%s\nexpected:\n%s\nfor:\n%s", output->text, expected, input);
	free(output->text);
}

static uint32_t intern(struct statistics *statistics, const char *text)
{
	int64_t id = strtab_add(statistics->strings, text);

	ck_assert_int_ge(id, 0);
	return (uint32_t)id;
}

static uint32_t take_frames(struct statistics *statistics, const json_t *list, struct statistic_frame *frames)
{
	size_t i;
	json_t *frame;

	ck_assert_uint_le(json_array_size(list), FRAMES_MAX);
	json_array_foreach(list, i, frame) {
		frames[i].name = intern(statistics, json_string_value(json_array_get(frame, 0)));
		frames[i].line = (uint32_t)json_integer_value(json_array_get(frame, 1));
		frames[i].has_line = true;
	}
	return (uint32_t)json_array_size(list);
}

static int64_t number(const json_t *input, const char *key)
{
	return json_integer_value(json_object_get(input, key));
}

static struct text_style oracle_style(struct source *source)
{
	struct text_style style = { .source = { source_line, source } };

	return style;
}

static void print_size(FILE *out, const json_t *input, struct source *source)
{
	char text[TEXT_SIZE_MAX];

	(void)source;
	fputs(text_size(text, json_number_value(json_object_get(input, "size")),
			json_is_true(json_object_get(input, "sign"))), out);
}

static void print_row(FILE *out, const json_t *input, struct source *source)
{
	struct statistics statistics = { .strings = strtab_new() };
	struct statistic_frame frame = { 0 };
	json_t *frames = json_pack("[O]", json_object_get(input, "frame"));
	struct statistic row = { .size = (uint64_t)number(input, "size"), .count = (uint64_t)number(input, "count"),
				 .size_diff = number(input, "size_diff"), .count_diff = number(input, "count_diff"),
				 .frames = &frame };

	(void)source;
	row.frame_count = take_frames(&statistics, frames, &frame);
	text_statistic(out, &statistics, &row, json_is_true(json_object_get(input, "diff")));
	json_decref(frames);
	strtab_free(statistics.strings);
}

static void print_traceback(FILE *out, const json_t *input, struct source *source)
{
	struct text_style style = oracle_style(source);
	json_t *limit = json_object_get(input, "limit");
	struct text_frame frames[FRAMES_MAX] = { 0 };
	json_t *frame;
	size_t i;

	json_array_foreach(json_object_get(input, "frames"), i, frame) {
		frames[i].name = json_string_value(json_array_get(frame, 0));
		frames[i].line = (uint32_t)json_integer_value(json_array_get(frame, 1));
		frames[i].has_line = true;
	}
	style.frames_limited = json_is_integer(limit);
	style.frames_shown = json_integer_value(limit);
	style.most_recent_first = json_is_true(json_object_get(input, "most_recent_first"));
	text_traceback(out, frames, i, &style);
}

static void print_group(FILE *out, const json_t *input, struct source *source)
{
	struct statistics statistics = { .strings = strtab_new() };
	struct statistic_frame frames[FRAMES_MAX] = { 0 };
	struct text_style style = oracle_style(source);
	struct statistic row = { .size = (uint64_t)number(input, "size"), .count = (uint64_t)number(input, "count"),
				 .frames = frames };

	row.frame_count = take_frames(&statistics, json_object_get(input, "frames"), frames);
	ck_assert_int_eq(text_statistic_traceback(out, &statistics, &row, false, &style), 0);
	strtab_free(statistics.strings);
}

static void print_pretty(FILE *out, const json_t *input, struct source *source)
{
	struct statistics statistics = { .strings = strtab_new() };
	struct statistic_frame frames[ROWS_MAX] = { 0 };
	struct text_style style = oracle_style(source);
	struct statistic rows[ROWS_MAX] = { 0 };
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(input, "rows"), i, row) {
		json_t *one = json_pack("[O]", json_array_get(row, 0));

		rows[i].frames = &frames[i];
		rows[i].frame_count = take_frames(&statistics, one, &frames[i]);
		rows[i].size = (uint64_t)json_integer_value(json_array_get(row, 1));
		json_decref(one);
	}
	statistics.rows = rows;
	statistics.row_count = statistics.all_rows = i;
	while (i-- > 0)
		statistics.rows_size += rows[i].size;
	text_pretty(out, &statistics, (size_t)number(input, "limit"), &style.source);
	strtab_free(statistics.strings);
}

static struct {
	const char *name;
	void (*print)(FILE *out, const json_t *input, struct source *source);
	unsigned compared;
} kinds[] = {
	{ "size", print_size, 0 },
	{ "row", print_row, 0 },
	{ "traceback", print_traceback, 0 },
	{ "group", print_group, 0 },
	{ "pretty", print_pretty, 0 },
};

static void compare(const char *line, struct source *source)
{
	json_t *input = json_loads(line, 0, NULL);
	const char *kind = json_string_value(json_object_get(input, "kind"));
	struct output output;

	ck_assert_ptr_nonnull(kind);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, kind) != 0)
			continue;
		output_open(&output);
		kinds[i].print(output.file, input, source);
		output_close(&output, json_string_value(json_object_get(input, "text")), line);
		kinds[i].compared++;
	}
	json_decref(input);
}

static FILE *start_oracle(const char *folder)
{
	const char *srcdir = getenv("srcdir");
	char *command;
	FILE *oracle;

	ck_assert_int_gt(asprintf(&command, PYTHON " %s/tests/oracle/tracemalloc_text.py %s %d 20240531",
				  srcdir ? srcdir : ".", folder, CASES_OF_A_KIND), 0);
	oracle = popen(command, "r");
	ck_assert_ptr_nonnull(oracle);
	free(command);
	return oracle;
}

static void remove_folder(const char *folder)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(text_is_tracemallocs_byte_for_byte)
{
	char folder[] = "/tmp/check-text-XXXXXX";
	struct source *source = source_new();
	char *line = NULL;
	size_t space = 0;
	FILE *oracle;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	oracle = start_oracle(folder);
	while (getline(&line, &space, oracle) > 0)
		compare(line, source);
	free(line);
	ck_assert_msg(pclose(oracle) == 0, "tracemalloc could not be asked: is " PYTHON " installed?");
	source_free(source);
	remove_folder(folder);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		printf("compared with tracemalloc: %u of kind %s\n", kinds[i].compared, kinds[i].name);
		ck_assert_uint_eq(kinds[i].compared, CASES_OF_A_KIND);
	}
}
END_TEST

/* One row of one frame whose name is `name`, printed by each format. */
static void print_one(const struct statistic_frame *frame, struct strtab *strings, const char *row_text,
		      const char *traceback_text, const char *pretty_text)
{
	struct statistic_frame copy = *frame;
	struct statistic row = { .size = 2048, .count = 2, .size_diff = 1024, .count_diff = 1, .frames = &copy,
				 .frame_count = 1 };
	struct statistics statistics = { .strings = strings, .rows = &row, .row_count = 1, .all_rows = 1,
					 .rows_size = row.size };
	struct text_style style = { .functions = true };
	struct output output;

	output_open(&output);
	text_statistic(output.file, &statistics, &row, true);
	output_close(&output, row_text, "row");
	output_open(&output);
	text_statistic_traceback(output.file, &statistics, &row, true, &style);
	output_close(&output, traceback_text, "traceback");
	output_open(&output);
	text_pretty(output.file, &statistics, 1, &style.source);
	output_close(&output, pretty_text, "pretty");
}

START_TEST(a_frame_without_line_has_no_colon_and_number)
{
	struct strtab *strings = strtab_new();
	struct statistic_frame frame = {
		.name = (uint32_t)strtab_add(strings, "/usr/lib/libx.so.1(a::operator/(int)+0x2c)"),
		.object = (uint32_t)strtab_add(strings, "/usr/lib/libx.so.1"),
		.function = (uint32_t)strtab_add(strings, "a::operator/(int)"),
	};

	print_one(&frame, strings,
		  "/usr/lib/libx.so.1(a::operator/(int)+0x2c): size=2048 B (+1024 B), count=2 (+1), "
		  "average=1024 B\n",
		  "2 memory blocks (+1): 2.0 KiB (+1.0 KiB)\n"
		  "  File \"/usr/lib/libx.so.1(a::operator/(int)+0x2c)\", in a::operator/(int)\n",
		  "Top 1 lines\n#1: lib/libx.so.1(a::operator/(int)+0x2c): 2.0 KiB\nTotal allocated size: 2.0 KiB\n");
	strtab_free(strings);
}
END_TEST

START_TEST(names_cannot_steer_the_terminal)
{
	struct strtab *strings = strtab_new();
	struct statistic_frame frame = {
		.name = (uint32_t)strtab_add(strings, "/a/\033[2Jb\n\x7f\xc2\x9b\xff.c"),
		.function = (uint32_t)strtab_add(strings, "f\r"),
		.line = 7,
		.has_line = true,
	};

	print_one(&frame, strings,
		  "/a/\\x1b[2Jb\\x0a\\x7f\\xc2\\x9b\\xff.c:7: size=2048 B (+1024 B), count=2 (+1), average=1024 B\n",
		  "2 memory blocks (+1): 2.0 KiB (+1.0 KiB)\n"
		  "  File \"/a/\\x1b[2Jb\\x0a\\x7f\\xc2\\x9b\\xff.c\", line 7, in f\\x0d\n",
		  "Top 1 lines\n#1: a/\\x1b[2Jb\\x0a\\x7f\\xc2\\x9b\\xff.c:7: 2.0 KiB\n"
		  "Total allocated size: 2.0 KiB\n");
	strtab_free(strings);
}
END_TEST

/* A row of that frame, and all of it with --pretty. */
static void print_definition(struct statistic_frame *frame, struct strtab *strings, const char *line, const char *pretty)
{
	struct statistic row = { .size = 2048, .count = 2, .frames = frame, .frame_count = 1 };
	struct statistics statistics = { .key = KEY_DEFINITION, .strings = strings, .rows = &row, .row_count = 1,
					 .all_rows = 1, .rows_size = row.size };
	const struct text_source no_source = { .line = NULL };
	struct output output;

	output_open(&output);
	text_statistic(output.file, &statistics, &row, false);
	output_close(&output, line, "definition");
	output_open(&output);
	text_pretty(output.file, &statistics, 1, &no_source);
	output_close(&output, pretty, "definition");
}

START_TEST(a_definition_is_named_by_its_file_or_object_and_its_function)
{
	struct strtab *strings = strtab_new();
	uint32_t object = (uint32_t)strtab_add(strings, "/usr/bin/x");
	struct statistic_frame frame = {
		.name = (uint32_t)strtab_add(strings, "/src/lib/a.c"), .object = object,
		.function = (uint32_t)strtab_add(strings, "f\r"), .has_line = true,
	};

	print_definition(&frame, strings, "/src/lib/a.c(f\\x0d): size=2048 B, count=2, average=1024 B\n",
			 "Top 1 lines\n#1: lib/a.c(f\\x0d): 2.0 KiB\nTotal allocated size: 2.0 KiB\n");
	frame.name = object;
	frame.has_line = false;
	print_definition(&frame, strings, "/usr/bin/x(f\\x0d): size=2048 B, count=2, average=1024 B\n",
			 "Top 1 lines\n#1: bin/x(f\\x0d): 2.0 KiB\nTotal allocated size: 2.0 KiB\n");
	frame.function = 0;
	print_definition(&frame, strings, "/usr/bin/x: size=2048 B, count=2, average=1024 B\n",
			 "Top 1 lines\n#1: bin/x: 2.0 KiB\nTotal allocated size: 2.0 KiB\n");
	strtab_free(strings);
}
END_TEST

START_TEST(a_domain_is_a_row_without_frames)
{
	struct statistic row = { .size = 10, .count = 1, .domain = DOMAIN_MALLOC };
	struct statistics statistics = { .strings = strtab_new(), .rows = &row, .row_count = 1, .all_rows = 1,
					 .rows_size = row.size };
	struct output output;

	output_open(&output);
	text_statistic(output.file, &statistics, &row, false);
	output_close(&output, "malloc: size=10 B, count=1, average=10 B\n", "domain");
	strtab_free(statistics.strings);
}
END_TEST

START_TEST(utf8_takes_the_shortest_form_of_real_code_points_only)
{
	static const struct {
		const char *text;
		size_t len;
		uint32_t code;
	} cases[] = {
		{ "", 0, 0 }, { "a", 1, 'a' }, { "\xc3\xa9", 2, 0xe9 }, { "\xe4\xb8\xad", 3, 0x4e2d },
		{ "\xf0\x9f\x98\x80", 4, 0x1f600 }, { "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
		{ "\xc0\xaf", 0, 0 }, { "\xe0\x80\xaf", 0, 0 }, { "\xf0\x80\x80\xaf", 0, 0 },
		{ "\xed\xa0\x80", 0, 0 }, { "\xf4\x90\x80\x80", 0, 0 }, { "\x80", 0, 0 }, { "\xff", 0, 0 },
		{ "\xc3", 0, 0 }, { "\xe4\xb8", 0, 0 }, { "\xf0\x9f\x98", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t code = 0;

		ck_assert_uint_eq(printable_decode(cases[i].text, &code), cases[i].len);
		ck_assert_uint_eq(code, cases[i].code);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("text");
	TCase *tcase = tcase_create("text");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, text_is_tracemallocs_byte_for_byte);
	tcase_add_test(tcase, a_frame_without_line_has_no_colon_and_number);
	tcase_add_test(tcase, names_cannot_steer_the_terminal);
	tcase_add_test(tcase, a_definition_is_named_by_its_file_or_object_and_its_function);
	tcase_add_test(tcase, a_domain_is_a_row_without_frames);
	tcase_add_test(tcase, utf8_takes_the_shortest_form_of_real_code_points_only);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
