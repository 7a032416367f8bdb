/* The tracer says how much memory its tables take.  Here every allocation of theirs is counted, and the
 * sum must be that figure, to the byte. */
#include "model/heap.h"
#include "model/stack.h"

#include <check.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Linked with --wrap: what the tables ask for comes through here, with its size in front.  What others
 * do, while not `counting`, passes through. */
void *__real_malloc(size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);

#define HEAD 16

static size_t held, calls;
static bool counting;

#define COUNTED(call) do { counting = true; (call); counting = false; } while (0)

void *__wrap_malloc(size_t size)
{
	char *at = __real_malloc(counting ? size + HEAD : size);

	if (!at || !counting)
		return at;
	memcpy(at, &size, sizeof(size));
	held += size;
	calls++;
	return at + HEAD;
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *at = __wrap_malloc(count * size);

	return at ? memset(at, 0, count * size) : NULL;
}

void __wrap_free(void *at)
{
	size_t size;

	if (!at || !counting) {
		__real_free(at);
		return;
	}
	memcpy(&size, (char *)at - HEAD, sizeof(size));
	held -= size;
	__real_free((char *)at - HEAD);
}

void *__wrap_realloc(void *at, size_t size)
{
	size_t old = 0;
	void *moved;

	if (!counting)
		return __real_realloc(at, size);
	moved = __wrap_malloc(size);

	if (!moved || !at)
		return moved;
	memcpy(&old, (char *)at - HEAD, sizeof(old));
	memcpy(moved, at, old < size ? old : size);
	__wrap_free(at);
	return moved;
}

static uint64_t comparisons;

static void compare(const struct heap *heap, const struct stack_table *stacks)
{
	size_t sum = heap_memory(heap) + stack_table_memory(stacks);

	ck_assert_msg(sum == held, "the tables say %zu bytes and hold %zu", sum, held);
	comparisons++;
}

static uint32_t some_stack(struct stack_table *stacks)
{
	int64_t node = STACK_ROOT;

	for (int depth = 0; depth < 6; depth++) {
		struct frame frame = { .kind = FRAME_CALL, .offset = (uint64_t)(rand() % 12) + (uint64_t)depth * 100 };
		int64_t id;

		COUNTED(id = stack_table_frame(stacks, &frame));
		COUNTED(node = stack_table_push(stacks, (uint32_t)node, (uint32_t)id));
		ck_assert_int_ge(node, 0);
	}
	return (uint32_t)node;
}

static void event(struct heap *heap, struct stack_table *stacks, uint64_t i)
{
	raddr address = 0x100000 + (raddr)(rand() % 100000) * 48;
	struct alloc_event event = { .tid = 1 + rand() % 3000, .time_ns = i, .domain = DOMAIN_MALLOC };

	switch (rand() % 5) {
	case 0:
	case 1:
		event.kind = ALLOC_BORN;
		event.address = address;
		event.size = 40;
		event.stack = some_stack(stacks);
		break;
	case 2:
		event.kind = ALLOC_FREED;
		event.old_address = address;
		break;
	case 3:
		event.kind = ALLOC_RESIZE_BEGIN;
		event.old_address = address;
		break;
	default:
		COUNTED(heap_thread_gone(heap, event.tid));
		return;
	}
	COUNTED(heap_apply(heap, &event));
}

START_TEST(the_figure_of_the_tables_is_the_sum_of_their_allocations)
{
	struct stack_table *stacks;
	struct heap *heap;

	COUNTED(stacks = stack_table_new(1u << 24));
	COUNTED(heap = heap_new(NULL, _i % 2 == 0, 0));
	srand((unsigned)_i + 7);
	for (uint64_t i = 0; i < 200000; i++) {
		event(heap, stacks, i);
		if (i % 997 == 0)
			compare(heap, stacks);
		if (i % 60000 == 59999)
			COUNTED(heap_clear(heap));
	}
	compare(heap, stacks);
	ck_assert_uint_gt(held, 1 << 20);
	ck_assert_uint_ge(comparisons, 200);
	COUNTED(heap_free(heap));
	COUNTED(stack_table_free(stacks));
	ck_assert_uint_eq(held, 0);
	printf("heap memory: %" PRIu64 " comparisons, %zu allocations counted\n", comparisons, calls);
}
END_TEST

/* Once all sizes have been seen, an event asks for no memory. */
START_TEST(steady_events_allocate_nothing)
{
	struct heap *heap;
	size_t asked = 0;

	COUNTED(heap = heap_new(NULL, true, 0));
	for (uint64_t i = 0; i < 300000; i++) {
		struct alloc_event born = { .kind = ALLOC_BORN, .tid = 1 + (int32_t)(i % 7), .stack = (uint32_t)(i % 50),
					    .address = 0x1000 + i % 200 * 64, .size = i % 100, .time_ns = i };
		struct alloc_event freed = { .kind = ALLOC_FREED, .tid = 1, .old_address = born.address };

		if (i == 1000)
			asked = calls;
		COUNTED(heap_apply(heap, &born));
		COUNTED(heap_apply(heap, &freed));
	}
	ck_assert_uint_gt(asked, 0);
	ck_assert_uint_eq(calls, asked);
	ck_assert_uint_eq(heap_counters(heap).frees, 300000);
	COUNTED(heap_free(heap));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap memory");
	TCase *tcase = tcase_create("memory");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, the_figure_of_the_tables_is_the_sum_of_their_allocations, 0, 4);
	tcase_add_test(tcase, steady_events_allocate_nothing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
