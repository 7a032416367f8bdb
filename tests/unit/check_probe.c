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

static struct probe malloc_probe, calloc_probe, realloc_probe, array_probe, new_probe, free_probe, delete_probe, pool_probe;
static const struct catalog_entry pool_entry = { .name = "pool_get", .domain = DOMAIN_USER, .count_arg = ARG_NONE,
						 .old_arg = ARG_NONE, .out_arg = ARG_NONE };
static unsigned drops, keeps, looks, said_count, guesses;
static raddr dropped_address, kept_address;

static void setup(void)
{
	malloc_probe.entry = catalog_find("malloc");
	calloc_probe.entry = catalog_find("calloc");
	realloc_probe.entry = catalog_find("realloc");
	array_probe.entry = catalog_find("reallocarray");
	new_probe.entry = catalog_find("_Znwm");
	free_probe.entry = catalog_find("free");
	delete_probe.entry = catalog_find("_ZdlPv");
	pool_probe.entry = &pool_entry;
	drops = keeps = looks = said_count = guesses = 0;
}

static bool continues(const struct probe *outer, const struct probe *probe)
{
	return (outer == &array_probe && probe == &realloc_probe) || (outer == &pool_probe && probe == &malloc_probe);
}

/* What the stack says: of the call at this sp. */
static struct {
	raddr sp;
	enum call_standing standing;
} said[8];

static void say(raddr sp, enum call_standing standing)
{
	for (unsigned i = 0; i < said_count; i++) {
		if (said[i].sp == sp) {
			said[i].standing = standing;
			return;
		}
	}
	said[said_count].sp = sp;
	said[said_count++].standing = standing;
}

static enum call_standing standing(void *context, const struct call *call)
{
	(void)context;
	looks++;
	for (unsigned i = 0; i < said_count; i++) {
		if (said[i].sp == call->sp)
			return said[i].standing;
	}
	return CALL_UNKNOWN;
}

static void abandoned(void *context, const struct call *call)
{
	(void)context;
	drops++;
	dropped_address = call->old_address;
}

static void kept(void *context, const struct held_block *block)
{
	(void)context;
	keeps++;
	kept_address = block->address;
}

static void guessed(void *context)
{
	(void)context;
	guesses++;
}

static const struct calls_eyes eyes = { .continues = continues, .standing = standing, .guessed = guessed,
					.abandoned = abandoned, .kept = kept };

static struct call *enter(struct calls *calls, const struct probe *probe, raddr sp, uint64_t size)
{
	return calls_enter(calls, probe, sp, size, &eyes);
}

static bool leave(struct calls *calls, raddr sp, struct call *call)
{
	return calls_leave(calls, sp, call, &eyes);
}

/* Returns a block from a call within another, and so holds it. */
static void return_inner(struct calls *calls, raddr sp, raddr address, uint64_t size)
{
	struct held_block block = { 0, address, size, 0, 0 };
	struct call call;

	ck_assert(leave(calls, sp, &call));
	ck_assert_uint_ne(call.outer_sp, 0);
	calls_settle(calls, &call, address, &eyes);
	block.owner_sp = call.outer_sp;
	ck_assert(calls_hold(calls, &block));
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

START_TEST(calls_that_return_are_not_looked_at)
{
	struct calls calls = { 0 };
	struct call call;

	for (unsigned i = 0; i < 10; i++) {
		ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 1000 - i * 8, 24));
		ck_assert(leave(&calls, 1000 - i * 8, &call));
		ck_assert(calls_free(&calls, &free_probe, 1000 - i * 8, 0, 0x5000, true, &eyes));
	}
	ck_assert_uint_eq(looks, 0);
	ck_assert_uint_eq(calls_pending(&calls), 0);
}
END_TEST

START_TEST(the_outermost_call_of_a_family_owns_the_block)
{
	struct calls calls = { 0 };
	struct call call;

	say(1000, CALL_STANDS);
	enter(&calls, &calloc_probe, 1000, 24);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 900, 40)->outer_sp, 1000);
	return_inner(&calls, 900, 0x4ff0, 40);
	ck_assert(!calls_free(&calls, &free_probe, 800, 0, 0x6000, false, &eyes));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_ptr_eq(call.probe, &calloc_probe);
	calls_settle(&calls, &call, 0x5000, &eyes);
	ck_assert_uint_eq(keeps, 0);
	ck_assert_uint_eq(calls.held_count, 0);
}
END_TEST

START_TEST(what_a_hook_keeps_is_a_block_of_its_own)
{
	struct calls calls = { 0 };
	struct call call;

	say(1000, CALL_STANDS);
	enter(&calls, &malloc_probe, 1000, 24);
	enter(&calls, &malloc_probe, 900, 24);
	return_inner(&calls, 900, 0x7000, 24);
	enter(&calls, &malloc_probe, 900, 24);
	return_inner(&calls, 900, 0x8000, 24);
	ck_assert(!calls_free(&calls, &free_probe, 900, 0, 0x8000, false, &eyes));
	enter(&calls, &malloc_probe, 900, 24);
	return_inner(&calls, 900, 0x5000, 24);
	ck_assert(leave(&calls, 1000, &call));
	calls_settle(&calls, &call, 0x5000, &eyes);
	ck_assert_uint_eq(keeps, 1);
	ck_assert_uint_eq(kept_address, 0x7000);
}
END_TEST

/* It has been given out, and nobody has freed it. */
START_TEST(what_was_made_within_a_call_that_is_left_is_kept)
{
	struct calls calls = { 0 };

	say(1000, CALL_STANDS);
	enter(&calls, &malloc_probe, 1000, 24);
	enter(&calls, &malloc_probe, 900, 24);
	return_inner(&calls, 900, 0x7000, 24);
	say(1000, CALL_LEFT);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 900, 8)->outer_sp, 0);
	ck_assert_uint_eq(keeps, 1);
	ck_assert_uint_eq(calls_pending(&calls), 1);
	calls_end(&calls, &eyes);
	ck_assert_uint_eq(calls_pending(&calls), 0);
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

/* A record at the place of a pending call has no stack. */
START_TEST(a_described_call_that_jumps_to_malloc_stands_where_no_stack_says_so)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &pool_probe, 1000, 24);
	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 1000, 40));
	ck_assert_uint_eq(guesses, 0);
	ck_assert_uint_eq(calls_pending(&calls), 2);
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_ptr_eq(call.probe, &malloc_probe);
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_ptr_eq(call.probe, &pool_probe);
	/* Another function at its place has not come of it. */
	enter(&calls, &pool_probe, 1000, 24);
	enter(&calls, &calloc_probe, 1000, 40);
	ck_assert_uint_eq(calls_pending(&calls), 1);
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

/* Which the stack pointer alone would take for a call within it. */
START_TEST(nor_does_it_when_what_comes_next_is_deeper)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &malloc_probe, 1000, 24);
	say(1000, CALL_LEFT);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 900, 8)->outer_sp, 0);
	ck_assert(leave(&calls, 900, &call));
	enter(&calls, &malloc_probe, 1000, 24);
	ck_assert(calls_free(&calls, &free_probe, 900, 0, 0x5000, true, &eyes));
	ck_assert_uint_eq(calls_pending(&calls), 0);
}
END_TEST

START_TEST(a_coroutines_call_returns_after_others_on_other_stacks)
{
	struct calls calls = { 0 };
	struct call call;

	say(1000, CALL_SUSPENDED);
	say(90000, CALL_SUSPENDED);
	enter(&calls, &malloc_probe, 1000, 24);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 90000, 8)->outer_sp, 0);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 500, 16)->outer_sp, 0);
	ck_assert(leave(&calls, 500, &call));
	ck_assert(calls_free(&calls, &free_probe, 500, 0, 0x5000, true, &eyes));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
	ck_assert(leave(&calls, 90000, &call));
	ck_assert_uint_eq(call.size, 8);
	ck_assert_uint_eq(calls_pending(&calls), 0);
}
END_TEST

START_TEST(a_signal_handlers_calls_are_its_own)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &malloc_probe, 1000, 24);
	calls_signal(&calls, 950, &eyes);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 700, 8)->outer_sp, 0);
	ck_assert(leave(&calls, 700, &call));
	ck_assert_uint_eq(call.size, 8);
	ck_assert(!call.interrupted);
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
	ck_assert(call.interrupted);
	ck_assert_uint_eq(calls.count, 0);
}
END_TEST

START_TEST(after_the_handler_a_call_has_its_inner_calls_again)
{
	struct calls calls = { 0 };

	enter(&calls, &malloc_probe, 1000, 24);
	calls_signal(&calls, 950, &eyes);
	say(950, CALL_LEFT);
	say(1000, CALL_STANDS);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 900, 24)->outer_sp, 1000);
	say(1000, CALL_INTERRUPTED);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 700, 24)->outer_sp, 900);
}
END_TEST

START_TEST(a_handler_on_a_stack_above_does_not_drop_what_it_interrupted)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &malloc_probe, 1000, 24);
	calls_signal(&calls, 950, &eyes);
	ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, 90000, 8));
	ck_assert(leave(&calls, 90000, &call));
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
}
END_TEST

START_TEST(what_an_exception_asks_for_is_not_news_own)
{
	struct calls calls = { 0 };

	say(1000, CALL_STANDS);
	enter(&calls, &new_probe, 1000, 1ULL << 60);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 900, 1ULL << 60)->outer_sp, 1000);
	say(900, CALL_LEFT);
	ck_assert_uint_eq(enter(&calls, &malloc_probe, 800, 144)->outer_sp, 0);
}
END_TEST

START_TEST(a_free_that_is_passed_on_counts_once)
{
	struct calls calls = { 0 };

	/* By a jump. */
	ck_assert(calls_free(&calls, &delete_probe, 1000, 0, 0x5000, true, &eyes));
	ck_assert(!calls_free(&calls, &free_probe, 1000, 0, 0x5000, false, &eyes));
	/* The same function again is the program's own double free. */
	ck_assert(calls_free(&calls, &delete_probe, 1000, 0, 0x5000, false, &eyes));
	ck_assert(calls_free(&calls, &free_probe, 1000, 0, 0x6000, false, &eyes));
	/* By a call, of another address. */
	say(1000, CALL_STANDS);
	ck_assert(!calls_free(&calls, &free_probe, 900, 0, 0x4ff0, false, &eyes));
	/* What the wrapper frees of its own is freed. */
	ck_assert(calls_free(&calls, &free_probe, 900, 0, 0x7000, true, &eyes));
	say(1000, CALL_LEFT);
	ck_assert(calls_free(&calls, &free_probe, 800, 0, 0x8000, false, &eyes));
}
END_TEST

START_TEST(a_free_is_passed_on_after_a_handler_that_frees)
{
	struct calls calls = { 0 };
	struct call call;

	ck_assert(calls_free(&calls, &delete_probe, 1000, 0, 0x5000, true, &eyes));
	calls_signal(&calls, 980, &eyes);
	enter(&calls, &malloc_probe, 700, 24);
	ck_assert(leave(&calls, 700, &call));
	ck_assert(calls_free(&calls, &free_probe, 700, 0, 0x6000, true, &eyes));
	ck_assert(calls_free(&calls, &free_probe, 710, 0, 0x7000, true, &eyes));
	say(980, CALL_LEFT);
	say(1000, CALL_STANDS);
	ck_assert(!calls_free(&calls, &free_probe, 900, 0, 0x5000, false, &eyes));
}
END_TEST

START_TEST(a_call_that_is_put_back_before_its_return_is_pending_again)
{
	struct last_call last;
	struct calls calls = { 0 };
	struct call call;

	say(1000, CALL_STANDS);
	enter(&calls, &malloc_probe, 1000, 24);
	enter(&calls, &malloc_probe, 900, 24);
	ck_assert(!calls_take_back(&calls, 900, &last, &eyes));
	return_inner(&calls, 900, 0x5000, 24);
	calls.last.result = LAST_HELD;
	calls.last.address = 0x5000;
	ck_assert(!calls_take_back(&calls, 908, &last, &eyes));
	ck_assert(calls_take_back(&calls, 900, &last, &eyes));
	ck_assert_uint_eq(calls.held_count, 0);
	ck_assert_uint_eq(calls_pending(&calls), 2);
	/* Once. */
	ck_assert(!calls_take_back(&calls, 900, &last, &eyes));
	return_inner(&calls, 900, 0x5000, 24);
	ck_assert(leave(&calls, 1000, &call));
	calls_settle(&calls, &call, 0x5000, &eyes);
	ck_assert_uint_eq(calls.held_count, 0);
	ck_assert(calls_take_back(&calls, 1000, &last, &eyes));
	/* It is left now, and what the inner call has given to it is there. */
	say(1000, CALL_LEFT);
	enter(&calls, &malloc_probe, 950, 8);
	ck_assert_uint_eq(keeps, 1);
	ck_assert_uint_eq(kept_address, 0x5000);
}
END_TEST

START_TEST(a_call_that_is_put_back_to_its_entry_has_not_entered)
{
	struct calls calls = { 0 };

	enter(&calls, &array_probe, 1000, 24);
	ck_assert_ptr_null(enter(&calls, &realloc_probe, 1000, 24));
	calls_unenter(&calls, &realloc_probe, 1000, &eyes);
	ck_assert_uint_eq(calls_pending(&calls), 1);
	calls_unenter(&calls, &array_probe, 1000, &eyes);
	ck_assert_uint_eq(calls_pending(&calls), 0);
}
END_TEST

START_TEST(nesting_beyond_the_limit_drops_the_outermost)
{
	struct calls calls = { 0 };
	struct call *outermost, call;
	raddr sp = 100000;

	outermost = enter(&calls, &realloc_probe, sp, 5);
	outermost->parked = true;
	outermost->old_address = 0x7000;
	for (unsigned i = 0; i < CALLS_MAX; i++) {
		calls_signal(&calls, sp - 10, &eyes);
		ck_assert_ptr_nonnull(enter(&calls, &malloc_probe, sp -= 100, i));
	}
	ck_assert_uint_le(calls.count, CALLS_MAX);
	ck_assert_uint_eq(drops, 1);
	ck_assert_uint_eq(dropped_address, 0x7000);
	ck_assert(leave(&calls, sp, &call));
	ck_assert_uint_eq(call.size, CALLS_MAX - 1);
}
END_TEST

/* Each has ended, which nothing shows while the stack cannot be read. */
START_TEST(handlers_that_free_do_not_push_out_a_pending_call)
{
	struct calls calls = { 0 };
	struct call call;

	enter(&calls, &malloc_probe, 1000, 24);
	for (unsigned i = 0; i < 2 * CALLS_MAX; i++) {
		calls_signal(&calls, i % 2 ? 950 : 950 - i, &eyes);
		enter(&calls, &malloc_probe, 90000, 8);
		ck_assert(leave(&calls, 90000, &call));
		ck_assert(calls_free(&calls, &free_probe, 90000, 0, 0x6000, true, &eyes));
		ck_assert(calls_free(&calls, &free_probe, 89990, 0, 0x7000, true, &eyes));
	}
	ck_assert_uint_eq(calls_pending(&calls), 1);
	ck_assert(leave(&calls, 1000, &call));
	ck_assert_uint_eq(call.size, 24);
}
END_TEST

START_TEST(a_place_that_is_interrupted_again_has_one_barrier)
{
	struct calls calls = { 0 };

	enter(&calls, &malloc_probe, 1000, 24);
	for (unsigned i = 0; i < 5; i++) {
		calls_signal(&calls, 950, &eyes);
		ck_assert(calls_free(&calls, &free_probe, 90000, 0, 0x6000, true, &eyes));
	}
	ck_assert_uint_eq(calls.count, 3);
}
END_TEST

START_TEST(the_catalog_knows_its_names_and_no_others)
{
	ck_assert_ptr_nonnull(catalog_find("posix_memalign"));
	ck_assert_int_eq(catalog_find("posix_memalign")->out_arg, 0);
	ck_assert_int_eq(catalog_find("calloc")->count_arg, 0);
	ck_assert(!catalog_allocates(catalog_find("free")));
	ck_assert(catalog_allocates(catalog_find("munmap")));
	ck_assert_ptr_null(catalog_find_prefixed("__libc_mmap", &(unsigned){ 0 }));
	ck_assert_ptr_null(catalog_find("mallo"));
	ck_assert_ptr_null(catalog_find("malloc2"));
	ck_assert_ptr_null(catalog_find(""));
}
END_TEST

static struct described described;

static bool make_plan(const char *path, struct plan *plan)
{
	int fd = open(path, O_RDONLY);
	int r;

	if (fd < 0)
		return false;
	r = plan_make(fd, &described, path, true, plan);
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
#define MUSL "/usr/lib/x86_64-linux-musl/libc.so"
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

/* They jump to functions of their own by way of the linker. */
START_TEST(the_mallocs_and_news_of_tcmalloc_and_mimalloc_can_be_probed)
{
	static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
					     "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0" };
	static const char *const names[] = { "malloc", "calloc", "_Znwm", "_ZnwmRKSt9nothrow_t" };
	struct plan plan;

	ck_assert_msg(make_plan(paths[_i], &plan), "%s is not here", paths[_i]);
	ck_assert_ptr_null(plan.malloc_refused);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct plan_function *function = planned(&plan, names[i]);

		ck_assert_msg(!function || !function->refused, "%s: %s", names[i], function ? function->refused : "");
	}
	plan_fini(&plan);
}
END_TEST

START_TEST(every_function_of_jemalloc_can_be_probed)
{
	all_can_be_probed(JEMALLOC, 20);
}
END_TEST

/* Of what malloc and realloc jump to nothing says the length; calloc jumps straight to memset, which everybody calls. */
START_TEST(musls_functions_are_followed_where_neither_symbols_nor_tables_are)
{
	unsigned shared = 0, tails = 0;
	struct plan plan;

	all_can_be_probed(MUSL, 9);
	ck_assert(make_plan(MUSL, &plan));
	for (size_t i = 0; i < plan.sites.count; i++) {
		shared += (plan.sites.items[i].kinds & SITE_SHARED) != 0;
		tails += (plan.sites.items[i].kinds & SITE_TAIL) != 0;
	}
	/* Of malloc 2 returns, of realloc 1: libc calls these functions itself, by no name. */
	ck_assert_uint_eq(shared, 3);
	ck_assert_uint_eq(tails, 1);
	ck_assert_uint_eq(planned(&plan, "malloc")->parts.count, 2);
	ck_assert(!plan.is_glibc);
	plan_fini(&plan);
}
END_TEST

static uint32_t covered(const struct plan_window *window)
{
	return window->length < ARCH_JUMP_SIZE ? ARCH_JUMP_SIZE : window->length;
}

/* Jumps stand beside one another, each lies over what is watched, and no function begins under one. */
static void require_clear(const struct plan *plan, const struct plan_site *site)
{
	const struct plan_window *window = &site->window;
	uint64_t end = window->vaddr + covered(window);

	ck_assert_uint_lt(window->record, window->length);
	if (!(site->kinds & SITE_ENTRY))
		ck_assert_uint_eq(window->vaddr + window->record, site->vaddr);
	for (size_t i = 0; i < plan->functions.count; i++)
		ck_assert(plan->functions.items[i].vaddr <= window->vaddr || plan->functions.items[i].vaddr >= end);
	for (size_t i = 0; i < plan->sites.count; i++) {
		const struct plan_window *other = &plan->sites.items[i].window;

		if (other != window && other->length > 0)
			ck_assert(other->vaddr >= end || other->vaddr + covered(other) <= window->vaddr);
	}
}

START_TEST(most_places_of_glibc_have_room_for_a_jump)
{
	struct plan plan;
	size_t with_room = 0;

	ck_assert(make_plan(LIBC, &plan));
	for (size_t i = 0; i < plan.sites.count; i++) {
		if (plan.sites.items[i].window.length == 0)
			continue;
		with_room++;
		require_clear(&plan, &plan.sites.items[i]);
	}
	printf("%zu of %zu sites have room for a jump\n", with_room, plan.sites.count);
	ck_assert_uint_ge(with_room * 10, plan.sites.count * 9);
	plan_fini(&plan);
}
END_TEST

/* Its linker has made libc's malloc a local function. */
START_TEST(the_local_malloc_of_a_static_program_is_found)
{
	struct plan plan;

	ck_assert_msg(make_plan("tests/victims/brief_static_pie", &plan), "not built here: run in the build tree");
	ck_assert_ptr_nonnull(planned(&plan, "malloc"));
	ck_assert_ptr_nonnull(planned(&plan, "free"));
	plan_fini(&plan);
}
END_TEST

START_TEST(mappings_are_watched_when_that_is_asked_for)
{
	static const char *const names[] = { "munmap", "mremap", "brk" };
	struct plan plan;

	ck_assert(make_plan(LIBC, &plan));
	ck_assert_ptr_null(planned(&plan, "munmap"));
	plan_fini(&plan);
	described.mappings = true;
	ck_assert(make_plan(LIBC, &plan));
	ck_assert(planned(&plan, "mmap") || planned(&plan, "mmap64"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ck_assert_ptr_nonnull(planned(&plan, names[i]));
		ck_assert_ptr_null(planned(&plan, names[i])->refused);
	}
	ck_assert_uint_ne(planned(&plan, "brk")->word, 0);
	plan_fini(&plan);
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
	ck_assert_uint_eq(plan.forms.count, 0);
	plan_fini(&plan);
	/* Its forms are told by the callers of malloc: what deletes alone has a stop. */
	described.operators = true;
	ck_assert(make_plan("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", &plan));
	ck_assert_ptr_null(planned(&plan, "_Znwm"));
	ck_assert_ptr_null(planned(&plan, "_Znam"));
	ck_assert_ptr_nonnull(planned(&plan, "_ZdlPv"));
	ck_assert_uint_eq(plan.forms.count, 8);
	plan_fini(&plan);
	ck_assert(make_plan(JEMALLOC, &plan));
	ck_assert_ptr_nonnull(planned(&plan, "_Znwm"));
	plan_fini(&plan);
}
END_TEST

/* Operators new of a program's own: what only hands on malloc's result is told by that. */
static const struct {
	const char *what, *options, *body;
	bool is_told;
} own_news[] = {
	{ "libstdc++'s", "-static-libstdc++", NULL, true },
	{ "what malloc returns", "-O2", "void *p = malloc(n); if (!p) throw std::bad_alloc(); return p;", true },
	{ "the same without the linker's stub", "-O2 -fno-plt", "void *p = malloc(n); if (!p) throw std::bad_alloc(); return p;",
	  true },
	{ "the same, counted", "-O1", "count++; void *p = malloc(n); if (!p) abort(); last = p; return p;", true },
	{ "a jump to malloc, which leaves no trace", "-O2", "return malloc(n);", false },
	{ "a header before the block", "-O2", "char *p = (char *)malloc(n + 16); return p ? p + 16 : 0;", false },
	{ "a pool before malloc", "-O2", "if (n < 64 && count < 4096) return pool + count++ * 64; void *p = malloc(n); last = p; return p;",
	  false },
	{ "a record beside the block", "-O2", "last = malloc(16); void *p = malloc(n); count = p != 0; return p;", false },
	{ "a reserve for what is thrown", "-O2",
	  "void *p = malloc(n); if (!p) { try { fail(); } catch (int) { return pool; } } last = p; return p;", false },
	{ "a block of its own behind a call", "-O2", "void *p = malloc(n); last = p; fail(); return p;", false },
};

START_TEST(an_operator_new_that_hands_on_what_malloc_returns_has_no_probe)
{
	char folder[] = "/tmp/check_probe.XXXXXX", source[64], program[64], command[256];
	struct plan plan;
	FILE *file;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(source, sizeof(source), "%s/own.cc", folder);
	snprintf(program, sizeof(program), "%s/own", folder);
	file = fopen(source, "w");
	fprintf(file, "#include <cstdlib>\n#include <new>\nvoid *last; size_t count; char pool[1 << 18];\n"
		"__attribute__((noinline, noclone)) void fail() { if (count == 7) throw 1; count += 2; }\n");
	if (own_news[_i].body)
		fprintf(file, "void *operator new(size_t n) { %s }\n", own_news[_i].body);
	fprintf(file, "int main() { last = new int; }\n");
	fclose(file);
	snprintf(command, sizeof(command), "g++ -w %s -o %s %s", own_news[_i].options, program, source);
	ck_assert_int_eq(system(command), 0);
	described.operators = true;
	ck_assert(make_plan(program, &plan));
	printf("%s: %s\n", own_news[_i].what, planned(&plan, "_Znwm") ? "has a probe" : "is told by malloc");
	ck_assert_uint_gt(plan.forms.count, 0);
	ck_assert_int_eq(!planned(&plan, "_Znwm"), own_news[_i].is_told);
	plan_fini(&plan);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Nothing says its length: neither a symbol, nor an unwind table, nor a function behind it. */
START_TEST(a_part_behind_which_no_function_is_known_has_no_length)
{
	char folder[] = "/tmp/check_probe.XXXXXX", source[64], object[64], command[256];
	const struct plan_function *function;
	struct plan plan;
	FILE *file;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(source, sizeof(source), "%s/last.S", folder);
	snprintf(object, sizeof(object), "%s/last.so", folder);
	file = fopen(source, "w");
	fprintf(file, ".text\n.globl malloc\n.type malloc, @function\nmalloc: mov %%rdi, %%rax\n jmp last\n.size malloc, . - malloc\n"
		"last: add $16, %%rax\n nop\n nop\n ret\n.section .note.GNU-stack,\"\",@progbits\n");
	fclose(file);
	snprintf(command, sizeof(command), "gcc -shared -nostdlib -o %s %s", object, source);
	ck_assert_int_eq(system(command), 0);
	ck_assert(make_plan(object, &plan));
	function = planned(&plan, "malloc");
	ck_assert_ptr_nonnull(function);
	ck_assert_msg(!function->refused, "%s", function->refused);
	ck_assert_uint_eq(function->parts.count, 2);
	ck_assert_uint_gt(function->parts.items[0].size, 0);
	ck_assert_uint_gt(function->parts.items[1].address, function->parts.items[0].address);
	ck_assert_uint_eq(function->parts.items[1].size, 0);
	plan_fini(&plan);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
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
	tcase_add_test(calls, calls_that_return_are_not_looked_at);
	tcase_add_test(calls, what_a_hook_keeps_is_a_block_of_its_own);
	tcase_add_test(calls, what_was_made_within_a_call_that_is_left_is_kept);
	tcase_add_test(calls, nor_does_it_when_what_comes_next_is_deeper);
	tcase_add_test(calls, a_coroutines_call_returns_after_others_on_other_stacks);
	tcase_add_test(calls, after_the_handler_a_call_has_its_inner_calls_again);
	tcase_add_test(calls, a_free_is_passed_on_after_a_handler_that_frees);
	tcase_add_test(calls, a_call_that_is_put_back_before_its_return_is_pending_again);
	tcase_add_test(calls, a_call_that_is_put_back_to_its_entry_has_not_entered);
	tcase_add_test(calls, a_tail_jump_goes_on_with_the_same_call);
	tcase_add_test(calls, a_described_call_that_jumps_to_malloc_stands_where_no_stack_says_so);
	tcase_add_test(calls, a_call_that_was_jumped_out_of_leaves_nothing_pending);
	tcase_add_test(calls, a_signal_handlers_calls_are_its_own);
	tcase_add_test(calls, a_handler_on_a_stack_above_does_not_drop_what_it_interrupted);
	tcase_add_test(calls, what_an_exception_asks_for_is_not_news_own);
	tcase_add_test(calls, a_free_that_is_passed_on_counts_once);
	tcase_add_test(calls, nesting_beyond_the_limit_drops_the_outermost);
	tcase_add_test(calls, handlers_that_free_do_not_push_out_a_pending_call);
	tcase_add_test(calls, a_place_that_is_interrupted_again_has_one_barrier);
	tcase_add_test(plans, the_catalog_knows_its_names_and_no_others);
	tcase_add_test(plans, every_function_of_glibc_can_be_probed);
	tcase_add_test(plans, every_function_of_jemalloc_can_be_probed);
	tcase_add_test(plans, musls_functions_are_followed_where_neither_symbols_nor_tables_are);
	tcase_add_loop_test(plans, the_mallocs_and_news_of_tcmalloc_and_mimalloc_can_be_probed, 0, 2);
	tcase_add_test(plans, the_local_malloc_of_a_static_program_is_found);
	tcase_add_test(plans, mappings_are_watched_when_that_is_asked_for);
	tcase_add_test(plans, one_address_is_one_function);
	tcase_add_test(plans, a_part_behind_which_no_function_is_known_has_no_length);
	tcase_add_test(plans, most_places_of_glibc_have_room_for_a_jump);
	tcase_add_test(plans, callocs_jump_to_memset_is_a_way_out);
	tcase_add_test(plans, operator_new_is_left_to_the_malloc_it_calls);
	tcase_add_loop_test(plans, an_operator_new_that_hands_on_what_malloc_returns_has_no_probe, 0,
			    sizeof(own_news) / sizeof(own_news[0]));
	tcase_set_timeout(plans, 60);
	suite_add_tcase(suite, calls);
	suite_add_tcase(suite, plans);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
