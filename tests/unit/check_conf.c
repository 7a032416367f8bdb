/* Configuration files: their syntax, their places and their limits, without the daemon. */
#define _GNU_SOURCE
#include "daemon/conf_folders.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEEN_MAX 65536

static char seen[SEEN_MAX], complaints[SEEN_MAX], folder[64];

static void note(struct conf_reader *reader, const char *section, const char *key, const char *value)
{
	size_t len = strlen(seen);

	snprintf(seen + len, sizeof(seen) - len, "%u %s.%s=%s\n", reader->line, section, key, value);
}

static void complain(void *context, enum conf_kind kind, const char *line)
{
	size_t len = strlen(complaints);

	(void)context;
	snprintf(complaints + len, sizeof(complaints) - len, "%s%s\n", kind == CONF_ERROR ? "" : "warning: ", line);
}

static struct conf_reader reader_new(void)
{
	seen[0] = complaints[0] = '\0';
	return (struct conf_reader){ .assign = note, .complain = complain };
}

static unsigned read_text(const char *text)
{
	struct conf_reader reader = reader_new();
	char *copy = strdup(text);

	conf_read_text(&reader, "FILE", copy, strlen(copy));
	free(copy);
	return reader.errors;
}

START_TEST(lines_are_read_as_systemd_reads_them)
{
	ck_assert_uint_eq(read_text("\xef\xbb\xbf# a\n; b\n\n[One]\nA=1\n  B = two words  \r\n[Two]\nC=a=b\nD=\n"
				    "E=x \\\n# between\n; and\n   y\\\n z\nF=p\\\\\nG=\xc3\xa4"), 0);
	ck_assert_str_eq(seen, "5 One.A=1\n6 One.B=two words\n8 Two.C=a=b\n9 Two.D=\n10 Two.E=x     y  z\n"
			       "15 Two.F=p\\\\\n16 Two.G=\xc3\xa4\n");
	ck_assert_str_eq(complaints, "");
}
END_TEST

START_TEST(each_wrong_line_is_named_and_the_others_are_read)
{
	ck_assert_uint_eq(read_text("A=0\n[One\nB=1\n[]\n[Two]\nno sign\n=x\nC=2\nD=\x1b[2J\nE=\xff\nF=3\n"), 6);
	ck_assert_str_eq(seen, "1 .A=0\n8 Two.C=2\n11 Two.F=3\n");
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:2: the section's name has no ]"));
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:4: no section has such a name: []"));
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:6: this is neither [SECTION] nor KEY=VALUE: no sign"));
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:7: this is neither"));
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:9: the line holds control characters"));
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:10: the line holds control characters or is no UTF-8"));
	ck_assert_ptr_null(strchr(complaints, '\x1b'));
}
END_TEST

START_TEST(a_backslash_at_the_end_of_the_file_ends_the_line)
{
	ck_assert_uint_eq(read_text("[One]\nA=1\\"), 0);
	ck_assert_str_eq(seen, "2 One.A=1\n");
}
END_TEST

START_TEST(long_lines_and_many_mistakes_are_limited)
{
	size_t len = CONF_LINE_BYTES_MAX;
	char *text = malloc(4 * len);

	/* One line, whole or continued. */
	strcpy(text, "[One]\n");
	memset(text + 6, 'x', len);
	strcpy(text + 6 + len, "\nA=1\n");
	ck_assert_uint_eq(read_text(text), 1);
	ck_assert_str_eq(seen, "3 One.A=1\n");
	memset(text + 6, 'x', len);
	memcpy(text + 6 + len / 2, "\\\n", 2);
	strcpy(text + 6 + len, "xxxx\nA=1\n");
	ck_assert_uint_ge(read_text(text), 1);
	ck_assert_ptr_nonnull(strstr(complaints, "the line is longer than 8192 bytes"));
	ck_assert_ptr_nonnull(strstr(seen, "4 One.A=1\n"));
	text[0] = '\0';
	for (int i = 0; i < 1000; i++)
		strcat(text, "x\n");
	ck_assert_uint_eq(read_text(text), 1000);
	ck_assert_ptr_nonnull(strstr(complaints, "FILE:50: "));
	ck_assert_ptr_null(strstr(complaints, "FILE:51: "));
	free(text);
}
END_TEST

/* --- files --- */

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static unsigned read_file(const char *name)
{
	struct conf_reader reader = reader_new();

	conf_read_file(&reader, *name == '/' ? name : path_of(name));
	return reader.errors;
}

START_TEST(a_file_that_is_none_is_refused_and_holds_nobody)
{
	char *large = malloc(CONF_FILE_BYTES_MAX + 2);

	ck_assert_uint_eq(read_file("missing"), 1);
	ck_assert_ptr_nonnull(strstr(complaints, "missing: cannot be read: No such file"));
	ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
	ck_assert_uint_eq(read_file("fifo"), 1);
	ck_assert_ptr_nonnull(strstr(complaints, "no regular file"));
	ck_assert_uint_eq(read_file("."), 1);
	ck_assert_uint_eq(read_file("/dev/zero"), 1);
	ck_assert_uint_eq(read_file("/dev/null"), 0);
	memset(large, '#', CONF_FILE_BYTES_MAX + 1);
	large[CONF_FILE_BYTES_MAX + 1] = '\0';
	put("large", large);
	ck_assert_uint_eq(read_file("large"), 1);
	ck_assert_ptr_nonnull(strstr(complaints, "larger than 256 KiB"));
	free(large);
	put("open", "[One]\nA=1\n");
	ck_assert_int_eq(chmod(path_of("open"), 0666), 0);
	ck_assert_uint_eq(read_file("open"), 1);
	ck_assert_ptr_nonnull(strstr(complaints, "everybody may write the file"));
	ck_assert_int_eq(chmod(path_of("open"), 0644), 0);
	ck_assert_uint_eq(read_file("open"), 0);
	ck_assert_str_eq(seen, "2 One.A=1\n");
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(path_of("open"), 61234, 0), 0);
		ck_assert_uint_eq(read_file("open"), 1);
		ck_assert_ptr_nonnull(strstr(complaints, "belongs to user 61234"));
	}
}
END_TEST

/* --- folders --- */

static void make(const char *name)
{
	ck_assert_int_eq(mkdir(path_of(name), 0755), 0);
}

/* The values that the files give A, in the order in which they are read. */
static unsigned read_all(void)
{
	struct conf_reader reader = reader_new();
	char *folders[CONF_FOLDERS_MAX + 1] = { strdup(path_of("etc")), strdup(path_of("run")), strdup(path_of("lib")) };
	struct conf_paths paths;

	ck_assert_int_eq(conf_paths_find(&reader, folders, &paths), 0);
	for (size_t i = 0; i < paths.files.count; i++)
		conf_read_file(&reader, paths.files.items[i]);
	conf_paths_fini(&paths);
	conf_folders_free(folders);
	return reader.errors;
}

START_TEST(drop_ins_follow_the_rules_of_systemd)
{
	static const char *const places[] = { "etc", "run", "lib" };
	char name[64];

	ck_assert_uint_eq(read_all(), 0);
	ck_assert_str_eq(seen, "");
	for (int i = 0; i < 3; i++) {
		make(places[i]);
		snprintf(name, sizeof(name), "%s/allocwatchd.conf.d", places[i]);
		make(name);
	}
	put("lib/allocwatchd.conf", "[One]\nA=lib\n");
	put("lib/allocwatchd.conf.d/50-x.conf", "[One]\nA=lib 50-x\n");
	put("lib/allocwatchd.conf.d/10-a.conf", "[One]\nA=lib 10-a\n");
	put("lib/allocwatchd.conf.d/70-gone.conf", "[One]\nA=lib 70\n");
	put("lib/allocwatchd.conf.d/80-gone.conf", "[One]\nA=lib 80\n");
	put("run/allocwatchd.conf.d/50-x.conf", "[One]\nA=run 50-x\n");
	put("run/allocwatchd.conf.d/60-y.conf", "[One]\nA=run 60-y\n");
	put("run/allocwatchd.conf.d/readme", "[One]\nA=no\n");
	put("run/allocwatchd.conf.d/90.conf.bak", "[One]\nA=no\n");
	put("run/allocwatchd.conf.d/.hidden.conf", "[One]\nA=no\n");
	ck_assert_uint_eq(read_all(), 0);
	ck_assert_str_eq(seen, "2 One.A=lib\n2 One.A=lib 10-a\n2 One.A=run 50-x\n2 One.A=run 60-y\n"
			       "2 One.A=lib 70\n2 One.A=lib 80\n");
	/* The first main file counts alone; what is empty or nothing takes others of its name out. */
	put("etc/allocwatchd.conf", "[One]\nA=etc\n");
	put("run/allocwatchd.conf", "[One]\nA=run\n");
	put("etc/allocwatchd.conf.d/60-y.conf", "[One]\nA=etc 60-y\n");
	put("etc/allocwatchd.conf.d/70-gone.conf", "");
	ck_assert_int_eq(symlink("/dev/null", path_of("etc/allocwatchd.conf.d/80-gone.conf")), 0);
	ck_assert_uint_eq(read_all(), 0);
	ck_assert_str_eq(seen, "2 One.A=etc\n2 One.A=lib 10-a\n2 One.A=run 50-x\n2 One.A=etc 60-y\n");
}
END_TEST

START_TEST(more_drop_ins_than_are_allowed_are_an_error)
{
	char name[64];

	make("etc");
	make("etc/allocwatchd.conf.d");
	for (int i = 0; i <= CONF_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "etc/allocwatchd.conf.d/%03d.conf", i);
		put(name, "[One]\nA=x\n");
	}
	ck_assert_uint_eq(read_all(), 1);
	ck_assert_ptr_nonnull(strstr(complaints, "more than 128 drop-ins"));
}
END_TEST

static void make_folder(void)
{
	strcpy(folder, "/tmp/check_conf.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

int main(void)
{
	Suite *suite = suite_create("conf");
	TCase *t = tcase_create("files");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, make_folder, remove_folder);
	tcase_add_test(t, lines_are_read_as_systemd_reads_them);
	tcase_add_test(t, each_wrong_line_is_named_and_the_others_are_read);
	tcase_add_test(t, a_backslash_at_the_end_of_the_file_ends_the_line);
	tcase_add_test(t, long_lines_and_many_mistakes_are_limited);
	tcase_add_test(t, a_file_that_is_none_is_refused_and_holds_nobody);
	tcase_add_test(t, drop_ins_follow_the_rules_of_systemd);
	tcase_add_test(t, more_drop_ins_than_are_allowed_are_an_error);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
