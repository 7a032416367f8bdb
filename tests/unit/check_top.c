/* allocwatch top without a terminal: what keys and figures make of the view, and how it looks. */
#define _GNU_SOURCE              /* asprintf */
#include "cli/top_layout.h"
#include "cli/top_model.h"
#include "cli/top_rows.h"

#include "base/clock.h"
#include "random.h"
#include "snapshot_builder.h"

#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define T0 (1700000000 * NSEC_PER_SEC)
#define GROUPS 40

static const char *source_text(void *context, const char *file, uint32_t line)
{
	static char text[64];

	(void)context;
	(void)file;
	snprintf(text, sizeof(text), "call(%u);", line);
	return text;
}

static struct top_settings plain(void)
{
	return (struct top_settings){ .source = { source_text, NULL } };
}

static struct snapshot *snapshot_at(uint64_t seconds)
{
	struct snapshot *snapshot = snapshot_new();

	ck_assert_ptr_nonnull(snapshot);
	snapshot->pid = 4242;
	free(snapshot->command);
	snapshot->command = strdup("httpd -x");
	snapshot->start_time = 77;
	snapshot->attached_ns = T0;
	snapshot->taken_ns = T0 + seconds * NSEC_PER_SEC;
	snapshot->exact = true;
	snapshot->symbolized = true;
	snapshot->frames_limit = 25;
	return snapshot;
}

/* A block of `bytes` each in main -> FUNCTION at FILE:LINE. */
static void add_blocks(struct snapshot *snapshot, const char *function, const char *file, uint32_t line,
		       uint64_t blocks, uint64_t bytes)
{
	uint32_t frames[] = { build_line(snapshot, "main", "/src/main.c", 10),
			      build_line(snapshot, function, file, line) };

	build_trace(snapshot, build_stack(snapshot, frames, 2), 0, blocks, bytes);
	snapshot->counters.live_blocks += blocks;
	snapshot->counters.live_bytes += bytes;
}

static void take(struct top *top, struct snapshot *snapshot)
{
	const char *reason = "";

	ck_assert_msg(snapshot_check(snapshot, &reason) == 0, "%s", reason);
	ck_assert_int_eq(top_take_snapshot(top, snapshot), 0);
	snapshot_put(snapshot);
}

/* three groups: a.c:1 10 blocks of 1000 B, b.c:2 100 of 5 B, c.c:3 1 of 20 B */
static struct snapshot *before(void)
{
	struct snapshot *snapshot = snapshot_at(60);

	add_blocks(snapshot, "alpha", "/src/a.c", 1, 10, 10000);
	add_blocks(snapshot, "beta", "/src/b.c", 2, 100, 500);
	add_blocks(snapshot, "gamma", "/src/c.c", 3, 1, 20);
	snapshot->counters.allocations = 200;
	snapshot->counters.frees = 89;
	return snapshot;
}

/* 30 s later: a is bigger, not more; b has shrunk; c is gone; d is new */
static struct snapshot *after(void)
{
	struct snapshot *snapshot = snapshot_at(90);

	add_blocks(snapshot, "alpha", "/src/a.c", 1, 10, 12000);
	add_blocks(snapshot, "beta", "/src/b.c", 2, 20, 100);
	add_blocks(snapshot, "delta", "/src/d.c", 4, 2, 4000);
	snapshot->counters.allocations = 300;
	snapshot->counters.frees = 139;
	snapshot->counters.peak_bytes = 20480;
	return snapshot;
}

static struct top *grown(void)
{
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);

	ck_assert_ptr_nonnull(top);
	take(top, before());
	take(top, after());
	return top;
}

static struct snapshot *random_snapshot(uint64_t seconds);

static enum top_wish press(struct top *top, uint32_t key)
{
	enum top_wish wish;

	ck_assert_int_eq(top_key(top, key, &wish), 0);
	return wish;
}

static void type(struct top *top, const char *text)
{
	for (; *text; text++)
		press(top, (unsigned char)*text);
}

static char *name_at(const struct top *top, size_t place)
{
	ck_assert_uint_lt(place, top->row_count);
	return top_row_name(top->statistics, &top->statistics->rows[place], top->settings.key);
}

static void expect_order(const struct top *top, const char *names)
{
	char *all = strdup("");

	for (size_t i = 0; i < top->row_count; i++) {
		char *name = name_at(top, i), *joined;

		ck_assert_int_gt(asprintf(&joined, "%s%s%s", all, i ? " " : "", name), 0);
		free(name);
		free(all);
		all = joined;
	}
	ck_assert_str_eq(all, names);
	free(all);
}

static char *picture(const struct top *top)
{
	const struct top_scene scene = { .now_ns = T0 + 100 * NSEC_PER_SEC, .target = "4242 (httpd)" };
	struct canvas canvas;
	char *all = strdup("");

	ck_assert_int_eq(canvas_init(&canvas, top->width, top->height), 0);
	ck_assert_int_eq(top_layout(top, &scene, &canvas), 0);
	for (int y = 0; y < canvas.height; y++) {
		char *line = canvas_line(&canvas, y), *joined;

		ck_assert_ptr_nonnull(line);
		ck_assert_int_gt(asprintf(&joined, "%s%s\n", all, line), 0);
		free(line);
		free(all);
		all = joined;
	}
	canvas_fini(&canvas);
	return all;
}

static void expect_picture(const struct top *top, const char *should)
{
	char *is = picture(top);

	ck_assert_msg(strcmp(is, should) == 0, "it looks so:\n%sand not so:\n%s", is, should);
	free(is);
}

static void expect_part(const struct top *top, const char *part)
{
	char *is = picture(top);

	ck_assert_msg(strstr(is, part) != NULL, "'%s' is not in:\n%s", part, is);
	free(is);
}

/* --- the figures --- */

START_TEST(the_whole_view_looks_so)
{
	struct top *top = grown();

	top_resize(top, 90, 13);
	expect_picture(top,
		"4242 (httpd)  traced 1 min 40 s  httpd -x\n"
		"live 15.7 KiB in 32 blocks  peak 20.0 KiB  +10.9 KiB/min (+5580 B in 30 s)\n"
		"5 events/s  lost 0  Exact\n"
		"by lineno, sorted by size, 4 groups\n"
		"     SIZE     %     GROWTH    BLOCKS    GROWTH   AVERAGE lineno\n"
		" 11.7 KiB  74.5    +2000 B        10         0    1200 B /src/a.c:1\n"
		"   4000 B  24.8    +4000 B         2        +2    2000 B /src/d.c:4\n"
		"    100 B   0.6     -400 B        20       -80       5 B /src/b.c:2\n"
		"      0 B   0.0      -20 B         0        -1         - /src/c.c:3\n"
		"\n"
		"\n"
		"\n"
		"?help q:quit Enter:tracebacks g:group s:sort /filter b:baseline f:freeze S:save\n");
	top_free(top);
}
END_TEST

START_TEST(growth_counts_from_the_first_figures_and_then_from_a_set_baseline)
{
	struct top *top = grown();
	struct snapshot *older;

	ck_assert_int_eq(top->statistics->total_size_diff, 5580);
	press(top, 'b');
	ck_assert_int_eq(top->statistics->total_size_diff, 0);
	/* what is gone in both is no group any more */
	expect_order(top, "/src/a.c:1 /src/d.c:4 /src/b.c:2");
	older = before();
	older->counters.allocations = 400;
	take(top, older);
	ck_assert_int_eq(top->statistics->total_size_diff, -5580);
	top_free(top);
}
END_TEST

START_TEST(another_program_has_a_baseline_of_its_own)
{
	struct top *top = grown();
	struct snapshot *other = after();

	other->attached_ns += NSEC_PER_SEC;
	take(top, other);
	ck_assert_int_eq(top->statistics->total_size_diff, 0);
	ck_assert_msg(strstr(top->message, "baseline is new"), "%s", top->message);
	ck_assert(top->events_per_second < 0);
	/* after an exec of the same file less is counted */
	take(top, before());
	ck_assert_int_eq(top->statistics->total_size_diff, 0);
	other = before();
	free(other->exe);
	other->exe = strdup("/bin/other");
	top->message[0] = '\0';
	take(top, other);
	ck_assert_msg(strstr(top->message, "baseline is new"), "%s", top->message);
	top_free(top);
}
END_TEST

START_TEST(what_is_not_exact_says_why)
{
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);
	struct snapshot *snapshot = before();

	snapshot->exact = false;
	snapshot->unknown.lost_events = 7;
	snapshot->unknown.probe_gaps = 2;
	take(top, snapshot);
	expect_part(top, "- events/s  lost 7  Not exact: 7 lost events, 2 gaps in probes\n");
	top_free(top);
}
END_TEST

START_TEST(the_end_is_said_and_the_last_figures_stay)
{
	struct top *top = grown();

	top_end(top, TOP_ENDED, "The process has ended");
	expect_part(top, "ENDED\n");
	expect_part(top, "The process has ended\n");
	expect_part(top, "traced 1 min 30 s");
	expect_part(top, "/src/d.c:4");
	ck_assert_int_eq(press(top, 'g'), TOP_NOTHING);
	expect_part(top, "/src/d.c\n");
	ck_assert_int_eq(press(top, 'q'), TOP_QUIT);
	top_free(top);
}
END_TEST

START_TEST(a_view_without_figures_draws_and_obeys)
{
	static const uint32_t keys[] = { 'j', 'k', 'g', 'c', 's', 'r', 'b', TOP_KEY_ENTER, TOP_KEY_END, 'f', 'f', 'm' };
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		press(top, keys[i]);
		expect_part(top, "4242 (httpd)");
		expect_part(top, "STARTING");
	}
	top_free(top);
}
END_TEST

/* --- orders --- */

START_TEST(each_order_is_reached_by_its_key_and_turned_round)
{
	static const struct {
		enum top_sort sort;
		const char *names, *reversed;
	} orders[] = {
		{ TOP_BY_GROWTH, "/src/d.c:4 /src/a.c:1 /src/c.c:3 /src/b.c:2", "/src/b.c:2 /src/c.c:3 /src/a.c:1 /src/d.c:4" },
		{ TOP_BY_SHRINK, "/src/b.c:2 /src/c.c:3 /src/a.c:1 /src/d.c:4", "/src/d.c:4 /src/a.c:1 /src/c.c:3 /src/b.c:2" },
		{ TOP_BY_COUNT, "/src/b.c:2 /src/a.c:1 /src/d.c:4 /src/c.c:3", "/src/c.c:3 /src/d.c:4 /src/a.c:1 /src/b.c:2" },
		{ TOP_BY_COUNT_GROWTH, "/src/d.c:4 /src/a.c:1 /src/c.c:3 /src/b.c:2", "/src/b.c:2 /src/c.c:3 /src/a.c:1 /src/d.c:4" },
		{ TOP_BY_AVERAGE, "/src/d.c:4 /src/a.c:1 /src/b.c:2 /src/c.c:3", "/src/c.c:3 /src/b.c:2 /src/a.c:1 /src/d.c:4" },
		{ TOP_BY_NAME, "/src/a.c:1 /src/b.c:2 /src/c.c:3 /src/d.c:4", "/src/d.c:4 /src/c.c:3 /src/b.c:2 /src/a.c:1" },
		{ TOP_BY_SIZE, "/src/a.c:1 /src/d.c:4 /src/b.c:2 /src/c.c:3", "/src/c.c:3 /src/b.c:2 /src/d.c:4 /src/a.c:1" },
	};
	struct top *top = grown();

	ck_assert_int_eq(sizeof(orders) / sizeof(orders[0]), TOP_SORT_COUNT);
	for (size_t i = 0; i < TOP_SORT_COUNT; i++) {
		enum top_sort parsed;

		press(top, 's');
		ck_assert_int_eq(top->settings.sort, orders[i].sort);
		ck_assert_int_eq(top_sort_parse(top_sort_name(orders[i].sort), &parsed), 0);
		ck_assert_int_eq(parsed, orders[i].sort);
		expect_order(top, orders[i].names);
		press(top, 'r');
		expect_order(top, orders[i].reversed);
		press(top, 'r');
	}
	top_free(top);
}
END_TEST

/* GROUPS groups of one size, and one of them grows each time. */
static struct snapshot *many(uint64_t seconds, uint64_t growing)
{
	struct snapshot *snapshot = snapshot_at(seconds);

	for (uint32_t i = 0; i < GROUPS; i++)
		add_blocks(snapshot, "f", "/src/many.c", 100 + i, 1, i == growing ? 5000 : 1000);
	return snapshot;
}

static struct top *with_many(void)
{
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);

	take(top, many(0, GROUPS));
	return top;
}

static char *at_cursor(const struct top *top)
{
	return name_at(top, top->cursor);
}

static void expect_at_cursor(const struct top *top, size_t place, const char *should)
{
	char *name = at_cursor(top);

	ck_assert_uint_eq(top->cursor, place);
	ck_assert_str_eq(name, should);
	free(name);
	ck_assert_uint_le(top->first, top->cursor);
	ck_assert_uint_lt(top->cursor, top->first + top_body_lines(top));
}

START_TEST(the_cursor_goes_with_its_group_but_stays_on_the_first_line)
{
	struct top *top = with_many();

	expect_at_cursor(top, 0, "/src/many.c:100");
	take(top, many(1, 30));         /* another one comes up to the first line */
	expect_at_cursor(top, 0, "/src/many.c:130");
	press(top, 'j');
	press(top, TOP_KEY_DOWN);
	expect_at_cursor(top, 2, "/src/many.c:101");
	take(top, many(2, 1));
	expect_at_cursor(top, 0, "/src/many.c:101");
	press(top, TOP_KEY_END);
	expect_at_cursor(top, GROUPS - 1, "/src/many.c:139");
	take(top, many(3, 39));         /* from far below, into sight */
	expect_at_cursor(top, 0, "/src/many.c:139");
	top_free(top);
}
END_TEST

START_TEST(keys_move_by_lines_pages_and_to_the_ends)
{
	struct top *top = with_many();
	size_t page;

	top_resize(top, 80, 16);        /* 4 lines of heading, titles, 10 rows, the last line */
	page = top_body_lines(top);
	ck_assert_uint_eq(page, 10);
	press(top, 'k');
	expect_at_cursor(top, 0, "/src/many.c:100");
	press(top, TOP_KEY_PAGE_DOWN);
	expect_at_cursor(top, page, "/src/many.c:110");
	ck_assert_uint_eq(top->first, 1);
	press(top, TOP_KEY_PAGE_UP);
	expect_at_cursor(top, 0, "/src/many.c:100");
	press(top, TOP_KEY_END);
	press(top, TOP_KEY_DOWN);
	press(top, TOP_KEY_PAGE_DOWN);
	expect_at_cursor(top, GROUPS - 1, "/src/many.c:139");
	ck_assert_uint_eq(top->first, GROUPS - page);
	press(top, TOP_KEY_UP);
	expect_at_cursor(top, GROUPS - 2, "/src/many.c:138");
	press(top, TOP_KEY_HOME);
	expect_at_cursor(top, 0, "/src/many.c:100");
	top_free(top);
}
END_TEST

/* --- keys to group by, filters --- */

START_TEST(the_key_for_keys_goes_through_all_and_round)
{
	static const char *const names[] = { "filename", "function", "definition", "traceback", "object", "domain", "lineno" };
	struct top *top = grown();
	size_t seen = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		enum statistics_key key;

		if (statistics_key_parse(names[i], &key) < 0)
			continue;
		press(top, seen++ % 2 ? 'K' : 'g');
		ck_assert_str_eq(top_key_name(top->settings.key), names[i]);
		expect_part(top, names[i]);
		ck_assert_uint_gt(top->row_count, 0);
	}
	ck_assert_uint_ge(seen, 6);
	top_free(top);
}
END_TEST

START_TEST(by_thread_all_snapshots_have_blocks)
{
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);

	ck_assert(!top_wants_blocks(top));
	top_free(top);
	settings.key = KEY_THREAD;
	top = top_new(&settings);
	take(top, random_snapshot(1));
	press(top, 'g');
	ck_assert_str_eq(top_key_name(top->settings.key), "domain");
	ck_assert(top_wants_blocks(top));
	while (top->settings.key != KEY_THREAD)
		press(top, 'K');
	expect_part(top, "thread 1\n");
	expect_part(top, "unknown thread\n");
	/* the last one of a process that has ended was kept without them */
	take(top, after());
	ck_assert_msg(strstr(top->message, "older figures"), "%s", top->message);
	expect_part(top, "thread 1\n");
	top_free(top);
}
END_TEST

START_TEST(cumulative_leaves_out_keys_it_does_not_go_with)
{
	struct top *top = grown();

	press(top, 'c');
	ck_assert(top->settings.cumulative);
	expect_part(top, "by lineno, cumulative");
	expect_order(top, "/src/main.c:10 /src/a.c:1 /src/d.c:4 /src/b.c:2 /src/c.c:3");
	for (int i = 0; i < 8; i++) {
		press(top, 'g');
		ck_assert_int_ne(top->settings.key, KEY_TRACEBACK);
		ck_assert_int_ne(top->settings.key, KEY_DOMAIN);
	}
	press(top, 'c');
	while (top->settings.key != KEY_TRACEBACK)
		press(top, 'g');
	press(top, 'c');
	ck_assert(!top->settings.cumulative);
	ck_assert_msg(strstr(top->message, "cannot be by traceback"), "%s", top->message);
	top_free(top);
}
END_TEST

static void filter(struct top *top, const char *text)
{
	press(top, '/');
	press(top, 0x15);
	type(top, text);
	press(top, TOP_KEY_ENTER);
}

START_TEST(filters_are_tracemallocs_inclusive_and_exclusive_together)
{
	struct top *top = grown();

	filter(top, "*/[ab].c");
	ck_assert_int_eq(top->prompt, TOP_NO_PROMPT);
	expect_order(top, "/src/a.c:1 /src/b.c:2");
	expect_part(top, "filter */[ab].c");
	filter(top, "*/[ab].c */d.c -*.c:1");
	expect_order(top, "/src/d.c:4 /src/b.c:2");
	filter(top, "-@function=alpha");
	expect_order(top, "/src/d.c:4 /src/b.c:2 /src/c.c:3");
	filter(top, "*[ ]*");           /* a space in a name */
	ck_assert_uint_eq(top->row_count, 0);
	ck_assert_msg(strstr(top->message, "whole name"), "%s", top->message);
	filter(top, "");
	ck_assert_uint_eq(top->row_count, 4);
	top_free(top);
}
END_TEST

START_TEST(a_wrong_filter_changes_nothing_and_can_be_mended)
{
	struct top *top = grown();

	filter(top, "*/a.c");
	filter(top, "*/b.c @domain=steam");
	ck_assert_int_eq(top->prompt, TOP_FILTER_PROMPT);
	ck_assert_msg(strncmp(top->message, "No filter: ", 11) == 0, "%s", top->message);
	expect_order(top, "/src/a.c:1");
	for (int i = 0; i < 14; i++)
		press(top, TOP_KEY_ERASE);
	press(top, TOP_KEY_ENTER);
	ck_assert_int_eq(top->prompt, TOP_NO_PROMPT);
	expect_order(top, "/src/b.c:2");
	press(top, '/');
	type(top, "x");
	press(top, TOP_KEY_ESCAPE);
	expect_order(top, "/src/b.c:2");
	ck_assert_str_eq(top->filter_text, "*/b.c");
	top_free(top);
}
END_TEST

START_TEST(given_filters_hold_beside_typed_ones)
{
	struct filter given;
	const char *reason;
	struct top_settings settings = plain();
	struct top *top;

	ck_assert_int_eq(filter_parse("-*/d.c", &given, &reason), 0);
	settings.filters = &given;
	settings.filter_count = 1;
	top = top_new(&settings);
	take(top, before());
	take(top, after());
	expect_order(top, "/src/a.c:1 /src/b.c:2 /src/c.c:3");
	filter(top, "-*/a.c");
	expect_order(top, "/src/b.c:2 /src/c.c:3");
	expect_part(top, "1 filter given, filter -*/a.c");
	filter(top, "");
	expect_order(top, "/src/a.c:1 /src/b.c:2 /src/c.c:3");
	top_free(top);
	filter_fini(&given);
}
END_TEST

START_TEST(typing_has_a_limit_and_takes_any_character)
{
	struct top *top = grown();

	press(top, '/');
	press(top, 0xe9);               /* é */
	press(top, 0x20ac);             /* € */
	press(top, 0x1f600);
	press(top, 0x1);
	ck_assert_str_eq(top->typing, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	press(top, TOP_KEY_ERASE);
	press(top, TOP_KEY_ERASE);
	ck_assert_str_eq(top->typing, "\xc3\xa9");
	for (int i = 0; i < 1000; i++)
		press(top, 0x20ac);
	ck_assert_uint_lt(strlen(top->typing), TOP_PROMPT_MAX);
	ck_assert_uint_ge(strlen(top->typing), TOP_PROMPT_MAX - 4);
	top_free(top);
}
END_TEST

/* --- freezing, saving, leaving --- */

START_TEST(frozen_figures_stay_until_they_are_let_go_on)
{
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);

	take(top, before());
	ck_assert_int_eq(press(top, 'f'), TOP_NOTHING);
	expect_part(top, "FROZEN\n");
	take(top, after());
	expect_order(top, "/src/a.c:1 /src/b.c:2 /src/c.c:3");
	ck_assert_int_eq(press(top, ' '), TOP_REFRESH);
	take(top, after());
	expect_order(top, "/src/a.c:1 /src/d.c:4 /src/b.c:2 /src/c.c:3");
	top_free(top);
}
END_TEST

START_TEST(a_snapshot_is_kept_by_a_valid_name_or_none)
{
	struct top *top = grown();

	press(top, 'S');
	type(top, "a/b");
	ck_assert_int_eq(press(top, TOP_KEY_ENTER), TOP_NOTHING);
	ck_assert_msg(strstr(top->message, "letters, digits"), "%s", top->message);
	press(top, 0x15);
	type(top, "exit");
	ck_assert_int_eq(press(top, TOP_KEY_ENTER), TOP_NOTHING);
	press(top, 0x15);
	type(top, "before.q");
	ck_assert_int_eq(press(top, TOP_KEY_ENTER), TOP_SAVE);
	ck_assert_str_eq(top->typing, "before.q");
	press(top, 'S');
	ck_assert_int_eq(press(top, TOP_KEY_ENTER), TOP_SAVE);
	ck_assert_str_eq(top->typing, "");
	top_free(top);
}
END_TEST

START_TEST(q_goes_back_and_then_leaves)
{
	struct top *top = grown();

	press(top, '?');
	expect_part(top, "next order: size");
	ck_assert_int_eq(press(top, 'q'), TOP_NOTHING);
	press(top, TOP_KEY_ENTER);
	ck_assert_int_eq(top->page, TOP_STACKS);
	press(top, '?');
	ck_assert_int_eq(press(top, TOP_KEY_ESCAPE), TOP_NOTHING);
	ck_assert_int_eq(top->page, TOP_TABLE);
	ck_assert_int_eq(press(top, TOP_KEY_ESCAPE), TOP_NOTHING);
	ck_assert_int_eq(press(top, 'q'), TOP_QUIT);
	top_free(top);
}
END_TEST

/* --- tracebacks --- */

START_TEST(tracebacks_have_source_lines_and_follow_the_figures)
{
	struct top *top = grown();
	struct snapshot *older;

	top_resize(top, 70, 14);
	press(top, TOP_KEY_ENTER);
	expect_part(top,
		"Tracebacks of /src/a.c:1\n"
		"10 memory blocks (+0): 11.7 KiB (+2.0 KiB)\n"
		"  File \"/src/main.c\", line 10, in main\n"
		"    call(10);\n"
		"  File \"/src/a.c\", line 1, in alpha\n"
		"    call(1);\n");
	press(top, 'm');
	expect_part(top, "(+2.0 KiB)\n  File \"/src/a.c\", line 1, in alpha\n");
	older = before();
	older->counters.allocations = 400;
	take(top, older);
	expect_part(top, "10 memory blocks (+0): 9.8 KiB (+0.0 KiB)\n");
	press(top, TOP_KEY_RIGHT);
	expect_part(top, "\ny blocks (+0): 9.8 KiB");
	top_resize(top, 70, 5);
	press(top, TOP_KEY_DOWN);
	expect_part(top, "Tracebacks of /src/a.c:1\n/src/a.c\", line 1");
	press(top, TOP_KEY_ENTER);
	ck_assert_int_eq(top->page, TOP_TABLE);
	top_free(top);
}
END_TEST

static uint64_t size_in(const char *line)
{
	const char *colon = strrchr(line, ':');
	double kib;

	ck_assert(colon && sscanf(colon, ": %lf KiB", &kib) == 1);
	return (uint64_t)(kib * 1024 + 0.5);
}

static void add_block(struct snapshot *snapshot, uint32_t trace, uint64_t size)
{
	struct snapshot_block *block = vec_push(&snapshot->blocks);

	ck_assert_ptr_nonnull(block);
	*block = (struct snapshot_block){ .address = 0x10000 * snapshot->blocks.count, .size = size, .trace = trace,
					  .thread = (uint32_t)(random_u64() % 4) };
}

/* Sizes are multiples of 1024, so that "%.1f KiB" says them exactly. */
static struct snapshot *random_snapshot(uint64_t seconds)
{
	static const char *const functions[] = { "f", "g", "h<int>", "h<char>", "k[*?]" };
	static const char *const files[] = { "/src/a.c", "/src/b[1].c", "/src/c.h" };
	struct snapshot *snapshot = snapshot_at(seconds);
	uint32_t module = build_module(snapshot, "/usr/bin/one");
	uint32_t other = build_module(snapshot, "/usr/lib/two.so");

	snapshot->has_blocks = true;

	for (int i = 0; i < 30; i++) {
		uint32_t frames[4], count = 1 + (uint32_t)(random_u64() % 4), domain = (uint32_t)(random_u64() % 3);
		uint64_t blocks = 1 + random_u64() % 9;

		for (uint32_t k = 0; k < count; k++) {
			frames[k] = build_frame(snapshot, random_u64() % 2 ? module : other, FRAME_CALL,
						random_u64() % 1000);
			if (random_u64() % 4)
				build_location(snapshot, functions[random_u64() % 5], 1,
					       files[random_u64() % 3], 1 + (uint32_t)(random_u64() % 3),
					       false);
		}
		build_trace(snapshot, build_stack(snapshot, frames, count), domain, blocks, blocks * 1024);
		while (blocks-- > 0)
			add_block(snapshot, (uint32_t)snapshot->traces.count - 1, 1024);
	}
	return snapshot;
}

static uint64_t sum_of_lines(const struct top *top)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < top->lines.count; i++)
		if (strstr(top->lines.items[i], " memory blocks "))
			sum += size_in(strchr(top->lines.items[i], ')'));
	return sum;
}

START_TEST(the_tracebacks_of_a_group_add_up_to_it)
{
	static const char *const filters[] = { "", "-*/c.h", "*/a.c */b*", "*:2 -@function=f", "@object=*two*",
					       "@function=h* @domain=0" };
	size_t groups = 0, threads = 0;

	for (int round = 0; round < 24; round++) {
		struct top_settings settings = plain();
		struct top *top = top_new(&settings);

		take(top, random_snapshot(1));
		take(top, random_snapshot(2));
		filter(top, filters[round % (sizeof(filters) / sizeof(filters[0]))]);
		do {
			for (size_t i = 0; i < top->row_count; i++) {
				uint64_t size = top->statistics->rows[i].size;

				top->cursor = i;
				press(top, TOP_KEY_ENTER);
				ck_assert_msg(sum_of_lines(top) == size, "by %s, '%s': %llu, not %llu",
					      top_key_name(top->settings.key), top->group.title,
					      (unsigned long long)sum_of_lines(top), (unsigned long long)size);
				press(top, 'q');
				groups++;
				threads += top->settings.key == KEY_THREAD;
			}
			press(top, 'g');
		} while (top->settings.key != KEY_LINENO);
		top_free(top);
	}
	ck_assert_uint_gt(groups, 1000);
	ck_assert_uint_gt(threads, 50);
	printf("%zu groups, of these %zu threads\n", groups, threads);
}
END_TEST

/* --- looks --- */

START_TEST(any_window_is_drawn_without_a_fault)
{
	struct top *top = with_many();
	static const uint32_t pages[] = { 'q', TOP_KEY_ENTER, 'q', '?', 'q', '/', TOP_KEY_ESCAPE };

	for (int height = 0; height < 16; height++) {
		for (int width = 0; width < 130; width += 1 + width / 4) {
			top_resize(top, width, height);
			for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
				press(top, pages[i]);
				free(picture(top));
			}
		}
	}
	top_free(top);
}
END_TEST

START_TEST(a_tiny_window_shows_what_matters)
{
	struct top *top = grown();

	top_resize(top, 20, 5);
	expect_picture(top,
		"4242 (httpd)  trace>\n"
		"     SIZE lineno\n"
		" 11.7 KiB /src/a.c:1\n"
		"   4000 B /src/d.c:4\n"
		"?help q:quit Enter:>\n");
	top_resize(top, 33, 5);
	expect_part(top, "     SIZE     GROWTH lineno\n");
	top_free(top);
}
END_TEST

START_TEST(hostile_names_cannot_steer_the_terminal)
{
	struct top_settings settings = plain();
	struct top *top = top_new(&settings);
	struct snapshot *snapshot = snapshot_at(1);
	char *is;

	free(snapshot->command);
	snapshot->command = strdup("evil\033]0;x\a\r\n");
	add_blocks(snapshot, "f\033[2J", "/src/\033[31mred\xff\xe2\x80\xae.c", 1, 1, 1000);
	take(top, snapshot);
	top_resize(top, 110, 20);
	expect_part(top, "evil\\x1b]0;x\\x07\\x0d\\x0a");
	expect_part(top, "/src/\\x1b[31mred\\xff\\xe2\\x80\\xae.c:1");
	press(top, TOP_KEY_ENTER);
	is = picture(top);
	for (const char *p = is; *p; p++)
		ck_assert_msg((unsigned char)*p >= 0x20 || *p == '\n', "character %d in:\n%s", *p, is);
	ck_assert_ptr_nonnull(strstr(is, "in f\\x1b[2J"));
	free(is);
	top_free(top);
}
END_TEST

static void expect_line(const char *text, int width, int skip, const char *should)
{
	struct canvas canvas;
	char *line;

	ck_assert_int_eq(canvas_init(&canvas, 40, 1), 0);
	canvas_put(&canvas, 0, 0, width, STYLE_PLAIN, text, skip);
	line = canvas_line(&canvas, 0);
	ck_assert_str_eq(line, should);
	free(line);
	canvas_fini(&canvas);
}

START_TEST(characters_take_the_columns_they_need)
{
	expect_line("stra\xc3\x9f" "e", 40, 0, "stra\xc3\x9f" "e");
	expect_line("\xe6\xbc\xa2\xe5\xad\x97", 40, 0, "\xe6\xbc\xa2\xe5\xad\x97");
	expect_line("\xe6\xbc\xa2\xe5\xad\x97", 3, 0, "\xe6\xbc\xa2");  /* half a character is none */
	expect_line("\xe6\xbc\xa2\xe5\xad\x97", 40, 1, " \xe5\xad\x97");
	expect_line("e\xcc\x81t\xcc\x81\xcc\x81", 40, 0, "e\xcc\x81t\xcc\x81");
	expect_line("\xcc\x81", 40, 0, "");
	expect_line("a\tb\x7f\xc2\x85", 40, 0, "a b\\x7f\\xc2\\x85");
	expect_line("\x01\x02", 7, 0, "\\x01");
	ck_assert_int_eq(canvas_text_width("\xe6\xbc\xa2" "e\xcc\x81\x01"), 2 + 1 + 4);
}
END_TEST

START_TEST(what_is_cut_is_marked)
{
	struct canvas canvas;
	char *line;

	ck_assert_int_eq(canvas_init(&canvas, 10, 3), 0);
	canvas_put_cut(&canvas, 0, 0, 10, STYLE_PLAIN, "/a/long/path.c", true);
	canvas_put_cut(&canvas, 1, 0, 10, STYLE_PLAIN, "a_long_function", false);
	canvas_put_cut(&canvas, 2, 0, 99, STYLE_PLAIN, "just fits!", false);
	line = canvas_line(&canvas, 0);
	ck_assert_str_eq(line, "<ng/path.c");
	free(line);
	line = canvas_line(&canvas, 1);
	ck_assert_str_eq(line, "a_long_fu>");
	free(line);
	line = canvas_line(&canvas, 2);
	ck_assert_str_eq(line, "just fits!");
	free(line);
	canvas_fini(&canvas);
}
END_TEST

START_TEST(what_the_locale_cannot_show_is_escaped)
{
	ck_assert_ptr_nonnull(setlocale(LC_ALL, "C"));
	expect_line("stra\xc3\x9f" "e", 40, 0, "stra\\xc3\\x9fe");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("top");
	TCase *tcase = tcase_create("top");
	SRunner *runner = srunner_create(suite);
	int failed;

	if (!setlocale(LC_ALL, "C.UTF-8"))
		return 99;
	tcase_add_test(tcase, the_whole_view_looks_so);
	tcase_add_test(tcase, growth_counts_from_the_first_figures_and_then_from_a_set_baseline);
	tcase_add_test(tcase, another_program_has_a_baseline_of_its_own);
	tcase_add_test(tcase, what_is_not_exact_says_why);
	tcase_add_test(tcase, the_end_is_said_and_the_last_figures_stay);
	tcase_add_test(tcase, a_view_without_figures_draws_and_obeys);
	tcase_add_test(tcase, each_order_is_reached_by_its_key_and_turned_round);
	tcase_add_test(tcase, the_cursor_goes_with_its_group_but_stays_on_the_first_line);
	tcase_add_test(tcase, keys_move_by_lines_pages_and_to_the_ends);
	tcase_add_test(tcase, the_key_for_keys_goes_through_all_and_round);
	tcase_add_test(tcase, by_thread_all_snapshots_have_blocks);
	tcase_add_test(tcase, cumulative_leaves_out_keys_it_does_not_go_with);
	tcase_add_test(tcase, filters_are_tracemallocs_inclusive_and_exclusive_together);
	tcase_add_test(tcase, a_wrong_filter_changes_nothing_and_can_be_mended);
	tcase_add_test(tcase, given_filters_hold_beside_typed_ones);
	tcase_add_test(tcase, typing_has_a_limit_and_takes_any_character);
	tcase_add_test(tcase, frozen_figures_stay_until_they_are_let_go_on);
	tcase_add_test(tcase, a_snapshot_is_kept_by_a_valid_name_or_none);
	tcase_add_test(tcase, q_goes_back_and_then_leaves);
	tcase_add_test(tcase, tracebacks_have_source_lines_and_follow_the_figures);
	tcase_add_test(tcase, the_tracebacks_of_a_group_add_up_to_it);
	tcase_add_test(tcase, any_window_is_drawn_without_a_fault);
	tcase_add_test(tcase, a_tiny_window_shows_what_matters);
	tcase_add_test(tcase, hostile_names_cannot_steer_the_terminal);
	tcase_add_test(tcase, characters_take_the_columns_they_need);
	tcase_add_test(tcase, what_is_cut_is_marked);
	tcase_add_test(tcase, what_the_locale_cannot_show_is_escaped);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
