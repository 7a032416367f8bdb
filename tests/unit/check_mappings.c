/* Mappings in the heap: by hand, and random ones against a model that knows each page by itself. */
#include "random.h"
#include "require.h"

#include "model/heap.h"
#include "model/ranges.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define BASE 0x7f0000000000ULL
#define ALICE 11
#define BOB 22

static struct heap *heap;

static void setup(void)
{
	heap = heap_new(NULL, false, 1000);
}

static void teardown(void)
{
	heap_free(heap);
}

static raddr page(uint64_t number)
{
	return BASE + number * PAGE;
}

static void map(int32_t tid, uint64_t first, uint64_t pages, uint32_t stack, bool replaces)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .tid = tid, .domain = DOMAIN_MMAP, .stack = stack,
				     .address = page(first), .size = pages * PAGE, .time_ns = 1000, .replaces = replaces };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void begin(int32_t tid, uint64_t first, uint64_t pages)
{
	struct alloc_event event = { .kind = ALLOC_RESIZE_BEGIN, .tid = tid, .domain = DOMAIN_MMAP,
				     .old_address = page(first), .old_size = pages * PAGE };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void end(int32_t tid, uint64_t first, uint64_t pages, bool succeeds)
{
	struct alloc_event event = { .kind = ALLOC_RESIZE_END, .tid = tid, .domain = DOMAIN_MMAP,
				     .old_address = page(first), .old_size = pages * PAGE, .size = succeeds ? 0 : 1 };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void move(int32_t tid, uint64_t first, uint64_t pages, uint64_t to, uint64_t new_pages, uint32_t stack)
{
	struct alloc_event event = { .kind = ALLOC_RESIZE_END, .tid = tid, .domain = DOMAIN_MMAP, .stack = stack,
				     .old_address = page(first), .old_size = pages * PAGE, .address = page(to),
				     .size = new_pages * PAGE, .replaces = true };

	begin(tid, first, pages);
	REQUIRE(heap_apply(heap, &event) == 0);
}

static void unmap(int32_t tid, uint64_t first, uint64_t pages)
{
	begin(tid, first, pages);
	end(tid, first, pages, true);
}

static struct heap_block block_at(uint64_t number)
{
	struct heap_block found[2];

	ck_assert_uint_eq(heap_find(heap, page(number) + 5, found, 2), 1);
	return found[0];
}

static void ck_live(uint64_t blocks, uint64_t pages)
{
	struct heap_counters counters = heap_counters(heap);

	ck_assert_uint_eq(counters.live_blocks, blocks);
	ck_assert_uint_eq(counters.live_bytes, pages * PAGE);
}

START_TEST(a_hole_in_a_mapping_leaves_two_blocks_with_its_stack)
{
	struct heap_block block;

	map(ALICE, 0, 10, 5, false);
	unmap(BOB, 3, 4);
	ck_live(2, 6);
	block = block_at(2);
	ck_assert_uint_eq(block.address, page(0));
	ck_assert_uint_eq(block.size, 3 * PAGE);
	ck_assert_uint_eq(block.stack, 5);
	block = block_at(7);
	ck_assert_uint_eq(block.address, page(7));
	ck_assert_uint_eq(block.size, 3 * PAGE);
	ck_assert_uint_eq(block.stack, 5);
	ck_assert_uint_eq(block.thread, ALICE);
	ck_assert_uint_eq(heap_find(heap, page(3), &block, 1), 0);
}
END_TEST

START_TEST(what_is_unmapped_may_be_of_two_mappings)
{
	map(ALICE, 0, 4, 5, false);
	map(ALICE, 4, 4, 6, false);
	unmap(ALICE, 3, 2);
	ck_live(2, 6);
	ck_assert_uint_eq(block_at(2).stack, 5);
	ck_assert_uint_eq(block_at(5).address, page(5));
	ck_assert_uint_eq(block_at(5).stack, 6);
	ck_assert_uint_eq(heap_counters(heap).frees, 0);
}
END_TEST

START_TEST(an_unmapping_that_fails_takes_nothing)
{
	map(ALICE, 0, 4, 5, false);
	begin(ALICE, 0, 4);
	ck_live(1, 4);
	end(ALICE, 0, 4, false);
	ck_live(1, 4);
}
END_TEST

START_TEST(a_mapping_takes_the_place_of_what_was_there)
{
	map(ALICE, 0, 10, 5, false);
	map(ALICE, 4, 2, 6, true);
	ck_live(3, 10);
	ck_assert_uint_eq(block_at(4).stack, 6);
	ck_assert_uint_eq(block_at(6).address, page(6));
	ck_assert_uint_eq(heap_counters(heap).lost_events, 0);
}
END_TEST

START_TEST(one_that_should_have_been_unmapped_before_is_a_lost_event)
{
	map(ALICE, 0, 10, 5, false);
	map(ALICE, 9, 10, 6, false);
	ck_live(2, 19);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 1);
}
END_TEST

/* Alice unmaps; before she is back, Bob is given the place. */
START_TEST(what_was_given_to_another_during_an_unmapping_is_the_others)
{
	map(ALICE, 0, 10, 5, false);
	begin(ALICE, 0, 10);
	map(BOB, 2, 3, 6, false);
	end(ALICE, 0, 10, true);
	ck_live(1, 3);
	ck_assert_uint_eq(block_at(2).stack, 6);
	map(ALICE, 20, 2, 5, false);
	begin(ALICE, 20, 2);
	map(BOB, 20, 2, 6, false);
	end(ALICE, 20, 2, true);
	ck_live(2, 5);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 0);
	ck_assert_uint_eq(heap_counters(heap).before_attach_frees, 0);
}
END_TEST

START_TEST(a_move_is_a_mapping_of_its_own)
{
	map(ALICE, 0, 4, 5, false);
	move(ALICE, 0, 4, 20, 8, 6);
	ck_live(1, 8);
	ck_assert_uint_eq(block_at(27).stack, 6);
	move(ALICE, 20, 8, 20, 2, 7);
	ck_live(1, 2);
	move(ALICE, 20, 0, 40, 2, 8);                  /* it stays where it was as well */
	ck_live(2, 4);
}
END_TEST

START_TEST(a_mapping_from_before_the_attach_is_told_by_its_unmapping)
{
	map(ALICE, 0, 4, 5, false);
	unmap(ALICE, 20, 4);
	ck_assert_uint_eq(heap_counters(heap).before_attach_frees, 1);
	ck_assert_uint_eq(heap_counters(heap).unknown_frees, 0);
	unmap(ALICE, 20, 4);                           /* nothing is wrong with that */
	ck_assert_uint_eq(heap_counters(heap).unknown_frees, 0);
	ck_live(1, 4);
}
END_TEST

START_TEST(what_became_an_allocators_is_no_mapping_and_no_free)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .domain = DOMAIN_MMAP, .address = page(2), .size = 20 * PAGE,
				     .replaces = true, .internal = true };

	map(ALICE, 0, 4, 5, false);
	ck_assert_int_eq(heap_apply(heap, &event), 0);
	ck_live(1, 2);
	event = (struct alloc_event){ .kind = ALLOC_RESIZE_END, .domain = DOMAIN_MMAP, .old_address = page(2),
				      .old_size = 20 * PAGE, .internal = true };
	ck_assert_int_eq(heap_apply(heap, &event), 0);
	ck_live(1, 2);
	ck_assert_uint_eq(heap_counters(heap).before_attach_frees, 0);
}
END_TEST

START_TEST(an_address_can_be_a_mappings_and_a_blocks)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .tid = ALICE, .domain = DOMAIN_MALLOC, .stack = 9,
				     .address = page(1), .size = 100 };
	struct heap_block found[3];

	map(ALICE, 1, 4, 5, false);
	ck_assert_int_eq(heap_apply(heap, &event), 0);
	ck_assert_uint_eq(heap_find(heap, page(1) + 50, found, 3), 2);
	ck_assert_uint_eq(found[0].domain, DOMAIN_MALLOC);
	ck_assert_uint_eq(found[1].domain, DOMAIN_MMAP);
	unmap(ALICE, 0, 10);
	ck_assert_uint_eq(heap_find(heap, page(1) + 50, found, 3), 1);
}
END_TEST

START_TEST(a_mapping_that_was_taken_back_is_gone)
{
	struct alloc_event event = { .kind = ALLOC_UNBORN, .domain = DOMAIN_MMAP, .address = page(3) };

	map(ALICE, 3, 4, 5, false);
	ck_assert_int_eq(heap_apply(heap, &event), 0);
	ck_live(0, 0);
	map(ALICE, 3, 4, 5, false);
	ck_live(1, 4);
	ck_assert_uint_eq(heap_counters(heap).allocations, 1);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 0);
}
END_TEST

START_TEST(no_range_is_no_mapping)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .domain = DOMAIN_MMAP, .address = (1ULL << 48) - PAGE, .size = 2 * PAGE };

	ck_assert_int_eq(heap_apply(heap, &event), -ERANGE);
	event = (struct alloc_event){ .kind = ALLOC_BORN, .domain = DOMAIN_MMAP, .address = page(1) };
	ck_assert_int_eq(heap_apply(heap, &event), -ERANGE);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 2);
	unmap(ALICE, 0, UINT64_MAX / PAGE);
	ck_live(0, 0);
}
END_TEST

/* --- ranges alone --- */

#define MANY 20000

START_TEST(ranges_are_found_in_order_however_they_come_and_go)
{
	struct ranges ranges;
	bool there[MANY] = { 0 };
	uint64_t count = 0;

	ranges_init(&ranges);
	for (uint32_t i = 0; i < 6 * MANY; i++) {
		uint32_t at = (uint32_t)(random_u64() % MANY), next = at;
		struct range range = { page(at), page(at) + PAGE, i };
		const struct range *found;

		/* More of them come in the first half. */
		if (there[at] && random_u64() % 8 < (i < 3 * MANY ? 1 : 8)) {
			ranges_remove(&ranges, range.start);
			there[at] = false;
			count--;
		} else if (!there[at] && random_u64() % 8 < (i < 3 * MANY ? 8 : 1)) {
			REQUIRE(ranges_reserve(&ranges) == 0);
			ranges_add(&ranges, &range);
			there[at] = true;
			count++;
		}
		while (next < MANY && !there[next])
			next++;
		found = ranges_at_or_above(&ranges, range.start + PAGE - 1);
		REQUIRE((found == NULL) == (next == MANY));
		REQUIRE(!found || found->start == page(next));
		REQUIRE(ranges.count == count);
	}
	ck_assert_uint_le(ranges_memory(&ranges), 1 << 20);
	ranges_fini(&ranges);
}
END_TEST

/* --- random ones --- */

#define PAGES 200
#define STACKS 12
#define THREADS 4
#define EVENTS 30000
#define NOBODY 0

struct model {
	struct { uint32_t block, stack; uint64_t birth; } page[PAGES];
	struct { bool pending; uint32_t first, pages; uint64_t births; } thread[THREADS];
	uint64_t births;
	uint32_t blocks;               /* numbers given */
	uint64_t made_blocks[STACKS], made_pages[STACKS];
};

/* A block of which pages were taken in the midst is two. */
static void model_part(struct model *m, uint32_t from)
{
	uint32_t first = from, block, last;

	while (first < PAGES && m->page[first].block == NOBODY)
		first++;
	if (first == PAGES || first == 0)
		return;
	block = m->page[first].block;
	for (last = first; last > 0 && m->page[last - 1].block != block; last--)
		;
	if (last == 0 || m->page[first - 1].block == block)
		return;
	m->blocks++;
	m->made_blocks[m->page[first].stack]++;
	for (uint32_t i = first; i < PAGES && m->page[i].block == block; i++)
		m->page[i].block = m->blocks;
}

static void model_part_all(struct model *m)
{
	for (uint32_t i = 1; i < PAGES; i++) {
		if (m->page[i].block != NOBODY && m->page[i].block != m->page[i - 1].block)
			model_part(m, i);
	}
}

static void model_cut(struct model *m, uint32_t first, uint32_t pages, uint64_t births)
{
	for (uint32_t i = first; i < first + pages; i++) {
		if (m->page[i].birth <= births)
			m->page[i].block = NOBODY;
	}
	model_part_all(m);
}

static void model_map(struct model *m, uint32_t first, uint32_t pages, uint32_t stack)
{
	model_cut(m, first, pages, UINT64_MAX);
	m->births++;
	m->blocks++;
	m->made_blocks[stack]++;
	m->made_pages[stack] += pages;
	for (uint32_t i = first; i < first + pages; i++) {
		m->page[i].block = m->blocks;
		m->page[i].stack = stack;
		m->page[i].birth = m->births;
	}
}

struct compared {
	const struct model *model;
	uint64_t blocks, pages, peak_blocks, peak_bytes;
};

static int compare_block(void *context, const struct heap_block *block)
{
	struct compared *compared = context;
	const struct model *m = compared->model;
	uint64_t first = (block->address - BASE) / PAGE, pages = block->size / PAGE;

	REQUIRE(block->domain == DOMAIN_MMAP && pages > 0 && first + pages <= PAGES);
	REQUIRE(m->page[first].block != NOBODY && m->page[first].stack == block->stack);
	REQUIRE(first == 0 || m->page[first - 1].block != m->page[first].block);
	REQUIRE(first + pages == PAGES || m->page[first + pages].block != m->page[first].block);
	for (uint64_t i = first; i < first + pages; i++)
		REQUIRE(m->page[i].block == m->page[first].block);
	compared->blocks++;
	compared->pages += pages;
	return 0;
}

static int compare_trace(void *context, const struct heap_trace *trace)
{
	struct compared *compared = context;
	const struct model *m = compared->model;
	uint64_t pages = 0;

	for (uint32_t i = 0; i < PAGES; i++)
		pages += m->page[i].block != NOBODY && m->page[i].stack == trace->stack;
	REQUIRE(trace->live_bytes == pages * PAGE);
	REQUIRE(trace->total_blocks == m->made_blocks[trace->stack]);
	REQUIRE(trace->total_bytes == m->made_pages[trace->stack] * PAGE);
	REQUIRE(trace->temporary_blocks <= trace->total_blocks);
	compared->peak_blocks += trace->peak_blocks;
	compared->peak_bytes += trace->peak_bytes;
	return 0;
}

static void compare(const struct model *m)
{
	struct compared compared = { m, 0, 0, 0, 0 };
	struct heap_counters counters = heap_counters(heap);
	uint64_t pages = 0;

	for (uint32_t i = 0; i < PAGES; i++)
		pages += m->page[i].block != NOBODY;
	heap_each_block(heap, compare_block, &compared);
	heap_each_trace(heap, compare_trace, &compared);
	REQUIRE(compared.pages == pages);
	REQUIRE(counters.live_bytes == pages * PAGE && counters.live_blocks == compared.blocks);
	REQUIRE(counters.allocations - counters.frees == counters.live_blocks);
	REQUIRE(counters.peak_bytes == compared.peak_bytes && counters.peak_blocks == compared.peak_blocks);
	REQUIRE(counters.lost_events == 0 && counters.unknown_frees == 0);
}

static uint32_t below(uint32_t bound)
{
	return (uint32_t)(random_u64() % bound);
}

/* Mostly few pages, sometimes many. */
static uint32_t random_pages(uint32_t first)
{
	uint32_t pages = 1 + below(below(4) ? 6 : 60);

	return first + pages > PAGES ? PAGES - first : pages;
}

static void step_unmapping(struct model *m, uint32_t t)
{
	bool succeeds = below(5) > 0;

	if (!m->thread[t].pending) {
		m->thread[t].first = below(PAGES);
		m->thread[t].pages = random_pages(m->thread[t].first);
		m->thread[t].births = m->births;
		m->thread[t].pending = true;
		begin((int32_t)t + 1, m->thread[t].first, m->thread[t].pages);
		return;
	}
	m->thread[t].pending = false;
	end((int32_t)t + 1, m->thread[t].first, m->thread[t].pages, succeeds);
	if (succeeds)
		model_cut(m, m->thread[t].first, m->thread[t].pages, m->thread[t].births);
}

static void step_move(struct model *m, uint32_t t)
{
	uint32_t first = below(PAGES), pages = random_pages(first), to = below(3) ? below(PAGES) : first;
	uint32_t new_pages = random_pages(to), stack = below(STACKS);

	if (m->thread[t].pending)
		return;
	move((int32_t)t + 1, first, pages, to, new_pages, stack);
	model_cut(m, first, pages, m->births);
	model_map(m, to, new_pages, stack);
}

static void step(struct model *m)
{
	uint32_t t = below(THREADS), first = below(PAGES), pages = random_pages(first), stack = below(STACKS);

	switch (below(8)) {
	case 0:
	case 1:
	case 2:
		map((int32_t)t + 1, first, pages, stack, true);
		model_map(m, first, pages, stack);
		break;
	case 3:
		step_move(m, t);
		break;
	default:
		step_unmapping(m, t);
	}
}

START_TEST(random_mappings_are_what_a_model_of_pages_says)
{
	static struct model model;

	for (uint32_t i = 0; i < EVENTS; i++) {
		step(&model);
		compare(&model);
	}
	ck_assert_uint_gt(model.blocks, EVENTS / 3);
}
END_TEST

/* Forgotten mappings can still be cut, and then count as what they are. */
START_TEST(a_mapping_that_was_cleared_away_stays_away_when_it_is_cut)
{
	map(ALICE, 0, 10, 5, false);
	heap_clear(heap);
	unmap(ALICE, 3, 2);
	unmap(ALICE, 8, 1);
	map(ALICE, 0, 1, 6, true);
	ck_live(1, 1);
	unmap(ALICE, 0, 10);
	ck_live(0, 0);
	ck_assert_uint_eq(heap_counters(heap).lost_events, 0);
	ck_assert_uint_eq(heap_counters(heap).frees, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mappings");
	TCase *tests = tcase_create("mappings");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, a_hole_in_a_mapping_leaves_two_blocks_with_its_stack);
	tcase_add_test(tests, what_is_unmapped_may_be_of_two_mappings);
	tcase_add_test(tests, an_unmapping_that_fails_takes_nothing);
	tcase_add_test(tests, a_mapping_takes_the_place_of_what_was_there);
	tcase_add_test(tests, one_that_should_have_been_unmapped_before_is_a_lost_event);
	tcase_add_test(tests, what_was_given_to_another_during_an_unmapping_is_the_others);
	tcase_add_test(tests, a_move_is_a_mapping_of_its_own);
	tcase_add_test(tests, a_mapping_from_before_the_attach_is_told_by_its_unmapping);
	tcase_add_test(tests, what_became_an_allocators_is_no_mapping_and_no_free);
	tcase_add_test(tests, an_address_can_be_a_mappings_and_a_blocks);
	tcase_add_test(tests, a_mapping_that_was_taken_back_is_gone);
	tcase_add_test(tests, no_range_is_no_mapping);
	tcase_add_test(tests, ranges_are_found_in_order_however_they_come_and_go);
	tcase_add_test(tests, random_mappings_are_what_a_model_of_pages_says);
	tcase_add_test(tests, a_mapping_that_was_cleared_away_stays_away_when_it_is_cut);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
