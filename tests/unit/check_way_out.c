/* Frames by their code, against what unwind tables say of the same places: behind every call of every function of real files. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"
#include "elf_functions.h"
#include "share.h"
#include "unwind/dwarf.h"
#include "unwind/endings.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIBDIR "/usr/lib/x86_64-linux-gnu/"

static const char *const files[] = { LIBDIR "libc.so.6", LIBDIR "libcrypto.so.3", "/usr/bin/python3" };

struct subject {
	const struct elf_functions *functions;
	struct dwarf_cfi *cfi;
	struct endings endings;
};

static struct {
	size_t places, found, same, by_other_register, different;
} tally;

static const struct elf_function *function_at(const struct subject *s, uint64_t address)
{
	size_t low = 0, high = s->functions->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->functions->items.items[middle].address + s->functions->items.items[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->functions->items.count && s->functions->items.items[low].address <= address ?
		       &s->functions->items.items[low] : NULL;
}

static int read_code(void *context, raddr at, void *buf, size_t len)
{
	const struct subject *s = context;
	const struct elf_function *function = function_at(s, at);

	/* The bytes behind it are in the file as well. */
	if (!function || function->code + (at - function->address) + len > (uint8_t *)s->functions->file + s->functions->file_size)
		return -EFAULT;
	memcpy(buf, function->code + (at - function->address), len);
	return 0;
}

static bool never_returns(void *context, raddr function)
{
	const struct subject *s = context;

	return endings_find(&s->endings, 0, function) != NULL;
}

static bool is_same(const struct cfi_row *row, const struct arch_way_out *out)
{
	if (row->cfa_offset != out->cfa_offset || row->saved_mask != out->saved_mask)
		return false;
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++) {
		if ((row->saved_mask >> i & 1) && row->saved[i] != out->saved[i])
			return false;
	}
	return true;
}

static void compare(struct subject *s, const struct elf_function *function, uint64_t pc)
{
	const struct arch_code code = { read_code, never_returns, s };
	struct arch_way_out out;
	struct cfi_row row;
	Dwarf_Frame *frame;

	if (dwarf_cfi_row(s->cfi, pc - 1, &row, &frame) < 0)
		return;
	free(frame);
	if (row.kind != CFI_ROW_PLAIN)
		return;
	tally.places++;
	if (!arch_find_way_out(&code, pc, &out))
		return;
	tally.found++;
	if (row.from_bp != out.from_bp)
		tally.by_other_register++;
	else if (is_same(&row, &out))
		tally.same++;
	else if (tally.different++ < 8)
		printf("  %s at %lx: %d and %d, saved %x and %x\n", function->name, (unsigned long)pc, row.cfa_offset, out.cfa_offset,
		       row.saved_mask, out.saved_mask);
}

static void look_at(struct subject *s, const struct elf_function *function)
{
	uint64_t offset = 0;
	struct insn insn;

	while (offset < function->size &&
	       insn_decode(function->code + offset, function->size - offset, function->address + offset, &insn)) {
		offset += insn.length;
		if (insn.kind == INSN_CALL && offset < function->size)
			compare(s, function, function->address + offset);
	}
}

START_TEST(what_the_code_does_is_what_the_tables_say)
{
	struct elf_functions functions;
	struct subject s = { .functions = &functions };
	int fd = open(files[_i], O_RDONLY | O_CLOEXEC);

	memset(&tally, 0, sizeof(tally));
	ck_assert_int_ge(fd, 0);
	elf_functions_load(&functions, files[_i]);
	ck_assert_int_eq(dwarf_cfi_open(fd, &s.cfi), 0);
	ck_assert_int_eq(endings_add(&s.endings, 0, fd), 0);
	for (size_t i = 0; i < functions.items.count; i++)
		look_at(&s, &functions.items.items[i]);
	printf("%s: %zu places behind calls, %zu found: %zu as the tables, %zu by the other register, %zu differ\n", files[_i],
	       tally.places, tally.found, tally.same, tally.by_other_register, tally.different);
	ck_assert_uint_ge(tally.places, 1000);
	ck_assert_uint_ge(tally.found * 100, tally.places * 85);
	/* Behind a call that does not return another function begins: where that is not known it is taken for the rest of this one, and
	 * what it leads to is no caller. */
	ck_assert_uint_le(tally.different * 40, tally.found);
	endings_fini(&s.endings);
	dwarf_cfi_close(s.cfi);
	elf_functions_fini(&functions);
	close(fd);
}
END_TEST

/* --- a file that changes while it is read --- */

static int to_cut = -1;

/* In place of libelf's: the file is cut short when its sections are gone through. */
Elf_Scn *elf_nextscn(Elf *elf, Elf_Scn *section)
{
	Elf_Scn *(*next)(Elf *, Elf_Scn *) = (Elf_Scn *(*)(Elf *, Elf_Scn *))(uintptr_t)dlsym(RTLD_NEXT, "elf_nextscn");

	if (to_cut >= 0)
		ck_assert_int_eq(ftruncate(to_cut, 0), 0);
	return next(elf, section);
}

static int memory_copy(const struct elf_functions *functions, size_t size)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int64_t)write(fd, functions->file, size), (int64_t)size);
	return fd;
}

/* A file in memory, which was read once. */
static int copy_with_endings(struct elf_functions *functions, struct endings *endings)
{
	int fd;

	elf_functions_load(functions, files[0]);
	fd = memory_copy(functions, functions->file_size);
	ck_assert_int_eq(endings_add(endings, 0, fd), 0);
	return fd;
}

/* Mapped, it would end whoever reads it. */
START_TEST(a_file_that_is_cut_short_while_it_is_read_ends_nobody)
{
	struct elf_functions functions;
	struct endings endings = { 0 };
	int fd;

	fd = copy_with_endings(&functions, &endings);
	ck_assert_uint_gt(endings.items.count, 5);
	endings_drop(&endings, 0);
	to_cut = fd;
	ck_assert_int_eq(endings_add(&endings, 0, fd), 0);
	ck_assert_uint_eq(endings.items.count, 0);
	endings_fini(&endings);
	close(fd);
	elf_functions_fini(&functions);
}
END_TEST

/* Wherever it was cut: what is there is read, or nothing. */
START_TEST(a_file_that_was_cut_short_has_fewer_endings_or_none)
{
	struct elf_functions functions;
	struct endings all = { 0 };
	int fd;

	fd = copy_with_endings(&functions, &all);
	for (unsigned i = 0; i <= 64; i++) {
		struct endings endings = { 0 };

		ck_assert_int_eq(ftruncate(fd, (off_t)(functions.file_size - functions.file_size / 64 * i)), 0);
		ck_assert_int_eq(endings_add(&endings, 0, fd), 0);
		ck_assert_uint_le(endings.items.count, all.items.count);
		endings_fini(&endings);
	}
	endings_fini(&all);
	close(fd);
	elf_functions_fini(&functions);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("way_out");
	TCase *real = tcase_create("real files"), *cut = tcase_create("files cut short");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);      /* the tests' children print, too */
	tcase_set_timeout(real, 300);
	tcase_add_loop_test(real, what_the_code_does_is_what_the_tables_say, 0, (int)(sizeof(files) / sizeof(files[0])));
	tcase_add_test(cut, a_file_that_is_cut_short_while_it_is_read_ends_nobody);
	tcase_add_test(cut, a_file_that_was_cut_short_has_fewer_endings_or_none);
	suite_add_tcase(suite, real);
	suite_add_tcase(suite, cut);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
