/* Of a stack of which a reader cannot know something, nothing is kept. */
#include "unwind/unwind.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FRAMES 41

static uint8_t *code;
static bool code_is_unknown;

static int read_stack_and_code(void *context, raddr at, void *buf, size_t len)
{
	const uint64_t *stack = context;
	raddr start = 0x700000;

	if (at >= start && at + len <= start + 8 * 16) {
		memcpy(buf, (const uint8_t *)stack + (at - start), len);
		return 0;
	}
	if (at < (raddr)(uintptr_t)code || at + len > (raddr)(uintptr_t)code + 4096)
		return -EFAULT;
	if (code_is_unknown)
		return -EAGAIN;
	memcpy(buf, (const void *)(uintptr_t)at, len);
	return 0;
}

/* Code without tables of two functions, the inner one of which keeps no frame pointer: that its frame has 24 bytes only its code says. */
static void make_code(void)
{
	static const uint8_t inner[] = { 0x48, 0x83, 0xec, 0x18, 0xe8, 0xf7, 0x01, 0, 0, 0x48, 0x83, 0xc4, 0x18, 0xc3 };

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(code, MAP_FAILED);
	memset(code, 0xcc, 4096);
	memcpy(code, inner, sizeof(inner));
	memcpy(code + 0x100, (const uint8_t[]){ 0xe8, 0xfb, 0xfe, 0xff, 0xff, 0xc3 }, 6);
	code[0x200] = 0xc3;
}

static uint32_t walk_code(struct unwinder *unwinder, bool unknown)
{
	uint64_t base = (uintptr_t)code, stack[16] = { base + 9, 1, 2, 3, base + 0x105, 0, 0 };
	const struct reader reader = { .read = read_stack_and_code, .context = stack };
	struct arch_regs regs;

	arch_regs_clear(&regs);
	regs.reg[ARCH_DWARF_SP] = 0x700000;
	regs.reg[ARCH_DWARF_PC] = base + 0x200;
	code_is_unknown = unknown;
	return unwinder_unwind(unwinder, &regs, &reader, FRAMES, NULL);
}

static struct unwinder *walker(struct module_map *map, struct stack_table *stacks)
{
	struct unwinder *unwinder = unwinder_new(map, stacks);

	ck_assert_ptr_nonnull(unwinder);
	return unwinder;
}

START_TEST(nothing_is_kept_of_what_could_not_be_known)
{
	char path[] = "code";
	struct module module = { .path = path };
	struct unwinder *fresh, *other;
	struct stack_table *stacks = stack_table_new(1000);
	struct module_map map;
	uint32_t known;

	make_code();
	module_map_init(&map);
	ck_assert_int_eq(module_map_add(&map, &module), 0);
	ck_assert_int_eq(module_map_add_range(&map, (uintptr_t)code, (uintptr_t)code + 4096, 0), 0);
	fresh = walker(&map, stacks);
	other = walker(&map, stacks);
	known = walk_code(fresh, false);
	ck_assert_uint_gt(unwinder_counters(fresh).code_rows, 0);
	ck_assert_uint_ne(walk_code(other, true), known);
	ck_assert_uint_eq(walk_code(other, false), known);
	unwinder_free(fresh);
	unwinder_free(other);
	stack_table_free(stacks);
	module_map_fini(&map);
	munmap(code, 4096);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unknown");
	TCase *tests = tcase_create("unknown");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_test(tests, nothing_is_kept_of_what_could_not_be_known);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
