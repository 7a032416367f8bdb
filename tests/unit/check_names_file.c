/* Names that outlive the daemon: the next one has them without asking, whoever may have them; and damaged bytes are nothing. */
#include "daemon/names_file.h"
#include "random.h"
#include "share.h"
#include "symbol_fixture.h"
#include "symbolize_fixture.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE "/no/such/program"

static const struct file_user user_one = { .owner = 1001, .identity = { 1, 1001, 1001, 0, { 0 } } };
static const struct file_user user_other = { .owner = 1002, .identity = { 1, 1002, 1002, 0, { 0 } } };

static void levels_input(struct input *input, const char *path, const struct file_user *user)
{
	uint64_t size, address = fixture_address("levels", "three_levels", &size);
	uint32_t module;

	input_init(input);
	input->user = user;
	module = input_file(input, path);
	for (uint64_t i = 0; i < size; i++)
		input_frame(input, module, address + i, FRAME_EXACT);
}

static size_t name_all(const char *path, const struct file_user *user)
{
	struct input input;
	size_t count;

	levels_input(&input, path, user);
	ask(&input);
	await(&input);
	count = input.snapshot->locations.count;
	input_fini(&input);
	return count;
}

/* The daemon's end, and another one that has no symbolizer. */
static int start_another(const void *data, size_t len)
{
	symbolize_free(symbolize);
	start(NOWHERE);
	return symbolize_decode(symbolize, data, len);
}

static void encode(void **ret_data, size_t *ret_len)
{
	ck_assert_int_eq(symbolize_encode(symbolize, ret_data, ret_len), 0);
}

START_TEST(another_daemon_has_the_same_names_without_asking)
{
	size_t len, count, again_len;
	void *data, *again;

	start(SYMBOLIZER);
	count = name_all("levels", &user_one);
	ck_assert_uint_gt(count, 0);
	encode(&data, &len);
	ck_assert_int_eq(start_another(data, len), 0);
	ck_assert_uint_eq(name_all("levels", &user_one), count);
	ck_assert_int_eq(symbolize_pid(symbolize), 0);
	encode(&again, &again_len);
	ck_assert_uint_eq(again_len, len);
	free(data);
	free(again);
}
END_TEST

START_TEST(they_are_no_other_users_and_no_other_files)
{
	size_t len;
	void *data;

	start(SYMBOLIZER);
	name_all("levels", &user_one);
	encode(&data, &len);
	ck_assert_int_eq(start_another(data, len), 0);
	ck_assert_uint_eq(name_all("levels", &user_other), 0);
	fixture_run("cp levels copy && mv copy levels");
	ck_assert_uint_eq(name_all("levels", &user_one), 0);
	free(data);
}
END_TEST

START_TEST(what_has_no_debug_information_is_not_kept)
{
	size_t len;
	void *data;

	start(SYMBOLIZER);
	fixture_run("cp levels bare && strip -g bare");
	ck_assert_uint_gt(name_all("bare", &user_one), 0);
	encode(&data, &len);
	ck_assert_int_eq(start_another(data, len), 0);
	ck_assert_uint_eq(name_all("bare", &user_one), 0);
	free(data);
}
END_TEST

/* The parts that other files have may be put there later. */
START_TEST(what_lacks_a_part_of_its_debug_information_is_not_kept)
{
	size_t len;
	void *data;

	start(SYMBOLIZER);
	fixture_run("gcc -O2 -g -gsplit-dwarf -c -o levels.o $DATA/levels.c && gcc -o levels levels.o && mv levels.dwo away");
	ck_assert_uint_gt(name_all("levels", &user_one), 0);
	encode(&data, &len);
	ck_assert_int_eq(start_another(data, len), 0);
	ck_assert_uint_eq(name_all("levels", &user_one), 0);
	free(data);
}
END_TEST

START_TEST(what_is_damaged_is_refused_as_a_whole)
{
	unsigned char *data;
	size_t len;

	start(SYMBOLIZER);
	name_all("levels", &user_one);
	encode((void **)&data, &len);
	for (size_t i = 0; i < len; i++) {
		data[i] ^= 1u << i % 8;
		ck_assert_int_eq(symbolize_decode(symbolize, data, len), -EBADMSG);
		data[i] ^= 1u << i % 8;
	}
	for (size_t i = 0; i < len; i++)
		ck_assert_int_eq(symbolize_decode(symbolize, data, i), -EBADMSG);
	data[0] = 'x';
	ck_assert_int_eq(start_another(data, len), -EBADMSG);
	ck_assert_uint_eq(name_all("levels", &user_one), 0);
	free(data);
}
END_TEST

/* Somebody who can make the checksum can still not make it read what is not there. */
static void set_checksum(unsigned char *data, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325ULL;

	for (size_t i = 32; i < len; i++)
		sum = (sum ^ data[i]) * 0x100000001b3ULL;
	memcpy(data + 24, &sum, sizeof(sum));
}

START_TEST(whatever_has_a_right_checksum_is_taken_or_refused)
{
	struct symbolize_cache *cache = symbolize_cache_new(1u << 20);
	struct symbolize_files files = { 0 };
	unsigned char *data, *damaged;
	unsigned rounds = share_of(20000), taken = 0;
	size_t len;

	start(SYMBOLIZER);
	name_all("levels", &user_one);
	encode((void **)&data, &len);
	damaged = malloc(len);
	for (unsigned i = 0; i < rounds; i++) {
		size_t used = random_u64() % 4 ? len : random_u64() % len + 1;
		int r;

		memcpy(damaged, data, len);
		for (uint64_t changes = random_u64() % 4 + 1; changes > 0; changes--)
			damaged[random_u64() % used] = (unsigned char)random_u64();
		if (used >= 32)
			set_checksum(damaged, used);
		r = names_file_decode(damaged, used, cache, &files);
		ck_assert(r == 0 || r == -EBADMSG);
		taken += r == 0;
	}
	printf("%u of %u damaged files were taken\n", taken, rounds);
	free(damaged);
	free(data);
	symbolize_files_fini(&files);
	symbolize_cache_free(cache);
}
END_TEST

START_TEST(no_more_is_kept_than_the_limit)
{
	struct symbolize_cache *cache = symbolize_cache_new(1u << 30), *fresh = symbolize_cache_new(1u << 30);
	struct symbolize_files files = { 0 }, fresh_files = { 0 };
	struct symbolize_file like = { .user_key = 1, .has_debug = true };
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];
	struct symbolize_key key = { 0, 0, true };
	char name[4001], number[16];
	size_t len, count;
	void *data;

	ck_assert_int_eq(symbolize_files_restore(&files, &like, &key.file), 0);
	memset(name, 'x', sizeof(name) - 1);
	name[4000] = '\0';
	locations[0] = (struct symbolize_location){ name, "/a.c", 1, 0, false };
	for (; key.address < 20000; key.address++) {
		snprintf(number, sizeof(number), "%08u", (unsigned)key.address);
		memcpy(name, number, 8);
		ck_assert_int_eq(symbolize_cache_add(cache, &key, locations, 1), 0);
	}
	ck_assert_int_eq(names_file_encode(cache, &files, &data, &len), 0);
	ck_assert_uint_le(len, NAMES_FILE_MAX);
	ck_assert_int_eq(names_file_decode(data, len, fresh, &fresh_files), 0);
	/* What was used last is there. */
	key.file = fresh_files.items.items[0]->number;
	key.address--;
	ck_assert(symbolize_cache_find(fresh, &key, locations, &count) && count == 1);
	free(data);
	symbolize_files_fini(&files);
	symbolize_files_fini(&fresh_files);
	symbolize_cache_free(cache);
	symbolize_cache_free(fresh);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("names_file");
	TCase *tcase = tcase_create("names");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, another_daemon_has_the_same_names_without_asking);
	tcase_add_test(tcase, they_are_no_other_users_and_no_other_files);
	tcase_add_test(tcase, what_has_no_debug_information_is_not_kept);
	tcase_add_test(tcase, what_lacks_a_part_of_its_debug_information_is_not_kept);
	tcase_add_test(tcase, what_is_damaged_is_refused_as_a_whole);
	tcase_add_test(tcase, whatever_has_a_right_checksum_is_taken_or_refused);
	tcase_add_test(tcase, no_more_is_kept_than_the_limit);
	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
