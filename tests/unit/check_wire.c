/* wire_check(): the only thing between a hostile peer's bytes and the daemon or the tracer. */
#include "tracer/wire.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static union {
	char bytes[WIRE_MESSAGE_MAX + 64];
	struct wire_head head;
	struct wire_attach attach;
	struct wire_attached attached;
	struct wire_failed failed;
	struct wire_module module;
	struct wire_snapshot_request snapshot_request;
	struct wire_snapshot_ready snapshot_ready;
	struct wire_status status;
	struct wire_blocks blocks;
	struct wire_detached detached;
	struct wire_open open;
	struct wire_opened opened;
} m;

static const struct {
	uint32_t type;
	int from_tracer;
	size_t size;
} valid[] = {
	{ WIRE_ATTACH, 0, sizeof(struct wire_attach) },
	{ WIRE_SNAPSHOT, 0, sizeof(struct wire_snapshot_request) },
	{ WIRE_STATUS, 0, sizeof(struct wire_head) },
	{ WIRE_BLOCK, 0, sizeof(struct wire_block_request) },
	{ WIRE_MISUSES, 0, sizeof(struct wire_head) },
	{ WIRE_CLEAR, 0, sizeof(struct wire_head) },
	{ WIRE_RESET_PEAK, 0, sizeof(struct wire_head) },
	{ WIRE_DETACH, 0, sizeof(struct wire_head) },
	{ WIRE_SET_ASIDE, 0, sizeof(struct wire_head) },
	{ WIRE_ATTACHED, 1, sizeof(struct wire_attached) },
	{ WIRE_FAILED, 1, sizeof(struct wire_failed) },
	{ WIRE_MODULE, 1, sizeof(struct wire_module) },
	{ WIRE_SNAPSHOT_READY, 1, sizeof(struct wire_snapshot_ready) },
	{ WIRE_STATUS_REPLY, 1, sizeof(struct wire_status) },
	{ WIRE_BLOCKS, 1, sizeof(struct wire_blocks) },
	{ WIRE_MISUSES_REPLY, 1, sizeof(struct wire_misuses) },
	{ WIRE_DONE, 1, sizeof(struct wire_head) },
	{ WIRE_DETACHED, 1, sizeof(struct wire_detached) },
	{ WIRE_TARGET_GONE, 1, sizeof(struct wire_gone) },
	{ WIRE_HEARTBEAT, 1, sizeof(struct wire_heartbeat) },
	{ WIRE_ALIVE, 0, sizeof(struct wire_head) },
	{ WIRE_REFUGE, 0, sizeof(struct wire_head) },
	{ WIRE_RECALL, 0, sizeof(struct wire_recall) },
	{ WIRE_HEAL, 0, sizeof(struct wire_head) },
	{ WIRE_STAND_BY, 0, sizeof(struct wire_head) },
	{ WIRE_OPEN, 0, sizeof(struct wire_open) },
	{ WIRE_OPENED, 1, sizeof(struct wire_opened) },
	{ WIRE_LOG, 1, sizeof(struct wire_failed) },
};

static size_t build(uint32_t type, size_t size)
{
	memset(&m, 0, sizeof(m));
	m.head.type = type;
	m.head.length = (uint32_t)size;
	if (type == WIRE_FAILED)
		m.failed.failure = FAILURE_GONE;
	if (type == WIRE_OPEN)
		m.open.path[0] = '/';
	return size;
}

START_TEST(every_message_passes_in_its_own_direction_only)
{
	size_t len = build(valid[_i].type, valid[_i].size);

	ck_assert_int_eq(wire_check(&m, len, valid[_i].from_tracer), 0);
	ck_assert_int_eq(wire_check(&m, len, !valid[_i].from_tracer), -EBADMSG);
}
END_TEST

START_TEST(every_wrong_length_is_refused)
{
	size_t size = valid[_i].size;
	int dir = valid[_i].from_tracer;

	build(valid[_i].type, size);
	ck_assert_int_eq(wire_check(&m, size - 1, dir), -EBADMSG);
	ck_assert_int_eq(wire_check(&m, size + 1, dir), -EBADMSG);
	ck_assert_int_eq(wire_check(&m, 0, dir), -EBADMSG);
	ck_assert_int_eq(wire_check(&m, sizeof(m.head) - 1, dir), -EBADMSG);
	m.head.length++;
	ck_assert_int_eq(wire_check(&m, size, dir), -EBADMSG);
	ck_assert_int_eq(wire_check(&m, size + 1, dir), -EBADMSG);
}
END_TEST

START_TEST(unknown_types_are_refused)
{
	int refused = 0;

	for (uint32_t type = 0; type < 1000; type++) {
		size_t len = build(type, sizeof(m.head));
		int known = 0;

		for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
			known |= valid[i].type == type;
		if (known)
			continue;
		ck_assert_int_eq(wire_check(&m, len, 0), -EBADMSG);
		ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
		refused++;
	}
	ck_assert_int_gt(refused, 900);
}
END_TEST

START_TEST(texts_without_an_end_are_refused)
{
	size_t len = build(WIRE_FAILED, sizeof(m.failed));

	memset(m.failed.text, 'x', sizeof(m.failed.text));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	m.failed.text[sizeof(m.failed.text) - 1] = '\0';
	ck_assert_int_eq(wire_check(&m, len, 1), 0);

	len = build(WIRE_LOG, sizeof(m.failed));
	memset(m.failed.text, 'x', sizeof(m.failed.text));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_ATTACHED, sizeof(m.attached));
	memset(m.attached.exe, 'x', sizeof(m.attached.exe));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_ATTACHED, sizeof(m.attached));
	memset(m.attached.command, 'x', sizeof(m.attached.command));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_MODULE, sizeof(m.module));
	memset(m.module.path, 'x', sizeof(m.module.path));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_STATUS_REPLY, sizeof(m.status));
	memset(m.status.crash_unsafe_reason, 'x', sizeof(m.status.crash_unsafe_reason));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_DETACHED, sizeof(m.detached));
	memset(m.detached.text, 'x', sizeof(m.detached.text));
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_OPEN, sizeof(m.open));
	memset(m.open.path, '/', sizeof(m.open.path));
	ck_assert_int_eq(wire_check(&m, len, 0), -EBADMSG);
}
END_TEST

START_TEST(counts_out_of_range_are_refused)
{
	size_t len = build(WIRE_BLOCKS, sizeof(m.blocks));

	m.blocks.count = WIRE_BLOCKS_MAX;
	ck_assert_int_eq(wire_check(&m, len, 1), 0);
	m.blocks.count++;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_MODULE, sizeof(m.module));
	m.module.build_id_len = BUILD_ID_MAX + 1;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_MODULE, sizeof(m.module));
	m.module.module = MODULES_MAX;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_FAILED, sizeof(m.failed));
	m.failed.failure = FAILURE_INTERNAL + 1;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	m.failed.failure = 0;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_SNAPSHOT_READY, sizeof(m.snapshot_ready));
	m.snapshot_ready.reason = SNAPSHOT_LOST + 1;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_OPEN, sizeof(m.open));
	m.open.identity.group_count = WIRE_GROUPS_MAX + 1;
	ck_assert_int_eq(wire_check(&m, len, 0), -EBADMSG);
	len = build(WIRE_OPENED, sizeof(m.opened));
	m.opened.result = 1;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
	len = build(WIRE_STATUS_REPLY, sizeof(m.status));
	m.status.exact = 2;
	ck_assert_int_eq(wire_check(&m, len, 1), -EBADMSG);
}
END_TEST

START_TEST(random_bytes_never_read_past_the_message)
{
	int accepted = 0;

	srandom(1);
	for (int round = 0; round < 20000; round++) {
		size_t i = (size_t)random() % (sizeof(valid) / sizeof(valid[0]));
		size_t len = valid[i].size;
		char *exact;

		build(valid[i].type, len);
		for (int flips = (int)(random() % 64); flips > 0; flips--)
			m.bytes[sizeof(m.head) + (size_t)random() % len] = (char)random();
		exact = malloc(len);      /* the sanitizer sees a read past it */
		memcpy(exact, &m, len);
		accepted += wire_check(exact, len, valid[i].from_tracer) == 0;
		free(exact);
	}
	ck_assert_int_gt(accepted, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wire");
	TCase *tcase = tcase_create("wire_check");
	int count = sizeof(valid) / sizeof(valid[0]);
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, every_message_passes_in_its_own_direction_only, 0, count);
	tcase_add_loop_test(tcase, every_wrong_length_is_refused, 0, count);
	tcase_add_test(tcase, unknown_types_are_refused);
	tcase_add_test(tcase, texts_without_an_end_are_refused);
	tcase_add_test(tcase, counts_out_of_range_are_refused);
	tcase_add_test(tcase, random_bytes_never_read_past_the_message);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
