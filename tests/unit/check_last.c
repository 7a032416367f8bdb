/* What is written of a process for the last time says whether all was read that its threads have recorded. */
#include "tracer/snapshot.h"

#include "tracer/hold.h"
#include "tracer/placement.h"

#include "probe/engine_private.h"
#include "unwind/unwind.h"

#include "model/snapshot.h"

#include "base/clock.h"

#include "require.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 0                               /* a record that does not say whose it is */

static struct engine engine;
static struct target target;
static struct session session;
static struct ring_control *control;
static struct snapshot *written;
static pid_t child;

/* --- what of the tracer is not meant here --- */

const char *hold_text(const struct session *of, enum hold_reason reason)
{
	(void)of, (void)reason;
	return NULL;
}

const char *session_engine_reason(const struct session *of)
{
	(void)of;
	return NULL;
}

void placement_release(void)
{
}

size_t link_memory(struct link *link)
{
	(void)link;
	return 0;
}

void session_fail(struct link *link, uint32_t serial, pid_t pid, enum wire_failure failure, pid_t other, const char *format, ...)
{
	(void)link, (void)serial, (void)pid, (void)failure, (void)other;
	ck_abort_msg("it has failed: %s", format);
}

/* The snapshot as the daemon has it. */
void link_send(struct link *link, const void *message, size_t len, int fd)
{
	const char *reason;
	struct stat st;
	void *image;

	(void)link, (void)message, (void)len;
	REQUIRE(fstat(fd, &st) == 0);
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	REQUIRE(image != MAP_FAILED);
	REQUIRE(snapshot_image_read(image, (size_t)st.st_size, &written, &reason) == 0);
	munmap(image, (size_t)st.st_size);
	close(fd);
}

/* --- a process and its ring --- */

static void setup(void)
{
	child = fork();
	while (child == 0)
		pause();
	REQUIRE(child > 0);
	memset(&target, 0, sizeof(target));
	target.pid = target.memory_tid = child;
	engine = (struct engine){ .target = &target };
	REQUIRE(ring_new(RING_SIZE_MIN, &engine.ring.ring) == 0);
	engine.ring.hook = RING_NO_HOOK;
	engine.ring.late = UINT64_MAX;
	engine.ring.options.alone = true;
	tick_clock_begin(&engine.ring.clock);
	control = ring_control(engine.ring.ring);
	control->state = RING_ON;
	memset(&session, 0, sizeof(session));
	session.target = &target;
	session.engine = &engine;
	session.heap = heap_new(NULL, false, clock_monotonic_ns());
	session.stacks = stack_table_new(16);
	session.unwinder = unwinder_new(&target.modules, session.stacks);
	engine.unwinder = session.unwinder;
	REQUIRE(session.heap && session.stacks && session.unwinder);
	REQUIRE(task_add(&target, child, NULL) == 0);
}

static void end_child(void)
{
	if (child <= 0)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

static void teardown(void)
{
	end_child();
	snapshot_put(written);
	written = NULL;
	unwinder_free(session.unwinder);
	stack_table_free(session.stacks);
	heap_free(session.heap);
	ring_free(engine.ring.ring);
}

/* One that a thread has reserved, and got no processor since. */
static void write_open(pid_t thread)
{
	uint64_t position = control->head;
	struct ring_call *call = (void *)((uint8_t *)control + RING_CONTROL_SIZE + position % RING_SIZE_MIN);

	control->head += sizeof(*call);
	*call = (struct ring_call){ .head = { .length = sizeof(*call), .thread = (uint64_t)thread } };
	call->head.mark = (position ^ control->key) | (thread == NOBODY ? 0 : RING_OPEN);
}

/* --- last answers --- */

START_TEST(a_last_snapshot_of_all_that_was_recorded_is_exact)
{
	snapshot_write_now(&session, SNAPSHOT_EXIT);
	REQUIRE(written && written->exact);
	ck_assert_uint_eq(written->unknown.lost_events, 0);
}
END_TEST

START_TEST(a_last_snapshot_is_not_exact_behind_a_record_that_is_not_finished)
{
	const enum wire_snapshot_reason reason = _i == 0 ? SNAPSHOT_EXIT : SNAPSHOT_EXEC;

	write_open(NOBODY);
	snapshot_write_now(&session, reason);
	REQUIRE(written && !written->exact);
	ck_assert_uint_eq(written->unknown.lost_events, 1);
}
END_TEST

START_TEST(what_could_not_be_read_at_last_is_a_loss)
{
	write_open(child);
	engine_read_last(&engine);
	ck_assert_uint_eq(engine_counters(&engine).failed_reads, 1);
	REQUIRE(!session_is_exact(&session));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("last");
	TCase *tests = tcase_create("last");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_last_snapshot_of_all_that_was_recorded_is_exact);
	tcase_add_loop_test(tests, a_last_snapshot_is_not_exact_behind_a_record_that_is_not_finished, 0, 2);
	tcase_add_test(tests, what_could_not_be_read_at_last_is_a_loss);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
