/* allocwatch-fetcher, as the daemon uses it: against Debian's debuginfod, and against servers that misbehave. */
#include "base/clock.h"
#include "base/fd.h"
#include "debug_server.h"
#include "fetch/wire.h"
#include "symbol_fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/tmp/check_fetch.XXXXXX"
#define BYTES_MAX (1u << 20)
#define SILENCE_S 2
#define PATIENCE_MS 60000

static char folder[] = FOLDER, url[64];
static pid_t server, fetcher;
static int sock;

/* --- one question --- */

static struct fetch_request request_of(const char *urls)
{
	struct fetch_request request = { .build_id_len = 20, .silence_s = SILENCE_S, .time_s = 20,
					 .bytes_max = BYTES_MAX };

	memset(request.build_id, 0xab, request.build_id_len);
	snprintf(request.urls, sizeof(request.urls), "%s", urls);
	return request;
}

static void begin(const struct fetch_request *request)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fetcher = fork();
	if (fetcher == 0) {
		dup2(pair[1], 3);
		setenv("TMPDIR", folder, 1);
		execl(FETCHER, FETCHER, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	sock = pair[0];
	ck_assert_int_eq(fd_send_message(sock, request, sizeof(*request), -1), 0);
}

static bool has_ended(void)
{
	uint64_t deadline = clock_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;

	while (waitpid(fetcher, NULL, WNOHANG) == 0) {
		if (clock_passed(deadline))
			return false;
		poll(NULL, 0, 10);
	}
	return true;
}

/* A descriptor or negative errno. */
static int fetch(const struct fetch_request *request)
{
	struct fetch_answer answer;
	struct pollfd ready;
	int fd = -1;

	begin(request);
	ready = (struct pollfd){ .fd = sock, .events = POLLIN };
	ck_assert_int_eq(poll(&ready, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(fd_receive_message(sock, &answer, sizeof(answer), &fd), sizeof(answer));
	ck_assert_int_eq(fetch_check_answer(&answer, sizeof(answer), fd), 0);
	close(sock);
	ck_assert(has_ended());
	return answer.result < 0 ? answer.result : fd;
}

static size_t folders_left(void)
{
	char pattern[64];
	glob_t found;
	size_t count;

	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;

	globfree(&found);
	return count;
}

static void tear_down(void)
{
	if (server > 0)
		debug_server_stop(server);
	server = 0;
}

/* --- Debian's debuginfod --- */

static void start_debuginfod(void)
{
	fixture_enter();
	fixture_run("mkdir served && gcc -g -Wl,--build-id=0x1234567890abcdef1234567890abcdef12345678 -o served/levels $DATA/levels.c");
	server = debug_server_start("served", url, sizeof(url));
	ck_assert_int_gt(server, 0);
}

static void stop_debuginfod(void)
{
	tear_down();
	fixture_leave();
}

static struct fetch_request request_of_levels(void)
{
	static const uint8_t id[] = { 0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xef, 0x12, 0x34,
				      0x56, 0x78, 0x90, 0xab, 0xcd, 0xef, 0x12, 0x34, 0x56, 0x78 };
	struct fetch_request request = request_of(url);

	memcpy(request.build_id, id, sizeof(id));
	return request;
}

/* It says that there is none until it has looked through its folder. */
static int fetch_when_it_is_known(const struct fetch_request *request)
{
	uint64_t deadline = clock_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;
	int fd;

	do
		fd = fetch(request);
	while ((fd == -ENOENT || fd == -ECONNREFUSED) && !clock_passed(deadline));
	return fd;
}

START_TEST(what_the_server_has_comes_as_a_descriptor_of_a_file_without_a_name)
{
	struct fetch_request request = request_of_levels();
	struct stat st, served;
	int fd = fetch_when_it_is_known(&request);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(stat("served/levels", &served), 0);
	ck_assert_uint_eq(st.st_nlink, 0);
	ck_assert_int_eq(st.st_size, served.st_size);
	close(fd);
	ck_assert_uint_eq(folders_left(), 0);
	request = request_of(url);
	ck_assert_int_eq(fetch(&request), -ENOENT);
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

START_TEST(what_is_larger_than_the_limit_does_not_come)
{
	struct fetch_request request = request_of_levels();
	int fd = fetch_when_it_is_known(&request);

	ck_assert_int_ge(fd, 0);
	close(fd);
	request.bytes_max = 4096;
	ck_assert_int_eq(fetch(&request), -EFBIG);
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

START_TEST(root_never_asks_by_itself)
{
	struct fetch_request request = request_of_levels();
	struct stat st;
	int fd;

	if (geteuid() != 0)
		return;
	fd = fetch_when_it_is_known(&request);
	ck_assert(fd >= 0 && fstat(fd, &st) == 0);
	ck_assert_uint_eq(st.st_uid, 65534);
	close(fd);
	request.identity = (struct wire_identity){ 1, 1234, 1235, 0, { 0 } };
	fd = fetch(&request);
	ck_assert(fd >= 0 && fstat(fd, &st) == 0);
	ck_assert_uint_eq(st.st_uid, 1234);
	ck_assert_uint_eq(st.st_gid, 1235);
	close(fd);
}
END_TEST

/* --- servers that misbehave --- */

START_TEST(one_that_says_nothing_is_given_up_in_time)
{
	static const enum debug_server_way ways[] = { DEBUG_SERVER_SILENT, DEBUG_SERVER_SLOW };
	struct fetch_request request;
	uint64_t began;

	server = debug_server_misbehave(ways[_i], url, sizeof(url));
	request = request_of(url);
	began = clock_monotonic_ns();
	ck_assert_int_lt(fetch(&request), 0);
	ck_assert_uint_lt(clock_monotonic_ns() - began, (uint64_t)request.time_s * NSEC_PER_SEC);
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

START_TEST(what_is_no_elf_file_is_not_taken)
{
	struct fetch_request request;

	server = debug_server_misbehave(DEBUG_SERVER_RUBBISH, url, sizeof(url));
	request = request_of(url);
	ck_assert_int_eq(fetch(&request), -EBADMSG);
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

START_TEST(what_does_not_end_is_no_larger_than_the_limit)
{
	struct fetch_request request;

	server = debug_server_misbehave(DEBUG_SERVER_ENDLESS, url, sizeof(url));
	request = request_of(url);
	ck_assert_int_lt(fetch(&request), 0);
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

START_TEST(when_the_daemon_closes_its_socket_it_ends)
{
	struct fetch_request request;

	server = debug_server_misbehave(DEBUG_SERVER_SILENT, url, sizeof(url));
	request = request_of(url);
	request.silence_s = request.time_s = 600;
	begin(&request);
	close(sock);
	ck_assert(has_ended());
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

/* Waits for one with another name than this, which becomes that. */
static bool has_begun(char name[64])
{
	uint64_t deadline = clock_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;
	bool found = false;
	char pattern[64];
	glob_t all;

	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	while (!found && !clock_passed(deadline)) {
		found = glob(pattern, 0, NULL, &all) == 0 && all.gl_pathc == 1 && strcmp(all.gl_pathv[0], name) != 0;
		if (found)
			snprintf(name, 64, "%s", all.gl_pathv[0]);
		globfree(&all);
		poll(NULL, 0, 10);
	}
	return found;
}

START_TEST(what_a_killed_one_has_left_goes_with_the_next_and_what_another_uses_stays)
{
	struct fetch_request request;
	char name[64] = "";
	pid_t living;
	int kept;

	server = debug_server_misbehave(DEBUG_SERVER_SILENT, url, sizeof(url));
	request = request_of(url);
	request.silence_s = request.time_s = 600;
	begin(&request);
	ck_assert(has_begun(name));
	kill(fetcher, SIGKILL);
	ck_assert(has_ended());
	close(sock);
	ck_assert_uint_eq(folders_left(), 1);

	begin(&request);
	ck_assert(has_begun(name));
	living = fetcher;
	kept = sock;
	request = request_of("http://127.0.0.1:9");
	ck_assert_int_lt(fetch(&request), 0);
	fetcher = living;
	ck_assert_uint_eq(folders_left(), 1);
	ck_assert_int_eq(waitpid(living, NULL, WNOHANG), 0);
	close(kept);
	ck_assert(has_ended());
	ck_assert_uint_eq(folders_left(), 0);
}
END_TEST

START_TEST(what_is_no_request_is_not_answered)
{
	struct fetch_request request = request_of("http://127.0.0.1:9");
	struct fetch_answer answer;
	int fd;

	memset(request.urls, 'x', sizeof(request.urls));
	begin(&request);
	ck_assert_int_le(fd_receive_message(sock, &answer, sizeof(answer), &fd), 0);
	close(sock);
	ck_assert(has_ended());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fetch");
	TCase *real = tcase_create("debuginfod"), *bad = tcase_create("misbehaving");
	SRunner *runner = srunner_create(suite);
	int failed;

	/* Of this machine only. */
	setenv("no_proxy", "127.0.0.1", 1);
	if (!mkdtemp(folder) || chmod(folder, 01777) < 0)
		return 99;
	tcase_set_timeout(real, 60);
	tcase_add_checked_fixture(real, start_debuginfod, stop_debuginfod);
	tcase_add_test(real, what_the_server_has_comes_as_a_descriptor_of_a_file_without_a_name);
	tcase_add_test(real, what_is_larger_than_the_limit_does_not_come);
	tcase_add_test(real, root_never_asks_by_itself);
	suite_add_tcase(suite, real);
	tcase_set_timeout(bad, 30);
	tcase_add_checked_fixture(bad, NULL, tear_down);
	tcase_add_loop_test(bad, one_that_says_nothing_is_given_up_in_time, 0, 2);
	tcase_add_test(bad, what_is_no_elf_file_is_not_taken);
	tcase_add_test(bad, what_does_not_end_is_no_larger_than_the_limit);
	tcase_add_test(bad, when_the_daemon_closes_its_socket_it_ends);
	tcase_add_test(bad, what_a_killed_one_has_left_goes_with_the_next_and_what_another_uses_stays);
	tcase_add_test(bad, what_is_no_request_is_not_answered);
	suite_add_tcase(suite, bad);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	rmdir(folder);
	return failed > 0;
}
