/* What the kernel says of memory, from files made here: of both versions of cgroups, and where some are missing. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/fd.h"
#include "daemon/memory_files.h"

#include <check.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct memory_files files;

static void setup(void)
{
	strcpy(folder, "/tmp/check_memory_files.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
	char command[96];

	memory_files_close(&files);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* In this process's cgroup, which files of the test's stand for. */
static void put(const char *mount, const char *controller, const char *name, const char *text)
{
	char *list, *cgroup, command[1024];
	FILE *pipe;

	ck_assert_int_eq(file_read_text("/proc/self/cgroup", 1 << 16, &list, NULL), 0);
	cgroup = memory_files_cgroup(list, controller);
	ck_assert_ptr_nonnull(cgroup);
	snprintf(command, sizeof(command), "d='%s/%s%s'; mkdir -p \"$d\" && cat >\"$d/%s\"", folder, mount, cgroup, name);
	pipe = popen(command, "w");
	fputs(text, pipe);
	ck_assert_int_eq(pclose(pipe), 0);
	free(list);
}

static struct alarm_figures figures(void)
{
	struct alarm_figures figures = { 0 };

	memory_files_read(&files, &figures);
	return figures;
}

START_TEST(counters_and_pressure_are_the_cgroups)
{
	put("", "", "memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n");
	put("", "", "memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"
				       "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
	memory_files_open(&files, getpid(), folder, 0);
	ck_assert_int_lt(files.pressure, 0);
	memory_files_close(&files);
	memory_files_open(&files, getpid(), folder, 200000);
	ck_assert_uint_eq(figures().high, 2);
	ck_assert_uint_eq(figures().max, 3);
	ck_assert_uint_eq(figures().oom, 9);
	/* the order to tell is written into a file like any other; a second reading sees what is there now */
	ck_assert(files.triggers);
	put("", "", "memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=4321\nfull total=99\n");
	ck_assert_uint_eq(figures().stalled_us, 4321);
	ck_assert_uint_gt(figures().rss_bytes, 100000);
}
END_TEST

START_TEST(a_hybrid_tree_is_looked_through)
{
	put("unified", "", "memory.events", "high 7\n");
	memory_files_open(&files, getpid(), folder, 0);
	ck_assert_uint_eq(figures().high, 7);
}
END_TEST

START_TEST(version_1_has_counters_of_its_own)
{
	char *list;
	bool has;

	ck_assert_int_eq(file_read_text("/proc/self/cgroup", 1 << 16, &list, NULL), 0);
	has = memory_files_cgroup(list, "memory") != NULL;
	free(list);
	if (!has)
		return;
	put("memory", "memory", "memory.failcnt", "12\n");
	put("memory", "memory", "memory.memsw.failcnt", "30\n");
	put("memory", "memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	memory_files_open(&files, getpid(), folder, 0);
	ck_assert_uint_eq(figures().max, 42);
	ck_assert_uint_eq(figures().oom, 3);
}
END_TEST

START_TEST(without_a_cgroup_there_is_still_what_is_resident)
{
	memory_files_open(&files, getpid(), folder, 1000);
	ck_assert_int_lt(files.events, 0);
	ck_assert_uint_eq(figures().max, 0);
	ck_assert_uint_gt(figures().rss_bytes, 100000);
	/* the system's pressure, where the kernel has any */
	ck_assert_int_eq(files.pressure >= 0, access("/proc/pressure/memory", R_OK) == 0);
}
END_TEST

START_TEST(who_is_gone_has_nothing)
{
	memory_files_open(&files, 0x7ffffffe, folder, 0);
	ck_assert_uint_eq(figures().rss_bytes, 0);
}
END_TEST

static void require_cgroup(const char *text, const char *controller, const char *expected)
{
	char copy[256];
	const char *path;

	strcpy(copy, text);
	path = memory_files_cgroup(copy, controller);
	if (expected)
		ck_assert_pstr_eq(path, expected);
	else
		ck_assert_ptr_null(path);
}

START_TEST(the_cgroup_is_the_units)
{
	require_cgroup("0::/system.slice/redis-server.service\n", "", "/system.slice/redis-server.service");
	require_cgroup("0::/system.slice/a.service/workers/1\n", "", "/system.slice/a.service");
	require_cgroup("0::/user.slice/user@1.service/app.slice/b.service/sub\n", "",
		       "/user.slice/user@1.service/app.slice/b.service");
	require_cgroup("0::/user.slice/session-2.scope\n", "", "/user.slice/session-2.scope");
	require_cgroup("0::/somewhere/else\n", "", "/somewhere/else");
	require_cgroup("0::/\n", "", "/");
	require_cgroup("0::/../outside\n", "", NULL);
	require_cgroup("12:cpu,memory:/a\n11:memoryless:/b\n0::/c\n", "memory", "/a");
	require_cgroup("11:memoryless:/b\n0::/c\n", "memory", NULL);
	require_cgroup("11:memory:/b\n", "", NULL);
	require_cgroup("", "", NULL);
	require_cgroup("nonsense\n:\n::", "", NULL);
}
END_TEST

static bool enter(const char *cgroup)
{
	char path[PATH_MAX + 16];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	file = fopen(path, "r+");     /* never made: the folder of the mounts is no cgroup */
	if (!file)
		return false;
	fprintf(file, "%d\n", (int)getpid());
	return fclose(file) == 0;
}

/* A cgroup below the root of whichever hierarchy may be changed here, which is entered.  False: of none. */
static bool enter_new_cgroup(char path[PATH_MAX])
{
	static const char *const mounts[] = { "", "/unified", "/systemd", "/memory" };

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		snprintf(path, PATH_MAX, MEMORY_FILES_CGROUPS "%s/allocwatch-check-%d", mounts[i], (int)getpid());
		if (mkdir(path, 0755) == 0 && enter(path))
			return true;
		rmdir(path);
	}
	return false;
}

START_TEST(a_process_that_has_moved_is_known)
{
	char path[PATH_MAX], above[PATH_MAX];

	memory_files_open(&files, getpid(), folder, 0);
	ck_assert(!memory_files_have_moved(&files));
	if (!enter_new_cgroup(path)) {
		printf("SKIP: a_process_that_has_moved_is_known: no cgroup can be made here\n");
		return;
	}
	ck_assert(memory_files_have_moved(&files));
	memory_files_close(&files);
	memory_files_open(&files, getpid(), folder, 0);
	ck_assert(!memory_files_have_moved(&files));
	ck_assert(enter(dirname(strcpy(above, path))));
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert(memory_files_have_moved(&files));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory files");
	TCase *tcase = tcase_create("memory files");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, counters_and_pressure_are_the_cgroups);
	tcase_add_test(tcase, a_hybrid_tree_is_looked_through);
	tcase_add_test(tcase, version_1_has_counters_of_its_own);
	tcase_add_test(tcase, without_a_cgroup_there_is_still_what_is_resident);
	tcase_add_test(tcase, who_is_gone_has_nothing);
	tcase_add_test(tcase, the_cgroup_is_the_units);
	tcase_add_test(tcase, a_process_that_has_moved_is_known);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
