/* What is leaned on while all threads of a process are held: what is known of one holds until it runs, and what is read of many
 * at once is what would be read of each. */
#include "target/maps.h"
#include "target/maps_query.h"
#include "target/target.h"

#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* --- mappings --- */

/* The executable mappings of files, by the text. */
static unsigned count_code(struct mapped_code code[], unsigned most)
{
	char *text, *cursor;
	struct map_line map;
	unsigned count = 0;

	ck_assert_int_eq(file_read_text("/proc/self/maps", MAPS_TEXT_MAX, &text, NULL), 0);
	cursor = text;
	while (maps_next(&cursor, &map)) {
		if (!map.executable || map.inode == 0)
			continue;
		ck_assert_uint_lt(count, most);
		code[count++] = (struct mapped_code){ map.start, map.end, map.device, map.inode };
	}
	free(text);
	return count;
}

START_TEST(the_kernel_says_of_code_what_the_text_says)
{
	struct mapped_code by_text[256], code = { .end = 0 };
	unsigned count = count_code(by_text, 256), i = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), r;

	while ((r = maps_query_code(fd, code.end, &code)) == 0 && i < count) {
		ck_assert_uint_eq(code.start, by_text[i].start);
		ck_assert_uint_eq(code.end, by_text[i].end);
		ck_assert_uint_eq(code.device, by_text[i].device);
		ck_assert_uint_eq(code.inode, by_text[i].inode);
		i++;
	}
	close(fd);
	/* Before Linux 6.11 the text is all that there is. */
	if (r == -ENOTTY)
		return;
	ck_assert_int_eq(r, -ENOENT);
	ck_assert_uint_eq(i, count);
}
END_TEST

static bool has_changed(struct target *target)
{
	bool changed;

	ck_assert_int_eq(target_scan_modules(target, &changed), 0);
	return changed;
}

START_TEST(an_object_that_came_or_went_is_seen)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct target *target;
	void *at;

	ck_assert_int_eq(target_new(getpid(), &target), 0);
	ck_assert(has_changed(target));
	ck_assert(!has_changed(target));
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert(has_changed(target));
	ck_assert(!has_changed(target));
	/* Code in no file is no object. */
	ck_assert_ptr_ne(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
	ck_assert(!has_changed(target));
	munmap(at, PAGE);
	ck_assert(has_changed(target));
	ck_assert(!has_changed(target));
	close(fd);
	target_free(target);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("holding");
	TCase *tcase = tcase_create("holding");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, the_kernel_says_of_code_what_the_text_says);
	tcase_add_test(tcase, an_object_that_came_or_went_is_seen);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
