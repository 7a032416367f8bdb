/* Which operator new it was is told by the callers of malloc, and by the instruction that called it. */
#include "probe/forms.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MALLOC 0x1000                          /* run-time addresses, in no object */
#define NEW 0x2000
#define NEW_ARRAY 0x2100
#define CODE 0x3000                            /* the program's: from here on everything can be read */
#define STUB 0x3100
#define POINTER 0x3200
#define SPACE 0x300

static uint8_t code[SPACE];
static struct forms forms;
static struct stack_table *stacks;
static struct module_map map;
static unsigned reads;

static int read_code(void *context, raddr at, void *buf, size_t len)
{
	(void)context;
	reads++;
	if (at < CODE || at - CODE > SPACE - len)
		return -EFAULT;
	memcpy(buf, code + (at - CODE), len);
	return 0;
}

static const struct reader reader = { .read = read_code };

static void put(raddr at, const void *bytes, size_t len)
{
	memcpy(code + (at - CODE), bytes, len);
}

static void put_distance(raddr at, raddr target)
{
	int32_t distance = (int32_t)(target - (at + 4));

	put(at, &distance, sizeof(distance));
}

/* The return address of a call to `target` at `at`. */
static raddr put_call(raddr at, raddr target)
{
	put(at, "\xe8", 1);
	put_distance(at + 1, target);
	return at + 5;
}

static raddr put_call_through(raddr at, raddr pointer)
{
	put(at, "\xff\x15", 2);
	put_distance(at + 2, pointer);
	return at + 6;
}

static void put_stub(raddr function)
{
	const uint64_t value = function;

	put(STUB, "\xff\x25", 2);
	put_distance(STUB + 2, POINTER);
	put(POINTER, &value, sizeof(value));
}

static void setup(void)
{
	const struct form_function new = { NEW, 0x40, 1, FORM_NEW }, array = { NEW_ARRAY, 0x10, 1, FORM_NEW_ARRAY };

	memset(code, 0x90, sizeof(code));
	module_map_init(&map);
	stacks = stack_table_new(1000);
	ck_assert_int_eq(forms_add(&forms, &new), 0);
	ck_assert_int_eq(forms_add(&forms, &array), 0);
}

static void teardown(void)
{
	forms_fini(&forms);
	stack_table_free(stacks);
	module_map_fini(&map);
}

static uint32_t push(uint32_t parent, enum frame_kind kind, raddr address)
{
	const struct frame frame = { .module = MODULE_NONE, .kind = (uint16_t)kind, .offset = address };

	return (uint32_t)stack_table_push(stacks, parent, (uint32_t)stack_table_frame(stacks, &frame));
}

/* malloc, called by the functions that these addresses return to, the innermost last. */
static uint32_t stack_of(raddr outer, raddr middle, raddr inner)
{
	uint32_t stack = push(STACK_ROOT, FRAME_CALL, CODE + 0x2f0);

	stack = push(stack, FRAME_CALL, outer);
	stack = middle ? push(stack, FRAME_CALL, middle) : stack;
	stack = inner ? push(stack, FRAME_CALL, inner) : stack;
	return push(stack, FRAME_EXACT, MALLOC);
}

static uint32_t ask(uint32_t stack)
{
	return forms_of_stack(&forms, stacks, &map, &reader, stack);
}

START_TEST(what_no_operator_new_calls_is_mallocs)
{
	ck_assert_uint_eq(ask(stack_of(put_call(CODE + 0x10, MALLOC), 0, 0)), FORM_MALLOC);
}
END_TEST

START_TEST(the_call_instruction_says_which_operator_new_it_was)
{
	raddr direct = put_call(CODE + 0x10, NEW);

	ck_assert_uint_eq(ask(stack_of(direct, 0, NEW + 0x10)), FORM_NEW);
	put_stub(NEW_ARRAY);
	ck_assert_uint_eq(ask(stack_of(put_call(CODE + 0x20, STUB), 0, NEW + 0x10)), FORM_NEW_ARRAY);
	ck_assert_uint_eq(ask(stack_of(put_call_through(CODE + 0x40, POINTER), 0, NEW + 0x10)), FORM_NEW_ARRAY);
}
END_TEST

/* A nothrow one, say. */
START_TEST(the_outermost_operator_new_is_the_one)
{
	put_stub(NEW_ARRAY);
	ck_assert_uint_eq(ask(stack_of(put_call(CODE + 0x10, STUB), NEW_ARRAY + 8, NEW + 0x10)), FORM_NEW_ARRAY);
}
END_TEST

START_TEST(where_nothing_says_it_it_may_be_either)
{
	/* By a function that jumps on, and by a register. */
	ck_assert_uint_eq(ask(stack_of(put_call(CODE + 0x10, CODE + 0x80), 0, NEW + 0x10)), FORM_NEW | FORM_NEW_ARRAY);
	put(CODE + 0x50, "\xff\xd0", 2);
	ck_assert_uint_eq(ask(stack_of(CODE + 0x52, 0, NEW + 0x10)), FORM_NEW | FORM_NEW_ARRAY);
	ck_assert_uint_eq(ask(stack_of(0x10, 0, NEW + 0x10)), FORM_NEW | FORM_NEW_ARRAY);
}
END_TEST

START_TEST(a_stack_is_looked_at_once_until_an_object_goes)
{
	uint32_t stack = stack_of(put_call(CODE + 0x10, NEW), 0, NEW + 0x10);
	unsigned before;

	ask(stack);
	before = reads;
	ck_assert_uint_eq(ask(stack), FORM_NEW);
	ck_assert_uint_eq(reads, before);
	forms_drop_module(&forms, 1);
	ck_assert_uint_eq(ask(stack), FORM_MALLOC);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("forms");
	TCase *tests = tcase_create("forms");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, what_no_operator_new_calls_is_mallocs);
	tcase_add_test(tests, the_call_instruction_says_which_operator_new_it_was);
	tcase_add_test(tests, the_outermost_operator_new_is_the_one);
	tcase_add_test(tests, where_nothing_says_it_it_may_be_either);
	tcase_add_test(tests, a_stack_is_looked_at_once_until_an_object_goes);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
