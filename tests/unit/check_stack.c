#include "require.h"
#include "share.h"

#include "model/module.h"
#include "model/stack.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct frame frame_at(uint64_t offset)
{
	return (struct frame){ .module = 1, .kind = FRAME_CALL, .offset = offset };
}

static uint32_t push_path(struct stack_table *table, const uint64_t *offsets, size_t count)
{
	int64_t node = STACK_ROOT;

	for (size_t i = 0; i < count; i++) {
		struct frame frame = frame_at(offsets[i]);
		int64_t id = stack_table_frame(table, &frame);

		REQUIRE(id > 0);
		node = stack_table_push(table, (uint32_t)node, (uint32_t)id);
		REQUIRE(node > 0);
	}
	return (uint32_t)node;
}

START_TEST(a_common_prefix_is_stored_once)
{
	struct stack_table *table = stack_table_new(1000);
	uint32_t a = push_path(table, (uint64_t[]){ 1, 2, 3 }, 3);
	uint32_t b = push_path(table, (uint64_t[]){ 1, 2, 4 }, 3);

	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(stack_table_node(table, a).parent, stack_table_node(table, b).parent);
	ck_assert_uint_eq(stack_table_node_count(table), 5);
	ck_assert_uint_eq(stack_table_frame_count(table), 5);
	ck_assert_uint_eq(push_path(table, (uint64_t[]){ 1, 2, 3 }, 3), a);
	stack_table_free(table);
}
END_TEST

START_TEST(frames_differ_by_module_kind_and_offset)
{
	struct stack_table *table = stack_table_new(1000);
	struct frame frame = frame_at(7);
	int64_t first = stack_table_frame(table, &frame);

	frame.kind = FRAME_EXACT;
	ck_assert_int_ne(stack_table_frame(table, &frame), first);
	frame = frame_at(7);
	frame.module = MODULE_NONE;
	ck_assert_int_ne(stack_table_frame(table, &frame), first);
	frame = frame_at(1ULL << 40 | 7);
	ck_assert_int_ne(stack_table_frame(table, &frame), first);
	frame = frame_at(7);
	ck_assert_int_eq(stack_table_frame(table, &frame), first);
	ck_assert_uint_eq(stack_table_get_frame(table, (uint32_t)first).offset, 7);
	stack_table_free(table);
}
END_TEST

START_TEST(the_root_is_node_0_and_no_frame_is_frame_0)
{
	struct stack_table *table = stack_table_new(1000);

	ck_assert_uint_eq(stack_table_node_count(table), 1);
	ck_assert_uint_eq(stack_table_node(table, STACK_ROOT).parent, STACK_ROOT);
	ck_assert_uint_eq(stack_table_get_frame(table, FRAME_NONE).kind, 0);
	ck_assert_uint_eq(stack_table_get_frame(table, FRAME_NONE).module, MODULE_NONE);
	stack_table_free(table);
	stack_table_free(NULL);
}
END_TEST

START_TEST(a_full_table_still_finds_what_it_has)
{
	struct stack_table *table = stack_table_new(3);
	uint32_t node = push_path(table, (uint64_t[]){ 1, 2 }, 2);
	struct frame frame = frame_at(3);

	ck_assert_int_eq(stack_table_frame(table, &frame), -ENOSPC);
	ck_assert_int_eq(stack_table_push(table, node, 1), -ENOSPC);
	ck_assert_uint_eq(push_path(table, (uint64_t[]){ 1, 2 }, 2), node);
	ck_assert_uint_eq(stack_table_node_count(table), 3);
	stack_table_free(table);
}
END_TEST

START_TEST(a_hundred_thousand_stacks_come_back_as_they_were_pushed)
{
	enum { STACKS = 100000, DEPTH = 8 };
	struct stack_table *table = stack_table_new(UINT32_MAX);
	uint32_t *nodes = calloc(STACKS, sizeof(*nodes));
	size_t memory, compared = 0;

	for (int pass = 0; pass < 2; pass++) {
		srand(42);
		memory = stack_table_memory(table);
		for (int i = 0; i < STACKS; i++) {
			uint64_t path[DEPTH];
			uint32_t node;

			for (int d = 0; d < DEPTH; d++)
				path[d] = 1 + (uint64_t)rand() % (d < 4 ? 4 : 64);
			node = push_path(table, path, DEPTH);
			if (pass == 0)
				nodes[i] = node;
			REQUIRE(nodes[i] == node);
			for (int d = DEPTH - 1; d >= 0; d--, compared++) {
				struct stack_node step = stack_table_node(table, node);

				REQUIRE(step.parent < node);
				REQUIRE(stack_table_get_frame(table, step.frame).offset == path[d]);
				node = step.parent;
			}
			REQUIRE(node == STACK_ROOT);
		}
	}
	ck_assert_uint_eq(compared, 2 * STACKS * DEPTH);
	ck_assert_uint_eq(stack_table_memory(table), memory);
	free(nodes);
	stack_table_free(table);
}
END_TEST

START_TEST(every_reason_of_a_cut_has_a_text_of_its_own)
{
	for (int i = 0; i < TRUNCATED_COUNT; i++) {
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(truncation_text((enum truncation)i), truncation_text((enum truncation)j));
	}
	ck_assert_str_eq(truncation_text(TRUNCATED_LIMIT), "frames limit reached");
}
END_TEST

/* Runs of all lengths, known and new in turns, against a table that gets each node by itself. */
START_TEST(a_run_gives_the_nodes_of_single_pushes)
{
	enum { RUNS = 5000, LONGEST = 100, FRAMES = 64 };
	struct stack_table *runs = stack_table_new(UINT32_MAX), *singles = stack_table_new(UINT32_MAX);
	uint32_t frames[LONGEST], nodes[LONGEST];
	size_t compared = 0, known = 0;

	for (uint64_t i = 1; i <= FRAMES; i++) {
		struct frame frame = frame_at(i);

		ck_assert_int_eq(stack_table_frame(runs, &frame), stack_table_frame(singles, &frame));
	}
	srand(7);
	for (unsigned int run = 0; run < share_of(RUNS); run++) {
		uint32_t parent = (uint32_t)rand() % stack_table_node_count(runs), node = parent;
		uint32_t count = (uint32_t)rand() % LONGEST, before = stack_table_node_count(runs);
		unsigned int different = rand() % 4 == 0 ? FRAMES : 2;

		for (uint32_t i = 0; i < count; i++)
			frames[i] = 1 + (uint32_t)rand() % different;
		for (int again = 0; again < 3; again++) {
			ck_assert_int_eq(stack_table_push_run(runs, parent, frames, count, nodes), 0);
			node = parent;
			for (uint32_t i = count; i-- > 0; compared++) {
				node = (uint32_t)stack_table_push(singles, node, frames[i]);
				REQUIRE(nodes[i] == node);
			}
		}
		known += stack_table_node_count(runs) == before;
		ck_assert_uint_eq(stack_table_node_count(runs), stack_table_node_count(singles));
	}
	printf("%zu nodes of runs compared, %zu runs had nothing new\n", compared, known);
	ck_assert_uint_gt(compared, share_of(RUNS));
	stack_table_free(runs);
	stack_table_free(singles);
}
END_TEST

START_TEST(a_run_into_a_full_table_says_so_and_keeps_what_fits)
{
	struct stack_table *table = stack_table_new(4);
	struct frame frame = frame_at(1);
	uint32_t id = (uint32_t)stack_table_frame(table, &frame), frames[5] = { id, id, id, id, id }, nodes[5];

	ck_assert_int_eq(stack_table_push_run(table, STACK_ROOT, frames, 5, nodes), -ENOSPC);
	ck_assert_uint_eq(stack_table_node_count(table), 4);
	ck_assert_int_eq(stack_table_push_run(table, STACK_ROOT, frames, 3, nodes), 0);
	ck_assert_int_eq(stack_table_push_run(table, STACK_ROOT, frames, 3, nodes), 0);
	ck_assert_uint_eq(nodes[0], 3);
	stack_table_free(table);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stack");
	TCase *tcase = tcase_create("stack");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, a_common_prefix_is_stored_once);
	tcase_add_test(tcase, frames_differ_by_module_kind_and_offset);
	tcase_add_test(tcase, the_root_is_node_0_and_no_frame_is_frame_0);
	tcase_add_test(tcase, a_full_table_still_finds_what_it_has);
	tcase_add_test(tcase, a_hundred_thousand_stacks_come_back_as_they_were_pushed);
	tcase_add_test(tcase, every_reason_of_a_cut_has_a_text_of_its_own);
	tcase_add_test(tcase, a_run_gives_the_nodes_of_single_pushes);
	tcase_add_test(tcase, a_run_into_a_full_table_says_so_and_keeps_what_fits);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
