/* What the limits on snapshots hold, at their edge: memory that is in use, files still to be written, and that it is
 * said. */
#define _GNU_SOURCE
#include "daemon_fixture.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READERS 12

static char state[128];

static void start_with_state(const char *option, const char *value)
{
	snprintf(state, sizeof(state), "%s/state", test_folder);
	daemon_start((const char *const[]){ "--state", state, option, value, NULL });
}

/* The files whose names end so, and their bytes. */
static int files(const char *suffix, uint64_t *ret_bytes)
{
	DIR *dir = opendir(state);
	struct dirent *entry;
	int count = 0;

	*ret_bytes = 0;
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), tail = strlen(suffix);
		struct stat st;

		if (len < tail || strcmp(entry->d_name + len - tail, suffix) != 0)
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0) {
			count++;
			*ret_bytes += (uint64_t)st.st_size;
		}
	}
	closedir(dir);
	return count;
}

static bool all_are_written(void *context)
{
	uint64_t bytes, unfinished;

	(void)context;
	return files(".tmp", &unfinished) == 0 && files(".allocwatch", &bytes) == (int)kept_count();
}

/* A client that asks for a snapshot, takes a piece of it and then nothing.  Its answer's first piece, to be freed. */
static char *begin_to_read(const char *snapshot, int *ret_sock)
{
	char call[256];

	snprintf(call, sizeof(call), "{\"method\":\"org.allocwatch.Tracer.GetSnapshot\",\"parameters\":{\"snapshot\":\"%s\"},"
		 "\"more\":true}", snapshot);
	*ret_sock = raw_connect();
	raw_send(*ret_sock, call, strlen(call) + 1);
	return raw_receive(*ret_sock);
}

static bool can_take(void *pid)
{
	return call_any("TakeSnapshot", pid_of(*(pid_t *)pid));
}

START_TEST(snapshots_in_use_count_as_much_as_those_that_lie_there)
{
	int socks[READERS], reading = 0;
	pid_t pid = target_start();
	json_t *error;

	start_with_state("--max-memory", "16");
	tracer_mode("big");
	attach_ok(pid);
	/* Those that are not written yet are in use, too. */
	for (int i = 0; i < READERS; i++)
		wait_until(can_take, &pid, "one more is taken");
	wait_until(all_are_written, NULL, "all are written");
	for (bool refused = false; !refused; reading++) {
		char id[16], *answer;

		ck_assert_int_lt(reading, READERS);
		snprintf(id, sizeof(id), "s%d", reading + 1);
		answer = begin_to_read(id, &socks[reading]);
		ck_assert_ptr_nonnull(answer);
		refused = strstr(answer, "LimitReached") != NULL;
		ck_assert(refused == !strstr(answer, "\"tables\""));
		if (refused)
			ck_assert_ptr_nonnull(strstr(answer, "--max-memory"));
		free(answer);
	}
	printf("16 MiB are enough for %d readers\n", reading - 1);
	ck_assert_int_ge(reading - 1, 2);
	error = call_fails("TakeSnapshot", pid_of(pid), "LimitReached");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "--max-memory"));
	json_decref(error);
	for (int i = 0; i < reading; i++)
		close(socks[i]);
	wait_until(can_take, &pid, "there is memory again");
	snapshot_put(get_snapshot("s5"));
}
END_TEST

static bool has_exit_snapshot(void *pid)
{
	json_t *reply = call_ok("ListSnapshots", pid_of(*(pid_t *)pid)), *info;
	bool found = false;
	size_t i;

	json_array_foreach(member(reply, "snapshots"), i, info) {
		found |= strcmp(text_of(info, "name"), "exit") == 0;
	}
	json_decref(reply);
	return found;
}

/* It cannot be asked for again, so others may not have all of the memory. */
START_TEST(a_last_snapshot_gets_in_while_readers_hold_all_the_memory_they_may)
{
	int socks[READERS], reading = 0;
	pid_t pid = target_start();
	json_t *error;
	char id[16];

	start_with_state("--max-memory", "32");
	tracer_mode("big");
	attach_ok(pid);
	/* Those that are not written yet are in use, too. */
	for (int i = 0; i < READERS; i++)
		wait_until(can_take, &pid, "one more is taken");
	wait_until(all_are_written, NULL, "all are written");
	for (bool refused = false; !refused; reading++) {
		char *answer;

		ck_assert_int_lt(reading, READERS);
		snprintf(id, sizeof(id), "s%d", reading + 1);
		answer = begin_to_read(id, &socks[reading]);
		ck_assert_ptr_nonnull(answer);
		refused = strstr(answer, "LimitReached") != NULL;
		free(answer);
	}
	printf("32 MiB are enough for %d readers\n", reading - 1);
	error = call_fails("TakeSnapshot", pid_of(pid), "LimitReached");
	json_decref(error);
	target_exit(pid, 0);
	wait_until(has_exit_snapshot, &pid, "its last snapshot is kept");
	ck_assert(!daemon_log_holds("snapshot is lost"));
	for (int i = 0; i < reading; i++)
		close(socks[i]);
}
END_TEST

START_TEST(files_still_to_be_written_count_as_much_as_those_that_are)
{
	int socks[READERS], taken = 0;
	uint64_t bytes = 0, one;
	pid_t pid = target_start();
	char call[128];

	start_with_state("--max-disk", "8");
	tracer_mode("big");
	attach_ok(pid);
	take(pid, "");
	wait_until(all_are_written, NULL, "the first is written");
	ck_assert_int_eq(files(".allocwatch", &one), 1);
	snprintf(call, sizeof(call), "{\"method\":\"org.allocwatch.Tracer.TakeSnapshot\",\"parameters\":{\"pid\":%d}}",
		 (int)pid);
	for (int i = 0; i < READERS; i++) {
		socks[i] = raw_connect();
		raw_send(socks[i], call, strlen(call) + 1);
	}
	for (int i = 0; i < READERS; i++) {
		char *answer = raw_receive(socks[i]);

		ck_assert_ptr_nonnull(answer);
		taken += strstr(answer, "LimitReached") == NULL;
		free(answer);
		close(socks[i]);
	}
	wait_until(all_are_written, NULL, "all are written");
	files(".allocwatch", &bytes);
	printf("%d of %d at once were taken: %llu bytes of disk, %llu a file\n", taken, READERS,
	       (unsigned long long)bytes, (unsigned long long)one);
	ck_assert_int_ge(taken, 1);
	ck_assert_int_lt(taken, READERS);
	ck_assert_uint_le(bytes, (8 << 20) + 2 * one);
}
END_TEST

START_TEST(a_full_list_says_so_and_by_which_limit)
{
	pid_t pid = target_start();
	json_t *reply, *error;

	daemon_start((const char *const[]){ "--no-state", "--max-snapshots", "2", NULL });
	attach_ok(pid);
	take(pid, "a");
	reply = call_ok("ListSnapshots", json_object());
	ck_assert(json_is_null(member(reply, "full")));
	json_decref(reply);
	take(pid, "b");
	reply = call_ok("ListSnapshots", json_object());
	ck_assert_ptr_nonnull(strstr(text_of(reply, "full"), "--max-snapshots"));
	json_decref(reply);
	error = call_fails("TakeSnapshot", pid_of(pid), "LimitReached");
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "2 snapshots are kept"));
	ck_assert_ptr_nonnull(strstr(text_of(error, "message"), "--max-snapshots"));
	json_decref(error);
	/* one that the daemon itself would take is lost, and the log says why */
	target_exit(pid, 0);
	json_decref(call_ok("WaitGone", pid_of(pid)));
	daemon_log_must_hold("snapshot is lost: 2 snapshots are kept");
	ok("RemoveSnapshots", json_pack("{s:[s]}", "ids", "s1"));
	reply = call_ok("ListSnapshots", json_object());
	ck_assert(json_is_null(member(reply, "full")));
	json_decref(reply);
}
END_TEST

static void make_file(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", state, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static bool is_there(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", state, name);
	return access(path, F_OK) == 0;
}

START_TEST(what_a_killed_daemon_was_writing_is_removed_by_the_next)
{
	static const char *const unfinished[] = { "s5.allocwatch.0123456789abcdef.tmp", "s6.u1000.allocwatch.fedcba9876543210.tmp",
						  "s5.allocwatch.0123456789abcdef.tmp-journal" };
	static const char *const others[] = { "notes.tmp", "s5.allocwatch.mine.tmp", "s5.allocwatch.old",
					      "mine.allocwatch.0123456789abcdef.tmp" };

	snprintf(state, sizeof(state), "%s/state", test_folder);
	ck_assert_int_eq(mkdir(state, 0700), 0);
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++)
		make_file(unfinished[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		make_file(others[i]);
	daemon_start((const char *const[]){ "--state", state, NULL });
	ck_assert_uint_eq(kept_count(), 0);
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++)
		ck_assert_msg(!is_there(unfinished[i]), "%s is left", unfinished[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(is_there(others[i]), "%s is gone", others[i]);
}
END_TEST

static void add_tests(Suite *suite)
{
	TCase *t = fixture_case(suite, "limits");

	tcase_add_test(t, snapshots_in_use_count_as_much_as_those_that_lie_there);
	tcase_add_test(t, a_last_snapshot_gets_in_while_readers_hold_all_the_memory_they_may);
	tcase_add_test(t, files_still_to_be_written_count_as_much_as_those_that_are);
	tcase_add_test(t, a_full_list_says_so_and_by_which_limit);
	tcase_add_test(t, what_a_killed_daemon_was_writing_is_removed_by_the_next);
}

int main(void)
{
	return fixture_run("daemon_limits", add_tests);
}
