/* The rows that cfi_program.c makes of real files, against libdw's: every row of every function. */
#include "base/fd.h"
#include "unwind/cfi_image.h"
#include "unwind/cfi_program.h"
#include "unwind/cfi_section.h"
#include "unwind/dwarf.h"
#include "random.h"
#include "share.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows of one function that are looked at. */
#define ROWS_MAX 100000u

struct subject {
	struct cfi_image image;
	struct cfi_section section;
	struct cfi_index index;
	struct cfi_programs programs;
	struct dwarf_cfi *libdw;
	Elf *elf;
	Dwarf_CFI *frames;                 /* of the same image: where its rows end */
};

struct counts {
	uint64_t functions, rows, compared, differ;
	uint64_t full;                     /* left to libdw because they must be */
	uint64_t plain_left;               /* left to libdw, and it found them plain */
};

/* False when all of its tables are refused. */
static bool subject_open(struct subject *s, int fd)
{
	if (cfi_image_make(fd, &s->image) < 0)
		return false;
	ck_assert_int_eq(dwarf_cfi_open(fd, &s->libdw), 0);
	s->section = (struct cfi_section){ .bytes = (const uint8_t *)s->image.bytes + s->image.eh_frame,
					   .size = s->image.eh_frame_size,
					   .address = s->image.eh_frame_address, .eh_frame = true };
	ck_assert_int_eq(cfi_section_index(&s->section, &s->index), 0);
	ck_assert_int_eq(cfi_programs_init(&s->programs, &s->section,
					   (const void *)(s->image.bytes + s->image.search_table),
					   s->image.functions), 0);
	s->elf = elf_memory(s->image.bytes, s->image.size);
	s->frames = dwarf_getcfi_elf(s->elf);
	ck_assert_ptr_nonnull(s->frames);
	return true;
}

static void subject_close(struct subject *s)
{
	dwarf_cfi_end(s->frames);
	elf_end(s->elf);
	cfi_programs_fini(&s->programs);
	cfi_index_fini(&s->index);
	dwarf_cfi_close(s->libdw);
	cfi_image_fini(&s->image);
}

static void compare_at(struct subject *s, uint64_t address, struct counts *counts)
{
	struct cfi_row ours, theirs;
	Dwarf_Frame *frame = NULL;
	int err = dwarf_cfi_row_by_libdw(s->libdw, address, &theirs, &frame);

	if (cfi_programs_row(&s->programs, address, &ours) < 0) {
		if (err < 0 || theirs.kind == CFI_ROW_FULL)
			counts->full++;
		else
			counts->plain_left++;
	} else {
		counts->compared++;
		if (err < 0 || memcmp(&ours, &theirs, sizeof(ours)) != 0) {
			if (counts->differ++ < 5)
				fprintf(stderr, "row of %#lx: kind %u, libdw %d kind %u\n",
					(unsigned long)address, ours.kind, err, theirs.kind);
		}
	}
	free(frame);
}

/* The end of the row of an address, as libdw says. */
static uint64_t row_end(struct subject *s, uint64_t address, uint64_t function_end)
{
	Dwarf_Addr end = function_end;
	Dwarf_Frame *frame;

	if (dwarf_cfi_addrframe(s->frames, address, &frame) != 0)
		return function_end;
	dwarf_frame_info(frame, NULL, &end, NULL);
	free(frame);
	return end > address && end < function_end ? end : function_end;
}

static void compare_function(struct subject *s, const struct cfi_fde *fde, struct counts *counts)
{
	uint64_t address = fde->start;

	counts->functions++;
	for (unsigned int rows = 0; address < fde->end && rows < ROWS_MAX; rows++) {
		uint64_t end = row_end(s, address, fde->end);

		counts->rows++;
		compare_at(s, address, counts);
		if (end - 1 != address)
			compare_at(s, end - 1, counts);
		address = end;
	}
}

static struct counts compare_file(const char *path)
{
	struct counts counts = { 0 };
	struct subject s = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return counts;
	ck_assert(subject_open(&s, fd));
	fd_close(&fd);
	for (size_t i = 0; i < s.index.fdes.count; i++)
		compare_function(&s, &s.index.fdes.items[i], &counts);
	printf("%s: %lu functions, %lu rows, at their first and last byte %lu compared with libdw's, %lu differ; "
	       "%lu left to libdw, %lu of them plain\n", path, (unsigned long)counts.functions,
	       (unsigned long)counts.rows, (unsigned long)counts.compared, (unsigned long)counts.differ,
	       (unsigned long)(counts.full + counts.plain_left), (unsigned long)counts.plain_left);
	subject_close(&s);
	return counts;
}

static void check_counts(const struct counts *counts)
{
	ck_assert_uint_eq(counts->differ, 0);
	ck_assert_uint_eq(counts->plain_left, 0);
}

/* Those that are everywhere, then what the benchmark unwinds, where it is installed. */
static const char *const always[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
				      "/lib/x86_64-linux-gnu/libgcc_s.so.1" };
static const char *const perhaps[] = { "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/bin/python3",
				       "/usr/bin/redis-server", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
				       "/usr/lib/x86_64-linux-gnu/libcrypto.so.3" };

START_TEST(every_row_of_what_is_everywhere_is_libdws)
{
	struct counts counts = compare_file(always[_i]);

	ck_assert_uint_gt(counts.compared, 100);
	check_counts(&counts);
}
END_TEST

START_TEST(every_row_of_larger_files_is_libdws)
{
	struct counts counts = compare_file(perhaps[_i]);

	check_counts(&counts);
}
END_TEST

START_TEST(every_row_of_the_compiler_is_libdws)
{
	FILE *gcc = popen("gcc -print-prog-name=cc1 2>/dev/null", "r");
	char path[4096] = "";
	struct counts counts;

	ck_assert_ptr_nonnull(gcc);
	if (!fgets(path, sizeof(path), gcc))
		path[0] = 0;
	pclose(gcc);
	path[strcspn(path, "\n")] = 0;
	counts = compare_file(path);
	check_counts(&counts);
}
END_TEST

/* --- programs of somebody who means harm --- */

#define MUTATIONS 2000u

/* One function or head in eight gets a byte changed anywhere behind its id, its program included. */
static void mutate(uint8_t *bytes, size_t size)
{
	const struct cfi_section section = { .bytes = bytes, .size = size, .eh_frame = true };
	uint64_t offset = 0;
	struct cfi_entry entry;
	bool broken;

	while (cfi_entry_next(&section, &offset, &entry, &broken)) {
		size_t skip = entry.is_cie ? 0 : 8;
		uint8_t *program = bytes + (entry.rest.at - bytes) + skip;

		if (random_u64() % 8 != 0 || cursor_left(&entry.rest) <= skip)
			continue;
		program[random_u64() % (cursor_left(&entry.rest) - skip)] = (uint8_t)random_u64();
	}
}

static void compare_mutant(const uint8_t *file, size_t size, const struct cfi_image *image, size_t at,
			   struct counts *counts)
{
	int fd = memfd_create("mutant", MFD_CLOEXEC);
	uint8_t *table = malloc(image->eh_frame_size);
	struct subject s = { 0 };
	bool opened;

	memcpy(table, file + at, image->eh_frame_size);
	mutate(table, image->eh_frame_size);
	ck_assert_int_eq(fd_write_all(fd, file, size), 0);
	ck_assert_int_eq(pwrite(fd, table, image->eh_frame_size, (off_t)at), (ssize_t)image->eh_frame_size);
	free(table);
	opened = subject_open(&s, fd);
	fd_close(&fd);
	if (!opened)
		return;
	for (size_t i = 0; i < s.index.fdes.count; i++) {
		const struct cfi_fde *fde = &s.index.fdes.items[i];

		counts->functions++;
		for (unsigned int j = 0; j < 4; j++)
			compare_at(&s, fde->start + random_u64() % (fde->end - fde->start), counts);
	}
	subject_close(&s);
}

/* What is not refused means what libdw says it means, however odd. */
START_TEST(odd_programs_mean_what_libdw_says)
{
	int fd = open("/lib/x86_64-linux-gnu/libgcc_s.so.1", O_RDONLY | O_CLOEXEC);
	struct counts counts = { 0 };
	struct cfi_image image;
	uint8_t *file, *at;
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(cfi_image_make(fd, &image), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	file = malloc((size_t)st.st_size);
	ck_assert_int_eq(pread(fd, file, (size_t)st.st_size, 0), st.st_size);
	at = memmem(file, (size_t)st.st_size, image.bytes + image.eh_frame, image.eh_frame_size);
	ck_assert_ptr_nonnull(at);
	for (unsigned int i = 0; i < share_of(MUTATIONS); i++)
		compare_mutant(file, (size_t)st.st_size, &image, (size_t)(at - file), &counts);
	printf("%u mutants: %lu functions, %lu rows compared, %lu differ; %lu left to libdw, %lu of them plain\n",
	       share_of(MUTATIONS), (unsigned long)counts.functions, (unsigned long)counts.compared,
	       (unsigned long)counts.differ, (unsigned long)(counts.full + counts.plain_left),
	       (unsigned long)counts.plain_left);
	ck_assert_uint_gt(counts.compared, share_of(MUTATIONS) * 100);
	ck_assert_uint_eq(counts.differ, 0);
	fd_close(&fd);
	cfi_image_fini(&image);
	free(file);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cfi_program");
	TCase *tests = tcase_create("real_files");
	SRunner *runner;
	int failed;

	elf_version(EV_CURRENT);
	tcase_set_timeout(tests, 300);
	tcase_add_loop_test(tests, every_row_of_what_is_everywhere_is_libdws, 0,
			    sizeof(always) / sizeof(*always));
	tcase_add_loop_test(tests, every_row_of_larger_files_is_libdws, 0, sizeof(perhaps) / sizeof(*perhaps));
	tcase_add_test(tests, every_row_of_the_compiler_is_libdws);
	tcase_add_test(tests, odd_programs_mean_what_libdw_says);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
