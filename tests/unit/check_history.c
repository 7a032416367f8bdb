/* Watch rules and what was traced for them, on disk; and which snapshots go. */
#include "store/history.h"

#include "model/engine_kind.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/check_history.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	char journal[96];

	unlink(path);
	snprintf(journal, sizeof(journal), "%s-journal", path);
	unlink(journal);
}

static void fill(struct history *history, unsigned runs)
{
	struct history_rule *rule = vec_push(&history->rules);

	*rule = (struct history_rule){ .who = "redis-server.service", .from_start = true, .frames = 25, .every_ns = 600000000000ULL,
				       .limits = { 50, 7, 1ULL << 40 }, .rss_bytes = 3ULL << 30, .slope_bytes = 50 << 20, .has_engine = true, .engine = ENGINE_RING };
	rule = vec_push(&history->rules);
	*rule = (struct history_rule){ .who = "/usr/bin/\xff", .is_program = true, .follow_forks = true, .frames = 3,
				       .every_ns = 1 };
	for (unsigned i = 0; i < runs; i++) {
		struct history_run *run = vec_push(&history->runs);

		*run = (struct history_run){ .who = "redis-server.service", .pid = 100 + (int)i, .start_time = 7 + i,
					     .since_ns = 1000 + i, .until_ns = i % 2 ? 2000 + i : 0, .has_status = i % 3 == 0,
					     .status = i % 3 == 0 ? 9 : 0 };
	}
}

static void save(unsigned runs)
{
	struct history history = { 0 };
	char *reason;

	fill(&history, runs);
	ck_assert_msg(history_save(path, &history, &reason) == 0, "%s", reason);
	history_fini(&history);
}

static void must_hold(unsigned runs)
{
	struct history expected = { 0 }, read;
	char *reason;

	fill(&expected, runs);
	ck_assert_msg(history_load(path, &read, &reason) == 0, "%s", reason);
	ck_assert_uint_eq(read.rules.count, 2);
	/* By name: the path comes first. */
	ck_assert_mem_eq(&read.rules.items[0], &expected.rules.items[1], sizeof(struct history_rule));
	ck_assert_mem_eq(&read.rules.items[1], &expected.rules.items[0], sizeof(struct history_rule));
	ck_assert_uint_eq(read.runs.count, runs);
	for (unsigned i = 0; i < runs; i++)
		ck_assert_mem_eq(&read.runs.items[i], &expected.runs.items[i], sizeof(struct history_run));
	history_fini(&read);
	history_fini(&expected);
}

START_TEST(what_was_saved_is_read_again)
{
	struct history read;
	char *reason;

	ck_assert_int_eq(history_load(path, &read, &reason), -ENOENT);
	save(5);
	must_hold(5);
	save(2);
	must_hold(2);
	unlink(path);
	ck_assert_int_eq(history_load(path, &read, &reason), -ENOENT);
	save(0);
	must_hold(0);
}
END_TEST

/* As older daemons have written it. */
START_TEST(a_file_without_alarms_and_engines_is_read)
{
	struct history read;
	char *reason;
	sqlite3 *db;

	save(1);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "DROP TABLE alarm; DROP TABLE engine", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	ck_assert_msg(history_load(path, &read, &reason) == 0, "%s", reason);
	ck_assert_uint_eq(read.rules.count, 2);
	ck_assert_uint_eq(read.rules.items[1].rss_bytes, 0);
	ck_assert(!read.rules.items[1].has_engine);
	history_fini(&read);
	save(1);
	must_hold(1);
}
END_TEST

/* In each of these moments the file holds what was saved before, or after. */
/* It was in the middle of a transaction, which whoever reads next takes back. */
static bool left_a_journal(void)
{
	char journal[96];
	struct stat stat_of;

	snprintf(journal, sizeof(journal), "%s-journal", path);
	return stat(journal, &stat_of) == 0 && stat_of.st_size > 0;
}

START_TEST(a_writer_that_is_killed_loses_nothing)
{
	unsigned before = 0, after = 0, middle = 0, trials = 0;

	save(3);
	for (unsigned us = 100; us < 5000000 && (after < 3 || middle == 0); us = us * 5 / 4) {
		struct history read;
		char *reason;
		pid_t pid = fork();

		if (pid == 0) {
			save(2000);
			_exit(0);
		}
		usleep(us);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		middle += left_a_journal();
		ck_assert_msg(history_load(path, &read, &reason) == 0, "%s", reason);
		ck_assert_msg(read.runs.count == 3 || read.runs.count == 2000, "%zu runs", read.runs.count);
		before += read.runs.count == 3;
		after += read.runs.count == 2000;
		history_fini(&read);
		save(3);
		trials++;
	}
	printf("# killed %u times, %u times in the middle: %u times it held what was before, %u times what came after\n", trials,
	       middle, before, after);
	ck_assert_uint_ge(middle, 1);
	ck_assert_uint_ge(before, 1);
	ck_assert_uint_ge(after, 1);
	ck_assert_uint_eq(before + after, trials);
}
END_TEST

/* As 0.1.0 wrote it before it knew rules from the start. */
START_TEST(one_of_version_1_is_read_and_becomes_one_of_now)
{
	static const char sql[] =
		"PRAGMA application_id = 0x61774869; PRAGMA user_version = 1;"
		"CREATE TABLE rule (who TEXT PRIMARY KEY, program INTEGER NOT NULL, follow_forks INTEGER NOT NULL,"
		" frames INTEGER NOT NULL, every_ns INTEGER NOT NULL, keep_count INTEGER NOT NULL, keep_age_ns INTEGER NOT NULL,"
		" keep_bytes INTEGER NOT NULL);"
		"CREATE TABLE run (who TEXT NOT NULL, pid INTEGER NOT NULL, start_time INTEGER NOT NULL,"
		" since_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL, status INTEGER);"
		"INSERT INTO rule VALUES ('a.service', 0, 1, 25, 7, 50, 0, 0);"
		"INSERT INTO run VALUES ('a.service', 9, 8, 7, 0, NULL);";
	struct history read;
	char *reason;
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	ck_assert_msg(history_load(path, &read, &reason) == 0, "%s", reason);
	ck_assert_uint_eq(read.rules.count, 1);
	ck_assert_str_eq(read.rules.items[0].who, "a.service");
	ck_assert(read.rules.items[0].follow_forks && !read.rules.items[0].from_start);
	ck_assert_uint_eq(read.runs.count, 1);
	history_fini(&read);
	save(2);
	must_hold(2);
}
END_TEST

START_TEST(a_row_that_makes_no_sense_is_refused)
{
	static const char *const changes[] = {
		"UPDATE rule SET frames = 'many'", "UPDATE rule SET every_ns = 0", "UPDATE rule SET who = ''",
		"UPDATE run SET pid = -1", "UPDATE run SET status = 'good'", "UPDATE alarm SET rss_bytes = 'all'",
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct history read;
		char *reason;
		sqlite3 *db;

		unlink(path);
		save(1);
		ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
		ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM rule WHERE rowid > 1", NULL, NULL, NULL), SQLITE_OK);
		ck_assert_int_eq(sqlite3_exec(db, changes[i], NULL, NULL, NULL), SQLITE_OK);
		ck_assert_int_eq(sqlite3_changes(db), 1);
		sqlite3_close(db);
		ck_assert_msg(history_load(path, &read, &reason) == -EBADMSG, "%s", changes[i]);
		ck_assert_msg(strncmp(reason, "it is damaged: ", 15) == 0, "%s", reason);
		free(reason);
	}
}
END_TEST

START_TEST(what_is_no_history_is_left_alone)
{
	static const char text[] = "This is a text, and no database at all, with more than a hundred bytes, so that SQLite "
				   "takes a look at its first page and finds nothing.";
	struct history history = { 0 }, read;
	char *reason, bytes[sizeof(text)] = "";
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fwrite(text, 1, sizeof(text), file);
	fclose(file);
	ck_assert_int_eq(history_load(path, &read, &reason), -EBADMSG);
	free(reason);
	fill(&history, 1);
	ck_assert_int_eq(history_save(path, &history, &reason), -EBADMSG);
	free(reason);
	history_fini(&history);
	file = fopen(path, "r");
	ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	fclose(file);
	ck_assert_str_eq(bytes, text);
}
END_TEST

#define HOUR 3600000000000ULL

START_TEST(the_oldest_goes_when_there_are_too_many)
{
	struct history_item items[] = { { 1 * HOUR, 100, false }, { 2 * HOUR, 100, false }, { 3 * HOUR, 100, false } };
	const struct history_limits count = { .count = 2 }, bytes = { .bytes = 250 }, none = { 0 }, one = { .bytes = 1 };

	ck_assert_int_eq(history_next_to_go(items, 3, &count, 4 * HOUR), 0);
	ck_assert_int_eq(history_next_to_go(items, 2, &count, 4 * HOUR), -1);
	ck_assert_int_eq(history_next_to_go(items, 3, &bytes, 4 * HOUR), 0);
	ck_assert_int_eq(history_next_to_go(items, 2, &bytes, 4 * HOUR), -1);
	ck_assert_int_eq(history_next_to_go(items, 3, &none, 4 * HOUR), -1);
	/* What is spared counts and stays; so does the newest. */
	items[0].spared = true;
	ck_assert_int_eq(history_next_to_go(items, 3, &count, 4 * HOUR), 1);
	ck_assert_int_eq(history_next_to_go(items, 1, &one, 4 * HOUR), -1);
	ck_assert_int_eq(history_next_to_go(items, 0, &one, 4 * HOUR), -1);
}
END_TEST

START_TEST(what_is_too_old_goes)
{
	const struct history_item items[] = { { 5 * HOUR, 1, false }, { 1 * HOUR, 1, false }, { 9 * HOUR, 1, false } };
	const struct history_limits age = { .age_ns = 2 * HOUR };

	ck_assert_int_eq(history_next_to_go(items, 3, &age, 6 * HOUR), 1);
	ck_assert_int_eq(history_next_to_go(items, 3, &age, 8 * HOUR), 0);
	/* A clock that was set back makes nothing old. */
	ck_assert_int_eq(history_next_to_go(items, 3, &age, 0), -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("history");
	TCase *t = tcase_create("history");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, what_was_saved_is_read_again);
	tcase_add_test(t, a_file_without_alarms_and_engines_is_read);
	tcase_add_test(t, a_writer_that_is_killed_loses_nothing);
	tcase_add_test(t, one_of_version_1_is_read_and_becomes_one_of_now);
	tcase_add_test(t, a_row_that_makes_no_sense_is_refused);
	tcase_add_test(t, what_is_no_history_is_left_alone);
	tcase_add_test(t, the_oldest_goes_when_there_are_too_many);
	tcase_add_test(t, what_is_too_old_goes);
	suite_add_tcase(suite, t);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
