#include "model/hidden.h"
#include "model/hidden_rules.h"
#include "model/traceback.h"
#include "snapshot_builder.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct snapshot *s;
static uint32_t program, libc;
static struct traceback_options options;

static void setup(void)
{
	s = snapshot_new();
	s->frames_limit = 25;
	program = build_module(s, "/usr/bin/program");
	libc = build_module(s, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	options = (struct traceback_options){ 0 };
}

static void teardown(void)
{
	snapshot_put(s);
}

static void forget_rules(void)
{
	hidden_rules_clear();
	teardown();
}

static uint32_t named(uint32_t module, const char *function, const char *file, uint32_t line)
{
	uint32_t frame = build_frame(s, module, FRAME_CALL, 0x1000 + s->frames.count);

	build_location(s, function, 0x2c, file, line, false);
	return frame;
}

/* Frames are given the outermost first; the answer has the most recent first. */
#define MAKE(...) \
	make((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static struct traceback make(const uint32_t *frames, size_t count)
{
	struct traceback traceback;
	const char *reason = "";
	uint32_t stack = build_stack(s, frames, count);

	ck_assert_msg(snapshot_check(s, &reason) == 0, "%s", reason);
	ck_assert_int_eq(traceback_make(s, stack, &options, &traceback), 0);
	return traceback;
}

static void ck_lines(struct traceback *traceback, size_t count, const uint32_t *lines)
{
	ck_assert_uint_eq(traceback->count, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(traceback->frames[i].line, lines[i]);
	traceback_fini(traceback);
}

#define CK_LINES(traceback, ...) \
	ck_lines((traceback), sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4, (const uint32_t[]){ __VA_ARGS__ })

START_TEST(the_most_recent_frame_is_first)
{
	struct traceback t = MAKE(named(program, "main", "main.c", 1), named(program, "serve", "serve.c", 2));

	ck_assert_str_eq(t.frames[0].file, "serve.c");
	ck_assert_str_eq(t.frames[0].function, "serve");
	ck_assert_str_eq(t.frames[0].object, "/usr/bin/program");
	ck_assert_uint_eq(t.frames[0].offset, 0x2c);
	ck_assert_uint_eq(t.total_frames, 2);
	ck_assert_int_eq(t.truncated, TRUNCATED_NONE);
	CK_LINES(&t, 2, 1);
}
END_TEST

START_TEST(inlined_calls_unfold_innermost_first)
{
	uint32_t outer = named(program, "main", "main.c", 1), inner;
	struct traceback t;

	inner = build_frame(s, program, FRAME_CALL, 0x5000);
	build_location(s, "deepest", 9, "a.h", 30, true);
	build_location(s, "middle", 9, "b.h", 20, true);
	build_location(s, "around", 9, "c.c", 10, false);
	t = MAKE(outer, inner);
	ck_assert(t.frames[0].inlined && t.frames[1].inlined && !t.frames[2].inlined);
	ck_assert_uint_eq(t.frames[0].place.location, 0);
	ck_assert_uint_eq(t.frames[2].place.location, 2);
	ck_assert_uint_eq(t.frames[2].place.frame, inner);
	ck_assert_uint_eq(t.frames[3].place.frame, outer);
	ck_assert_uint_eq(t.total_frames, 4);
	CK_LINES(&t, 30, 20, 10, 1);
}
END_TEST

START_TEST(leading_frames_of_allocator_and_runtimes_are_hidden)
{
	uint32_t user = named(program, "user", "user.cc", 7), grow;
	struct traceback t;

	grow = build_frame(s, program, FRAME_CALL, 0x5000);
	build_location(s, "std::__new_allocator<int>::allocate(unsigned long, void const*)", 1,
		       "/usr/include/c++/12/bits/new_allocator.h", 137, true);
	build_location(s, "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)", 1,
		       "/usr/include/c++/12/bits/vector.tcc", 440, false);
	t = MAKE(named(program, "main", "main.cc", 1), user, grow,
		 named(program, "operator new(unsigned long)", NULL, 0), named(libc, "malloc", NULL, 0));
	ck_assert_uint_eq(t.total_frames, 2);
	CK_LINES(&t, 7, 1);
}
END_TEST

START_TEST(frames_further_out_stay)
{
	struct traceback t = MAKE(named(program, "main", "main.c", 1), named(libc, "qsort", NULL, 0),
				  named(program, "compare", "main.c", 9), named(libc, "malloc", NULL, 0));

	ck_assert_str_eq(t.frames[1].function, "qsort");
	CK_LINES(&t, 9, 0, 1);
}
END_TEST

START_TEST(hidden_frames_do_not_count_against_the_limit)
{
	struct traceback t;

	options.limit = 2;
	t = MAKE(named(program, "a", "a.c", 1), named(program, "b", "b.c", 2), named(program, "c", "c.c", 3),
		 named(libc, "malloc", NULL, 0), named(libc, "strdup", NULL, 0));
	ck_assert_uint_eq(t.total_frames, 3);
	ck_assert_int_eq(t.truncated, TRUNCATED_LIMIT);
	CK_LINES(&t, 3, 2);
}
END_TEST

START_TEST(show_runtime_shows_all)
{
	struct traceback t;

	options.show_runtime = true;
	t = MAKE(named(program, "a", "a.c", 1), named(libc, "malloc", "malloc.c", 5));
	CK_LINES(&t, 5, 1);
}
END_TEST

START_TEST(when_all_would_be_hidden_none_is)
{
	struct traceback t = MAKE(named(libc, "__libc_start_main", "start.c", 3),
				  named(libc, "malloc", "malloc.c", 5));

	CK_LINES(&t, 5, 3);
}
END_TEST

START_TEST(the_limit_of_the_snapshot_holds)
{
	struct traceback t;

	s->frames_limit = 1;
	t = MAKE(named(program, "a", "a.c", 1), named(program, "b", "b.c", 2));
	CK_LINES(&t, 2);
	options.limit = 5;
	t = MAKE(named(program, "a", "a.c", 1), named(program, "b", "b.c", 2));
	CK_LINES(&t, 2);
}
END_TEST

START_TEST(a_truncated_stack_says_why)
{
	struct traceback t = MAKE(build_frame(s, MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_NO_CFI),
				  named(program, "b", "b.c", 2));

	ck_assert_int_eq(t.truncated, TRUNCATED_NO_CFI);
	ck_assert_uint_eq(t.total_frames, 1);
	CK_LINES(&t, 2);
	options.limit = 1;
	t = MAKE(build_frame(s, MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_NO_CFI),
		 named(program, "a", "a.c", 1), named(program, "b", "b.c", 2));
	ck_assert_int_eq(t.truncated, TRUNCATED_LIMIT);
	CK_LINES(&t, 2);
}
END_TEST

START_TEST(an_empty_stack_has_no_frames)
{
	struct traceback t;

	ck_assert_int_eq(traceback_make(s, STACK_ROOT, &options, &t), 0);
	ck_assert_uint_eq(t.count + t.total_frames, 0);
	traceback_fini(&t);
}
END_TEST

static void ck_name(const struct traceback_frame *frame, const char *name)
{
	int64_t id = traceback_frame_name(frame, s->strings);

	ck_assert_int_gt(id, 0);
	ck_assert_str_eq(strtab_get(s->strings, (uint32_t)id), name);
}

START_TEST(a_frame_is_named_by_file_else_by_function_else_by_object)
{
	struct traceback t;

	options.show_runtime = true;
	t = MAKE(build_frame(s, MODULE_NONE, FRAME_CALL, 0x7f00), build_frame(s, program, FRAME_CALL, 0xabc),
		 named(libc, "strdup", NULL, 0), named(libc, "odd", "file.c", 0),
		 named(program, "main", "/src/main.c", 3));
	ck_name(&t.frames[0], "/src/main.c");
	ck_name(&t.frames[1], "/usr/lib/x86_64-linux-gnu/libc.so.6(odd+0x2c)");
	ck_name(&t.frames[2], "/usr/lib/x86_64-linux-gnu/libc.so.6(strdup+0x2c)");
	ck_name(&t.frames[3], "/usr/bin/program(+0xabc)");
	ck_name(&t.frames[4], "[unknown](+0x7f00)");
	traceback_fini(&t);
}
END_TEST

/* --- names --- */

static const char *const hidden_names[] = {
	"malloc", "calloc", "realloc", "reallocarray", "free", "memalign", "aligned_alloc",
	"posix_memalign", "valloc", "pvalloc", "free_sized", "__libc_malloc", "__GI___libc_malloc",
	"__malloc", "malloc@@GLIBC_2.2.5", "malloc@GLIBC_2.2.5", "malloc.part.0", "_int_malloc",
	"sysmalloc", "_IO_file_doallocate", "__strdup", "strndup", "mmap64",
	"je_malloc", "je_arena_malloc_hard", "_rjem_malloc", "_rjem_je_arena_malloc_hard", "mallocx",
	"tc_malloc", "tc_new", "tc_newarray_nothrow", "tcmalloc::allocate_full_malloc_oom(unsigned long)",
	"mi_malloc", "mi_heap_malloc", "mi_new", "mi_zalloc_small", "_mi_page_malloc",
	"operator new(unsigned long)", "operator new[](unsigned long, std::nothrow_t const&)",
	"operator new", "operator delete(void*)",
	"std::vector<int, std::allocator<int> >::push_back(int&&)",
	"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create"
		"(unsigned long&, unsigned long)",
	"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(__gnu_cxx::"
		"__normal_iterator<int*, std::vector<int, std::allocator<int> > >, int&&)",
	"std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >"
		"(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
	"std::function<void ()>::function<main::{lambda()#1}&, void>(main::{lambda()#1}&)",
	"std::unique_ptr<(anonymous namespace)::Foo, std::default_delete<(anonymous namespace)::Foo> > "
		"std::make_unique<(anonymous namespace)::Foo>()",
	"decltype (auto) std::__invoke<void (*)()>(void (*&&)())",
	"void std::__1::vector<int>::__push_back_slow_path<int>(int&&) [clone .cold]",
	"__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
	"__cxa_allocate_exception",
	"alloc::vec::Vec<T,A>::push", "alloc::raw_vec::finish_grow", "core::ops::function::FnOnce::call_once",
	"std::collections::hash::map::HashMap<K,V,S>::insert", "hashbrown::raw::RawTable<T,A>::reserve_rehash",
	"<alloc::string::String as core::clone::Clone>::clone", "<T as alloc::slice::hack::ConvertVec>::to_vec",
	"<alloc[3c1c0]::vec::Vec<u8>>::push", "<[u8]>::to_vec", "alloc[3c1c0]::raw_vec::finish_grow",
	"<[mycrate::Foo] as alloc::borrow::ToOwned>::to_owned", "<&T as core::convert::Into<U>>::into",
	"<alloc::vec::Vec<mycrate::Foo> as core::clone::Clone>::clone",
	"__rust_alloc", "__rdl_alloc", "__rg_alloc", "__rustc::__rust_alloc", "__rust_alloc_zeroed",
};

static const char *const shown_names[] = {
	"main", "", "xmalloc", "malloc_or_die", "my_malloc", "zmalloc", "zalloc", "mallocs", "mallo",
	"new_heap_of_users", "newarray", "heap_malloc", "tc_init", "mi_cmd_exec_run", "mi_", "tc_", "__",
	"stdio_open", "standard::make(int)", "mystd::vector<int>::grow()", "corelib::f", "allocate",
	"Pool::operator new(unsigned long)", "user::Bar::operator std::string() const", "malloc::Pool::grow()",
	"std::vector<int, std::allocator<int> > user::foo<int>()",
	"std::vector<int, std::allocator<int> >& user::Table::rows()",
	"user::make(std::vector<int, std::allocator<int> > const&)",
	"main::{lambda()#1}::operator()() const", "(anonymous namespace)::foo()",
	"(anonymous namespace)::Cache::fill(std::function<void ()>)",
	"std::ostream& operator<< <char>(std::ostream&, user::Thing const&)",
	"operator new_thing(int)", "core::Widget::make(int)", "alloc::Arena::grow(unsigned long) const",
	"mycrate::main", "<mycrate::Foo as core::clone::Clone>::clone",
	"<mycrate::Foo as alloc::string::ToString>::to_string", "<&mycrate::Foo as core::clone::Clone>::clone",
	"<mycrate::Foo>::new", "mycrate[3c1c0]::run", "<T as mycrate::Trait>::go", "<", "<>", "<<", "<a as ",
	"void (", "operator", "a::", "std", "std:", "_ZN",
};

START_TEST(runtime_functions_are_known_by_name)
{
	ck_assert_msg(hidden_function(hidden_names[_i]), "shown: %s", hidden_names[_i]);
}
END_TEST

START_TEST(a_users_functions_are_never_hidden_by_name)
{
	ck_assert_msg(!hidden_function(shown_names[_i]), "hidden: %s", shown_names[_i]);
}
END_TEST

START_TEST(runtime_objects_are_known_by_file_name)
{
	static const char *const hidden[] = {
		"/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/libc-2.31.so", "/lib/ld-musl-x86_64.so.1",
		"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-2.31.so",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "libtcmalloc_minimal.so.4", "/opt/libmimalloc.so.2.0",
		"/usr/lib/libstdc++.so.6.0.30", "libc++.so.1", "libc++abi.so.1", "/lib/libgcc_s.so.1",
		"/lib/libc.musl-x86_64.so.1", "/usr/lib/libc.so.6 (deleted)", "libpthread.so.0",
		"/usr/lib/libstd-1234567890abcdef.so",
		"/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0.7400.6", "libgobject-2.0.so.0",
	};
	static const char *const shown[] = {
		"", "/usr/bin/program", "/usr/lib/libcrypto.so.3", "/usr/lib/libcairo.so.2", "/opt/libc/plugin.so",
		"/usr/lib/libc-client.so.2007e", "/usr/lib/libcurl.so.4", "/usr/lib/libdlib.so", "/usr/bin/ld",
		"/usr/lib/libc.so.6/x", "/usr/lib/libm.so.6",
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		ck_assert_msg(hidden_object(hidden[i]), "shown: %s", hidden[i]);
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		ck_assert_msg(!hidden_object(shown[i]), "hidden: %s", shown[i]);
}
END_TEST

START_TEST(runtime_code_is_known_by_its_source_file)
{
	ck_assert(hidden_file("/usr/include/c++/12/bits/stl_vector.h"));
	ck_assert(hidden_file("/usr/lib/llvm-14/include/c++/v1/vector"));
	ck_assert(hidden_file("/rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/alloc/src/vec/mod.rs"));
	ck_assert(hidden_file("/usr/lib/rustlib/src/rust/library/core/src/ops/function.rs"));
	ck_assert(!hidden_file("/src/program/include/c++.h"));
	ck_assert(!hidden_file("/src/rustc/main.rs"));
	ck_assert(!hidden_file("/rustc/compiler/main.rs"));
}
END_TEST

/* --- what users add --- */

static void hide(const char *rule)
{
	const char *reason = "";

	ck_assert_msg(hidden_rules_add(rule, &reason) == 0, "%s %s", rule, reason);
}

START_TEST(a_users_rule_hides_functions_by_name)
{
	static const char *const hidden[] = {
		"xmalloc", "xmalloc.part.0", "xmalloc@@XLIB_1.0", "pool::get", "pool::get(unsigned long)",
		"void* pool::get(unsigned long, char const*) const", "pool::get<int>(int)", "pool::get(int) [clone .cold]",
		"Arena::operator new(unsigned long)", "<mycrate::Pool>::alloc", "mycrate::pool::get",
	};
	static const char *const shown[] = {
		"xmalloc2", "my_xmalloc", "pool::getter(int)", "carpool::get(int)", "user(pool::get)", "main",
		"pool::put(int)", "std_like", "Arena::grow(unsigned long)", "xmalloc::helper()",
	};
	static const char *const rules[] = {
		"xmalloc", "@function=pool::get", "pool::get<*>", "Arena::operator new", "<mycrate::Pool>::*",
		"mycrate::pool::*",
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		ck_assert_msg(!hidden_function(hidden[i]), "hidden without a rule: %s", hidden[i]);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		hide(rules[i]);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		ck_assert_msg(hidden_function(hidden[i]), "shown: %s", hidden[i]);
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		ck_assert_msg(!hidden_function(shown[i]), "hidden: %s", shown[i]);
}
END_TEST

START_TEST(a_users_rule_hides_objects_and_files_by_name_or_path)
{
	hide("@object=libpool.so*");
	hide("@object=/opt/arena/*");
	hide("@file=pool.[ch]");
	hide("@file=*/third_party/*");
	ck_assert(hidden_object("/usr/lib/libpool.so.1"));
	ck_assert(hidden_object("/opt/arena/bin/program"));
	ck_assert(!hidden_object("/usr/lib/libpools.so.1"));
	ck_assert(!hidden_object("/srv/opt/arena/program"));
	ck_assert(hidden_file("/src/pool.h"));
	ck_assert(hidden_file("/src/third_party/x/y.c"));
	ck_assert(!hidden_file("/src/pool.cc"));
	ck_assert(!hidden_function("libpool.so"));
}
END_TEST

START_TEST(inlined_calls_of_a_users_allocator_are_hidden)
{
	uint32_t inner;
	struct traceback t;

	hide("@file=pool.h");
	inner = build_frame(s, program, FRAME_CALL, 0x5000);
	build_location(s, "pool_get", 9, "/src/pool.h", 30, true);
	build_location(s, "user", 9, "/src/user.c", 10, false);
	t = MAKE(named(program, "main", "main.c", 1), inner, named(libc, "malloc", NULL, 0));
	ck_assert_uint_eq(t.total_frames, 2);
	CK_LINES(&t, 10, 1);
}
END_TEST

START_TEST(a_rule_that_is_none_is_refused)
{
	static const char *const wrong[] = { "", "@function=", "@object=", "@line=3", "@", "a\nb" };
	const char *reason;
	char longest[HIDDEN_RULE_LENGTH_MAX + 1];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		reason = NULL;
		ck_assert_int_eq(hidden_rules_add(wrong[i], &reason), -EINVAL);
		ck_assert_ptr_nonnull(reason);
	}
	ck_assert_int_eq(hidden_rules_add(longest, &reason), -EINVAL);
	ck_assert_uint_eq(hidden_rules_count(), 0);
}
END_TEST

START_TEST(there_are_only_so_many_rules_and_each_once)
{
	const char *reason;
	char rule[16];

	for (unsigned i = 0; i < HIDDEN_RULES_MAX; i++) {
		snprintf(rule, sizeof(rule), "f%u", i);
		hide(rule);
		hide(rule);
	}
	ck_assert_uint_eq(hidden_rules_count(), HIDDEN_RULES_MAX);
	ck_assert_int_eq(hidden_rules_add("one_more", &reason), -E2BIG);
	ck_assert(hidden_function("f255"));
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof(*(array)))

int main(void)
{
	Suite *suite = suite_create("traceback");
	TCase *tcase = tcase_create("traceback"), *names = tcase_create("names"), *rules = tcase_create("rules");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_most_recent_frame_is_first);
	tcase_add_test(tcase, inlined_calls_unfold_innermost_first);
	tcase_add_test(tcase, leading_frames_of_allocator_and_runtimes_are_hidden);
	tcase_add_test(tcase, frames_further_out_stay);
	tcase_add_test(tcase, hidden_frames_do_not_count_against_the_limit);
	tcase_add_test(tcase, show_runtime_shows_all);
	tcase_add_test(tcase, when_all_would_be_hidden_none_is);
	tcase_add_test(tcase, the_limit_of_the_snapshot_holds);
	tcase_add_test(tcase, a_truncated_stack_says_why);
	tcase_add_test(tcase, an_empty_stack_has_no_frames);
	tcase_add_test(tcase, a_frame_is_named_by_file_else_by_function_else_by_object);
	tcase_add_loop_test(names, runtime_functions_are_known_by_name, 0, COUNT(hidden_names));
	tcase_add_loop_test(names, a_users_functions_are_never_hidden_by_name, 0, COUNT(shown_names));
	tcase_add_test(names, runtime_objects_are_known_by_file_name);
	tcase_add_test(names, runtime_code_is_known_by_its_source_file);
	tcase_add_checked_fixture(rules, setup, forget_rules);
	tcase_add_test(rules, a_users_rule_hides_functions_by_name);
	tcase_add_test(rules, a_users_rule_hides_objects_and_files_by_name_or_path);
	tcase_add_test(rules, inlined_calls_of_a_users_allocator_are_hidden);
	tcase_add_test(rules, a_rule_that_is_none_is_refused);
	tcase_add_test(rules, there_are_only_so_many_rules_and_each_once);
	suite_add_tcase(suite, tcase);
	suite_add_tcase(suite, rules);
	suite_add_tcase(suite, names);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
