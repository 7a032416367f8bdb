/* Jumps that a debugger's breakpoint behind their first byte does not change. */
#include "arch/arch.h"
#include "probe/plan.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INT3 0xcc
#define LIBDIR "/usr/lib/x86_64-linux-gnu/"
#define HIGH 0x7f1234567890ULL         /* where libraries are */
#define LOW 0x401230ULL                /* a program that is not loaded anywhere */

static const char *const libraries[] = { LIBDIR "libc.so.6", LIBDIR "libjemalloc.so.2", LIBDIR "libtcmalloc_minimal.so.4",
					 LIBDIR "libmimalloc.so.2", "/lib/ld-musl-x86_64.so.1" };
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

START_TEST(instructions_that_begin_within_a_jump_are_found)
{
	static const uint8_t pops[] = { 0x5b, 0x5d, 0x41, 0x5c, 0xc3 };        /* at 0, 1, 2, 4 */
	static const uint8_t moves[] = { 0x48, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x10 };    /* at 0, 3 */
	static const uint8_t one[] = { 0x48, 0x8b, 0x05, 1, 2, 3, 4, 0x90 };
	static const uint8_t five[] = { 0xb8, 1, 2, 3, 4, 0x90 };
	static const uint8_t cut[] = { 0x48, 0x8b };

	ck_assert_uint_eq(arch_starts_within(pops, sizeof(pops)), 1 << 1 | 1 << 2 | 1 << 4);
	ck_assert_uint_eq(arch_starts_within(moves, sizeof(moves)), 1 << 3);
	ck_assert_uint_eq(arch_starts_within(one, sizeof(one)), 0);
	ck_assert_uint_eq(arch_starts_within(five, sizeof(five)), 0);
	ck_assert_uint_eq(arch_starts_within(cut, sizeof(cut)), 0);
	ck_assert_uint_eq(arch_starts_within(pops, 0), 0);
}
END_TEST

/* What is written over these bytes, and put back, changes nothing. */
static void require_spared(uint64_t from, uint64_t target, unsigned starts)
{
	uint8_t bytes[ARCH_JUMP_SIZE];

	ck_assert(arch_put_jump(from, target, bytes));
	for (unsigned i = 1; i < ARCH_JUMP_SIZE; i++)
		ck_assert(!(starts & 1U << i) || bytes[i] == INT3);
}

/* Where a jump from there may lead: how many places, each another one, all of them below 2^47. */
static unsigned count_places(uint64_t from, unsigned starts)
{
	uint64_t seen[64], target;
	unsigned count = 0;

	for (unsigned choice = 0; (target = arch_spared_target(from, starts, choice)) != 0; choice++) {
		ck_assert_uint_lt(choice, 64);
		if (target == ARCH_NOWHERE)
			continue;
		require_spared(from, target, starts);
		ck_assert_uint_lt(target, 1ULL << 47);
		ck_assert_uint_ge(target, 65536);
		for (unsigned i = 0; i < count; i++)
			ck_assert_uint_ne(seen[i], target);
		seen[count++] = target;
	}
	return count;
}

static void require_low_places(unsigned starts)
{
	uint64_t target = ARCH_NOWHERE;
	unsigned choice = 0;

	while (target == ARCH_NOWHERE)
		target = arch_spared_target(LOW, starts, choice++);
	ck_assert_uint_eq(target, LOW + 5 - 0x333334);
	for (; (target = arch_spared_target(LOW, starts, choice)) != 0; choice++)
		ck_assert_uint_ge(target, LOW + (512 << 20));
}

START_TEST(where_a_jump_leads_is_made_of_breakpoints)
{
	for (unsigned starts = 2; starts < 32; starts += 2) {
		unsigned highest = starts & 1 << 4, next = starts & 1 << 3;

		/* The first of the places is the same for all: 820 MiB below. */
		ck_assert_uint_eq(arch_spared_target(HIGH, starts, 0), HIGH + 5 - 0x33333334);
		ck_assert_uint_ge(count_places(HIGH, starts), highest && next ? 1 : 8);
		/* Below that there is little; what is above is far enough for most heaps, and comes last. */
		ck_assert_uint_eq(count_places(LOW, starts) > 0, !highest);
		if (!highest)
			require_low_places(starts);
	}
}
END_TEST

/* So they never get in each other's way, whatever two jumps stand over. */
START_TEST(pads_are_as_far_apart_as_their_jumps)
{
	for (unsigned distance = ARCH_JUMP_SIZE; distance < 70000; distance += 7)
		ck_assert_uint_eq(arch_spared_target(HIGH + distance, 1 << 2, 0) - arch_spared_target(HIGH, 1 << 4, 0), distance);
}
END_TEST

/* --- in real allocators --- */

struct tally {
	unsigned jumps, returns, with_starts, returns_with_starts, padded, over_padding;
};

static uint32_t length_of_return(const uint8_t *text)
{
	return text[0] == 0xc3 ? 1 : text[0] == 0xf3 && text[1] == 0xc3 ? 2 : 0;
}

static void tally_site(const struct plan_site *site, struct tally *tally)
{
	uint32_t length = length_of_return(site->text);
	bool is_return = !(site->kinds & SITE_ENTRY), starts = arch_starts_within(site->window.text, site->window.length) != 0;

	tally->jumps++;
	tally->with_starts += starts;
	tally->returns += is_return;
	tally->returns_with_starts += is_return && starts;
	if (!is_return || length == 0 || site->text_len < 15 ||
	    length + arch_padding(site->text + length, 15 - length, site->vaddr + length) < ARCH_JUMP_SIZE)
		return;
	tally->padded++;
	/* Nothing but the return is run of what it lies over. */
	tally->over_padding += site->window.vaddr == site->vaddr && site->window.length == length && site->window.record == 0;
}

static struct tally tally_library(const char *path)
{
	struct tally tally = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct plan plan;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(plan_make(fd, NULL, path, true, &plan), 0);
	for (size_t i = 0; i < plan.sites.count; i++) {
		if (plan.sites.items[i].window.length > 0)
			tally_site(&plan.sites.items[i], &tally);
	}
	plan_fini(&plan);
	close(fd);
	return tally;
}

START_TEST(jumps_at_returns_lie_over_padding_where_there_is_some)
{
	for (size_t i = 0; i < LIBRARIES; i++) {
		struct tally tally = tally_library(libraries[i]);

		printf("%s: %u jumps, within %u instructions begin; of %u at returns, %u\n", libraries[i], tally.jumps,
		       tally.with_starts, tally.returns, tally.returns_with_starts);
		/* In the midst of a function that may have data in it, what looks like padding may be something else. */
		ck_assert_uint_ge(tally.padded, 2);
		ck_assert_uint_ge(tally.over_padding * 3, tally.padded * 2);
		ck_assert_uint_le(tally.returns_with_starts * 3, tally.returns);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spared");
	TCase *tcase = tcase_create("spared");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, instructions_that_begin_within_a_jump_are_found);
	tcase_add_test(tcase, where_a_jump_leads_is_made_of_breakpoints);
	tcase_add_test(tcase, pads_are_as_far_apart_as_their_jumps);
	tcase_add_test(tcase, jumps_at_returns_lie_over_padding_where_there_is_some);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
