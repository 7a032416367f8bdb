/* How many snapshots may be on their way to their names. */
#define _GNU_SOURCE              /* memfd_create */
#include "base/clock.h"
#include "base/fd.h"
#include "daemon/intake.h"
#include "daemon/limits.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ONE 61234
#define OTHER 61235
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
#define DEADLINE_NS (30 * NSEC_PER_SEC)

static sd_event *event;
static struct work *work;
static struct snapshots *snapshots;
static struct symbolize *symbolize;
static struct intakes *intakes;
static size_t ended;

static void on_kept(void *context, const struct kept *kept)
{
	(void)context;
	(void)kept;
}

static void setup(void)
{
	static const struct snapshots_owner owner = { .kept = on_kept, .makes_way = on_kept };
	const struct limits limits = { .snapshots = SNAPSHOTS_MAX, .snapshot_bytes = SNAPSHOT_BYTES_MAX,
				       .file_bytes = FILE_BYTES_MAX };

	ended = 0;
	ck_assert_int_eq(sd_event_new(&event), 0);
	ck_assert_int_eq(work_new(event, &work), 0);
	ck_assert_int_eq(symbolize_new(event, "/no/such/program", &symbolize), 0);
	ck_assert_int_eq(snapshots_new(work, NULL, &limits, &owner, &snapshots), 0);
	ck_assert_int_eq(intakes_new(work, symbolize, snapshots, limits.snapshot_bytes, &intakes), 0);
}

static void teardown(void)
{
	work_free(work);
	symbolize_free(symbolize);
	intakes_free(intakes);
	snapshots_free(snapshots);
	sd_event_unref(event);
}

static void on_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	(void)context;
	(void)reason;
	ck_assert_ptr_null(snapshot);
	ck_assert_int_lt(error, 0);
	ended++;
}

static void on_named(void *context, struct snapshot *snapshot)
{
	(void)context;
	(void)snapshot;
	ck_abort();
}

/* An image that is none: it is on its way until the event loop runs. */
static int begin(uint32_t owner, bool last)
{
	const struct intake_steps steps = { .read = on_read, .named = on_named, .last = last };
	const struct file_user user = { .owner = owner };
	struct module_files *files = module_files_new();
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;
	const char *reason;

	module_files_set_user(files, &user);
	ck_assert_int_eq(write(fd, "nothing", 7), 7);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	r = intake_start(intakes, &fd, files, getpid(), 1, &steps, &reason);
	fd_close(&fd);
	module_files_unref(files);
	return r;
}

static size_t begin_all(uint32_t owner, bool last)
{
	size_t count = 0;

	while (begin(owner, last) == 0)
		count++;
	return count;
}

static void run_until_all_have_ended(size_t count)
{
	uint64_t deadline = clock_monotonic_ns() + DEADLINE_NS;

	while (ended < count) {
		ck_assert_int_ge(sd_event_run(event, 100000), 0);
		ck_assert(!clock_passed(deadline));
	}
	ck_assert_uint_eq(intakes_running(intakes), 0);
}

/* Those of ends and execs, which a user can have as many of as he likes, and those that are asked for. */
START_TEST(one_user_does_not_take_the_room_of_all)
{
	const bool last = _i == 1;
	const size_t max = last ? INTAKES_LAST_MAX : INTAKES_MAX, share = OWNER_SHARE(max);

	ck_assert_uint_eq(begin_all(ONE, last), share);
	ck_assert_int_eq(begin(ONE, !last), 0);
	ck_assert_int_eq(begin(OTHER, last), 0);
	ck_assert_uint_eq(begin_all(geteuid(), last), max - share - 1);
	ck_assert_int_eq(begin(OTHER, last), -ENOSPC);
	run_until_all_have_ended(max + 1);
	ck_assert_int_eq(begin(ONE, last), 0);
	run_until_all_have_ended(max + 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("intake");
	TCase *t = tcase_create("intake");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, one_user_does_not_take_the_room_of_all, 0, 2);
	tcase_set_timeout(t, 60);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
