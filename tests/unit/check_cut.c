/* Objects that are cut short while they are looked at: what is gone cannot be read, and nothing else happens.  And one that would have
 * more read than there is memory. */
#include "probe/elf_code.h"
#include "probe/plan.h"
#include "target/elf_file.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOKS 300
#define MOMENTS 200000
#define DYNAMICS 32
#define DYNAMIC_BYTES (8 << 20)
#define DYNAMICS_MOST_KB (4 * DYNAMIC_BYTES >> 10)

static char folder[64], path[96];
static uint8_t *bytes;
static size_t size;
static int object;

/* A copy of the C library: it has a malloc, and tables of all kinds. */
static void setup(void)
{
	int libc = open("/lib/x86_64-linux-gnu/" LIBC_SO, O_RDONLY);
	struct stat st;

	ck_assert_int_ge(libc, 0);
	ck_assert_int_eq(fstat(libc, &st), 0);
	size = (size_t)st.st_size;
	bytes = malloc(size);
	ck_assert_int_eq(pread(libc, bytes, size, 0), (ssize_t)size);
	close(libc);
	snprintf(folder, sizeof(folder), "/tmp/check_cut.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/object.so", folder);
	object = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(object, 0);
	ck_assert_int_eq(pwrite(object, bytes, size, 0), (ssize_t)size);
}

static void teardown(void)
{
	close(object);
	unlink(path);
	rmdir(folder);
	free(bytes);
}

static int count_function(void *context, const char *symbol, uint64_t vaddr)
{
	unsigned *count = context;

	(void)symbol;
	(void)vaddr;
	++*count;
	return 0;
}

static void count_bytes(void *context, const uint8_t *at, size_t len, uint64_t vaddr)
{
	size_t *sum = context;

	(void)vaddr;
	for (size_t i = 0; i < len; i++)
		*sum += at[i];
}

START_TEST(of_an_object_that_is_cut_short_after_it_was_opened_nothing_is_found)
{
	unsigned functions = 0;
	uint64_t vaddr;
	struct elf_code *code;
	size_t len, sum = 0;

	ck_assert_int_eq(elf_file_symbol(object, "malloc", &vaddr), 0);
	ck_assert_int_eq(elf_code_open(object, &code), 0);
	ck_assert_int_eq(ftruncate(object, _i), 0);
	ck_assert_int_eq(elf_code_each_function(code, count_function, &functions), 0);
	ck_assert_uint_eq(functions, 0);
	ck_assert_ptr_null(elf_code_at(code, vaddr, &len));
	ck_assert_uint_eq(elf_code_function_size(code, vaddr), 0);
	ck_assert_ptr_null(elf_code_import_name(code, vaddr));
	elf_code_each_segment(code, count_bytes, &sum);
	ck_assert_uint_eq(sum, 0);
	elf_code_close(code);
}
END_TEST

/* What was read stays as it was. */
START_TEST(what_was_read_of_an_object_before_it_is_cut_short_stays)
{
	struct elf_code *code;
	const uint8_t *text, *again;
	uint64_t vaddr;
	size_t len, whole = 0, then = 0;

	ck_assert_int_eq(elf_file_symbol(object, "malloc", &vaddr), 0);
	ck_assert_int_eq(elf_code_open(object, &code), 0);
	text = elf_code_at(code, vaddr, &len);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_gt(elf_code_function_size(code, vaddr), 0);
	elf_code_each_segment(code, count_bytes, &whole);
	ck_assert_int_eq(ftruncate(object, 0), 0);
	again = elf_code_at(code, vaddr, &len);
	ck_assert_ptr_eq(again, text);
	elf_code_each_segment(code, count_bytes, &then);
	ck_assert_uint_gt(whole, 0);
	ck_assert_uint_eq(whole, then);
	elf_code_close(code);
}
END_TEST

struct cutter {
	unsigned begun;                    /* looks */
	bool done;
};

static void wait_for_a_look(struct cutter *cutter)
{
	unsigned before = __atomic_load_n(&cutter->begun, __ATOMIC_RELAXED);

	while (__atomic_load_n(&cutter->begun, __ATOMIC_RELAXED) == before && !__atomic_load_n(&cutter->done, __ATOMIC_RELAXED))
		sched_yield();
}

/* Each time at another moment of a look. */
static void *cut_again_and_again(void *argument)
{
	struct cutter *cutter = argument;

	for (unsigned turn = 0; !__atomic_load_n(&cutter->done, __ATOMIC_RELAXED); turn++) {
		wait_for_a_look(cutter);
		for (unsigned i = 0; i < turn * 7919 % MOMENTS; i++)
			__asm__ volatile("pause");
		if (ftruncate(object, 100) < 0 || pwrite(object, bytes, size, 0) != (ssize_t)size)
			break;
	}
	return argument;
}

START_TEST(an_object_that_is_cut_short_while_it_is_looked_at_ends_nobody)
{
	unsigned whole = 0, cut = 0;
	struct cutter cutter = { 0 };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, cut_again_and_again, &cutter), 0);
	/* Until it was met whole, and was not. */
	while (whole + cut < LOOKS || whole == 0 || cut == 0) {
		struct elf_file file = { 0 };
		struct plan plan;
		uint64_t vaddr;
		bool good;

		__atomic_add_fetch(&cutter.begun, 1, __ATOMIC_RELAXED);
		good = elf_file_read(object, &file) == 0 && elf_file_symbol(object, "malloc", &vaddr) == 0 &&
		       elf_file_has_function(object, vaddr);

		elf_file_fini(&file);
		if (plan_make(object, NULL, path, true, &plan) == 0) {
			good &= plan.functions.count > 0;
			plan_fini(&plan);
		} else {
			good = false;
		}
		whole += good;
		cut += !good;
	}
	__atomic_store_n(&cutter.done, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("looked at %u times whole, %u times cut short\n", whole, cut);
}
END_TEST

static void forge_dynamics(void)
{
	const Elf64_Ehdr ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof(ehdr), .e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = DYNAMICS,
	};
	Elf64_Phdr phdrs[DYNAMICS];

	for (unsigned i = 0; i < DYNAMICS; i++)
		phdrs[i] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = 4096 * (i + 1), .p_filesz = DYNAMIC_BYTES };
	ck_assert_int_eq(ftruncate(object, 0), 0);
	ck_assert_int_eq(pwrite(object, &ehdr, sizeof(ehdr), 0), sizeof(ehdr));
	ck_assert_int_eq(pwrite(object, phdrs, sizeof(phdrs), sizeof(ehdr)), sizeof(phdrs));
	ck_assert_int_eq(ftruncate(object, 4096 * (DYNAMICS + 1) + DYNAMIC_BYTES), 0);
}

/* Each is small enough to be read. */
START_TEST(many_tables_that_there_should_be_one_of_are_not_all_read)
{
	static const char *const name = "execve";
	struct rusage before, after;
	uint64_t vaddr;

	forge_dynamics();
	getrusage(RUSAGE_SELF, &before);
	ck_assert_uint_eq(elf_file_program_symbols(object, &name, 1, &vaddr), 0);
	getrusage(RUSAGE_SELF, &after);
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, DYNAMICS_MOST_KB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cut");
	TCase *cases = tcase_create("objects");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_set_timeout(cases, 120);
	/* Nothing is left, or a page of what it was. */
	tcase_add_loop_test(cases, of_an_object_that_is_cut_short_after_it_was_opened_nothing_is_found, 0, 1);
	tcase_add_loop_test(cases, of_an_object_that_is_cut_short_after_it_was_opened_nothing_is_found, 4096, 4097);
	tcase_add_test(cases, what_was_read_of_an_object_before_it_is_cut_short_stays);
	tcase_add_test(cases, an_object_that_is_cut_short_while_it_is_looked_at_ends_nobody);
	tcase_add_test(cases, many_tables_that_there_should_be_one_of_are_not_all_read);
	suite_add_tcase(suite, cases);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
