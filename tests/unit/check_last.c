/* What is written of a process for the last time says whether all was read that its threads have recorded, and so does an answer behind
 * a clear when a record was passed that its writer may yet write. */
#include "tracer/snapshot.h"

#include "tracer/hold.h"
#include "tracer/placement.h"

#include "probe/engine_private.h"
#include "unwind/unwind.h"

#include "model/snapshot.h"

#include "base/clock.h"

#include "require.h"

#include <check.h>
#include <errno.h>
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

/* --- records that were passed --- */

START_TEST(a_record_that_was_passed_is_a_loss_until_its_writer_is_gone)
{
	write_open(child);
	engine_pass_living(&engine);
	ck_assert_uint_eq(engine_ring_position(&engine), engine_ring_head(&engine));
	REQUIRE(!session_is_exact(&session));
	for (unsigned i = 0; i < 3; i++) {
		session_clear(&session);
		ck_assert_uint_eq(session_lost_events(&session), 1);
		REQUIRE(!session_is_exact(&session));
	}
	end_child();
	/* It may have written by then. */
	REQUIRE(!session_is_exact(&session));
	session_clear(&session);
	REQUIRE(session_is_exact(&session));
}
END_TEST

START_TEST(whose_a_record_was_that_was_passed_is_not_known_of_several)
{
	write_open(NOBODY);
	write_open(child);
	engine_pass_living(&engine);
	engine_pass_living(&engine);
	ck_assert_uint_eq(engine_ring_position(&engine), engine_ring_head(&engine));
	end_child();
	session_clear(&session);
	REQUIRE(!session_is_exact(&session));
}
END_TEST

/* Held, and ended: so none of its threads is in a record, nor comes back to one. */
START_TEST(a_writer_that_was_settled_writes_nothing_any_more)
{
	struct task *task = target.tasks.items[0];

	write_open(child);
	engine_pass_living(&engine);
	engine_settle(&engine);
	session_clear(&session);
	REQUIRE(!session_is_exact(&session));
	task->stopped = true;
	task->stop.kind = STOP_EXITED;
	REQUIRE(engine_settle(&engine));
	REQUIRE(!session_is_exact(&session));
	session_clear(&session);
	REQUIRE(session_is_exact(&session));
}
END_TEST

/* It is not finished either, and its writer lives, and says later who he is. */
START_TEST(what_is_reserved_behind_a_record_of_who_has_ended_is_waited_for)
{
	struct ring_head *head = (void *)((uint8_t *)control + RING_CONTROL_SIZE + sizeof(struct ring_call));

	write_open(child);
	write_open(NOBODY);
	end_child();
	REQUIRE(engine_read_ring(&engine, 1, NULL) == -EAGAIN);
	ck_assert_uint_eq(engine_ring_position(&engine), sizeof(struct ring_call));
	ck_assert_uint_eq(engine_counters(&engine).failed_reads, 1);
	head->site = RING_VOID;
	head->mark = (sizeof(struct ring_call) ^ control->key) | RING_COMMITTED;
	REQUIRE(engine_catch_up(&engine));
	ck_assert_uint_eq(engine_counters(&engine).failed_reads, 1);
}
END_TEST

START_TEST(a_record_that_nobody_writes_is_a_loss_until_a_clear)
{
	write_open(child);
	engine_pass_record(&engine);
	REQUIRE(!session_is_exact(&session));
	session_clear(&session);
	REQUIRE(session_is_exact(&session));
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
	tcase_add_test(tests, a_record_that_was_passed_is_a_loss_until_its_writer_is_gone);
	tcase_add_test(tests, whose_a_record_was_that_was_passed_is_not_known_of_several);
	tcase_add_test(tests, a_writer_that_was_settled_writes_nothing_any_more);
	tcase_add_test(tests, what_is_reserved_behind_a_record_of_who_has_ended_is_waited_for);
	tcase_add_test(tests, a_record_that_nobody_writes_is_a_loss_until_a_clear);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
