/* Source lines: what they are, and the files that are never read. */
#include "cli/source.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static void make_folder(void)
{
	strcpy(folder, "/tmp/check-source-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file.c", folder);
}

static void remove_folder(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

START_TEST(lines_are_stripped_and_counted_from_one)
{
	struct source *source = source_new();

	write_file("  first\t\n\n\tthird \r\nlast");
	ck_assert_str_eq(source_line(source, path, 1), "first");
	ck_assert_str_eq(source_line(source, path, 2), "");
	ck_assert_str_eq(source_line(source, path, 3), "third");
	ck_assert_str_eq(source_line(source, path, 4), "last");
	ck_assert_ptr_null(source_line(source, path, 0));
	ck_assert_ptr_null(source_line(source, path, 5));
	ck_assert_ptr_null(source_line(source, path, UINT32_MAX));
	source_free(source);
}
END_TEST

START_TEST(a_file_is_read_once)
{
	struct source *source = source_new();

	write_file("before\n");
	ck_assert_str_eq(source_line(source, path, 1), "before");
	write_file("after\n");
	ck_assert_str_eq(source_line(source, path, 1), "before");
	source_free(source);
}
END_TEST

START_TEST(root_is_shown_what_everybody_may_read)
{
	struct source *source = source_new();

	write_file("secret\n");
	ck_assert_int_eq(chmod(path, 0640), 0);
	if (geteuid() == 0)
		ck_assert_ptr_null(source_line(source, path, 1));
	else
		ck_assert_str_eq(source_line(source, path, 1), "secret");
	source_free(source);
	source = source_new();
	ck_assert_int_eq(chmod(path, 0644), 0);
	ck_assert_str_eq(source_line(source, path, 1), "secret");
	source_free(source);
}
END_TEST

/* Who waits to write to it would go on, and a watchdog begin to count. */
START_TEST(what_is_no_file_is_not_even_opened)
{
	struct source *source = source_new();
	char events[512];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;

	ck_assert_int_eq(mkfifo(path, 0644), 0);
	ck_assert_int_ge(inotify_add_watch(watch, path, IN_OPEN), 0);
	ck_assert_ptr_null(source_line(source, path, 1));
	ck_assert_int_lt(read(watch, events, sizeof(events)), 0);
	/* That would have been told. */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_gt(read(watch, events, sizeof(events)), 0);
	close(fd);
	close(watch);
	source_free(source);
}
END_TEST

/* Opening a fifo for reading would wait for a writer: the test would time out. */
START_TEST(only_regular_files_are_read)
{
	struct source *source = source_new();

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_ptr_null(source_line(source, path, 1));
	ck_assert_ptr_null(source_line(source, folder, 1));
	ck_assert_ptr_null(source_line(source, "/dev/zero", 1));
	ck_assert_ptr_null(source_line(source, "/nonexistent/file.c", 1));
	ck_assert_ptr_null(source_line(source, "", 1));
	source_free(source);
}
END_TEST

START_TEST(a_file_over_the_limit_has_no_lines)
{
	struct source *source = source_new();

	write_file("line\n");
	ck_assert_int_eq(truncate(path, SOURCE_FILE_MAX + 1), 0);
	ck_assert_ptr_null(source_line(source, path, 1));
	source_free(source);
	source = source_new();
	ck_assert_int_eq(truncate(path, SOURCE_FILE_MAX), 0);
	ck_assert_str_eq(source_line(source, path, 1), "line");
	source_free(source);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("source");
	TCase *tcase = tcase_create("source");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_add_test(tcase, lines_are_stripped_and_counted_from_one);
	tcase_add_test(tcase, a_file_is_read_once);
	tcase_add_test(tcase, only_regular_files_are_read);
	tcase_add_test(tcase, root_is_shown_what_everybody_may_read);
	tcase_add_test(tcase, what_is_no_file_is_not_even_opened);
	tcase_add_test(tcase, a_file_over_the_limit_has_no_lines);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
