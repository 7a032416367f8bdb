/* Instructions moved to make room for a jump: where there is room for one in real functions, and that the moved ones,
 * really executed, do what they did. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"
#include "elf_functions.h"
#include "random.h"
#include "require.h"
#include "share.h"
#include "stepped_child.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBDIR "/usr/lib/x86_64-linux-gnu/"
#define STATES 3               /* register states each window is run from */
#define STEPS_MAX 40

static const char *const libraries[] = {
	LIBDIR "libc.so.6", LIBDIR "libjemalloc.so.2", LIBDIR "libtcmalloc_minimal.so.4", LIBDIR "libmimalloc.so.2",
	LIBDIR "ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1", LIBDIR "libstdc++.so.6",
};
#define LIBRARIES (sizeof(libraries) / sizeof(*libraries))

struct window {
	uint8_t bytes[ARCH_WINDOW_MAX];
	uint32_t length;
};

struct windows {
	VEC_OF(struct window) items;
};

static void add_window(struct windows *windows, const uint8_t *code, uint32_t length)
{
	struct window *window = vec_push(&windows->items);

	ck_assert_ptr_nonnull(window);
	memset(window, 0, sizeof(*window));
	memcpy(window->bytes, code, length);
	window->length = length;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct window));
}

static void sort_unique(struct windows *windows)
{
	size_t kept = 0;

	qsort(windows->items.items, windows->items.count, sizeof(*windows->items.items), by_bytes);
	for (size_t i = 1; i < windows->items.count; i++)
		if (by_bytes(&windows->items.items[i], &windows->items.items[kept]) != 0)
			windows->items.items[++kept] = windows->items.items[i];
	windows->items.count = kept + 1;
}

/* --- where there is room --- */

struct room_tally {
	size_t functions, entries, exits, exits_with_room;
};

static bool can_be_moved(const uint8_t *code, uint32_t length, uint64_t from)
{
	uint8_t out[ARCH_MOVED_MAX];
	struct arch_moved moved;
	const char *reason = NULL;
	int r = arch_move(code, length, from, from + (1 << 24), out, &moved, &reason);

	if (r == 0)
		return true;
	ck_assert_int_eq(r, -ENOTSUP);
	ck_assert_ptr_nonnull(reason);
	return false;
}

/* Of what lies behind it in the file, up to the next function. */
static uint32_t padding_behind(const struct elf_functions *functions, const struct elf_function *function)
{
	const uint8_t *end = function->code + function->size, *file = functions->file;
	size_t left = (size_t)(file + functions->file_size - end);

	return arch_padding(end, left < 16 ? left : 16, function->address + function->size);
}

static void tally_function(const struct elf_functions *functions, const struct elf_function *function,
			   struct room_tally *tally, struct windows *windows)
{
	struct arch_function decoded;
	const char *reason;
	uint32_t length, first, sp_below, room;

	if (arch_decode_function(function->code, function->size, function->address, &decoded, &reason) < 0)
		return;
	tally->functions++;
	room = arch_entry_room(&decoded, &first, &sp_below);
	length = arch_window_length(function->code + first, room, function->address + first);
	if (length >= ARCH_JUMP_SIZE && can_be_moved(function->code + first, length, function->address + first)) {
		tally->entries++;
		add_window(windows, function->code + first, length);
	}
	for (size_t i = 0; i < decoded.exits.count; i++) {
		const struct arch_exit *exit = &decoded.exits.items[i];
		const uint8_t *code = function->code + (exit->address - function->address);
		uint32_t before = exit->room.before, behind = exit->room.behind;

		tally->exits++;
		if (exit->room.at_end)
			behind += padding_behind(functions, function);
		if (before + exit->length + behind < ARCH_JUMP_SIZE)
			continue;
		if (!can_be_moved(code - before, before + exit->length, exit->address - before))
			continue;
		tally->exits_with_room++;
		add_window(windows, code - before, before + exit->length);
	}
	arch_function_fini(&decoded);
}

static void tally_library(const char *path, struct windows *windows)
{
	struct elf_functions functions;
	struct room_tally tally = { 0 };

	elf_functions_load(&functions, path);
	for (size_t i = 0; i < functions.items.count; i++)
		tally_function(&functions, &functions.items.items[i], &tally, windows);
	elf_functions_fini(&functions);
	printf("%s: room at %zu of %zu entries, %zu of %zu exits\n", path, tally.entries, tally.functions,
	       tally.exits_with_room, tally.exits);
	ck_assert_uint_ge(tally.entries * 100, tally.functions * 75);
	ck_assert_uint_ge(tally.exits_with_room * 100, tally.exits * 80);
}

static bool is_allocator(const char *name)
{
	static const char *const names[] = { "malloc", "calloc", "realloc", "reallocarray", "_Znwm" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

START_TEST(allocators_have_room_at_every_entry_and_exit)
{
	size_t found = 0;

	for (size_t l = 0; l < 4; l++) {
		struct elf_functions functions;

		elf_functions_load(&functions, libraries[l]);
		for (size_t i = 0; i < functions.items.count; i++) {
			const struct elf_function *function = &functions.items.items[i];
			struct room_tally tally = { 0 };
			struct windows windows = { 0 };

			if (!is_allocator(function->name))
				continue;
			tally_function(&functions, function, &tally, &windows);
			vec_fini(&windows.items);
			ck_assert_msg(tally.entries == tally.functions && tally.exits == tally.exits_with_room,
				      "%s of %s", function->name, libraries[l]);
			found += tally.functions;
		}
		elf_functions_fini(&functions);
	}
	ck_assert_uint_ge(found, 16);
}
END_TEST

extern const uint8_t sample_room[], sample_room_end[], sample_room_over_lock[], sample_room_over_lock_end[],
	sample_room_switch[], sample_room_switch_end[];

static void decode_sample(const uint8_t *start, const uint8_t *end, struct arch_function *ret_function)
{
	const char *reason = NULL;
	int r = arch_decode_function(start, (size_t)(end - start), (uint64_t)start, ret_function, &reason);

	ck_assert_msg(r == 0, "%s", reason);
}

START_TEST(nothing_branches_into_a_room)
{
	struct arch_function function;

	decode_sample(sample_room, sample_room_end, &function);
	ck_assert_uint_eq(function.entry_room, 8);             /* up to a branch's target */
	ck_assert_uint_eq(function.exits.count, 3);
	ck_assert_uint_eq(function.exits.items[0].room.before, 4);     /* pop, pop, pop, pop */
	ck_assert_uint_eq(function.exits.items[0].room.behind, 0);     /* the next code is behind it */
	ck_assert_uint_eq(function.exits.items[1].room.before, 2);     /* back to a target */
	ck_assert_uint_eq(function.exits.items[1].room.behind, 4);     /* a nop */
	ck_assert_uint_eq(function.exits.items[2].room.before, 0);     /* behind a call */
	ck_assert(function.exits.items[2].room.at_end);
	arch_function_fini(&function);
}
END_TEST

START_TEST(a_prefix_that_a_branch_goes_over_is_no_room)
{
	struct arch_function function;

	decode_sample(sample_room_over_lock, sample_room_over_lock_end, &function);
	ck_assert_uint_eq(function.exits.count, 1);
	ck_assert_uint_eq(function.exits.items[0].room.before, 0);
	arch_function_fini(&function);
}
END_TEST

START_TEST(before_an_exit_of_a_switch_is_no_room)
{
	struct arch_function function;

	decode_sample(sample_room_switch, sample_room_switch_end, &function);
	for (size_t i = 0; i < function.exits.count; i++)
		ck_assert_uint_eq(function.exits.items[i].room.before, 0);
	arch_function_fini(&function);
}
END_TEST

START_TEST(padding_ends_where_functions_begin)
{
	static const uint8_t code[] = { 0x66, 0x90, 0x0f, 0x1f, 0x40, 0, 0x90, 0x90, 0xc3 };

	ck_assert_uint_eq(arch_padding(code, sizeof(code), 0x1008), 8);
	ck_assert_uint_eq(arch_padding(code, sizeof(code), 0x100a), 6);
	ck_assert_uint_eq(arch_padding(code, sizeof(code), 0x100d), 2);
	ck_assert_uint_eq(arch_padding(code, sizeof(code), 0x1010), 0);
	ck_assert_uint_eq(arch_padding(code + 8, 1, 0x1008), 0);
	ck_assert_uint_eq(arch_padding(code, 0, 0x1008), 0);
}
END_TEST

START_TEST(an_empty_function_has_room_with_its_padding)
{
	static const uint8_t plain[] = { 0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0 };
	static const uint8_t marked[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xc3 };
	static const uint8_t crowded[] = { 0xc3, 0x90, 0x90, 0x90, 0x48, 0x89, 0xf8, 0xc3 };
	static const uint8_t busy[] = { 0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x44, 0, 0 };

	ck_assert_uint_eq(arch_empty_function(plain, sizeof(plain), 0x1000), 1);
	ck_assert_uint_eq(arch_empty_function(plain, sizeof(plain), 0x100c), 0);     /* behind it another one begins */
	ck_assert_uint_eq(arch_empty_function(marked, sizeof(marked), 0x1000), 5);
	ck_assert_uint_eq(arch_empty_function(crowded, sizeof(crowded), 0x1000), 0);
	ck_assert_uint_eq(arch_empty_function(busy, sizeof(busy), 0x1000), 0);
	ck_assert_uint_eq(arch_empty_function(plain, 0, 0x1000), 0);
}
END_TEST

START_TEST(branches_from_other_functions_are_found)
{
	static const uint8_t code[] = {
		0x90, 0xe9, 0x10, 0, 0, 0,             /* jmp 0x1016 */
		0x0f, 0x85, 0x20, 0, 0, 0,             /* jnz 0x102c */
		0xe8, 0xf0, 0xff, 0xff, 0xff,          /* call 0x1001 */
	};

	ck_assert(arch_may_branch_into(code, sizeof(code), 0x1000, 0x1015, 0x1017));
	ck_assert(!arch_may_branch_into(code, sizeof(code), 0x1000, 0x1016, 0x101b));
	ck_assert(!arch_may_branch_into(code, sizeof(code), 0x1000, 0x1011, 0x1016));
	ck_assert(arch_may_branch_into(code, sizeof(code), 0x1000, 0x1028, 0x102d));
	ck_assert(arch_may_branch_into(code, sizeof(code), 0x1000, 0x1000, 0x1002));
	ck_assert(!arch_may_branch_into(code, 5, 0x1000, 0x1015, 0x1017));
	ck_assert(!arch_may_branch_into(code, 0, 0x1000, 0x1015, 0x1017));
}
END_TEST

/* --- what moved instructions do --- */

struct run_tally {
	size_t windows, runs, steps, faults, refused;
};

static void print_window(const struct window *window)
{
	printf("  different:");
	for (uint32_t i = 0; i < window->length; i++)
		printf(" %02x", window->bytes[i]);
	printf("\n");
}

/* Most operands relative to rip would be nowhere: they are pointed into the data. */
static void point_to_data(struct window *window)
{
	struct insn insn;

	for (uint32_t at = 0; at < window->length; at += insn.length) {
		REQUIRE(insn_decode(window->bytes + at, window->length - at, FROM + at, &insn));
		if (insn_rip_relative(&insn) && insn.raw.raw.disp.size == 32) {
			int32_t disp = (int32_t)(DATA_PAGE + PAGE + random_u64() % PAGE / 16 * 16 - FROM - at -
						 insn.length);

			memcpy(window->bytes + at + insn.raw.raw.disp.offset, &disp, sizeof(disp));
		}
	}
}

/* Steps from `from` until the code is left, noting each pc on the way. */
static unsigned run(const struct state *start, struct state *end, uint64_t from, uint32_t length, uint64_t pcs[STEPS_MAX])
{
	unsigned steps = 0;

	put_state(start, from);
	while (steps < STEPS_MAX) {
		uint64_t pc = step(end);

		pcs[steps++] = pc;
		if (end->signal != SIGTRAP || pc < from || pc >= from + length)
			break;
	}
	get_state(end);
	return steps;
}

static void compare_run(const struct window *window, const struct arch_moved *moved, uint64_t to, struct run_tally *tally)
{
	static struct state start, original, displaced;
	uint64_t old_pcs[STEPS_MAX], new_pcs[STEPS_MAX];
	unsigned steps;

	random_state_fill(&start);
	steps = run(&start, &original, FROM, window->length, old_pcs);
	ck_assert_uint_eq(run(&start, &displaced, to, moved->length, new_pcs), steps);
	for (unsigned i = 0; i < steps; i++) {
		uint64_t back = arch_moved_from(moved, window->length, FROM, to, new_pcs[i]);

		ck_assert_uint_eq(back == ARCH_NOWHERE ? new_pcs[i] : back, old_pcs[i]);
		if (back != ARCH_NOWHERE)
			ck_assert_uint_eq(arch_moved_to(moved, window->length, FROM, to, old_pcs[i]), new_pcs[i]);
	}
	original.regs.rip = displaced.regs.rip = 0;            /* compared above */
	if (memcmp(&original, &displaced, sizeof(original)) != 0)
		print_window(window);
	ck_assert_int_eq(original.signal, displaced.signal);
	ck_assert_uint_eq(original.fault_address, displaced.fault_address);
	ck_assert_mem_eq(&original.regs, &displaced.regs, sizeof(original.regs));
	ck_assert_mem_eq(&original, &displaced, sizeof(original));
	tally->runs++;
	tally->steps += steps;
	tally->faults += original.signal != SIGTRAP;
}

static void compare_window(const struct window *window, struct run_tally *tally)
{
	uint8_t code[ARCH_MOVED_MAX];
	struct arch_moved moved;
	const char *reason;

	tally->windows++;
	if (arch_move(window->bytes, window->length, FROM, NEAR_SLOT, code, &moved, &reason) < 0) {
		tally->refused++;
		return;
	}
	memset((void *)NEAR_PAGE, 0xcc, PAGE);
	memcpy((void *)NEAR_SLOT, code, moved.length);
	memset((void *)FROM_PAGE, 0xcc, PAGE);
	memcpy((void *)FROM, window->bytes, window->length);
	for (int i = 0; i < STATES; i++)
		compare_run(window, &moved, NEAR_SLOT, tally);
}

static void print_tally(const char *what, const struct run_tally *tally)
{
	printf("%s: %zu windows, %zu refused, %zu runs of %zu steps compared, %zu of them ended by a fault\n", what,
	       tally->windows, tally->refused, tally->runs, tally->steps, tally->faults);
}

static void collect(struct windows *windows)
{
	for (size_t i = 0; i < LIBRARIES; i++)
		tally_library(libraries[i], windows);
	sort_unique(windows);
}

START_TEST(moved_instructions_of_real_functions_do_the_same)
{
	struct windows windows = { 0 };
	struct run_tally tally = { 0 };
	size_t step_by;

	start_child();
	collect(&windows);
	step_by = windows.items.count / share_of(3000) + 1;
	for (size_t i = 0; i < windows.items.count; i += step_by) {
		struct window *window = &windows.items.items[i];

		point_to_data(window);
		compare_window(window, &tally);
	}
	print_tally("real windows", &tally);
	ck_assert_uint_gt(tally.runs, share_of(3000));
	vec_fini(&windows.items);
	end_child();
}
END_TEST

/* Instructions of anywhere, one behind the other. */
static void shuffle(const struct windows *windows, struct window *ret_window)
{
	memset(ret_window, 0, sizeof(*ret_window));
	while (ret_window->length < ARCH_JUMP_SIZE) {
		const struct window *from = &windows->items.items[random_u64() % windows->items.count];
		uint32_t at = 0, which = (uint32_t)random_u64() % 3;
		struct insn insn;

		while (insn_decode(from->bytes + at, from->length - at, FROM + at, &insn) && which-- > 0 &&
		       at + insn.length < from->length)
			at += insn.length;
		memcpy(ret_window->bytes + ret_window->length, from->bytes + at, insn.length);
		ret_window->length += insn.length;
	}
}

START_TEST(moved_random_instructions_do_the_same)
{
	struct windows windows = { 0 };
	struct run_tally tally = { 0 };

	start_child();
	collect(&windows);
	for (unsigned i = 0; i < share_of(3000); i++) {
		struct window window;

		shuffle(&windows, &window);
		point_to_data(&window);
		compare_window(&window, &tally);
	}
	print_tally("random windows", &tally);
	ck_assert_uint_gt(tally.runs, share_of(3000));
	vec_fini(&windows.items);
	end_child();
}
END_TEST

static const char *reason_for(const uint8_t *code, size_t len, uint64_t to)
{
	uint8_t out[ARCH_MOVED_MAX];
	struct arch_moved moved;
	const char *reason = "none";

	ck_assert_int_eq(arch_move(code, len, FROM, to, out, &moved, &reason), -ENOTSUP);
	return reason;
}

#define REFUSED(text, to, ...) \
	do { \
		const uint8_t code_[] = { __VA_ARGS__ }; \
		const char *reason_ = reason_for(code_, sizeof(code_), to); \
		ck_assert_msg(strstr(reason_, text) != NULL, "%s", reason_); \
	} while (0)

START_TEST(what_cannot_be_moved_is_refused_with_the_reason)
{
	REFUSED("call", NEAR_SLOT, 0x55, 0xe8, 1, 2, 3, 4);
	REFUSED("call", NEAR_SLOT, 0x55, 0xff, 0xd0);
	REFUSED("system", NEAR_SLOT, 0x90, 0x0f, 0x05);
	REFUSED("system", NEAR_SLOT, 0xcc);                              /* another tool's breakpoint */
	REFUSED("branch in among", NEAR_SLOT, 0x74, 0x01, 0x90, 0x90, 0x90);
	REFUSED("cannot be moved", NEAR_SLOT, 0xe2, 0x10, 0x90, 0x90, 0x90);     /* loop */
	REFUSED("cannot be moved", NEAR_SLOT, 0x66, 0x0f, 0x84, 0, 0, 0, 0);
	REFUSED("out of reach", FAR_SLOT, 0x74, 0x20, 0x90, 0x90, 0x90);
	REFUSED("out of reach", FAR_SLOT, 0x48, 0x8b, 0x05, 0, 1, 0, 0);
	REFUSED("eip", NEAR_SLOT, 0x67, 0x48, 0x8b, 0x05, 0, 1, 0, 0);
	REFUSED("reads instructions", NEAR_SLOT, 0x48, 0x8b, 0x05, 0xf9, 0xff, 0xff, 0xff);
	REFUSED("no instruction", NEAR_SLOT, 0x90, 0x48, 0x8b, 0x05);
	REFUSED("too many", NEAR_SLOT, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
		0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90);
}
END_TEST

START_TEST(a_branch_to_the_start_meets_the_jump)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90, 0x75, 0xfb };        /* jnz to the first nop */
	uint8_t out[ARCH_MOVED_MAX];
	struct arch_moved moved;
	const char *reason;
	int32_t distance;

	ck_assert_int_eq(arch_move(code, sizeof(code), FROM, NEAR_SLOT, out, &moved, &reason), 0);
	ck_assert_uint_eq(moved.length, 9);
	memcpy(&distance, out + 5, sizeof(distance));
	ck_assert_uint_eq(NEAR_SLOT + 9 + (uint64_t)distance, FROM);
}
END_TEST

START_TEST(a_jump_goes_where_it_can_reach)
{
	uint8_t out[ARCH_JUMP_SIZE] = { 0 };
	int32_t distance;

	ck_assert(arch_put_jump(FROM, NEAR_SLOT, out));
	memcpy(&distance, out + 1, sizeof(distance));
	ck_assert_uint_eq(out[0], 0xe9);
	ck_assert_uint_eq(FROM + ARCH_JUMP_SIZE + (uint64_t)distance, NEAR_SLOT);
	ck_assert(!arch_put_jump(FROM, FAR_SLOT, out));
	ck_assert(arch_put_jump(FROM, FROM + 5 + INT32_MAX, out));
	ck_assert(!arch_put_jump(FROM, FROM + 6 + INT32_MAX, out));
}
END_TEST

START_TEST(random_bytes_are_moved_or_refused)
{
	size_t moved_count = 0;

	for (unsigned i = 0; i < share_of(200000); i++) {
		uint64_t bytes[4] = { random_u64(), random_u64(), random_u64(), random_u64() };
		uint8_t out[ARCH_MOVED_MAX];
		struct arch_moved moved;
		const char *reason = NULL;
		int r = arch_move((const uint8_t *)bytes, random_u64() % 25, FROM, NEAR_SLOT, out, &moved, &reason);

		REQUIRE(r == 0 ? moved.length <= ARCH_MOVED_MAX : r == -ENOTSUP && reason);
		moved_count += r == 0;
	}
	ck_assert_uint_gt(moved_count, 1000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("move");
	TCase *tests = tcase_create("move");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, allocators_have_room_at_every_entry_and_exit);
	tcase_add_test(tests, nothing_branches_into_a_room);
	tcase_add_test(tests, a_prefix_that_a_branch_goes_over_is_no_room);
	tcase_add_test(tests, before_an_exit_of_a_switch_is_no_room);
	tcase_add_test(tests, padding_ends_where_functions_begin);
	tcase_add_test(tests, an_empty_function_has_room_with_its_padding);
	tcase_add_test(tests, branches_from_other_functions_are_found);
	tcase_add_test(tests, moved_instructions_of_real_functions_do_the_same);
	tcase_add_test(tests, moved_random_instructions_do_the_same);
	tcase_add_test(tests, what_cannot_be_moved_is_refused_with_the_reason);
	tcase_add_test(tests, a_branch_to_the_start_meets_the_jump);
	tcase_add_test(tests, a_jump_goes_where_it_can_reach);
	tcase_add_test(tests, random_bytes_are_moved_or_refused);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
