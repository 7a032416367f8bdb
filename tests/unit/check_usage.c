/* The program from outside: exit status and the one line on stderr, and which daemon it starts. */
#define _GNU_SOURCE              /* asprintf */
#include "base/fd.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char program[PATH_MAX];

static void in_folder(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

static void run_or_die(const char *command)
{
	ck_assert_msg(system(command) == 0, "%s", command);
}

/* No daemon of this machine's may answer: every place a socket is looked for is in the folder. */
static void make_folder(void)
{
	const char *built = getenv("ALLOCWATCH");

	strcpy(folder, "/tmp/check-usage-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_ptr_nonnull(realpath(built ? built : "src/allocwatch", program));
	setenv("TMPDIR", folder, 1);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	unsetenv("ALLOCWATCH_SOCKET");
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	run_or_die(command);
}

struct result {
	int status;
	char *out, *err;
};

static char *read_named(const char *name)
{
	char path[PATH_MAX], *text;

	in_folder(path, name);
	ck_assert_int_eq(file_read_text(path, 1 << 20, &text, NULL), 0);
	return text;
}

static struct result run(const char *arguments)
{
	struct result result;
	char *command;
	int status;

	ck_assert_int_gt(asprintf(&command, "%s %s >%s/out 2>%s/err </dev/null", program, arguments, folder, folder),
			 0);
	status = system(command);
	free(command);
	ck_assert(WIFEXITED(status));
	result.status = WEXITSTATUS(status);
	result.out = read_named("out");
	result.err = read_named("err");
	return result;
}

static void result_fini(struct result *result)
{
	free(result->out);
	free(result->err);
}

static void expect_failure(const char *arguments, int status, const char *words)
{
	struct result result = run(arguments);
	const char *end = strchr(result.err, '\n');

	ck_assert_msg(result.status == status, "%s: status %d: %s", arguments, result.status, result.err);
	ck_assert_msg(strncmp(result.err, "allocwatch: ", 12) == 0, "%s: %s", arguments, result.err);
	ck_assert_msg(end && end[1] == '\0', "%s: not one line: %s", arguments, result.err);
	ck_assert_msg(strstr(result.err, words) != NULL, "%s: '%s' is not in: %s", arguments, words, result.err);
	ck_assert_str_eq(result.out, "");
	result_fini(&result);
}

static const struct {
	const char *arguments, *words;
} wrong[] = {
	{ "", "a command is missing" },
	{ "frobnicate", "no command 'frobnicate'" },
	{ "--frobnicate list", "no option '--frobnicate'" },
	{ "-x list", "no option '-x'" },
	{ "--pretty list", "behind a command" },
	{ "list extra", "'extra'" },
	{ "list --pretty", "takes no option '--pretty'" },
	{ "list --json=1", "takes no value" },
	{ "list --socket", "needs a value" },
	{ "list --socket ''", "cannot be empty" },
	{ "attach", "needs PID" },
	{ "attach 0", "no PID" },
	{ "attach 1x", "no PID" },
	{ "attach 99999999999", "no PID" },
	{ "attach 1 --frames 0", "1 to 1024" },
	{ "attach 1 --frames 1025", "1 to 1024" },
	{ "attach 1 --duration 5x", "not a duration" },
	{ "attach 1 --duration 0", "longer than nothing" },
	{ "attach 1 --engine rings", "not an engine" },
	{ "attach 1 --engine steam", "not an engine" },
	{ "watch a --engine steam", "not an engine: use auto, int3 or ring" },
	{ "run --release -- true", "--release" },
	{ "attach 1 --release --engine int3", "--release needs the ring engine" },
	{ "attach 1 --release --follow-forks", "cannot be combined with --follow-forks" },
	{ "attach 1 --release --hold", "cannot be combined with --hold" },
	{ "attach 1 --ring-readers 0", "neither auto nor a number from 1 to 16" },
	{ "attach 1 --ring-readers 17", "neither auto nor a number from 1 to 16" },
	{ "attach 1 --ring-wait 0", "not a time from 1ms" },
	{ "attach 1 --ring-wait 2h", "not a time from 1ms" },
	{ "attach 1 --domains malloc,python", "not a list of malloc, new and mmap" },
	{ "run", "needs" },
	{ "run --fail-over 1KB -- true", "not a size" },
	{ "run --fail-over 1K --duration 1s -- true", "--duration prevents" },
	{ "detach", "either a PID or --all" },
	{ "detach 1 --all", "either a PID or --all" },
	{ "snapshot 1 --name a/b", "letters, digits" },
	{ "rm", "needs ID" },
	{ "rm 17", "cannot be removed" },
	{ "rm ./file", "cannot be removed" },
	{ "stats", "needs SNAP" },
	{ "stats nothing", "is no snapshot" },
	{ "stats 1 --by colour", "not a key" },
	{ "top 1 --by thread --cumulative", "cannot be combined with --by thread" },
	{ "stats 1 --by thread --cumulative", "cannot be combined with --by thread" },
	{ "stats 1 --by traceback --cumulative", "cannot be combined" },
	{ "diff 1 2 --by domain --cumulative", "cannot be combined" },
	{ "stats 1 --limit 0", "at least 1" },
	{ "stats 1 --limit -1", "at least 1" },
	{ "stats 1 --frames-shown x", "not a whole number" },
	{ "stats 1 --sort abs", "takes no option '--sort'" },
	{ "diff 1", "needs OLD NEW" },
	{ "diff 1 wrong", "is no snapshot" },
	{ "diff 1 2 --sort colour", "use abs, growth, shrink or churn" },
	{ "diff 1 2 --sort size", "not an order" },
	{ "diff 1 2 --born --sort growth", "--born cannot be combined with --sort" },
	{ "stats 1 --older-than soon", "not an age" },
	{ "stats 1 --pretty --histogram", "--pretty shows sizes alone" },
	{ "stats 1 --churn --pretty", "--pretty shows sizes alone" },
	{ "diff 1 2 --pretty", "takes no option '--pretty'" },
	{ "top", "needs PID" },
	{ "top x", "no PID" },
	{ "top 1 --sort abs", "not an order" },
	{ "top 1 --key colour", "not a key" },
	{ "top 1 --interval 49ms", "from 50ms to 1d" },
	{ "top 1 --interval 2x", "not a duration" },
	{ "top 1 -n 0", "at least 1" },
	{ "top 1 --by domain --cumulative", "cannot be combined" },
	{ "top 1 --limit 3", "takes no option '--limit'" },
	{ "block 1 zzz", "no address" },
	{ "block 1 0x11111111111111111", "no address" },
	{ "leaks 1 soon", "is no time to wait" },
	{ "leaks 1 0s", "is no time to wait" },
	{ "export s1", "which format" },
	{ "export s1 --format gif", "no such format" },
	{ "export s1 --format tracemalloc --python 2.7", "not a version of Python" },
	{ "watch /usr/bin/x", "is no unit; a program is named by --exe" },
	{ "watch x --every 1ms", "not an interval of at least 100ms" },
	{ "watch x --keep 0", "not a number of snapshots" },
	{ "watch x --rss-limit 4096T", "not a size up to 4095TiB" },
	{ "watch x --keep-size 4096T", "not a size up to 4095TiB" },
	{ "watch --every 5s", "'watch' wants a unit, or --exe PATH" },
	{ "unwatch", "wants a unit, or --exe PATH" },
	{ "history x --exe /bin/sh", "wants a unit or --exe, not both" },
	{ "help frobnicate", "no command 'frobnicate'" },
};

START_TEST(wrong_usage_is_status_2_and_one_line)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_failure(wrong[i].arguments, 2, wrong[i].words);
}
END_TEST

START_TEST(without_a_daemon_what_needs_one_fails_and_says_so)
{
	static const char *const needy[] = { "list", "status 1", "snapshot 1", "clear 1", "reset-peak 1",
					     "block 1 0x10", "detach 1", "detach --all" };

	/* Where the machine itself runs a daemon, that one would answer. */
	if (access("/run/allocwatch/allocwatch.sock", F_OK) == 0)
		return;
	for (size_t i = 0; i < sizeof(needy) / sizeof(needy[0]); i++)
		expect_failure(needy[i], 1, "no daemon runs that serves you");
}
END_TEST

START_TEST(a_socket_asked_for_by_name_is_the_only_one)
{
	char path[PATH_MAX];

	in_folder(path, "none.sock");
	setenv("ALLOCWATCH_SOCKET", path, 1);
	expect_failure("list", 1, "given by ALLOCWATCH_SOCKET");
	expect_failure("attach 1", 1, "given by ALLOCWATCH_SOCKET");
	expect_failure("--socket /nonexistent/other.sock list", 1, "given by --socket");
	expect_failure("list --socket /nonexistent/other.sock", 1, "given by --socket");
	/* sizes that are right, however large */
	expect_failure("watch x --rss-limit 4095T --keep-size 2T", 1, "given by ALLOCWATCH_SOCKET");
	unsetenv("ALLOCWATCH_SOCKET");
}
END_TEST

START_TEST(every_command_explains_itself)
{
	static const char *const names[] = { "attach", "run", "detach", "list", "status", "snapshot", "snapshots",
					     "rm", "stats", "diff", "block", "clear", "reset-peak", "dump", "load", "export" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct result general = run("--help");
		char arguments[64];
		struct result own;

		ck_assert_int_eq(general.status, 0);
		ck_assert_ptr_nonnull(strstr(general.out, names[i]));
		snprintf(arguments, sizeof(arguments), "%s --help", names[i]);
		own = run(arguments);
		ck_assert_int_eq(own.status, 0);
		ck_assert_str_eq(own.err, "");
		ck_assert_ptr_nonnull(strstr(own.out, "--json"));
		snprintf(arguments, sizeof(arguments), "Usage: allocwatch %s ", names[i]);
		ck_assert_ptr_nonnull(strstr(own.out, arguments));
		result_fini(&general);
		result_fini(&own);
	}
}
END_TEST

START_TEST(an_answer_that_cannot_be_written_is_a_failure)
{
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "%s --help >/dev/full 2>/dev/null", program);
	ck_assert_int_eq(WEXITSTATUS(system(command)), 1);
}
END_TEST

/* A client with a daemon of ours beside it, as in a build tree. */
static void install_daemon(const char *script)
{
	char path[PATH_MAX], command[2 * PATH_MAX + 16];
	FILE *file;

	in_folder(path, "allocwatchd");
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	in_folder(path, "allocwatch");
	if (access(path, F_OK) < 0) {
		snprintf(command, sizeof(command), "cp %s %s", program, path);
		run_or_die(command);
		strcpy(program, path);
	}
}

START_TEST(the_last_words_of_a_daemon_that_dies_are_told)
{
	install_daemon("echo first >&2; echo 'there is no moon' >&2; exit 1");
	expect_failure("attach 1", 1, "there is no moon");
	install_daemon("exit 7");
	expect_failure("attach 1", 1, "status 7");
	install_daemon("kill -9 $$");
	expect_failure("attach 1", 1, "signal 9");
	expect_failure("run -- true", 1, "signal 9");
}
END_TEST

START_TEST(a_daemon_starts_in_a_session_of_its_own_and_inherits_nothing)
{
	char path[PATH_MAX + 32], *told, *err;
	struct result result;

	setenv("LISTEN_FDS", "1", 1);
	setenv("NOTIFY_SOCKET", "/nonexistent", 1);
	install_daemon("echo \"arguments $*\"\n"
		       "echo \"folder $(pwd)\"\n"
		       "echo \"activation $LISTEN_FDS$NOTIFY_SOCKET\"\n"
		       "echo \"session $(($$ - $(cut -d' ' -f6 /proc/$$/stat)))\"\n"
		       "echo \"input $(readlink /proc/$$/fd/0)\"\n"
		       "ls -l /proc/$$/fd | grep -c -e /out -e /err -e inherited\n"
		       "exit 1");
	in_folder(path, "inherited");
	ck_assert_int_ge(open(path, O_CREAT | O_RDWR, 0600), 0);       /* not closed on exec */
	result = run("attach 1");
	ck_assert_int_eq(result.status, 1);
	told = read_named("allocwatch.sock.log");
	snprintf(path, sizeof(path), "arguments --private --socket %s/allocwatch.sock\n", folder);
	ck_assert_msg(strstr(told, path) != NULL, "%s", told);
	err = strstr(told, "folder /\nactivation \nsession 0\ninput /dev/null\n0\n");
	ck_assert_msg(err != NULL, "%s", told);
	free(told);
	result_fini(&result);
	unsetenv("LISTEN_FDS");
	unsetenv("NOTIFY_SOCKET");
}
END_TEST

START_TEST(a_socket_is_put_in_a_folder_of_the_users_own_only)
{
	char path[PATH_MAX], own[128];

	install_daemon("echo started on $3; exit 1");
	snprintf(own, sizeof(own), "%s/allocwatch-%u", folder, geteuid());
	/* A runtime folder that others can enter does not serve: the temporary one does. */
	ck_assert_int_eq(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "started on %s/allocwatch.sock", own);
	expect_failure("attach 1", 1, path);
	ck_assert_int_eq(chmod(own, 0750), 0);
	expect_failure("attach 1", 1, "open to other users");
	snprintf(path, sizeof(path), "rm -r %s && mkdir -m 700 %s/real && ln -s real %s", own, folder, own);
	run_or_die(path);
	expect_failure("attach 1", 1, "is not a folder");
	ck_assert_int_eq(unlink(own), 0);
	unsetenv("XDG_RUNTIME_DIR");
	if (geteuid() == 0) {
		ck_assert_int_eq(mkdir(own, 0700), 0);
		ck_assert_int_eq(chown(own, 65534, 65534), 0);
		expect_failure("attach 1", 1, "belongs to user 65534");
		ck_assert_int_eq(rmdir(own), 0);
	}
	snprintf(path, sizeof(path), "%s/%0150d", folder, 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	setenv("TMPDIR", path, 1);
	expect_failure("attach 1", 1, "too long for a socket");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("usage");
	TCase *tcase = tcase_create("usage");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_add_test(tcase, wrong_usage_is_status_2_and_one_line);
	tcase_add_test(tcase, without_a_daemon_what_needs_one_fails_and_says_so);
	tcase_add_test(tcase, a_socket_asked_for_by_name_is_the_only_one);
	tcase_add_test(tcase, every_command_explains_itself);
	tcase_add_test(tcase, an_answer_that_cannot_be_written_is_a_failure);
	tcase_add_test(tcase, the_last_words_of_a_daemon_that_dies_are_told);
	tcase_add_test(tcase, a_daemon_starts_in_a_session_of_its_own_and_inherits_nothing);
	tcase_add_test(tcase, a_socket_is_put_in_a_folder_of_the_users_own_only);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
