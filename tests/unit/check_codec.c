/* Snapshots as JSON tables, there and back, and what happens to tables that somebody made up. */
#include "share.h"

#include "varlink/codec.h"
#include "varlink/framing.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t text(struct snapshot *s, const char *value)
{
	int64_t id = strtab_add(s->strings, value);

	ck_assert_int_ge(id, 0);
	return (uint32_t)id;
}

static void set(char **field, const char *value)
{
	free(*field);
	*field = strdup(value);
}

static void identify(struct snapshot *s)
{
	set(&s->id, "s17");
	set(&s->name, "before");
	set(&s->command, "a \xff\xfe command \\x2d \\xff \xc3\xa9 \"quoted\"\n\x01");
	set(&s->exe, "/bin/\xe2\x82");
	s->pid = 4242;
	s->start_time = 123456789;
	s->taken_ns = 1700000000123456789;
	s->attached_ns = 1600000000123456789;
	s->clock_ns = 86400123456789;
	s->frames_limit = 25;
	s->exact = s->symbolized = s->has_blocks = true;
	s->counters = (struct heap_counters){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	s->unknown = (struct snapshot_unknown){ 8, 6, 7, 9, 11, 12 };
}

static void add_modules(struct snapshot *s)
{
	struct snapshot_module *m = vec_push(&s->modules);

	m->path = text(s, "/usr/lib/libc.so.6");
	for (int i = 0; i < 20; i++)
		m->build_id[i] = (uint8_t)(i * 13);
	m->build_id_len = 20;
	m = vec_push(&s->modules);
	m->path = text(s, "/bin/without\xa0" "build-id");
	m = vec_push(&s->modules);
	m->path = text(s, "/longest");
	memset(m->build_id, 0xab, sizeof(m->build_id));
	m->build_id_len = BUILD_ID_MAX;
}

static void add_location(struct snapshot *s, const char *function, const char *file, uint32_t line, bool inlined)
{
	struct snapshot_location *l = vec_push(&s->locations);

	l->function = text(s, function);
	l->file = text(s, file);
	l->line = line;
	l->function_offset = line * 3;
	l->inlined = inlined;
}

static void add_frame(struct snapshot *s, uint32_t module, uint16_t kind, uint64_t offset, uint32_t locations)
{
	struct snapshot_frame *f = vec_push(&s->frames);

	f->frame = (struct frame){ module, kind, offset };
	f->first_location = (uint32_t)s->locations.count;
	f->location_count = locations;
	for (uint32_t i = 0; i < locations; i++)
		add_location(s, "std::vector<int>::push_back(int&&)", "/src/a.cc", i + 1, i + 1 < locations);
}

static void add_trace(struct snapshot *s, uint32_t stack, uint32_t domain, uint64_t blocks)
{
	struct snapshot_trace *t = vec_push(&s->traces);

	*t = (struct snapshot_trace){ stack, domain, blocks, blocks * 100, blocks * 2, blocks * 200,
					blocks / 2, blocks * 3, blocks * 300, 0, 0, 0 };
}

static void add_stacks(struct snapshot *s, uint32_t count)
{
	add_frame(s, 0, FRAME_CALL, 0xfedcba9876543210, 3);
	add_frame(s, 1, FRAME_EXACT, 0x1000, 0);
	add_frame(s, MODULE_NONE, FRAME_CALL, 0x7fff00001234, 0);
	add_frame(s, MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_NO_CFI, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct stack_node *node = vec_push(&s->nodes);

		node->parent = i % 20 == 0 ? 0 : i;
		node->frame = 1 + i % 4;
		add_trace(s, i + 1, i % 3, i);
	}
}

static void add_blocks(struct snapshot *s, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_block *b = vec_push(&s->blocks);

		*b = (struct snapshot_block){ 0xffff800000000000 + i * 16, i, i % (uint32_t)s->traces.count,
					     4000000 + i, i * 1000ull };
	}
}

static struct snapshot *make_snapshot(uint32_t count)
{
	struct snapshot *s = snapshot_new();
	const char *reason = "";

	ck_assert_ptr_nonnull(s);
	identify(s);
	add_modules(s);
	add_stacks(s, count);
	add_blocks(s, count);
	ck_assert_msg(snapshot_check(s, &reason) == 0, "%s", reason);
	return s;
}

static void same_text(const struct snapshot *a, uint32_t x, const struct snapshot *b, uint32_t y)
{
	ck_assert_str_eq(strtab_get(a->strings, x), strtab_get(b->strings, y));
}

static void same_identity(const struct snapshot *a, const struct snapshot *b)
{
	ck_assert_str_eq(a->id, b->id);
	ck_assert_str_eq(a->name, b->name);
	ck_assert_str_eq(a->command, b->command);
	ck_assert_str_eq(a->exe, b->exe);
	ck_assert_int_eq(a->pid, b->pid);
	ck_assert_uint_eq(a->start_time, b->start_time);
	ck_assert_uint_eq(a->taken_ns, b->taken_ns);
	ck_assert_uint_eq(a->attached_ns, b->attached_ns);
	ck_assert_uint_eq(a->clock_ns, b->clock_ns);
	ck_assert_uint_eq(a->frames_limit, b->frames_limit);
	ck_assert_int_eq(a->exact, b->exact);
	ck_assert_int_eq(a->symbolized, b->symbolized);
	ck_assert_int_eq(a->has_blocks, b->has_blocks);
	ck_assert_mem_eq(&a->counters, &b->counters, sizeof(a->counters));
	ck_assert_mem_eq(&a->unknown, &b->unknown, sizeof(a->unknown));
}

static void same_names(const struct snapshot *a, const struct snapshot *b)
{
	ck_assert_uint_eq(a->modules.count, b->modules.count);
	for (size_t i = 0; i < a->modules.count; i++) {
		same_text(a, a->modules.items[i].path, b, b->modules.items[i].path);
		ck_assert_uint_eq(a->modules.items[i].build_id_len, b->modules.items[i].build_id_len);
		ck_assert_mem_eq(a->modules.items[i].build_id, b->modules.items[i].build_id, BUILD_ID_MAX);
	}
	ck_assert_uint_eq(a->locations.count, b->locations.count);
	for (size_t i = 0; i < a->locations.count; i++) {
		const struct snapshot_location *x = &a->locations.items[i], *y = &b->locations.items[i];

		same_text(a, x->function, b, y->function);
		same_text(a, x->file, b, y->file);
		ck_assert_uint_eq(x->line, y->line);
		ck_assert_uint_eq(x->function_offset, y->function_offset);
		ck_assert_int_eq(x->inlined, y->inlined);
	}
}

static void same_stacks(const struct snapshot *a, const struct snapshot *b)
{
	ck_assert_uint_eq(a->frames.count, b->frames.count);
	for (size_t i = 0; i < a->frames.count; i++) {
		const struct snapshot_frame *x = &a->frames.items[i], *y = &b->frames.items[i];

		ck_assert_uint_eq(x->frame.module, y->frame.module);
		ck_assert_uint_eq(x->frame.kind, y->frame.kind);
		ck_assert_uint_eq(x->frame.offset, y->frame.offset);
		ck_assert_uint_eq(x->first_location, y->first_location);
		ck_assert_uint_eq(x->location_count, y->location_count);
	}
	ck_assert_uint_eq(a->nodes.count, b->nodes.count);
	ck_assert_mem_eq(a->nodes.items, b->nodes.items, a->nodes.count * sizeof(*a->nodes.items));
	ck_assert_uint_eq(a->traces.count, b->traces.count);
	ck_assert_mem_eq(a->traces.items, b->traces.items, a->traces.count * sizeof(*a->traces.items));
	ck_assert_uint_eq(a->blocks.count, b->blocks.count);
	for (size_t i = 0; i < a->blocks.count; i++) {
		ck_assert_uint_eq(a->blocks.items[i].address, b->blocks.items[i].address);
		ck_assert_uint_eq(a->blocks.items[i].size, b->blocks.items[i].size);
		ck_assert_uint_eq(a->blocks.items[i].trace, b->blocks.items[i].trace);
		ck_assert_uint_eq(a->blocks.items[i].age_ns, b->blocks.items[i].age_ns);
		ck_assert_uint_eq(a->blocks.items[i].thread, b->blocks.items[i].thread);
	}
}

/* Each piece as the text of a message, as it travels. */
struct pieces {
	char *texts[256];
	size_t count, lasts;
};

static int keep_piece(void *context, json_t *tables, bool last)
{
	struct pieces *pieces = context;
	json_t *reply = json_pack("{s:{s:O}, s:b}", "parameters", "tables", tables, "continues", !last);
	size_t len;

	ck_assert_uint_lt(pieces->count, 256);
	ck_assert_int_eq(varlink_encode(reply, &pieces->texts[pieces->count++], &len), 0);
	ck_assert_uint_le(len, VARLINK_MESSAGE_MAX / 4 * 3);
	pieces->lasts += last;
	json_decref(reply);
	return 0;
}

static struct pieces send_all(struct snapshot *s)
{
	struct pieces pieces = { 0 };

	ck_assert_int_eq(codec_snapshot_send(s, keep_piece, &pieces), 0);
	ck_assert_uint_eq(pieces.lasts, 1);
	return pieces;
}

static void pieces_fini(struct pieces *pieces)
{
	while (pieces->count > 0)
		free(pieces->texts[--pieces->count]);
}

static int feed_text(struct codec_snapshot_reader *reader, const char *piece)
{
	json_t *reply = json_loads(piece, 0, NULL);
	int r;

	ck_assert_ptr_nonnull(reply);
	r = codec_snapshot_reader_feed(reader, json_object_get(json_object_get(reply, "parameters"), "tables"));
	json_decref(reply);
	return r;
}

static size_t round_trip(uint32_t count)
{
	struct codec_snapshot_reader *reader = codec_snapshot_reader_new();
	struct snapshot *s = make_snapshot(count), *back = NULL;
	struct pieces pieces = send_all(s);
	const char *reason = "";
	size_t pieces_count = pieces.count;

	for (size_t i = 0; i < pieces.count; i++)
		ck_assert_int_eq(feed_text(reader, pieces.texts[i]), 0);
	ck_assert_msg(codec_snapshot_reader_finish(reader, &back, &reason) == 0, "%s", reason);
	codec_snapshot_reader_free(reader);
	same_identity(s, back);
	same_names(s, back);
	same_stacks(s, back);
	pieces_fini(&pieces);
	snapshot_put(back);
	snapshot_put(s);
	return pieces_count;
}

START_TEST(a_snapshot_comes_back_as_it_was)
{
	ck_assert_uint_eq(round_trip(10), 1);
	ck_assert_uint_gt(round_trip(50000), 5);
}
END_TEST

START_TEST(a_snapshot_that_is_not_kept_has_no_id)
{
	struct codec_snapshot_reader *reader = codec_snapshot_reader_new();
	struct snapshot *s = make_snapshot(3), *back = NULL;
	struct pieces pieces;
	const char *reason;

	free(s->id);
	s->id = NULL;
	pieces = send_all(s);
	ck_assert_int_eq(feed_text(reader, pieces.texts[0]), 0);
	ck_assert_int_eq(codec_snapshot_reader_finish(reader, &back, &reason), 0);
	ck_assert_ptr_null(back->id);
	codec_snapshot_reader_free(reader);
	pieces_fini(&pieces);
	snapshot_put(back);
	snapshot_put(s);
}
END_TEST

START_TEST(a_missing_piece_is_noticed)
{
	struct snapshot *s = make_snapshot(8000), *back = NULL;
	struct pieces pieces = send_all(s);
	int refused = 0;

	for (size_t missing = 0; missing + 1 < pieces.count; missing++) {
		struct codec_snapshot_reader *reader = codec_snapshot_reader_new();
		const char *reason = NULL;
		int r = 0;

		for (size_t i = 0; r == 0 && i < pieces.count; i++) {
			if (i != missing)
				r = feed_text(reader, pieces.texts[i]);
		}
		if (r == 0)
			r = codec_snapshot_reader_finish(reader, &back, &reason);
		/* A piece of blocks only leaves no gap that could be seen. */
		if (r < 0)
			refused++;
		else
			snapshot_put(back);
		codec_snapshot_reader_free(reader);
	}
	ck_assert_int_gt(refused, 2);
	pieces_fini(&pieces);
	snapshot_put(s);
}
END_TEST

START_TEST(a_long_text_is_cut_and_still_fits)
{
	size_t len = 3u << 20;
	char *longest = malloc(len + 1);
	struct snapshot *s = make_snapshot(3);
	struct pieces pieces;

	memset(longest, '\xff', len);
	longest[len] = '\0';
	for (int i = 0; i < 20; i++) {
		longest[i] = 'a';
		text(s, longest);
	}
	pieces = send_all(s);
	ck_assert_uint_gt(pieces.count, 10);
	pieces_fini(&pieces);
	snapshot_put(s);
	free(longest);
}
END_TEST

/* --- texts --- */

static const struct { const char *bytes, *json; } texts[] = {
	{ "", "" },
	{ "plain", "plain" },
	{ "\xc3\xa9", "\xc3\xa9" },
	{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
	{ "\xff", "\\xff" },
	{ "a\xc3", "a\\xc3" },
	{ "\xe2\x82 ", "\\xe2\\x82 " },
	{ "\xc0\x80", "\\xc0\\x80" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
	{ "C:\\x2d\\", "C:\\x2d\\" },
	{ "\\xff", "\\x5cxff" },
	{ "\\x5c", "\\x5cx5c" },
	{ "\\xfg\\x", "\\xfg\\x" },
};

START_TEST(bytes_that_are_no_utf8_are_escaped)
{
	json_t *json = codec_bytes(texts[_i].bytes);

	ck_assert_str_eq(json_string_value(json), texts[_i].json);
	json_decref(json);
}
END_TEST

/* --- tables that somebody made up --- */

static int try_tables(const char *piece)
{
	struct codec_snapshot_reader *reader = codec_snapshot_reader_new();
	json_t *tables = json_loads(piece, 0, NULL);
	struct snapshot *s = NULL;
	const char *reason = NULL;
	int r;

	ck_assert_msg(tables != NULL, "%s", piece);
	r = codec_snapshot_reader_feed(reader, tables);
	if (r == 0)
		r = codec_snapshot_reader_finish(reader, &s, &reason);
	if (r == 0)
		snapshot_put(s);
	codec_snapshot_reader_free(reader);
	json_decref(tables);
	return r;
}

#define INFO "\"info\":{\"id\":\"\",\"name\":\"\",\"command\":\"\",\"exe\":\"\",\"pid\":1,\"start_time\":1,\"time\":1," \
	"\"attached\":1,\"clock\":1,\"frames_limit\":1,\"exact\":true,\"symbolized\":true,\"has_blocks\":false,\"counters\":{" \
	"\"live_bytes\":0,\"live_blocks\":0,\"peak_bytes\":0,\"peak_blocks\":0,\"peak_clock\":0,\"allocations\":0,\"frees\":0,\"before_attach_frees\":0," \
	"\"after_clear_frees\":0,\"unknown_frees\":0,\"lost_events\":0},\"unknown\":{\"unknown_frees\":0," \
	"\"before_attach_frees\":0,\"after_clear_frees\":0,\"lost_events\":0,\"truncated_stacks\":0,\"probe_gaps\":0}}"
#define ROOT "\"frames\":[[-1,0,0,0,0,0]],\"nodes\":[[0,0]]"

static const char *const hostile[] = {
	"{}", "[]", "{\"info\":1}", "{" INFO "}", "{" ROOT "}", "{" INFO "," ROOT ",\"strings\":1}",
	"{" INFO "," ROOT ",\"strings\":[1]}", "{" INFO "," ROOT ",\"modules\":[[0]]}",
	"{" INFO "," ROOT ",\"modules\":[[0,0]]}", "{" INFO "," ROOT ",\"strings\":[\"\",\"xyz\"],\"modules\":[[0,1]]}",
	"{" INFO "," ROOT ",\"strings\":[\"\",\"abc\"],\"modules\":[[0,1]]}",
	"{" INFO "," ROOT ",\"strings\":[\"\"],\"modules\":[[-1,0]]}",
	"{" INFO "," ROOT ",\"strings\":[\"\"],\"modules\":[[0,99]]}",
	"{" INFO "," ROOT ",\"strings\":[\"\"],\"modules\":[[9223372036854775807,0]]}",
	"{" INFO ",\"frames\":[[-2,0,0,0,0,0]],\"nodes\":[[0,0]]}",
	"{" INFO ",\"frames\":[[-1,65536,0,0,0,0]],\"nodes\":[[0,0]]}",
	"{" INFO ",\"frames\":[[-1,0,4294967296,0,0,0]],\"nodes\":[[0,0]]}",
	"{" INFO ",\"frames\":[[-1,0,0,0,0,1]],\"nodes\":[[0,0]]}",
	"{" INFO ",\"frames\":[[-1,0,0,0,0]],\"nodes\":[[0,0]]}",
	"{" INFO ",\"frames\":[[-1,0,0,0,0,0.5]],\"nodes\":[[0,0]]}",
	"{" INFO ",\"frames\":[[-1,0,0,0,0,0]],\"nodes\":[[0,7]]}",
	"{" INFO ",\"frames\":[[-1,0,0,0,0,0]],\"nodes\":[[0,0],[1,0]]}",
	"{" INFO ",\"frames\":[[-1,0,0,0,0,0]],\"nodes\":[[0,0],[5,0]]}",
	"{" INFO "," ROOT ",\"traces\":[[1,0,1,1,1,1]]}", "{" INFO "," ROOT ",\"traces\":[[0,0,-1,1,1,1]]}",
	"{" INFO "," ROOT ",\"traces\":[[0,0,1,1,1]]}", "{" INFO "," ROOT ",\"traces\":[0]}",
	"{" INFO "," ROOT ",\"traces\":[[0,0,9223372036854775807,9223372036854775807,9223372036854775807,1],"
		"[0,1,9223372036854775807,9223372036854775807,9223372036854775807,1],"
		"[0,2,9223372036854775807,9223372036854775807,9223372036854775807,1]]}",
	"{" INFO "," ROOT ",\"blocks\":[[0,0,1,0,0]]}", "{" INFO "," ROOT ",\"locations\":[[9,0,0,0,0]]}",
	"{" INFO "," ROOT ",\"strings\":[\"\"],\"locations\":[[0,0,0,0,2]]}",
};

START_TEST(made_up_tables_are_refused)
{
	ck_assert_int_eq(try_tables(hostile[_i]), -EBADMSG);
}
END_TEST

START_TEST(the_least_that_is_a_snapshot_is_taken)
{
	ck_assert_int_eq(try_tables("{" INFO "," ROOT "}"), 0);
	ck_assert_int_eq(try_tables("{" INFO "," ROOT ",\"strings\":null,\"blocks\":[]}"), 0);
}
END_TEST

/* Digits, signs and brackets are what breaks tables; a text that is no JSON any more was refused
 * before. */
static void mutate(char *piece, size_t len)
{
	static const char replacements[] = "0123456789-[]{},\"ntf.";

	for (long n = 1 + random() % 3; n > 0; n--)
		piece[(size_t)random() % len] = replacements[(size_t)random() % (sizeof(replacements) - 1)];
}

START_TEST(mutated_tables_are_read_or_refused)
{
	struct snapshot *s = make_snapshot(10);
	struct pieces pieces = send_all(s);
	size_t len = strlen(pieces.texts[0]);
	char *copy = malloc(len + 1);
	int read = 0, refused = 0;

	srandom(4);
	for (int round = 0; round < (int)share_of(20000); round++) {
		struct codec_snapshot_reader *reader;
		const char *reason = NULL;
		struct snapshot *back = NULL;
		json_t *reply;
		int r;

		memcpy(copy, pieces.texts[0], len + 1);
		mutate(copy, len);
		reply = json_loads(copy, 0, NULL);
		if (!reply)
			continue;
		reader = codec_snapshot_reader_new();
		r = codec_snapshot_reader_feed(reader, json_object_get(json_object_get(reply, "parameters"), "tables"));
		if (r == 0)
			r = codec_snapshot_reader_finish(reader, &back, &reason);
		ck_assert(r == 0 || r == -EBADMSG);
		if (r == 0)
			read++;
		else
			refused++;
		snapshot_put(back);
		codec_snapshot_reader_free(reader);
		json_decref(reply);
	}
	ck_assert_int_gt(read, share_of(1000));
	ck_assert_int_gt(refused, share_of(1000));
	free(copy);
	pieces_fini(&pieces);
	snapshot_put(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec");
	TCase *tables = tcase_create("tables"), *hostile_case = tcase_create("hostile");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tables, 60);
	tcase_set_timeout(hostile_case, 60);
	tcase_add_test(tables, a_snapshot_comes_back_as_it_was);
	tcase_add_test(tables, a_snapshot_that_is_not_kept_has_no_id);
	tcase_add_test(tables, a_missing_piece_is_noticed);
	tcase_add_test(tables, a_long_text_is_cut_and_still_fits);
	tcase_add_loop_test(tables, bytes_that_are_no_utf8_are_escaped, 0, sizeof(texts) / sizeof(texts[0]));
	tcase_add_loop_test(hostile_case, made_up_tables_are_refused, 0, sizeof(hostile) / sizeof(hostile[0]));
	tcase_add_test(hostile_case, the_least_that_is_a_snapshot_is_taken);
	tcase_add_test(hostile_case, mutated_tables_are_read_or_refused);
	suite_add_tcase(suite, tables);
	suite_add_tcase(suite, hostile_case);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
