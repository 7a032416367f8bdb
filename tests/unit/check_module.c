#include "require.h"

#include "model/module.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct module_map map;

static void setup(void)
{
	module_map_init(&map);
}

static void teardown(void)
{
	module_map_fini(&map);
}

static uint32_t add(const char *path)
{
	char copy[64];
	struct module module = { .path = copy, .build_id = { 1, 2, 3 }, .build_id_len = 3 };
	int64_t id;

	strcpy(copy, path);
	id = module_map_add(&map, &module);
	memset(copy, '?', sizeof(copy));
	REQUIRE(id >= 0);
	return (uint32_t)id;
}

START_TEST(ids_are_indexes_and_paths_are_copied)
{
	ck_assert_uint_eq(add("/lib/a.so"), 0);
	ck_assert_uint_eq(add("/lib/b.so"), 1);
	ck_assert_str_eq(map.modules.items[1].path, "/lib/b.so");
	ck_assert_uint_eq(map.modules.items[1].id, 1);
	ck_assert_uint_eq(map.modules.items[1].build_id[2], 3);
}
END_TEST

START_TEST(a_build_id_too_long_is_refused)
{
	struct module module = { .path = (char *)"x", .build_id_len = BUILD_ID_MAX + 1 };

	ck_assert_int_eq(module_map_add(&map, &module), -EINVAL);
	ck_assert_uint_eq(map.modules.count, 0);
}
END_TEST

START_TEST(an_address_is_found_in_its_range_only)
{
	uint32_t a = add("a"), b = add("b");

	ck_assert_int_eq(module_map_add_range(&map, 0x3000, 0x4000, b), 0);
	ck_assert_int_eq(module_map_add_range(&map, 0x1000, 0x2000, a), 0);
	ck_assert_int_eq(module_map_add_range(&map, 0x2000, 0x2800, a), 0);
	ck_assert_ptr_null(module_map_find(&map, 0xfff));
	ck_assert_uint_eq(module_map_find(&map, 0x1000)->module, a);
	ck_assert_uint_eq(module_map_find(&map, 0x1fff)->end, 0x2000);
	ck_assert_uint_eq(module_map_find(&map, 0x2000)->start, 0x2000);
	ck_assert_ptr_null(module_map_find(&map, 0x2800));
	ck_assert_uint_eq(module_map_find(&map, 0x3fff)->module, b);
	ck_assert_ptr_null(module_map_find(&map, 0x4000));
	ck_assert_ptr_null(module_map_find(&map, UINT64_MAX));
}
END_TEST

START_TEST(ranges_never_overlap)
{
	uint32_t a = add("a");

	ck_assert_int_eq(module_map_add_range(&map, 0x1000, 0x2000, a), 0);
	ck_assert_int_eq(module_map_add_range(&map, 0x1fff, 0x3000, a), -EEXIST);
	ck_assert_int_eq(module_map_add_range(&map, 0x0, 0x1001, a), -EEXIST);
	ck_assert_int_eq(module_map_add_range(&map, 0x1400, 0x1500, a), -EEXIST);
	ck_assert_int_eq(module_map_add_range(&map, 0x0, 0x9000, a), -EEXIST);
	ck_assert_int_eq(module_map_add_range(&map, 0x5000, 0x5000, a), -EINVAL);
	ck_assert_int_eq(module_map_add_range(&map, 0x5000, 0x6000, a + 1), -EINVAL);
	ck_assert_uint_eq(map.ranges.count, 1);
}
END_TEST

START_TEST(another_object_at_the_same_addresses_gets_another_id)
{
	uint32_t a = add("a"), b;
	uint64_t generation;

	ck_assert_int_eq(module_map_add_range(&map, 0x1000, 0x2000, a), 0);
	ck_assert_int_eq(module_map_add_range(&map, 0x5000, 0x6000, a), 0);
	ck_assert(map.modules.items[a].mapped);
	generation = map.generation;
	module_map_remove(&map, a);
	ck_assert_uint_ne(map.generation, generation);
	ck_assert(!map.modules.items[a].mapped);
	ck_assert_ptr_null(module_map_find(&map, 0x1800));
	ck_assert_ptr_null(module_map_find(&map, 0x5800));
	b = add("b");
	ck_assert_int_eq(module_map_add_range(&map, 0x1000, 0x2000, b), 0);
	ck_assert_uint_eq(module_map_find(&map, 0x1800)->module, b);
	ck_assert_str_eq(map.modules.items[a].path, "a");
}
END_TEST

START_TEST(modules_are_limited)
{
	struct module module = { .path = (char *)"m" };

	for (int i = 0; i < MODULES_MAX; i++)
		REQUIRE(module_map_add(&map, &module) == i);
	ck_assert_int_eq(module_map_add(&map, &module), -ENOSPC);
}
END_TEST

/* Against a plain array of pages. */
START_TEST(lookups_agree_with_a_page_table)
{
	enum { PAGES = 512 };
	int32_t pages[PAGES];
	unsigned found = 0;

	srand((unsigned)_i + 1);
	memset(pages, 0xff, sizeof(pages));
	for (int step = 0; step < 400; step++) {
		uint32_t start = (uint32_t)rand() % PAGES, len = 1 + (uint32_t)rand() % 8, module;
		bool taken = false;

		if (rand() % 4 == 0 && map.modules.count > 0) {
			module = (uint32_t)rand() % (uint32_t)map.modules.count;
			module_map_remove(&map, module);
			for (int i = 0; i < PAGES; i++)
				pages[i] = pages[i] == (int32_t)module ? -1 : pages[i];
		}
		if (start + len > PAGES)
			len = PAGES - start;
		for (uint32_t i = start; i < start + len; i++)
			taken |= pages[i] >= 0;
		module = add("m");
		ck_assert_int_eq(module_map_add_range(&map, start * 0x1000ULL, (start + len) * 0x1000ULL,
						      module), taken ? -EEXIST : 0);
		for (uint32_t i = start; !taken && i < start + len; i++)
			pages[i] = (int32_t)module;
		for (uint32_t i = 0; i < PAGES; i++) {
			const struct module_range *range =
				module_map_find(&map, i * 0x1000ULL + (uint32_t)rand() % 0x1000);

			REQUIRE((range ? (int32_t)range->module : -1) == pages[i]);
			found += range != NULL;
		}
	}
	ck_assert_uint_gt(found, 1000);
}
END_TEST

/* Who counts ids by loads runs out of them. */
START_TEST(a_file_that_comes_back_gets_its_id_back_and_no_other_file_does)
{
	static const struct module plain = { .path = (char *)"/lib/a.so", .build_id = { 1, 2, 3 }, .build_id_len = 3,
					     .device = 5, .inode = 6, .bias = 0x1000 };
	struct module other = plain;
	int64_t id = module_map_add(&map, &plain);

	ck_assert_int_eq(id, 0);
	ck_assert_int_eq(module_map_add_range(&map, 0x1000, 0x2000, 0), 0);
	/* it is there, or something is still kept of it */
	ck_assert_int_eq(module_map_take_back(&map, &plain), -ENOENT);
	module_map_remove(&map, 0);
	ck_assert_int_eq(module_map_take_back(&map, &plain), -ENOENT);
	map.modules.items[0].left = true;
	other.build_id[2] = 4;
	ck_assert_int_eq(module_map_take_back(&map, &other), -ENOENT);
	other = plain;
	other.inode = 7;
	ck_assert_int_eq(module_map_take_back(&map, &other), -ENOENT);
	other = plain;
	other.path = (char *)"/lib/b.so";
	ck_assert_int_eq(module_map_take_back(&map, &other), -ENOENT);
	other = plain;
	other.build_id_len = 0;
	ck_assert_int_eq(module_map_take_back(&map, &other), -ENOENT);
	other = plain;
	other.bias = 0x70000;
	ck_assert_int_eq(module_map_take_back(&map, &other), 0);
	ck_assert(map.modules.items[0].back && !map.modules.items[0].left);
	ck_assert_uint_eq(map.modules.items[0].bias, 0x70000);
	/* once only: a second one beside it is another module */
	ck_assert_int_eq(module_map_take_back(&map, &other), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("module");
	TCase *tcase = tcase_create("module");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, ids_are_indexes_and_paths_are_copied);
	tcase_add_test(tcase, a_build_id_too_long_is_refused);
	tcase_add_test(tcase, an_address_is_found_in_its_range_only);
	tcase_add_test(tcase, ranges_never_overlap);
	tcase_add_test(tcase, another_object_at_the_same_addresses_gets_another_id);
	tcase_add_test(tcase, modules_are_limited);
	tcase_add_test(tcase, a_file_that_comes_back_gets_its_id_back_and_no_other_file_does);
	tcase_add_loop_test(tcase, lookups_agree_with_a_page_table, 0, 5);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
