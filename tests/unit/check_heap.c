#include "model/heap.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALICE 11
#define BOB 22

/* As ck_assert(), but free as long as it holds: for what is said a million times. */
#define REQUIRE(claim) \
	do { \
		if (!(claim)) \
			ck_abort_msg("not true: %s", #claim); \
	} while (0)

static struct heap *heap;

static void setup(void)
{
	heap = heap_new(NULL, false, 1000);
}

static void teardown(void)
{
	heap_free(heap);
}

static int born_in(uint32_t domain, raddr address, uint64_t size, uint32_t stack)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .tid = ALICE, .domain = domain, .stack = stack,
				     .address = address, .size = size, .time_ns = 1000 };

	return heap_apply(heap, &event);
}

static void born(raddr address, uint64_t size, uint32_t stack)
{
	REQUIRE(born_in(DOMAIN_MALLOC, address, size, stack) == 0);
}

static void freed_in(uint32_t domain, raddr address)
{
	struct alloc_event event = { .kind = ALLOC_FREED, .tid = ALICE, .domain = domain,
				     .old_address = address };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void freed(raddr address)
{
	freed_in(DOMAIN_MALLOC, address);
}

static void resize_begin(int32_t tid, raddr old)
{
	struct alloc_event event = { .kind = ALLOC_RESIZE_BEGIN, .tid = tid, .old_address = old };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void resize_end(int32_t tid, raddr old, raddr address, uint64_t size, uint32_t stack)
{
	struct alloc_event event = { .kind = ALLOC_RESIZE_END, .tid = tid, .stack = stack,
				     .old_address = old, .address = address, .size = size };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void ck_live(uint64_t blocks, uint64_t bytes)
{
	struct heap_counters counters = heap_counters(heap);

	ck_assert_uint_eq(counters.live_blocks, blocks);
	ck_assert_uint_eq(counters.live_bytes, bytes);
}

static void ck_oddities(uint64_t before_attach, uint64_t unknown, uint64_t after_clear, uint64_t lost)
{
	struct heap_counters counters = heap_counters(heap);

	ck_assert_uint_eq(counters.before_attach_frees, before_attach);
	ck_assert_uint_eq(counters.unknown_frees, unknown);
	ck_assert_uint_eq(counters.after_clear_frees, after_clear);
	ck_assert_uint_eq(counters.lost_events, lost);
}

static struct heap_trace trace_of(uint32_t stack);

static struct heap_block only_block(raddr address)
{
	struct heap_block blocks[2];

	ck_assert_uint_eq(heap_find(heap, address, blocks, 2), 1);
	return blocks[0];
}

struct sums {
	uint64_t blocks, bytes, total_blocks, total_bytes, traces, counted;
};

static int sum_trace(void *context, const struct heap_trace *trace)
{
	struct sums *sums = context;

	REQUIRE(heap_trace_index(heap, trace->stack, trace->domain) == (int64_t)sums->traces);
	sums->blocks += trace->live_blocks;
	sums->bytes += trace->live_bytes;
	sums->total_blocks += trace->total_blocks;
	sums->total_bytes += trace->total_bytes;
	sums->traces++;
	return 0;
}

static int sum_block(void *context, const struct heap_block *block)
{
	struct sums *sums = context;

	sums->blocks++;
	sums->bytes += block->size;
	return 0;
}

/* Blocks, traces and counters are three views of the same thing. */
static void ck_consistent(void)
{
	struct heap_counters counters = heap_counters(heap);
	struct sums traces = { 0 }, blocks = { 0 };

	heap_each_trace(heap, sum_trace, &traces);
	heap_each_block(heap, sum_block, &blocks);
	ck_assert_uint_eq(traces.traces, heap_trace_count(heap));
	ck_assert_uint_eq(traces.blocks, counters.live_blocks);
	ck_assert_uint_eq(traces.bytes, counters.live_bytes);
	ck_assert_uint_eq(blocks.blocks, counters.live_blocks);
	ck_assert_uint_eq(blocks.bytes, counters.live_bytes);
}

static int match_trace(void *context, const struct heap_trace *trace)
{
	struct heap_trace *found = context;

	if (trace->stack != found->stack)
		return 0;
	*found = *trace;
	return 1;
}

/* Of the first domain that has the stack. */
static struct heap_trace trace_of(uint32_t stack)
{
	struct heap_trace trace = { .stack = stack };

	REQUIRE(heap_each_trace(heap, match_trace, &trace) == 1);
	return trace;
}

static void restart_from_start(void)
{
	heap_free(heap);
	heap = heap_new(NULL, true, 1000);
}

START_TEST(a_block_lives_from_birth_to_free)
{
	born(0x1000, 96, 5);
	ck_live(1, 96);
	ck_consistent();
	freed(0x1000);
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 0);
	ck_assert_uint_eq(heap_counters(heap).allocations, 1);
	ck_assert_uint_eq(heap_counters(heap).frees, 1);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 96);
	ck_consistent();
}
END_TEST

START_TEST(an_unborn_block_was_never_there)
{
	struct alloc_event unborn = { .kind = ALLOC_UNBORN, .address = 0x1000 };

	born(0x2000, 10, 5);
	born(0x1000, 96, 5);
	ck_assert_int_eq(heap_apply(heap, &unborn), 0);
	ck_live(1, 10);
	ck_assert_uint_eq(heap_counters(heap).allocations, 1);
	ck_assert_uint_eq(heap_counters(heap).frees, 0);
	ck_assert_uint_eq(trace_of(5).total_blocks, 1);
	ck_assert_uint_eq(trace_of(5).temporary_blocks, 0);
	ck_consistent();
	born(0x1000, 96, 5);
	ck_live(2, 106);
	ck_oddities(0, 0, 0, 0);
	heap_clear(heap);
	ck_assert_int_eq(heap_apply(heap, &unborn), 0);
	ck_live(0, 0);
	ck_consistent();
}
END_TEST

START_TEST(null_is_neither_born_nor_freed)
{
	born(0, 96, 5);
	freed(0);
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 0);
	ck_assert_uint_eq(heap_counters(heap).allocations, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 0);
}
END_TEST

START_TEST(what_was_born_before_the_attach_is_told_from_a_double_free)
{
	freed(0x2000);
	ck_oddities(1, 0, 0, 0);
	freed(0x2000);
	ck_oddities(1, 1, 0, 0);
	born(0x3000, 8, 1);
	freed(0x3000);
	freed(0x3000);
	ck_oddities(1, 2, 0, 0);
	freed(0x3010);
	ck_oddities(2, 2, 0, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 1);
}
END_TEST

START_TEST(what_a_call_from_before_the_attach_has_given_may_be_freed_once_more)
{
	struct alloc_event given = { .kind = ALLOC_GIVEN, .address = 0x3000 };

	born(0x3000, 8, 1);
	freed(0x3000);
	ck_assert_int_eq(heap_apply(heap, &given), 0);
	freed(0x3000);
	ck_oddities(1, 0, 0, 0);
	freed(0x3000);
	ck_oddities(1, 1, 0, 0);
	given.address = 0x4000;
	ck_assert_int_eq(heap_apply(heap, &given), 0);
	freed(0x4000);
	ck_oddities(2, 1, 0, 0);
	ck_live(0, 0);
	ck_consistent();
}
END_TEST

START_TEST(small_blocks_from_before_that_lie_side_by_side_are_told_apart)
{
	freed(0x2070);
	freed(0x2078);
	ck_oddities(2, 0, 0, 0);
	freed(0x2078);
	ck_oddities(2, 1, 0, 0);
}
END_TEST

START_TEST(from_the_start_every_free_of_no_block_is_unknown)
{
	restart_from_start();
	freed(0x2000);
	ck_oddities(0, 1, 0, 0);
}
END_TEST

START_TEST(without_memory_for_seen_addresses_a_free_counts_as_before_attach)
{
	struct heap_limits limits = { .max_seen_bytes = 1 };

	heap_free(heap);
	heap = heap_new(&limits, false, 0);
	for (raddr page = 1; page < 100000; page++)
		freed(page << 12);
	for (raddr page = 1; page < 100000; page++)
		freed(page << 12);
	ck_assert_uint_gt(heap_counters(heap).before_attach_frees, 100000);
	ck_assert_uint_lt(heap_memory(heap), 1 << 20);
}
END_TEST

START_TEST(a_birth_at_a_live_address_replaces_and_is_counted)
{
	born(0x1000, 10, 1);
	born(0x1000, 20, 2);
	ck_live(1, 20);
	ck_oddities(0, 0, 0, 1);
	ck_assert_uint_eq(only_block(0x1000).stack, 2);
	ck_consistent();
}
END_TEST

START_TEST(malloc_and_new_are_one_address_space)
{
	ck_assert_int_eq(born_in(DOMAIN_NEW, 0x1000, 10, 1), 0);
	freed_in(DOMAIN_MALLOC, 0x1000);
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 0);
}
END_TEST

START_TEST(a_pool_and_its_first_object_share_an_address)
{
	const struct alloc_event unmapped = { .kind = ALLOC_RESIZE_END, .domain = DOMAIN_MMAP, .old_address = 0x10000, .old_size = 4096 };

	ck_assert_int_eq(born_in(DOMAIN_MMAP, 0x10000, 4096, 1), 0);
	ck_assert_int_eq(born_in(DOMAIN_PYTHON, 0x10000, 32, 2), 0);
	ck_assert_int_eq(born_in(DOMAIN_USER + 1, 0x10000, 8, 3), 0);
	ck_live(3, 4136);
	ck_oddities(0, 0, 0, 0);
	freed_in(DOMAIN_PYTHON, 0x10000);
	ck_live(2, 4104);
	REQUIRE(heap_apply(heap, &unmapped) == 0);
	ck_assert_uint_eq(only_block(0x10000).domain, DOMAIN_USER + 1);
	ck_consistent();
}
END_TEST

START_TEST(a_domain_that_cannot_be_kept_is_lost_and_counted)
{
	ck_assert_int_eq(born_in(1u << 20, 0x1000, 8, 1), -ENOSPC);
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 1);
}
END_TEST

START_TEST(past_the_limit_allocations_are_lost_and_counted)
{
	struct heap_limits limits = { .max_blocks = 2 };

	heap_free(heap);
	heap = heap_new(&limits, false, 0);
	born(0x1000, 1, 1);
	born(0x2000, 1, 1);
	ck_assert_int_eq(born_in(DOMAIN_MALLOC, 0x3000, 1, 1), -ENOSPC);
	ck_live(2, 2);
	ck_oddities(0, 0, 0, 1);
	freed(0x1000);
	born(0x3000, 1, 1);
	ck_live(2, 2);
}
END_TEST

START_TEST(a_realloc_is_credited_to_its_own_stack)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	ck_live(1, 10);
	resize_end(ALICE, 0x1000, 0x2000, 30, 2);
	ck_live(1, 30);
	ck_assert_uint_eq(only_block(0x2000).stack, 2);
	ck_assert_uint_eq(heap_find(heap, 0x1000, NULL, 0), 0);
	ck_assert_uint_eq(heap_counters(heap).allocations, 2);
	ck_assert_uint_eq(heap_counters(heap).frees, 1);
	resize_begin(ALICE, 0x2000);
	resize_end(ALICE, 0x2000, 0x2000, 40, 3);
	ck_live(1, 40);
	ck_assert_uint_eq(only_block(0x2000).stack, 3);
	ck_oddities(0, 0, 0, 0);
	ck_consistent();
	freed(0x2000);
	ck_live(0, 0);
}
END_TEST

START_TEST(failed_realloc_keeps_the_old_block)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	resize_end(ALICE, 0x1000, 0, INT64_MAX, 2);
	ck_live(1, 10);
	ck_assert_uint_eq(only_block(0x1000).stack, 1);
	ck_assert_uint_eq(heap_counters(heap).frees, 0);
	ck_oddities(0, 0, 0, 0);
	freed(0x1000);
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 0);
}
END_TEST

START_TEST(realloc_to_nothing_frees)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	resize_end(ALICE, 0x1000, 0, 0, 2);
	ck_live(0, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 1);
	ck_oddities(0, 0, 0, 0);
}
END_TEST

START_TEST(realloc_of_null_is_a_birth)
{
	resize_begin(ALICE, 0);
	resize_end(ALICE, 0, 0x1000, 10, 1);
	ck_live(1, 10);
	ck_oddities(0, 0, 0, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 0);
	resize_begin(ALICE, 0);
	resize_end(ALICE, 0, 0, 10, 1);
	ck_live(1, 10);
}
END_TEST

START_TEST(growing_by_realloc_does_not_raise_the_peak_above_the_truth)
{
	born(0x1000, 1024, 1);
	for (uint64_t i = 1; i < 1024; i++) {
		resize_begin(ALICE, i << 12);
		resize_end(ALICE, i << 12, (i + 1) << 12, 1024 * (i + 1), 1);
	}
	ck_live(1, 1 << 20);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 1 << 20);
}
END_TEST

START_TEST(a_parked_block_is_still_found)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	ck_assert_uint_eq(only_block(0x1005).size, 10);
	ck_consistent();
}
END_TEST

/* Alice's realloc frees 0x1000, Bob's malloc returns it, Alice's realloc returns. */
START_TEST(anothers_birth_at_a_parked_address_loses_nothing)
{
	born(0x1000, 100, 1);
	resize_begin(ALICE, 0x1000);
	born(0x1000, 8, 7);
	ck_live(1, 8);
	ck_assert_uint_eq(heap_counters(heap).frees, 1);
	ck_consistent();
	resize_end(ALICE, 0x1000, 0x2000, 120, 2);
	ck_live(2, 128);
	ck_assert_uint_eq(only_block(0x1000).stack, 7);
	ck_assert_uint_eq(only_block(0x2000).stack, 2);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 128);
	freed(0x1000);
	freed(0x2000);
	ck_live(0, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 3);
	ck_oddities(0, 0, 0, 0);
	ck_consistent();
}
END_TEST

START_TEST(an_address_given_on_may_be_freed_and_resized_before_the_first_resize_ends)
{
	born(0x1000, 100, 1);
	resize_begin(ALICE, 0x1000);
	born(0x1000, 8, 7);
	resize_begin(BOB, 0x1000);
	born(0x1000, 9, 8);
	freed(0x1000);
	resize_end(BOB, 0x1000, 0x3000, 11, 9);
	resize_end(ALICE, 0x1000, 0x2000, 120, 2);
	ck_live(2, 131);
	ck_oddities(0, 0, 0, 0);
	ck_consistent();
}
END_TEST

START_TEST(a_shrinking_move_does_not_raise_the_peak_above_the_truth)
{
	born(0x1000, 1000, 1);
	resize_begin(ALICE, 0x1000);
	born(0x1000, 900, 2);
	resize_end(ALICE, 0x1000, 0x2000, 10, 1);
	ck_live(2, 910);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 1000);
}
END_TEST

START_TEST(a_resize_of_a_block_from_before_the_attach_counts_one_free_and_one_birth)
{
	resize_begin(ALICE, 0x1000);
	ck_oddities(0, 0, 0, 0);
	resize_end(ALICE, 0x1000, 0x2000, 30, 1);
	ck_live(1, 30);
	ck_oddities(1, 0, 0, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 0);
	resize_begin(ALICE, 0x1000);
	resize_end(ALICE, 0x1000, 0x3000, 30, 1);
	ck_oddities(1, 1, 0, 0);
	resize_begin(ALICE, 0x4000);
	resize_end(ALICE, 0x4000, 0, 30, 1);
	ck_oddities(1, 1, 0, 0);
	ck_live(2, 60);
}
END_TEST

START_TEST(a_block_from_before_the_attach_given_on_inside_a_resize_is_not_taken_away)
{
	resize_begin(ALICE, 0x1000);
	born(0x1000, 8, 7);
	resize_end(ALICE, 0x1000, 0x2000, 30, 1);
	ck_live(2, 38);
	ck_oddities(1, 0, 0, 0);
}
END_TEST

START_TEST(a_thread_that_ends_in_a_resize_gives_its_block_back)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	resize_begin(BOB, 0x9000);
	heap_thread_gone(heap, ALICE);
	ck_live(1, 10);
	freed(0x1000);
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 0);
	resize_end(BOB, 0x9000, 0xa000, 5, 1);
	ck_oddities(1, 0, 0, 0);
	ck_live(1, 5);
}
END_TEST

START_TEST(a_thread_that_ends_after_its_block_was_given_on_has_lost_an_event)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	born(0x1000, 20, 2);
	heap_thread_gone(heap, ALICE);
	ck_live(1, 20);
	ck_oddities(0, 0, 0, 1);
	ck_consistent();
}
END_TEST

START_TEST(a_resize_left_without_return_does_not_spoil_later_events)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	freed(0x1000);
	ck_live(0, 0);
	born(0x1000, 20, 2);
	resize_begin(ALICE, 0x1000);
	resize_end(ALICE, 0x1000, 0x2000, 30, 3);
	ck_live(1, 30);
	ck_oddities(0, 0, 0, 0);
	ck_consistent();
}
END_TEST

START_TEST(a_parked_block_freed_by_another_thread_is_freed_once)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	freed(0x1000);
	born(0x1000, 20, 2);
	resize_end(ALICE, 0x1000, 0x2000, 30, 3);
	ck_live(2, 50);
	ck_oddities(0, 1, 0, 0);
	ck_consistent();
}
END_TEST

START_TEST(parked_blocks_are_limited)
{
	struct heap_limits limits = { .max_parked = 100 };
	struct alloc_event event = { .kind = ALLOC_RESIZE_BEGIN, .tid = ALICE, .old_address = 0x5000 };

	heap_free(heap);
	heap = heap_new(&limits, false, 0);
	born(0x5000, 10, 1);
	for (int i = 0; i < 100; i++)
		resize_begin(ALICE, 0x10000 + (raddr)i * 16);
	ck_assert_int_eq(heap_apply(heap, &event), -ENOSPC);
	ck_oddities(0, 0, 0, 1);
	/* The resize that was not parked still moves its block when it ends. */
	resize_end(ALICE, 0x5000, 0x6000, 20, 1);
	ck_live(1, 20);
	heap_thread_gone(heap, ALICE);
	resize_begin(ALICE, 0x6000);
	ck_oddities(0, 0, 0, 1);
}
END_TEST

START_TEST(after_a_clear_the_frees_of_forgotten_blocks_are_told_apart)
{
	born(0x1000, 10, 1);
	born(0x2000, 20, 2);
	resize_begin(ALICE, 0x2000);
	heap_clear(heap);
	ck_live(0, 0);
	ck_assert_uint_eq(heap_trace_count(heap), 0);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 0);
	ck_assert_uint_eq(heap_find(heap, 0x1000, NULL, 0), 0);
	ck_consistent();
	born(0x3000, 30, 1);
	freed(0x1000);
	ck_oddities(0, 0, 1, 0);
	freed(0x1000);
	ck_oddities(0, 1, 1, 0);
	resize_end(ALICE, 0x2000, 0x4000, 5, 1);
	ck_oddities(0, 1, 2, 0);
	ck_live(2, 35);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 35);
	ck_consistent();
}
END_TEST

static void add_address(void *sum, raddr address)
{
	*(uint64_t *)sum += address;
}

/* Who is to know of all frees has to know of them. */
START_TEST(addresses_of_forgotten_blocks_are_told)
{
	uint64_t sum = 0;

	born(0x1000, 10, 1);
	heap_clear(heap);
	born(0x20000, 20, 2);
	heap_each_address(heap, add_address, &sum);
	ck_assert_uint_eq(sum, 0x21000);
}
END_TEST

START_TEST(after_a_clear_what_was_lost_before_does_not_count)
{
	restart_from_start();
	born(0x1000, 10, 1);
	freed(0x5000);                    /* its birth was lost */
	born(0x1000, 10, 1);              /* a free of it was */
	ck_oddities(0, 1, 0, 1);
	heap_clear(heap);
	ck_oddities(0, 0, 0, 0);
	freed(0x5000);                    /* born again, and that was lost, too */
	freed(0x6000);
	ck_oddities(2, 0, 0, 0);
	freed(0x6000);
	ck_oddities(2, 1, 0, 0);
	freed(0x1000);
	ck_oddities(2, 1, 1, 0);
	ck_live(0, 0);
	ck_consistent();
}
END_TEST

START_TEST(a_clear_inside_a_resize_whose_address_was_given_on)
{
	born(0x1000, 10, 1);
	resize_begin(ALICE, 0x1000);
	born(0x1000, 20, 1);
	heap_clear(heap);
	resize_end(ALICE, 0x1000, 0x4000, 5, 1);
	ck_live(1, 5);
	/* The old block was known to be gone before the clear. */
	ck_oddities(0, 0, 0, 0);
	freed(0x1000);
	ck_oddities(0, 0, 1, 0);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 5);
	ck_consistent();
}
END_TEST

START_TEST(a_clear_gives_its_memory_back_step_by_step)
{
	size_t memory;

	for (uint32_t i = 1; i <= 100000; i++)
		born((raddr)i << 6, 1, i);
	memory = heap_memory(heap);
	heap_clear(heap);
	for (uint32_t i = 1; i <= 100000; i++)
		freed((raddr)i << 6);
	ck_assert_uint_lt(heap_memory(heap), memory / 3);
	ck_oddities(0, 0, 100000, 0);
}
END_TEST

START_TEST(the_peak_starts_again_from_what_lives)
{
	born(0x1000, 100, 1);
	born(0x2000, 50, 1);
	freed(0x1000);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 150);
	heap_reset_peak(heap, 5000);
	ck_assert_uint_eq(heap_counters(heap).peak_bytes, 50);
}
END_TEST

START_TEST(the_innermost_block_is_found_first)
{
	struct heap_block found[2];

	ck_assert_int_eq(born_in(DOMAIN_MMAP, 0x10000, 0x10000, 1), 0);
	ck_assert_int_eq(born_in(DOMAIN_MALLOC, 0x11000, 0x1000, 2), 0);
	ck_assert_int_eq(born_in(DOMAIN_PYTHON, 0x11800, 0x20, 3), 0);
	ck_assert_uint_eq(heap_find(heap, 0x1181f, found, 2), 2);
	ck_assert_uint_eq(found[0].stack, 3);
	ck_assert_uint_eq(found[1].stack, 2);
	ck_assert_uint_eq(heap_find(heap, 0x11820, found, 2), 2);
	ck_assert_uint_eq(found[0].stack, 2);
	ck_assert_uint_eq(heap_find(heap, 0x20000, found, 2), 0);
}
END_TEST

START_TEST(a_block_is_told_by_where_it_begins_and_its_family)
{
	struct heap_block block;

	ck_assert_int_eq(born_in(DOMAIN_MALLOC, 0x1000, 64, 2), 0);
	ck_assert_int_eq(born_in(DOMAIN_NEW, 0x2000, 32, 3), 0);
	ck_assert(heap_block_at(heap, 0x1000, DOMAIN_MALLOC, &block));
	ck_assert_uint_eq(block.size, 64);
	ck_assert_uint_eq(block.stack, 2);
	ck_assert(heap_block_at(heap, 0x2000, DOMAIN_MALLOC, &block));
	ck_assert_uint_eq(block.domain, DOMAIN_NEW);
	ck_assert_uint_eq(block.stack, 3);
	ck_assert(!heap_block_at(heap, 0x1001, DOMAIN_MALLOC, &block));
	ck_assert(!heap_block_at(heap, 0x1000, DOMAIN_MMAP, &block));
	heap_clear(heap);
	ck_assert(!heap_block_at(heap, 0x1000, DOMAIN_MALLOC, &block));
}
END_TEST

START_TEST(a_block_of_no_bytes_is_found_at_its_address)
{
	born(0x1000, 0, 1);
	ck_assert_uint_eq(only_block(0x1000).size, 0);
	ck_assert_uint_eq(heap_find(heap, 0x1001, NULL, 0), 0);
}
END_TEST

START_TEST(births_are_dated)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .address = 0x1000, .size = 1 };
	uint64_t minute_ns = 60000000000ULL;

	event.time_ns = 1000 + minute_ns;
	REQUIRE(heap_apply(heap, &event) == 0);
	ck_assert_uint_eq(only_block(0x1000).born_ns, 1000 + minute_ns);
}
END_TEST

/* Ten births and frees inside one step of the clock, and snapshots between them. */
START_TEST(a_cut_parts_older_from_younger_blocks_whatever_the_clock)
{
	uint64_t cuts[10];

	for (uint64_t i = 0; i < 10; i++) {
		born(0x1000 * (i + 1), 1, 1);
		cuts[i] = heap_cut(heap, 1000 + i / 5);
		ck_assert_uint_ge(cuts[i], 1000 + i / 5);
	}
	born(0x1000 * 11, 1, 1);
	for (uint64_t block = 0; block <= 10; block++) {
		uint64_t born_ns = only_block(0x1000 * (block + 1)).born_ns;

		for (uint64_t i = 0; i < 10; i++)
			ck_assert_int_eq(born_ns <= cuts[i], block <= i);
	}
	ck_assert_uint_lt(cuts[9], 1000 + 100000000);
}
END_TEST

START_TEST(a_cut_of_a_clock_that_goes_on_is_the_clock)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .address = 0x1000, .size = 1, .time_ns = 900000000 };

	ck_assert_uint_eq(heap_cut(heap, 500000007), 500000007);
	ck_assert_uint_eq(heap_cut(heap, 600000007), 600000007);
	REQUIRE(heap_apply(heap, &event) == 0);
	ck_assert_uint_le(only_block(0x1000).born_ns, 900000000);
	ck_assert_uint_gt(only_block(0x1000).born_ns, 900000000 - 20000000);
}
END_TEST

static void born_by(int32_t tid, raddr address, uint32_t stack)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .tid = tid, .stack = stack, .address = address, .size = 1 };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static uint32_t thread_of(raddr address)
{
	return only_block(address).thread;
}

static void ck_temporary(uint32_t stack, uint64_t blocks)
{
	ck_assert_uint_eq(trace_of(stack).temporary_blocks, blocks);
}

START_TEST(a_block_freed_before_its_thread_makes_another_is_gone_at_once)
{
	born_by(ALICE, 0x1000, 1);
	born_by(BOB, 0x2000, 2);          /* somebody else's birth changes nothing */
	freed(0x1000);
	ck_temporary(1, 1);
	born_by(ALICE, 0x3000, 3);
	born_by(ALICE, 0x4000, 4);
	freed(0x3000);
	ck_temporary(3, 0);
	freed(0x4000);
	ck_temporary(4, 1);
	freed(0x2000);                    /* by whomever */
	ck_temporary(2, 1);
	ck_consistent();
}
END_TEST

START_TEST(what_a_thread_leaves_behind_is_not_gone_at_once)
{
	born_by(ALICE, 0x1000, 1);
	heap_thread_gone(heap, ALICE);
	freed(0x1000);
	ck_temporary(1, 0);
	/* The next thread with that number knows nothing of it. */
	born_by(ALICE, 0x1000, 2);
	freed(0x1000);
	ck_temporary(2, 1);
}
END_TEST

START_TEST(a_block_resized_at_once_is_gone_at_once)
{
	born_by(ALICE, 0x1000, 1);
	resize_begin(ALICE, 0x1000);
	resize_end(ALICE, 0x1000, 0x2000, 2, 2);
	ck_temporary(1, 1);
	freed(0x2000);
	ck_temporary(2, 1);
	/* Bob's birth takes the address while the resize goes on. */
	born_by(ALICE, 0x1000, 3);
	resize_begin(ALICE, 0x1000);
	born_by(BOB, 0x1000, 4);
	resize_end(ALICE, 0x1000, 0x2000, 2, 5);
	ck_temporary(3, 1);
	freed(0x1000);
	ck_temporary(4, 1);
}
END_TEST

START_TEST(an_address_born_anew_is_not_mistaken_for_the_old_block)
{
	born_by(ALICE, 0x1000, 1);
	born_by(ALICE, 0x1000, 2);        /* a free was lost */
	freed(0x1000);
	ck_temporary(2, 1);
	born_by(ALICE, 0x1000, 3);
	born_by(BOB, 0x1000, 4);
	freed(0x1000);
	ck_temporary(4, 1);
	ck_oddities(0, 0, 0, 2);
}
END_TEST

START_TEST(threads_that_come_and_go_leave_no_memory)
{
	size_t memory = 0;

	for (int32_t tid = 1; tid < 1 << 22; tid += 7) {
		born_by(tid, 0x1000, 1);
		freed(0x1000);
		heap_thread_gone(heap, tid);
		if (tid < 10000)
			memory = heap_memory(heap);
	}
	ck_assert_uint_eq(heap_memory(heap), memory);
	ck_temporary(1, ((1u << 22) - 2) / 7 + 1);
}
END_TEST

START_TEST(churn_counts_stay_when_blocks_go)
{
	struct sums sums = { 0 };

	for (int i = 0; i < 10; i++) {
		born(0x1000, 7, 1);
		freed(0x1000);
	}
	heap_each_trace(heap, sum_trace, &sums);
	ck_assert_uint_eq(sums.traces, 1);
	ck_assert_uint_eq(sums.total_blocks, 10);
	ck_assert_uint_eq(sums.total_bytes, 70);
	ck_assert_uint_eq(sums.blocks, 0);
}
END_TEST

/* --- size --- */

/* What a live block may take.  A shard is at least 68 per cent full, which are 37.7 bytes a block, or by less than BUCKETS_STEP
 * too large; how many of them are near that at a time is the seed's luck. */
#define BLOCK_BYTES_MAX 40

static void ck_block_memory(uint64_t blocks)
{
	ck_assert_msg(heap_block_memory(heap) <= BLOCK_BYTES_MAX * blocks, "%zu bytes for %lu blocks", heap_block_memory(heap),
		      (unsigned long)blocks);
}

/* The seed of a heap's table is made of its start, among others. */
static void restart_with_seed(int seed)
{
	heap_free(heap);
	heap = heap_new(NULL, false, 1000 + (uint64_t)seed);
}

START_TEST(memory_per_block_is_bounded_at_every_size)
{
	uint64_t checked = 0;

	restart_with_seed(_i);

	/* Steps of 3 per cent, so that no size hides between two. */
	for (uint64_t i = 1, next = 100000; i <= 1000000; i++) {
		born(0x10000000 + i * 48, 40, (uint32_t)(i % 100));
		if (i < next)
			continue;
		ck_block_memory(i);
		next += next / 33;
		checked++;
	}
	for (uint64_t i = 1, left = 999999; i <= 900000; i++, left--) {
		freed(0x10000000 + i * 48);
		if (left % 10000)
			continue;
		ck_block_memory(left);
		checked++;
	}
	ck_assert_uint_gt(checked, 100);
	ck_live(100000, 4000000);
}
END_TEST

/* Blocks 48 bytes apart come in one order and go in another. */
START_TEST(memory_per_block_is_bounded_when_scattered_blocks_go)
{
	enum { BLOCKS = 600000, STRIDE = 7919 };
	uint64_t checked = 0;

	restart_with_seed(_i);
	for (uint64_t i = 1; i <= BLOCKS; i++)
		born(0x10000000 + i * 48, 40, (uint32_t)(i % 100));
	for (uint64_t i = 1, left = BLOCKS - 1; left >= 100000; i++, left--) {
		freed(0x10000000 + (i * STRIDE % BLOCKS + 1) * 48);
		if (left % 10000)
			continue;
		ck_block_memory(left);
		checked++;
	}
	ck_assert_uint_ge(checked, 50);
	ck_oddities(0, 0, 0, 0);
}
END_TEST

START_TEST(a_small_heap_that_comes_and_goes_allocates_nothing)
{
	size_t memory;

	for (uint64_t i = 1; i <= 200; i++)
		born(i << 12, 40, 1);
	memory = heap_block_memory(heap);
	for (int round = 0; round < 100; round++) {
		for (uint64_t i = 1; i <= 200; i++)
			freed(i << 12);
		REQUIRE(heap_block_memory(heap) == memory);
		for (uint64_t i = 1; i <= 200; i++)
			born(i << 12, 40, 1);
		REQUIRE(heap_block_memory(heap) == memory);
	}
	ck_live(200, 8000);
}
END_TEST

START_TEST(large_blocks_take_no_more_memory_than_small_ones)
{
	for (uint64_t i = 1; i <= 100000; i++)
		born(i << 20, 1 << 20, 1);
	ck_assert_uint_le(heap_block_memory(heap), 36 * 100000);
}
END_TEST

START_TEST(memory_is_flat_while_the_live_set_is_stable)
{
	enum { LIVE = 50000 };
	size_t before = 0;

	for (uint64_t i = 1; i <= 20 * LIVE; i++) {
		/* The addresses of a window that moves over a heap of four times its size. */
		born(0x10000 + i % (4 * LIVE) * 64, 40, (uint32_t)(i % 100));
		if (i > LIVE)
			freed(0x10000 + (i - LIVE) % (4 * LIVE) * 64);
		if (i == 6 * LIVE)
			before = heap_memory(heap);
	}
	ck_assert_uint_le(heap_memory(heap), before + before / 20);
	ck_live(LIVE, LIVE * 40);
	ck_oddities(0, 0, 0, 0);
}
END_TEST

/* --- against a plain model --- */

enum { PLACES = 4096, TIDS = 6, OPERATIONS = 200000 };

struct model {
	struct { bool live, resizing; uint64_t size; uint32_t stack; } place[PLACES];
	struct { int at; bool moved; } resizing[TIDS];          /* at -1: in no resize */
};

static raddr place_address(int place)
{
	return 0x500000 + (raddr)place * 16;
}

static void model_born(struct model *m, int at)
{
	m->place[at].live = true;
	m->place[at].size = (uint64_t)rand() % 1000;
	m->place[at].stack = (uint32_t)rand() % 50;
}

static void model_resize_begin(struct model *m, int tid, int at)
{
	m->resizing[tid].at = at;
	m->resizing[tid].moved = rand() % 2;
	resize_begin(tid, place_address(at));
	if (!m->resizing[tid].moved) {
		m->place[at].resizing = true;
		return;
	}
	/* Inside the call the old block is freed, and another thread gets its address. */
	model_born(m, at);
	born(place_address(at), m->place[at].size, m->place[at].stack);
}

static void model_resize_end(struct model *m, int tid)
{
	int old = m->resizing[tid].at, at = rand() % PLACES;
	bool failed = !m->resizing[tid].moved && rand() % 3 == 0;

	m->resizing[tid].at = -1;
	if (!m->resizing[tid].moved)
		m->place[old].resizing = false;
	if (failed) {
		resize_end(tid, place_address(old), 0, 1, 0);
		return;
	}
	if (!m->resizing[tid].moved)
		m->place[old].live = false;
	while (m->place[at].live)
		at = rand() % PLACES;
	model_born(m, at);
	resize_end(tid, place_address(old), place_address(at), m->place[at].size, m->place[at].stack);
}

/* A legal random operation of one thread; the model knows the truth. */
static void operate(struct model *m)
{
	int tid = rand() % TIDS, at = rand() % PLACES;

	if (m->resizing[tid].at >= 0) {
		model_resize_end(m, tid);
	} else if (m->place[at].resizing) {
		return;
	} else if (!m->place[at].live) {
		model_born(m, at);
		born(place_address(at), m->place[at].size, m->place[at].stack);
	} else if (rand() % 2) {
		m->place[at].live = false;
		freed(place_address(at));
	} else {
		model_resize_begin(m, tid, at);
	}
}

static int match_model(void *context, const struct heap_block *block)
{
	const struct model *m = context;
	int at = (int)((block->address - place_address(0)) / 16);

	REQUIRE(m->place[at].live);
	REQUIRE(block->size == m->place[at].size);
	REQUIRE(block->stack == m->place[at].stack);
	return 0;
}

START_TEST(a_block_knows_the_thread_that_allocated_it)
{
	born(0x1000, 10, 1);
	born_by(BOB, 0x2000, 1);
	born_by(0x3fffff, 0x3000, 1);
	ck_assert_uint_eq(thread_of(0x1000), ALICE);
	ck_assert_uint_eq(thread_of(0x2000), BOB);
	ck_assert_uint_eq(thread_of(0x3000), 0x3fffff);
	resize_begin(BOB, 0x1000);
	resize_end(BOB, 0x1000, 0x4000, 20, 1);
	ck_assert_uint_eq(thread_of(0x4000), BOB);
	heap_thread_gone(heap, BOB);
	ck_assert_uint_eq(thread_of(0x2000), BOB);
	heap_clear(heap);
	born_by(33, 0x5000, 1);
	born_by(BOB, 0x6000, 1);
	ck_assert_uint_eq(thread_of(0x5000), 33);
	ck_assert_uint_eq(thread_of(0x6000), BOB);
}
END_TEST

/* Numbers of threads are given again, but never that of a block that lives. */
START_TEST(threads_past_the_limit_are_not_known_and_nothing_else_is_lost)
{
	const int32_t limit = UINT16_MAX, many = limit + 1000;

	for (int32_t tid = 1; tid <= many; tid++)
		born_by(tid, (raddr)tid * 0x100, 1);
	ck_assert_uint_eq(thread_of(0x100), 1);
	ck_assert_uint_eq(thread_of((raddr)limit * 0x100), (uint32_t)limit);
	ck_assert_uint_eq(thread_of((raddr)many * 0x100), 0);
	ck_assert_uint_eq(heap_counters(heap).live_blocks, (uint64_t)many);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 0);
	born_by(7, 0x10, 1);
	ck_assert_uint_eq(thread_of(0x10), 7);
	/* One that ended keeps its number for its block, and leaves it with that. */
	heap_thread_gone(heap, 20);
	born_by(many + 1, 0x20, 1);
	ck_assert_uint_eq(thread_of(0x20), 0);
	ck_assert_uint_eq(thread_of(20 * 0x100), 20);
	freed(20 * 0x100);
	born_by(many + 1, 0x30, 1);
	ck_assert_uint_eq(thread_of(0x30), (uint32_t)many + 1);
	ck_assert_uint_eq(thread_of(0x20), 0);
	ck_assert_uint_eq(thread_of(21 * 0x100), 21);
}
END_TEST

/* Also while the number of the last one that was has been taken back. */
START_TEST(a_block_of_a_thread_that_is_not_known_is_nobodys)
{
	born_by(ALICE, 0x1000, 1);
	heap_thread_gone(heap, ALICE);
	born_by(0, 0x2000, 1);
	ck_assert_uint_eq(thread_of(0x1000), ALICE);
	ck_assert_uint_eq(thread_of(0x2000), 0);
}
END_TEST

START_TEST(a_thread_whose_id_comes_again_is_another_thread)
{
	born_by(ALICE, 0x1000, 1);
	heap_thread_gone(heap, ALICE);
	born_by(ALICE, 0x2000, 2);
	freed(0x1000);                    /* the first one's: the second one's number stays */
	born_by(BOB, 0x3000, 3);
	ck_assert_uint_eq(thread_of(0x2000), ALICE);
	ck_assert_uint_eq(thread_of(0x3000), BOB);
	freed(0x2000);
	ck_temporary(2, 1);
}
END_TEST

START_TEST(an_address_that_no_process_has_is_lost_and_not_mistaken_for_another)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .tid = ALICE, .stack = 1,
				     .address = (1ULL << 48) + 0x1000, .size = 8 };

	ck_assert_int_eq(heap_apply(heap, &event), -ERANGE);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 1);
	ck_assert(!heap_is_live(heap, 0x1000, DOMAIN_MALLOC));
	ck_assert(!heap_is_live(heap, event.address, DOMAIN_MALLOC));
}
END_TEST

START_TEST(random_legal_events_leave_what_a_plain_model_has)
{
	static struct model m;
	uint64_t blocks = 0, bytes = 0;

	memset(&m, 0, sizeof(m));
	srand((unsigned)_i + 100);
	for (int tid = 0; tid < TIDS; tid++)
		m.resizing[tid].at = -1;
	for (int i = 0; i < OPERATIONS; i++)
		operate(&m);
	for (int tid = 0; tid < TIDS; tid++) {
		if (m.resizing[tid].at >= 0)
			model_resize_end(&m, tid);
	}
	for (int i = 0; i < PLACES; i++) {
		blocks += m.place[i].live;
		bytes += m.place[i].live ? m.place[i].size : 0;
	}
	heap_each_block(heap, match_model, &m);
	ck_live(blocks, bytes);
	ck_oddities(0, 0, 0, 0);
	ck_consistent();
	ck_assert_uint_gt(blocks, PLACES / 10);
	for (int i = 0; i < PLACES; i++) {
		if (m.place[i].live)
			freed(place_address(i));
	}
	ck_live(0, 0);
	ck_oddities(0, 0, 0, 0);
}
END_TEST

static TCase *semantics(void)
{
	TCase *tcase = tcase_create("semantics");

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_block_lives_from_birth_to_free);
	tcase_add_test(tcase, an_unborn_block_was_never_there);
	tcase_add_test(tcase, null_is_neither_born_nor_freed);
	tcase_add_test(tcase, what_was_born_before_the_attach_is_told_from_a_double_free);
	tcase_add_test(tcase, what_a_call_from_before_the_attach_has_given_may_be_freed_once_more);
	tcase_add_test(tcase, small_blocks_from_before_that_lie_side_by_side_are_told_apart);
	tcase_add_test(tcase, from_the_start_every_free_of_no_block_is_unknown);
	tcase_add_test(tcase, without_memory_for_seen_addresses_a_free_counts_as_before_attach);
	tcase_add_test(tcase, a_birth_at_a_live_address_replaces_and_is_counted);
	tcase_add_test(tcase, malloc_and_new_are_one_address_space);
	tcase_add_test(tcase, a_pool_and_its_first_object_share_an_address);
	tcase_add_test(tcase, a_domain_that_cannot_be_kept_is_lost_and_counted);
	tcase_add_test(tcase, past_the_limit_allocations_are_lost_and_counted);
	tcase_add_test(tcase, the_peak_starts_again_from_what_lives);
	tcase_add_test(tcase, the_innermost_block_is_found_first);
	tcase_add_test(tcase, a_block_is_told_by_where_it_begins_and_its_family);
	tcase_add_test(tcase, a_block_of_no_bytes_is_found_at_its_address);
	tcase_add_test(tcase, births_are_dated);
	tcase_add_test(tcase, a_cut_parts_older_from_younger_blocks_whatever_the_clock);
	tcase_add_test(tcase, a_cut_of_a_clock_that_goes_on_is_the_clock);
	tcase_add_test(tcase, a_block_freed_before_its_thread_makes_another_is_gone_at_once);
	tcase_add_test(tcase, what_a_thread_leaves_behind_is_not_gone_at_once);
	tcase_add_test(tcase, a_block_resized_at_once_is_gone_at_once);
	tcase_add_test(tcase, an_address_born_anew_is_not_mistaken_for_the_old_block);
	tcase_add_test(tcase, threads_that_come_and_go_leave_no_memory);
	tcase_add_test(tcase, churn_counts_stay_when_blocks_go);
	return tcase;
}

static TCase *resizes(void)
{
	TCase *tcase = tcase_create("resizes");

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_realloc_is_credited_to_its_own_stack);
	tcase_add_test(tcase, failed_realloc_keeps_the_old_block);
	tcase_add_test(tcase, realloc_to_nothing_frees);
	tcase_add_test(tcase, realloc_of_null_is_a_birth);
	tcase_add_test(tcase, growing_by_realloc_does_not_raise_the_peak_above_the_truth);
	tcase_add_test(tcase, a_parked_block_is_still_found);
	tcase_add_test(tcase, anothers_birth_at_a_parked_address_loses_nothing);
	tcase_add_test(tcase,
		       an_address_given_on_may_be_freed_and_resized_before_the_first_resize_ends);
	tcase_add_test(tcase, a_shrinking_move_does_not_raise_the_peak_above_the_truth);
	tcase_add_test(tcase, a_resize_of_a_block_from_before_the_attach_counts_one_free_and_one_birth);
	tcase_add_test(tcase, a_block_from_before_the_attach_given_on_inside_a_resize_is_not_taken_away);
	tcase_add_test(tcase, a_thread_that_ends_in_a_resize_gives_its_block_back);
	tcase_add_test(tcase, a_thread_that_ends_after_its_block_was_given_on_has_lost_an_event);
	tcase_add_test(tcase, a_resize_left_without_return_does_not_spoil_later_events);
	tcase_add_test(tcase, a_parked_block_freed_by_another_thread_is_freed_once);
	tcase_add_test(tcase, parked_blocks_are_limited);
	return tcase;
}

static TCase *clears(void)
{
	TCase *tcase = tcase_create("clear");

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, after_a_clear_the_frees_of_forgotten_blocks_are_told_apart);
	tcase_add_test(tcase, addresses_of_forgotten_blocks_are_told);
	tcase_add_test(tcase, after_a_clear_what_was_lost_before_does_not_count);
	tcase_add_test(tcase, a_clear_inside_a_resize_whose_address_was_given_on);
	tcase_add_test(tcase, a_clear_gives_its_memory_back_step_by_step);
	return tcase;
}

static TCase *sizes(void)
{
	TCase *tcase = tcase_create("sizes");

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, memory_per_block_is_bounded_at_every_size, 0, 4);
	tcase_add_loop_test(tcase, memory_per_block_is_bounded_when_scattered_blocks_go, 0, 4);
	tcase_add_test(tcase, a_small_heap_that_comes_and_goes_allocates_nothing);
	tcase_add_test(tcase, large_blocks_take_no_more_memory_than_small_ones);
	tcase_add_test(tcase, memory_is_flat_while_the_live_set_is_stable);
	tcase_add_test(tcase, a_block_knows_the_thread_that_allocated_it);
	tcase_add_test(tcase, a_block_of_a_thread_that_is_not_known_is_nobodys);
	tcase_add_test(tcase, a_thread_whose_id_comes_again_is_another_thread);
	tcase_add_test(tcase, threads_past_the_limit_are_not_known_and_nothing_else_is_lost);
	tcase_add_test(tcase, an_address_that_no_process_has_is_lost_and_not_mistaken_for_another);
	tcase_add_loop_test(tcase, random_legal_events_leave_what_a_plain_model_has, 0, 5);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("heap");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, semantics());
	suite_add_tcase(suite, resizes());
	suite_add_tcase(suite, clears());
	suite_add_tcase(suite, sizes());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
