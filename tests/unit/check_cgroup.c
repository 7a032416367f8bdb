/* What cgroups leave of memory, from files as the kernel writes them. */
#include "base/cgroup.h"

#include <check.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1ULL << 20)

static char mount[] = "/tmp/check_cgroup-XXXXXX";

static void make_folder(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", mount, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", mount, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void begin(void)
{
	strcpy(mount + strlen(mount) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(mount));
}

static void end(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -r %s", mount);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(the_cache_of_files_counts_as_free)
{
	make_folder("/box");
	put("/box/memory.max", "67108864\n");
	put("/box/memory.high", "max\n");
	put("/box/memory.current", "62914560\n");
	put("/box/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 2097152\nshmem 7\n");
	ck_assert_uint_eq(cgroup_memory_left_of("0::/box\n", mount), 7 * MIB);
	put("/box/memory.high", "63963136\n");
	ck_assert_uint_eq(cgroup_memory_left_of("0::/box\n", mount), 4 * MIB);
}
END_TEST

START_TEST(the_nearest_limit_of_all_that_it_is_in_counts)
{
	make_folder("/unified");
	make_folder("/unified/outer");
	make_folder("/unified/outer/inner");
	put("/unified/outer/memory.max", "8388608\n");
	put("/unified/outer/memory.current", "5242880\n");
	put("/unified/outer/inner/memory.max", "4194304\n");
	put("/unified/outer/inner/memory.current", "0\n");
	ck_assert_uint_eq(cgroup_memory_left_of("1:name=systemd:/x\n0::/outer/inner\n", mount), 3 * MIB);
	put("/unified/outer/memory.current", "9437184\n");
	ck_assert_uint_eq(cgroup_memory_left_of("1:name=systemd:/x\n0::/outer/inner\n", mount), 0);
}
END_TEST

START_TEST(version_1_has_other_names)
{
	make_folder("/memory");
	make_folder("/memory/box");
	put("/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/memory/memory.usage_in_bytes", "9223372036854771\n");
	put("/memory/box/memory.limit_in_bytes", "4194304\n");
	put("/memory/box/memory.usage_in_bytes", "3145728\n");
	put("/memory/box/memory.stat", "inactive_file 9999999\ntotal_inactive_file 4096\ntotal_active_file 8192\n");
	ck_assert_uint_eq(cgroup_memory_left_of("5:cpu:/no\n4:memory:/box\n0::/box\n", mount), MIB + 12288);
}
END_TEST

START_TEST(what_cannot_be_read_is_no_limit)
{
	ck_assert_uint_eq(cgroup_memory_left_of("0::/box\n", mount), UINT64_MAX);
	ck_assert_uint_eq(cgroup_memory_left_of("", mount), UINT64_MAX);
	ck_assert_uint_eq(cgroup_memory_left_of("0::/../elsewhere\n", mount), UINT64_MAX);
	ck_assert_uint_eq(cgroup_memory_left(0, mount), UINT64_MAX);
	make_folder("/box");
	put("/box/memory.max", "max\n");
	put("/box/memory.current", "77\n");
	ck_assert_uint_eq(cgroup_memory_left_of("0::/box\n", mount), UINT64_MAX);
	put("/box/memory.max", "nonsense\n");
	ck_assert_uint_eq(cgroup_memory_left_of("0::/box\n", mount), UINT64_MAX);
}
END_TEST

static Suite *cgroup_suite(void)
{
	Suite *suite = suite_create("cgroup");
	TCase *left = tcase_create("left");

	tcase_add_checked_fixture(left, begin, end);
	tcase_add_test(left, the_cache_of_files_counts_as_free);
	tcase_add_test(left, the_nearest_limit_of_all_that_it_is_in_counts);
	tcase_add_test(left, version_1_has_other_names);
	tcase_add_test(left, what_cannot_be_read_is_no_limit);
	suite_add_tcase(suite, left);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(cgroup_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
