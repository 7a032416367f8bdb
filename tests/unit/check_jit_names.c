/* Names of generated code: what a process tells in a perf map or a jitdump, of which nothing need be true. */
#define _GNU_SOURCE
#include "require.h"

#include "base/hash.h"
#include "symbol/jit_names.h"
#include "symbol/jit_table.h"
#include "symbol/perf_map.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("names", 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	return fd;
}

static struct jit_names *open_names(int fd)
{
	struct jit_names *names = NULL;

	ck_assert_int_eq(jit_names_open(fd, &names), 0);
	return names;
}

static struct jit_names *of_text(const char *text)
{
	return open_names(file_of(text, strlen(text)));
}

static const char *name_at(struct jit_names *names, uint64_t address)
{
	struct symbol_location location;
	int r = jit_names_resolve(names, address, false, &location);

	ck_assert_int_ge(r, 0);
	return r > 0 ? location.function : "";
}

/* --- who is where --- */

#define SPACE 400

START_TEST(what_was_told_last_is_there)
{
	for (uint64_t round = 0; round < 300; round++) {
		struct jit_table *table = jit_table_new();
		uint64_t painted[SPACE] = { 0 }, count = round % 40;

		for (uint64_t i = 0; i < count; i++) {
			uint64_t start = hash_pair(round, 2 * i) % SPACE, size = hash_pair(round, 2 * i + 1) % 60;
			const struct jit_entry entry = { .start = start, .size = size, .name_at = i + 1, .name_len = 1 };

			REQUIRE(jit_table_add(table, &entry) == 0);
			for (uint64_t at = start; at < start + size && at < SPACE; at++)
				painted[at] = i + 1;
		}
		ck_assert_int_eq(jit_table_finish(table), 0);
		for (uint64_t at = 0; at < SPACE; at++) {
			const struct jit_entry *entry = jit_table_find(table, at);

			REQUIRE((entry ? entry->name_at : 0) == painted[at]);
		}
		jit_table_free(table);
	}
}
END_TEST

START_TEST(past_the_limit_the_oldest_make_way)
{
	struct jit_table *table = jit_table_new();

	for (uint64_t i = 0; i < JIT_ENTRIES_MAX + 2; i++) {
		const struct jit_entry entry = { .start = 16 * i, .size = 16, .name_at = i, .name_len = 1 };

		REQUIRE(jit_table_add(table, &entry) == 0);
	}
	ck_assert_uint_eq(jit_table_count(table), JIT_ENTRIES_MAX);
	ck_assert_uint_eq(jit_table_newest(table, 0)->name_at, JIT_ENTRIES_MAX + 1);
	ck_assert_int_eq(jit_table_finish(table), 0);
	ck_assert_ptr_null(jit_table_find(table, 31));
	ck_assert_uint_eq(jit_table_find(table, 32)->name_at, 2);
	ck_assert_uint_eq(jit_table_find(table, 16 * (JIT_ENTRIES_MAX + 2) - 1)->name_at, JIT_ENTRIES_MAX + 1);
	jit_table_free(table);
}
END_TEST

/* --- perf maps --- */

START_TEST(a_line_names_its_range)
{
	struct jit_names *names = of_text("7f0000001000 20 JS:*keep /v.js:1:14\n0x7f0000002000 0x10 two  words \n");
	struct symbol_location location;

	ck_assert_str_eq(name_at(names, 0x7f0000000fff), "");
	ck_assert_str_eq(name_at(names, 0x7f0000001000), "JS:*keep /v.js:1:14");
	ck_assert_str_eq(name_at(names, 0x7f000000101f), "JS:*keep /v.js:1:14");
	ck_assert_str_eq(name_at(names, 0x7f0000001020), "");
	ck_assert_str_eq(name_at(names, 0x7f0000002008), "two  words ");
	/* A return address behind the last instruction is of the call. */
	ck_assert_int_eq(jit_names_resolve(names, 0x7f0000001020, true, &location), 1);
	ck_assert_uint_eq(location.function_offset, 0x20);
	ck_assert_ptr_null(location.file);
	ck_assert_int_eq(jit_names_resolve(names, 0x7f0000001000, true, &location), 0);
	jit_names_free(names);
}
END_TEST

START_TEST(of_lines_that_overlap_the_last_one_wins)
{
	struct jit_names *names = of_text("1000 100 old\n1040 20 new\n2000 10 first\n2000 10 second\n");

	ck_assert_str_eq(name_at(names, 0x103f), "old");
	ck_assert_str_eq(name_at(names, 0x1040), "new");
	ck_assert_str_eq(name_at(names, 0x1060), "old");
	ck_assert_str_eq(name_at(names, 0x2005), "second");
	jit_names_free(names);
}
END_TEST

START_TEST(lines_that_are_none_are_passed_over)
{
	struct jit_names *names = of_text("\n \nword\n1000\n1000 10\n1000 10 \n-1 10 minus\n1000 0 empty\n"
					  "ffffffffffffffff 2 round\n11111111111111111 10 long\n1000 xx no\n"
					  "fffffffffffffffe 1 last\n3000 10 right\n4000 10 not yet whole");

	ck_assert_str_eq(name_at(names, 0x1000), "");
	ck_assert_str_eq(name_at(names, UINT64_MAX), "");
	ck_assert_str_eq(name_at(names, UINT64_MAX - 1), "last");
	ck_assert_str_eq(name_at(names, 0x3000), "right");
	ck_assert_str_eq(name_at(names, 0x4000), "");
	jit_names_free(names);
	names = of_text("");
	ck_assert_str_eq(name_at(names, 0), "");
	jit_names_free(names);
}
END_TEST

START_TEST(a_long_name_is_cut_and_the_next_line_is_read)
{
	size_t len = 200000;
	char *text = malloc(len + 64);
	struct jit_names *names;

	memset(text, 'n', len);
	memcpy(text, "1000 10 ", 8);
	strcpy(text + len, "\n2000 10 next\n");
	names = of_text(text);
	ck_assert_uint_eq(strlen(name_at(names, 0x1000)), SYMBOL_NAME_MAX - 1);
	ck_assert_str_eq(name_at(names, 0x2000), "next");
	jit_names_free(names);
	free(text);
}
END_TEST

START_TEST(of_a_long_file_the_end_is_read)
{
	static const char first[] = "1000 10 first\n", last[] = "\n2000 10 last\n";
	int fd = file_of(first, strlen(first));
	struct jit_names *names;

	ck_assert_int_eq(pwrite(fd, last, strlen(last), PERF_MAP_BYTES_MAX), (ssize_t)strlen(last));
	names = open_names(fd);
	ck_assert_str_eq(name_at(names, 0x1000), "");
	ck_assert_str_eq(name_at(names, 0x2000), "last");
	jit_names_free(names);
}
END_TEST

/* The name is looked up when it is asked for. */
START_TEST(a_file_that_was_cut_meanwhile_has_no_names)
{
	int fd = file_of("1000 10 gone\n", 13);
	struct jit_names *names = open_names(dup(fd));

	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_str_eq(name_at(names, 0x1000), "");
	jit_names_free(names);
	close(fd);
}
END_TEST

/* --- jitdumps --- */

struct dump {
	uint8_t bytes[4096];
	size_t len, record;
};

static void put(struct dump *dump, const void *bytes, size_t len)
{
	memcpy(dump->bytes + dump->len, bytes, len);
	dump->len += len;
}

static void put32(struct dump *dump, uint32_t value)
{
	put(dump, &value, sizeof(value));
}

static void put64(struct dump *dump, uint64_t value)
{
	put(dump, &value, sizeof(value));
}

static void put_text(struct dump *dump, const char *text)
{
	put(dump, text, strlen(text) + 1);
}

static void begin_dump(struct dump *dump)
{
	static const uint32_t head[] = { 0x4a695444, 1, 40, 62, 0, 1 };

	memset(dump, 0, sizeof(*dump));
	put(dump, head, sizeof(head));
	put64(dump, 0);
	put64(dump, 0);
}

static void begin_record(struct dump *dump, uint32_t id)
{
	dump->record = dump->len;
	put32(dump, id);
	put32(dump, 0);
	put64(dump, 0);
}

static void end_record(struct dump *dump)
{
	uint32_t size = (uint32_t)(dump->len - dump->record);

	memcpy(dump->bytes + dump->record + 4, &size, sizeof(size));
}

static void put_code(struct dump *dump, uint64_t address, uint64_t size, const char *name)
{
	begin_record(dump, 0);
	put64(dump, 0);
	put64(dump, address);
	put64(dump, address);
	put64(dump, size);
	put64(dump, 1);
	put_text(dump, name);
	put(dump, "\x90\xc3", 2);
	end_record(dump);
}

static void put_line(struct dump *dump, uint64_t address, uint32_t line, const char *file)
{
	put64(dump, address);
	put32(dump, line);
	put32(dump, 0);
	put_text(dump, file);
}

static void put_three_lines(struct dump *dump, uint64_t address)
{
	begin_record(dump, 2);
	put64(dump, address);
	put64(dump, 3);
	put_line(dump, address, 7, "/src/one.js");
	put_line(dump, address + 8, 9, "\xff");
	put_line(dump, address + 16, 3, "/src/two.js");
	end_record(dump);
}

static struct jit_names *of_dump(const struct dump *dump)
{
	return open_names(file_of(dump->bytes, dump->len));
}

static void require_line(struct jit_names *names, uint64_t address, const char *file, uint32_t line)
{
	struct symbol_location location = { 0 };

	ck_assert_int_eq(jit_names_resolve(names, address, false, &location), 1);
	ck_assert_uint_eq(location.line, line);
	if (file)
		ck_assert_str_eq(location.file, file);
	else
		ck_assert_ptr_null(location.file);
}

START_TEST(a_jitdump_has_names_and_lines)
{
	struct jit_names *names;
	struct dump dump;

	begin_dump(&dump);
	put_three_lines(&dump, 0x1000);
	put_code(&dump, 0x1000, 0x40, "with_lines");
	put_three_lines(&dump, 0x9000);
	put_code(&dump, 0x2000, 0x40, "without");
	names = of_dump(&dump);
	ck_assert_str_eq(name_at(names, 0x1000), "with_lines");
	ck_assert_str_eq(name_at(names, 0x203f), "without");
	require_line(names, 0x1000, "/src/one.js", 7);
	require_line(names, 0x1007, "/src/one.js", 7);
	require_line(names, 0x1008, "/src/one.js", 9);
	require_line(names, 0x103f, "/src/two.js", 3);
	require_line(names, 0x2000, NULL, 0);
	jit_names_free(names);
}
END_TEST

START_TEST(code_that_has_moved_is_where_it_is_now)
{
	struct jit_names *names;
	struct dump dump;

	begin_dump(&dump);
	put_code(&dump, 0x1000, 0x40, "moved");
	begin_record(&dump, 1);
	put64(&dump, 0);
	put64(&dump, 0x3000);
	put64(&dump, 0x1000);
	put64(&dump, 0x3000);
	put64(&dump, 0x40);
	put64(&dump, 1);
	end_record(&dump);
	put_code(&dump, 0x1000, 0x40, "in its place");
	names = of_dump(&dump);
	ck_assert_str_eq(name_at(names, 0x3010), "moved");
	ck_assert_str_eq(name_at(names, 0x1010), "in its place");
	jit_names_free(names);
}
END_TEST

/* Each byte of a whole file cut off, or made another one: what is left is named or not, and nothing worse. */
START_TEST(a_jitdump_that_is_not_whole_is_read_as_far_as_it_goes)
{
	struct symbol_location location;
	struct jit_names *names;
	struct dump dump;

	begin_dump(&dump);
	put_code(&dump, 0x1000, 0x40, "one");
	put_three_lines(&dump, 0x2000);
	put_code(&dump, 0x2000, 0x40, "two");
	for (size_t len = 0; len < dump.len; len++) {
		names = open_names(file_of(dump.bytes, len));
		ck_assert_int_ge(jit_names_resolve(names, 0x1000, false, &location), 0);
		ck_assert_int_ge(jit_names_resolve(names, 0x2010, false, &location), 0);
		if (len > 40 + 56 + 4)
			ck_assert_str_eq(name_at(names, 0x1000), "one");
		jit_names_free(names);
	}
	for (size_t i = 0; i < dump.len; i++) {
		dump.bytes[i] ^= 0xff;
		names = of_dump(&dump);
		ck_assert_int_ge(jit_names_resolve(names, 0x1000, false, &location), 0);
		ck_assert_int_ge(jit_names_resolve(names, 0x2010, false, &location), 0);
		jit_names_free(names);
		dump.bytes[i] ^= 0xff;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jit names");
	TCase *parts = tcase_create("jit names");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, parts);
	tcase_set_timeout(parts, 120);
	tcase_add_test(parts, what_was_told_last_is_there);
	tcase_add_test(parts, past_the_limit_the_oldest_make_way);
	tcase_add_test(parts, a_line_names_its_range);
	tcase_add_test(parts, of_lines_that_overlap_the_last_one_wins);
	tcase_add_test(parts, lines_that_are_none_are_passed_over);
	tcase_add_test(parts, a_long_name_is_cut_and_the_next_line_is_read);
	tcase_add_test(parts, of_a_long_file_the_end_is_read);
	tcase_add_test(parts, a_file_that_was_cut_meanwhile_has_no_names);
	tcase_add_test(parts, a_jitdump_has_names_and_lines);
	tcase_add_test(parts, code_that_has_moved_is_where_it_is_now);
	tcase_add_test(parts, a_jitdump_that_is_not_whole_is_read_as_far_as_it_goes);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
