/* Pending calls, the catalog, and what is planned to be probed in real allocators. */
#include "probe/calls.h"
#include "probe/catalog.h"
#include "probe/plan.h"
#include "probe/probe.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct probe malloc_probe, calloc_probe, realloc_probe, array_probe, new_probe, free_probe, delete_probe;
static unsigned drops;
static raddr dropped_address;

static void setup(void)
{
	malloc_probe.entry = catalog_find("malloc");
	calloc_probe.entry = catalog_find("calloc");
	realloc_probe.entry = catalog_find("realloc");
	array_probe.entry = catalog_find("reallocarray");
	new_probe.entry = catalog_find("_Znwm");
	free_probe.entry = catalog_find("free");
	delete_probe.entry = catalog_find("_ZdlPv");
	drops = 0;
}

static bool continues(const struct probe *outer, const struct probe *probe)
{
	return outer == &array_probe && probe == &realloc_probe;
}

static void dropped(void *context, const struct call *call)
{
	(void)context;
	drops++;
	dropped_address = call->old_address;
}

static struct call *enter(struct calls *calls, const struct probe *probe, raddr sp, uint64_t size)
{
	return calls_enter(calls, probe, sp, size, continues, dropped, NULL);
}

static bool leave(struct calls *calls, raddr sp, struct call *call)
{
	return calls_leave(calls, sp, call, dropped, NULL);
}

START_TEST(a_return_is_matched_by_its_stack_pointer)
{
	struct calls calls = { 0 };
	struct call call;

	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 1000, 24));
	ck_assert(!leave(&calls, 992, &call));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
	ck_assert(!leave(&calls, 1000, &call));
}
END_TEST

START_TEST(the_outermost_call_of_a_family_owns_the_block)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &calloc_probe, 1000, 24);
	ck_assert_ptr_null(enter(&calls, &malloc_probe, 900, 24));
	ck_assert(calls_absorb_free(&calls, &free_probe, 800, 0x5000));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_ptr_eq(call.probe, &calloc_probe);
}
END_TEST

START_TEST(a_tail_jump_goes_on_with_the_same_call)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &array_probe, 1000, 50);
	ck_assert_ptr_null(enter(&calls, &realloc_probe, 1000, 50));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_ptr_eq(call.probe, &array_probe);
}
END_TEST

START_TEST(a_call_that_was_jumped_out_of_leaves_nothing_pending)
{
	struct calls calls = { 0 };
	struct call *pending, call;

	pending = enter(&calls, &realloc_probe, 900, 24);
	pending->parked = true;
	pending->old_address = 0x7000;
	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 1000, 8));
	ck_assert_uint_eq(drops, 1);
	ck_assert_uint_eq(dropped_address, 0x7000);
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(calls.count, 0);
}
END_TEST

START_TEST(a_signal_handlers_calls_are_its_own)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &malloc_probe, 1000, 24);
	calls_signal(&calls, 950);
	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 700, 8));
	ck_assert(leave(&calls, 700, &call));
	ck_assert_uint_eq(call.size, 8);
	ck_assert(!call.interrupted);
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
	ck_assert(call.interrupted);
	ck_assert_uint_eq(calls.count, 0);
}
END_TEST

START_TEST(a_handler_on_a_stack_above_does_not_drop_what_it_interrupted)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &malloc_probe, 1000, 24);
	calls_signal(&calls, 950);
	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 90000, 8));
	ck_assert(leave(&calls, 90000, &call));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
}
END_TEST

START_TEST(what_an_exception_asks_for_is_not_news_own)
{
	struct calls calls = { 0 };

	enter(&calls, &new_probe, 1000, 1ULL << 60);
	ck_assert_ptr_null(enter(&calls, &malloc_probe, 900, 1ULL << 60));
	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 800, 144));
}
END_TEST

START_TEST(a_free_that_is_passed_on_counts_once)
{
	struct calls calls = { 0 };

	ck_assert(!calls_absorb_free(&calls, &delete_probe, 1000, 0x5000));
	ck_assert(calls_absorb_free(&calls, &free_probe, 1000, 0x5000));
	/* The same function again is the program's own double free. */
	ck_assert(!calls_absorb_free(&calls, &delete_probe, 1000, 0x5000));
	ck_assert(!calls_absorb_free(&calls, &free_probe, 1000, 0x6000));
}
END_TEST

START_TEST(nesting_beyond_the_limit_drops_the_outermost)
{
	struct calls calls = { 0 };
	struct call call;
	raddr sp = 100000;

	for (unsigned i = 0; i < CALLS_MAX; i++) {
		ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, sp -= 100, i));
		calls_signal(&calls, sp - 10);
	}
	ck_assert_uint_le(calls.count, CALLS_MAX);
	ck_assert(leave(&calls, sp, &call));
	ck_assert_uint_eq(call.size, CALLS_MAX - 1);
}
END_TEST

START_TEST(the_catalog_knows_its_names_and_no_others)
{
	ck_assert_ptr_nonnull(catalog_find("posix_memalign"));
	ck_assert_int_eq(catalog_find("posix_memalign")->out_arg, 0);
	ck_assert_int_eq(catalog_find("calloc")->count_arg, 0);
	ck_assert(!catalog_allocates(catalog_find("free")));
	ck_assert_ptr_null(catalog_find("mallo"));
	ck_assert_ptr_null(catalog_find("malloc2"));
	ck_assert_ptr_null(catalog_find(""));
}
END_TEST

static bool make_plan(const char *path, struct plan *plan)
{
	int fd = open(path, O_RDONLY);
	int r;

	if (fd < 0)
		return false;
	r = plan_make(fd, plan);
	close(fd);
	ck_assert_int_eq(r, 0);
	return true;
}

static const struct plan_function *planned(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->functions.count; i++) {
		if (strcmp(plan->functions.items[i].entry->name, name) == 0)
			return &plan->functions.items[i];
	}
	return NULL;
}

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

static void all_can_be_probed(const char *path, unsigned at_least)
{
	struct plan plan;

	ck_assert_msg(make_plan(path, &plan), "%s is not here", path);
	for (size_t i = 0; i < plan.functions.count; i++)
		ck_assert_msg(!plan.functions.items[i].refused, "%s in %s: %s", plan.functions.items[i].entry->name,
			      path, plan.functions.items[i].refused);
	printf("%s: %zu functions, %zu sites\n", path, plan.functions.count, plan.sites.count);
	ck_assert_uint_ge(plan.functions.count, at_least);
	plan_fini(&plan);
}

START_TEST(every_function_of_glibc_can_be_probed)
{
	all_can_be_probed(LIBC, 9);
}
END_TEST

START_TEST(every_function_of_jemalloc_can_be_probed)
{
	all_can_be_probed(JEMALLOC, 20);
}
END_TEST

START_TEST(one_address_is_one_function)
{
	struct plan plan;

	ck_assert(make_plan(LIBC, &plan));
	/* memalign and aligned_alloc, free and cfree. */
	for (size_t i = 0; i < plan.functions.count; i++) {
		for (size_t k = 0; k < i; k++)
			ck_assert_uint_ne(plan.functions.items[i].vaddr, plan.functions.items[k].vaddr);
	}
	ck_assert(planned(&plan, "memalign") || planned(&plan, "aligned_alloc"));
	plan_fini(&plan);
}
END_TEST

START_TEST(callocs_jump_to_memset_is_a_way_out)
{
	struct plan plan;
	unsigned tails = 0;

	ck_assert(make_plan(LIBC, &plan));
	for (size_t i = 0; i < plan.sites.count; i++)
		tails += (plan.sites.items[i].kinds & SITE_TAIL) != 0;
	ck_assert_uint_ge(tails, 1);
	ck_assert(planned(&plan, "reallocarray")->tails_to_import);
	plan_fini(&plan);
}
END_TEST

START_TEST(operator_new_is_left_to_the_malloc_it_calls)
{
	struct plan plan;

	ck_assert(make_plan("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", &plan));
	ck_assert_uint_eq(plan.functions.count, 0);
	plan_fini(&plan);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe");
	TCase *calls = tcase_create("calls"), *plans = tcase_create("plans");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(calls, setup, NULL);
	tcase_add_test(calls, a_return_is_matched_by_its_stack_pointer);
	tcase_add_test(calls, the_outermost_call_of_a_family_owns_the_block);
	tcase_add_test(calls, a_tail_jump_goes_on_with_the_same_call);
	tcase_add_test(calls, a_call_that_was_jumped_out_of_leaves_nothing_pending);
	tcase_add_test(calls, a_signal_handlers_calls_are_its_own);
	tcase_add_test(calls, a_handler_on_a_stack_above_does_not_drop_what_it_interrupted);
	tcase_add_test(calls, what_an_exception_asks_for_is_not_news_own);
	tcase_add_test(calls, a_free_that_is_passed_on_counts_once);
	tcase_add_test(calls, nesting_beyond_the_limit_drops_the_outermost);
	tcase_add_test(plans, the_catalog_knows_its_names_and_no_others);
	tcase_add_test(plans, every_function_of_glibc_can_be_probed);
	tcase_add_test(plans, every_function_of_jemalloc_can_be_probed);
	tcase_add_test(plans, one_address_is_one_function);
	tcase_add_test(plans, callocs_jump_to_memset_is_a_way_out);
	tcase_add_test(plans, operator_new_is_left_to_the_malloc_it_calls);
	tcase_set_timeout(plans, 60);
	suite_add_tcase(suite, calls);
	suite_add_tcase(suite, plans);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
