#define _GNU_SOURCE              /* memfd_create, O_PATH */
#include "require.h"

#include "base/fd.h"
#include "base/mounts.h"
#include "base/proc.h"
#include "base/reader.h"
#include "base/retry.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int read_page(void *context, raddr at, void *buf, size_t len)
{
	const char *page = context;

	if (at + len > 4096)
		return -EFAULT;
	memcpy(buf, page + at, len);
	return 0;
}

START_TEST(a_string_is_read_up_to_the_end_of_the_memory)
{
	static char page[4096];
	const struct reader reader = { .read = read_page, .context = page };
	char text[600];

	memset(page, 'x', sizeof(page) - 1);
	ck_assert_int_eq(reader_string(&reader, 4096 - 501, text, sizeof(text)), 0);
	ck_assert_uint_eq(strlen(text), 500);
	ck_assert_int_eq(reader_string(&reader, 4096 - 501, text, 501), 0);
	ck_assert_int_eq(reader_string(&reader, 4096 - 501, text, 500), -ENAMETOOLONG);
	page[4095] = 'x';
	ck_assert_int_eq(reader_string(&reader, 4096 - 501, text, sizeof(text)), -EFAULT);
}
END_TEST

START_TEST(cpu_time_is_the_users_and_the_systems)
{
	uint64_t user, system, sum = 0;

	while (sum < 3)
		sum = proc_stat_cpu("/proc/self/stat");
	ck_assert_int_eq(proc_stat_number("/proc/self/stat", 14, &user), 0);
	ck_assert_int_eq(proc_stat_number("/proc/self/stat", 15, &system), 0);
	ck_assert_uint_le(sum, user + system);
	ck_assert_uint_ge(sum + 2, user + system);
	ck_assert_uint_eq(proc_stat_cpu("/proc/0/stat"), 0);
}
END_TEST

START_TEST(equal_strings_have_equal_ids)
{
	struct strtab *strtab = strtab_new();

	ck_assert_int_eq(strtab_add(strtab, "one"), 1);
	ck_assert_int_eq(strtab_add(strtab, "two"), 2);
	ck_assert_int_eq(strtab_add(strtab, "one"), 1);
	ck_assert_str_eq(strtab_get(strtab, 2), "two");
	ck_assert_uint_eq(strtab_count(strtab), 3);
	strtab_free(strtab);
}
END_TEST

START_TEST(the_empty_string_and_null_are_id_0)
{
	struct strtab *strtab = strtab_new();

	ck_assert_int_eq(strtab_add(strtab, ""), 0);
	ck_assert_int_eq(strtab_add(strtab, NULL), 0);
	ck_assert_str_eq(strtab_get(strtab, 0), "");
	strtab_free(strtab);
}
END_TEST

START_TEST(a_string_of_a_length_ends_at_a_nul)
{
	struct strtab *strtab = strtab_new();
	int64_t id = strtab_add_len(strtab, "abc\0def", 7);

	ck_assert_str_eq(strtab_get(strtab, (uint32_t)id), "abc");
	ck_assert_int_eq(strtab_add_len(strtab, "abcdef", 3), id);
	ck_assert_int_ne(strtab_add_len(strtab, "abcdef", 4), id);
	strtab_free(strtab);
}
END_TEST

START_TEST(strings_stay_where_they_are_while_the_table_grows)
{
	struct strtab *strtab = strtab_new();
	const char *first;
	char text[64];

	first = strtab_get(strtab, (uint32_t)strtab_add(strtab, "first"));
	for (int i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "string number %d", i);
		REQUIRE(strtab_add(strtab, text) == i + 2);
	}
	for (int i = 0; i < 100000; i += 997) {
		snprintf(text, sizeof(text), "string number %d", i);
		ck_assert_int_eq(strtab_add(strtab, text), i + 2);
		ck_assert_str_eq(strtab_get(strtab, (uint32_t)i + 2), text);
	}
	ck_assert_ptr_eq(first, strtab_get(strtab, 1));
	ck_assert_uint_gt(strtab_memory(strtab), 100000 * 15);
	strtab_free(strtab);
}
END_TEST

START_TEST(a_string_longer_than_a_chunk_is_kept_whole)
{
	struct strtab *strtab = strtab_new();
	size_t len = 1000000;
	char *text = malloc(len + 1);
	int64_t id;

	memset(text, 'x', len);
	text[len] = '\0';
	id = strtab_add(strtab, text);
	ck_assert_uint_eq(strlen(strtab_get(strtab, (uint32_t)id)), len);
	ck_assert_int_eq(strtab_add(strtab, "short"), id + 1);
	free(text);
	strtab_free(strtab);
}
END_TEST

START_TEST(new_items_of_an_array_are_zero)
{
	VEC_OF(uint64_t) v = { 0 };

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t *item = vec_push(&v);

		ck_assert_uint_eq(*item, 0);
		*item = i + 1;
	}
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(v.items[i], i + 1);
	vec_remove_unordered(&v, 0);
	ck_assert_uint_eq(v.count, 999);
	ck_assert_uint_eq(v.items[0], 1000);
	vec_fini(&v);
	ck_assert_ptr_null(v.items);
	ck_assert_uint_eq(v.count + v.space, 0);
}
END_TEST

START_TEST(an_array_refuses_what_would_overflow)
{
	VEC_OF(uint64_t) v = { 0 };

	ck_assert_int_eq(vec_reserve(&v, SIZE_MAX), -ENOMEM);
	ck_assert_int_eq(vec_reserve(&v, SIZE_MAX / 8), -ENOMEM);
	ck_assert_ptr_null(v.items);
	ck_assert_int_eq(vec_reserve(&v, 3), 0);
	ck_assert_uint_ge(v.space, 3);
	ck_assert_uint_eq(v.count, 0);
	vec_fini(&v);
}
END_TEST

START_TEST(a_closed_descriptor_becomes_minus_one_and_errno_stays)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	errno = EPROTO;
	fd_close(&fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(errno, EPROTO);
	fd_close(&fd);
	ck_assert_int_eq(errno, EPROTO);
}
END_TEST

START_TEST(a_file_is_read_whole_or_refused)
{
	char name[] = "check_base.XXXXXX";
	int fd = mkstemp(name);
	char *text = NULL, data[10000];
	size_t len = 0;

	memset(data, 'y', sizeof(data));
	ck_assert_int_eq(fd_write_all(fd, data, sizeof(data)), 0);
	ck_assert_int_eq(file_read_text(name, sizeof(data), &text, &len), 0);
	ck_assert_uint_eq(len, sizeof(data));
	ck_assert_uint_eq(strlen(text), sizeof(data));
	free(text);
	text = NULL;
	ck_assert_int_eq(file_read_text(name, sizeof(data) - 1, &text, &len), -EFBIG);
	ck_assert_ptr_null(text);
	unlink(name);
	ck_assert_int_eq(file_read_text(name, 1, &text, &len), -ENOENT);
	close(fd);
}
END_TEST

START_TEST(a_write_goes_on_through_a_full_pipe)
{
	size_t len = 1 << 20, have;
	char *data = malloc(len), *text = NULL;
	int pipes[2], status;
	pid_t child;

	memset(data, 'z', len);
	ck_assert_int_eq(pipe(pipes), 0);
	child = fork();
	if (child == 0)
		_exit(fd_write_all(pipes[1], data, len) == 0 ? 0 : 1);
	close(pipes[1]);
	ck_assert_int_eq(fd_read_text(pipes[0], len, &text, &have), 0);
	ck_assert_uint_eq(have, len);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(pipes[0]);
	free(text);
	free(data);
}
END_TEST

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

START_TEST(a_descriptor_travels_with_its_message)
{
	int sockets[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC), got = -1, before;
	char buf[16];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	before = open_descriptors();
	ck_assert_int_eq(fd_send_message(sockets[0], "hello", 5, fd), 0);
	ck_assert_int_eq(fd_send_message(sockets[0], "plain", 5, -1), 0);
	ck_assert_int_eq(fd_receive_message(sockets[1], buf, sizeof(buf), &got), 5);
	ck_assert_int_ge(got, 0);
	ck_assert_int_eq(fcntl(got, F_GETFD), FD_CLOEXEC);
	fd_close(&got);
	ck_assert_int_eq(fd_receive_message(sockets[1], buf, sizeof(buf), &got), 5);
	ck_assert_int_eq(got, -1);
	ck_assert_int_eq(open_descriptors(), before);
	close(sockets[0]);
	ck_assert_int_eq(fd_receive_message(sockets[1], buf, sizeof(buf), &got), 0);
	close(sockets[1]);
	close(fd);
}
END_TEST

START_TEST(a_message_too_long_is_dropped_with_its_descriptor)
{
	int sockets[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC), got = -1, before;
	char buf[4];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	before = open_descriptors();
	ck_assert_int_eq(fd_send_message(sockets[0], "too long", 8, fd), 0);
	ck_assert_int_eq(fd_receive_message(sockets[1], buf, sizeof(buf), &got), -EMSGSIZE);
	ck_assert_int_eq(open_descriptors(), before);
	close(sockets[0]);
	close(sockets[1]);
	close(fd);
}
END_TEST

/* --- mounts --- */

START_TEST(file_systems_of_others_are_told_from_the_kernels_own)
{
	char text[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard\n"
		      "22 21 0:5 / /dev rw - devtmpfs udev rw\n"
		      "23 21 0:40 / /srv rw,nosuid,nodev shared:9 master:3 - fuse.sshfs host:/ rw,user_id=0\n"
		      "24 21 0:41 / /mnt/a\\040b rw - nfs4 host:/x rw\n"
		      "25 21 0:42 / /box rw - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c\n"
		      "26 21 0:43 / /box rw - overlay none rw,lowerdir=/a,userxattr\n"
		      "27 21 0:44 / /run rw -\n"
		      "nonsense\n"
		      "28\n"
		      "29 21 0:45 / /empty rw - tmpfs  rw\n"
		      "4294967297 21 0:46 / /ext4 rw - fuse ext4 rw\n";
	static const struct { uint64_t number; bool own; } expected[] = {
		{ 21, true }, { 22, true }, { 23, false }, { 24, false }, { 25, true }, { 26, false }, { 27, false },
		{ 28, false }, { 29, true }, { 4294967297, false }, { 30, false }, { 0, false },
	};
	struct mounts *mounts;

	ck_assert_int_eq(mounts_parse(text, &mounts), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		ck_assert_int_eq(mounts_has_own(mounts, expected[i].number), expected[i].own);
	mounts_free(mounts);
}
END_TEST

START_TEST(a_file_of_the_kernels_own_is_no_wait)
{
	int memory = memfd_create("some", MFD_CLOEXEC | MFD_ALLOW_SEALING), disk = open("/", O_PATH | O_CLOEXEC);
	int proc = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct mounts *mounts;

	ck_assert_int_eq(mounts_read(getpid(), &mounts), 0);
	ck_assert(!mounts_may_wait(NULL, memory));
	ck_assert(!mounts_may_wait(mounts, memory));
	ck_assert(!mounts_may_wait(mounts, disk));
	/* of one that is not in the list */
	ck_assert(mounts_may_wait(mounts, proc));
	ck_assert(mounts_may_wait(mounts, -1));
	mounts_free(mounts);
	close(memory);
	close(disk);
	close(proc);
}
END_TEST

START_TEST(further_descriptors_of_a_message_are_closed)
{
	int sockets[2], fds[3] = { 0, 1, 2 }, got = -1, before;
	union {
		char space[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 'x', buf[4];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	before = open_descriptors();
	ck_assert_int_eq(sendmsg(sockets[0], &msg, 0), 1);
	ck_assert_int_eq(fd_receive_message(sockets[1], buf, sizeof(buf), &got), 1);
	ck_assert_int_eq(open_descriptors(), before + 1);
	fd_close(&got);
	close(sockets[0]);
	close(sockets[1]);
}
END_TEST

/* A name that looks like what comes behind it must not move the fields. */
START_TEST(fields_of_stat_count_from_behind_the_name)
{
	uint64_t parent = 0, threads = 0;

	ck_assert_int_eq(prctl(PR_SET_NAME, "a) Z 1 (b"), 0);
	ck_assert_int_eq(proc_parent(getpid()), getppid());
	ck_assert_int_eq(proc_stat_number("/proc/self/stat", 4, &parent), 0);
	ck_assert_uint_eq(parent, (uint64_t)getppid());
	ck_assert_int_eq(proc_stat_number("/proc/self/stat", 20, &threads), 0);
	ck_assert_uint_eq(threads, 1);
	ck_assert_int_eq(proc_stat_state("/proc/self/stat"), 'R');
}
END_TEST

START_TEST(entries_that_are_no_process_are_passed_over)
{
	static const char *const names[] = { "self", "0", "-3", "7", "4294967303", "x9" };
	char folder[] = "/tmp/check_base.XXXXXX";
	pid_t pid = 0;
	DIR *dir;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	dir = opendir(folder);
	ck_assert_ptr_nonnull(dir);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_eq(mkdirat(dirfd(dir), names[i], 0700), 0);
	ck_assert_int_eq(proc_next(dir, &pid), 1);
	ck_assert_int_eq(pid, 7);
	ck_assert_int_eq(proc_next(dir, &pid), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dirfd(dir), names[i], AT_REMOVEDIR);
	closedir(dir);
	rmdir(folder);
}
END_TEST

START_TEST(a_process_that_is_gone_has_no_stat)
{
	uint64_t value = 7;
	pid_t gone = fork();

	if (gone == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(gone, NULL, 0), gone);
	ck_assert_int_eq(proc_parent(gone), 0);
	ck_assert_int_eq(proc_stat_state("/proc/0/stat"), 0);
	ck_assert_int_eq(proc_stat_number("/proc/0/stat", 4, &value), -ESRCH);
	ck_assert_int_eq(proc_stat_number("/proc/self/stat", 400, &value), -EBADMSG);
	ck_assert_uint_eq(value, 7);
}
END_TEST

/* In one PID namespace that is further in, and is a process's first there. */
static void look_at_numbers(void)
{
	int go[2], status;
	pid_t child;

	ck_assert_uint_eq(proc_namespace_level(0), 0);
	ck_assert_int_eq(proc_number_at(getpid(), 0), getpid());
	ck_assert_int_eq(proc_number_at(getpid(), PROC_NAMESPACES_MAX), 0);
	ck_assert_int_eq(proc_number_at(0, 1), 0);
	ck_assert_int_eq(pipe(go), 0);
	if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return;            /* not permitted here */
	child = fork();
	if (child == 0)
		_exit(close(go[1]) != 0 || read(go[0], &status, 1) != 0 || getpid() != 1);
	ck_assert_int_gt(child, 0);
	ck_assert_uint_eq(proc_namespace_level(child), proc_namespace_level(getpid()) + 1);
	ck_assert_int_eq(proc_number_at(child, proc_namespace_level(child)), 1);
	close(go[1]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

/* In a process of its own, which can make no other when that first one has ended. */
START_TEST(a_process_has_a_number_in_each_of_its_namespaces)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		look_at_numbers();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(what_fails_is_tried_less_and_less_often)
{
	static const unsigned tried_at[] = { 1, 3, 7, 15, 23, 31 };
	struct retry retry;
	unsigned tries = 0;

	retry_begin(&retry);
	for (unsigned second = 1; second <= 31; second++) {
		if (!retry_is_due(&retry))
			continue;
		ck_assert_uint_eq(second, tried_at[tries]);
		tries++;
		retry_later(&retry, 8);
	}
	ck_assert_uint_eq(tries, 6);
	retry_begin(&retry);
	ck_assert(retry_is_due(&retry));
}
END_TEST

START_TEST(an_end_is_told_from_the_wait_status)
{
	char text[PROC_END_MAX];

	ck_assert_str_eq(proc_end_text(text, 9), "was killed by signal 9 (Killed)");
	ck_assert_str_eq(proc_end_text(text, 3 << 8), "has ended with status 3");
	ck_assert_str_eq(proc_end_text(text, 0), "has ended");
	ck_assert_str_eq(proc_end_text(text, -1), "has ended");
}
END_TEST

static Suite *base_suite(void)
{
	Suite *suite = suite_create("base");
	TCase *strings = tcase_create("strtab"), *vectors = tcase_create("vec"), *fds = tcase_create("fd"),
	      *procs = tcase_create("proc");

	tcase_add_test(strings, a_string_is_read_up_to_the_end_of_the_memory);
	tcase_add_test(strings, cpu_time_is_the_users_and_the_systems);
	tcase_add_test(strings, equal_strings_have_equal_ids);
	tcase_add_test(strings, the_empty_string_and_null_are_id_0);
	tcase_add_test(strings, a_string_of_a_length_ends_at_a_nul);
	tcase_add_test(strings, strings_stay_where_they_are_while_the_table_grows);
	tcase_add_test(strings, a_string_longer_than_a_chunk_is_kept_whole);
	tcase_add_test(vectors, new_items_of_an_array_are_zero);
	tcase_add_test(vectors, an_array_refuses_what_would_overflow);
	tcase_add_test(fds, a_closed_descriptor_becomes_minus_one_and_errno_stays);
	tcase_add_test(fds, a_file_is_read_whole_or_refused);
	tcase_add_test(fds, a_write_goes_on_through_a_full_pipe);
	tcase_add_test(fds, a_descriptor_travels_with_its_message);
	tcase_add_test(fds, a_message_too_long_is_dropped_with_its_descriptor);
	tcase_add_test(fds, further_descriptors_of_a_message_are_closed);
	tcase_add_test(fds, file_systems_of_others_are_told_from_the_kernels_own);
	tcase_add_test(fds, a_file_of_the_kernels_own_is_no_wait);
	tcase_add_test(procs, fields_of_stat_count_from_behind_the_name);
	tcase_add_test(procs, a_process_that_is_gone_has_no_stat);
	tcase_add_test(procs, entries_that_are_no_process_are_passed_over);
	tcase_add_test(procs, a_process_has_a_number_in_each_of_its_namespaces);
	tcase_add_test(procs, an_end_is_told_from_the_wait_status);
	tcase_add_test(procs, what_fails_is_tried_less_and_less_often);
	suite_add_tcase(suite, strings);
	suite_add_tcase(suite, vectors);
	suite_add_tcase(suite, fds);
	suite_add_tcase(suite, procs);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(base_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
