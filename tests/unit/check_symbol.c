/* From addresses to names, on files that the test compiles and on real ones, against addr2line. */
#include "symbol_fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define NO_ROOT "no-such-directory"

static int resolve(const char *path, const char *debug_root, uint64_t address, bool is_call,
		   struct symbol_location *locations, struct symbol_module **ret_module)
{
	struct symbol_module *module = fixture_open(path, debug_root);
	int count = symbol_module_resolve(module, address, is_call, locations);

	ck_assert_int_ge(count, 0);
	*ret_module = module;
	return count;
}

static void assert_name(const char *path, uint64_t address, const char *name)
{
	struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	int count = resolve(path, NO_ROOT, address, false, locations, &module);

	if (name) {
		ck_assert_msg(count > 0, "no name at 0x%lx of %s, not %s", address, path, name);
		ck_assert_str_eq(locations[count - 1].function, name);
	} else {
		ck_assert_msg(count == 0, "0x%lx of %s is %s", address, path,
			      count > 0 ? locations[0].function : "");
	}
	symbol_module_free(module);
}

static unsigned sources_of(const char *path, const char *debug_root)
{
	struct symbol_module *module = fixture_open(path, debug_root);
	unsigned sources = symbol_module_sources(module);

	symbol_module_free(module);
	return sources;
}

/* By what its function main is called for. */
static bool is_incomplete(const char *path, const char *debug_root)
{
	struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	bool is;

	ck_assert_int_gt(resolve(path, debug_root, fixture_address(path, "main", NULL), false, locations, &module), 0);
	is = symbol_module_is_incomplete(module);
	symbol_module_free(module);
	return is;
}

static void assert_agrees(const char *what, const char *path, const char *reference,
			  const char *debug_root, size_t max, size_t min)
{
	struct addresses addresses;
	struct comparison comparison;

	fixture_function_addresses(reference, max, &addresses);
	comparison = fixture_compare(path, reference, debug_root, &addresses);
	fixture_print(what, &comparison);
	vec_fini(&addresses.items);
	ck_assert_uint_ge(comparison.compared, min);
	ck_assert_uint_eq(comparison.different, 0);
	ck_assert_uint_gt(comparison.same * 2, comparison.compared);
}

/* --- compiled here --- */

static const char *const compilers[] = {
	"gcc -gdwarf-4", "gcc -gdwarf-5", "clang -gdwarf-4", "clang -gdwarf-5",
};
static const char *const forms[] = { "-fPIE -pie", "-no-pie", "-fPIE -pie -gz" };
#define COMPILER_COUNT (sizeof(compilers) / sizeof(compilers[0]))
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

START_TEST(every_byte_of_a_c_program_reads_as_addr2line_says)
{
	const char *compiler = compilers[(size_t)_i / FORM_COUNT], *form = forms[(size_t)_i % FORM_COUNT];
	char what[128];

	fixture_run("%s -O2 %s -o levels $DATA/levels.c", compiler, form);
	snprintf(what, sizeof(what), "%s %s", compiler, form);
	assert_agrees(what, "levels", "levels", NO_ROOT, SIZE_MAX / 2, 300);
}
END_TEST

START_TEST(every_byte_of_a_cxx_program_reads_as_addr2line_says)
{
	static const char *const cxx[] = {
		"g++ -O2 -gdwarf-4", "g++ -O2 -gdwarf-5", "clang++ -O2 -gdwarf-4",
		"clang++ -O2 -gdwarf-5", "g++ -O0 -gdwarf-5", "g++ -O2 -gdwarf-5 -flto",
		"clang++ -O2 -g -gz -ffunction-sections -Wl,--gc-sections",
	};

	fixture_run("%s -o shapes $DATA/shapes.cc", cxx[_i]);
	assert_agrees(cxx[_i], "shapes", "shapes", NO_ROOT, SIZE_MAX / 2, 1000);
}
END_TEST

START_TEST(units_of_dwarf_4_and_5_and_two_compilers_mix_in_one_file)
{
	fixture_run("gcc -O2 -gdwarf-4 -c -o a.o -Dmain=unused $DATA/levels.c");
	fixture_run("objcopy --prefix-symbols=a_ a.o && objcopy --redefine-sym a_malloc=malloc "
		    "--redefine-sym a_abort=abort --redefine-sym a_free=free a.o");
	fixture_run("clang -O2 -gdwarf-5 -fPIE -c -o b.o $DATA/levels.c");
	fixture_run("gcc -g -c -o c.o $DATA/labels.S");
	fixture_run("gcc -pie -gz -o mixed a.o b.o c.o");
	assert_agrees("gcc DWARF 4, clang DWARF 5 and assembly", "mixed", "mixed", NO_ROOT,
		      SIZE_MAX / 2, 700);
}
END_TEST

/* addr2line does not look into .dwo files for inlined calls: it reads the same code with its debug
 * information in one piece. */
START_TEST(split_dwarf_is_read_from_its_own_file)
{
	static const char *const commands[] = { "gcc -gdwarf-5", "gcc -gdwarf-4", "clang -gdwarf-5",
						"clang -gdwarf-4" };

	fixture_run("%s -O2 -gsplit-dwarf -fPIE -c -o levels.o $DATA/levels.c", commands[_i]);
	fixture_run("gcc -pie -o levels levels.o");
	fixture_run("test -e levels.dwo");
	fixture_run("%s -O2 -fPIE -c -o whole.o $DATA/levels.c", commands[_i]);
	fixture_run("gcc -pie -o reference whole.o");
	assert_agrees(commands[_i], "levels", "reference", NO_ROOT, SIZE_MAX / 2, 300);
}
END_TEST

/* The package has the units of two files, and of nothing else is left. */
START_TEST(split_dwarf_is_read_from_a_package)
{
	static const char *const commands[] = { "gcc -gdwarf-5", "gcc -gdwarf-4", "clang -gdwarf-5", "clang -gdwarf-4" };
	static const char *const packers[] = { "dwp -e levels -o levels.dwp", "llvm-dwp -e levels -o levels.dwp" };
	const char *command = commands[_i / 2], *packer = packers[_i % 2];
	char what[128];

	fixture_run("%s -O2 -gsplit-dwarf -fPIE -c -o levels.o $DATA/levels.c", command);
	fixture_run("%s -O2 -gsplit-dwarf -fPIE -c -o more.o -Dmain=unused -Dtake=taken $DATA/levels.c", command);
	fixture_run("objcopy --globalize-symbol=main levels.o && gcc -pie -o levels levels.o more.o -Wl,-z,muldefs");
	if (!fixture_try("%s 2>/dev/null && test -s levels.dwp && rm levels.dwo more.dwo", packer)) {
		printf("%s: '%s' makes no package of it\n", command, packer);
		return;
	}
	fixture_run("%s -O2 -fPIE -c -o levels.o $DATA/levels.c", command);
	fixture_run("%s -O2 -fPIE -c -o more.o -Dmain=unused -Dtake=taken $DATA/levels.c", command);
	fixture_run("gcc -pie -o reference levels.o more.o -Wl,-z,muldefs");
	snprintf(what, sizeof(what), "%s, %s", command, packer);
	assert_agrees(what, "levels", "reference", NO_ROOT, SIZE_MAX / 2, 300);
}
END_TEST

static void damage(const char *path)
{
	FILE *f = fopen(path, "r+");
	long len;

	ck_assert_ptr_nonnull(f);
	fseek(f, 0, SEEK_END);
	len = ftell(f);
	for (int i = 0; i < 3; i++) {
		fseek(f, random() % len, SEEK_SET);
		fputc(random() % 4 == 0 ? 0xff : (int)(random() % 256), f);
	}
	fclose(f);
}

/* What it says is believed as far as its own bytes go. */
/* Its units' numbers are those of the program that runs, whatever lies in its place now. */
START_TEST(the_package_of_a_program_that_was_replaced_is_read)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	uint64_t address;
	int fd;

	fixture_run("gcc -gdwarf-4 -O2 -gsplit-dwarf -fPIE -c -o levels.o $DATA/levels.c && gcc -pie -o levels levels.o && "
		    "dwp -e levels -o levels.dwp && rm levels.dwo");
	address = fixture_address("levels", "main", NULL);
	fd = open("levels", O_RDONLY | O_CLOEXEC);
	fixture_run("cp /bin/true other && %s", _i == 0 ? "rm levels" : "mv other levels");
	ck_assert_int_eq(symbol_module_open(fd, NO_ROOT, &module), 0);
	ck_assert_int_ge(symbol_module_resolve(module, address, false, at), 1);
	ck_assert(!symbol_module_is_incomplete(module));
	symbol_module_free(module);
}
END_TEST

/* As binutils and gold of some years ago have left it in libraries: sections of the name .zdebug. */
START_TEST(debug_information_that_is_compressed_in_the_old_way_is_read)
{
	fixture_run("gcc -O2 -g -o plain $DATA/levels.c && objcopy --compress-debug-sections=zlib-gnu plain levels");
	fixture_run("readelf -SW levels | grep -q zdebug_info");
	assert_agrees(".zdebug", "levels", "plain", NO_ROOT, SIZE_MAX / 2, 300);
}
END_TEST

START_TEST(a_package_with_a_damaged_index_is_no_harm)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	uint64_t address, size, named = 0;

	fixture_run("gcc -gdwarf-4 -O2 -gsplit-dwarf -c -o levels.o $DATA/levels.c && gcc -o levels levels.o");
	fixture_run("dwp -e levels -o whole.dwp && rm levels.dwo");
	address = fixture_address("levels", "three_levels", &size);
	srandom(1);
	for (int round = 0; round < 200; round++) {
		struct symbol_module *module;

		fixture_run("objcopy --dump-section .debug_cu_index=index whole.dwp /dev/null");
		damage("index");
		fixture_run("objcopy --update-section .debug_cu_index=index whole.dwp levels.dwp");
		module = fixture_open("levels", NO_ROOT);
		for (uint64_t i = 0; i < size; i++)
			named += symbol_module_resolve(module, address + i, false, at) > 0;
		symbol_module_free(module);
	}
	/* By the table of symbols in any case. */
	ck_assert_uint_eq(named, 200 * size);
}
END_TEST

START_TEST(two_inlined_levels_have_the_lines_of_their_own_files)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	uint64_t start, size;
	bool seen = false;

	fixture_run("%s -O2 -o levels $DATA/levels.c", compilers[_i]);
	start = fixture_address("levels", "three_levels", &size);
	module = fixture_open("levels", NO_ROOT);
	for (uint64_t address = start; address < start + size; address++) {
		int count = symbol_module_resolve(module, address, false, at);

		if (count < 3)
			continue;
		ck_assert_int_eq(count, 3);
		ck_assert_str_eq(at[0].function, "deepest");
		ck_assert_str_eq(at[0].file, SYMBOL_DATA "/sub/deepest.h");
		ck_assert(at[0].line >= 9 && at[0].line <= 11 && at[0].inlined);
		ck_assert_str_eq(at[1].function, "middle");
		ck_assert_str_eq(at[1].file, SYMBOL_DATA "/sub/middle.h");
		ck_assert(at[1].line == 10 && at[1].inlined);
		ck_assert_str_eq(at[2].function, "three_levels");
		ck_assert_str_eq(at[2].file, SYMBOL_DATA "/levels.c");
		ck_assert(at[2].line == 17 && !at[2].inlined);
		ck_assert_uint_eq(at[2].function_offset, address - start);
		ck_assert_uint_le(at[0].function_offset, at[2].function_offset);
		seen = true;
	}
	ck_assert(seen);
	symbol_module_free(module);
}
END_TEST

/* The return address lies in the row of what comes after the call. */
START_TEST(a_return_address_has_the_line_of_its_call)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	char line[256];
	FILE *calls;
	unsigned checked = 0;

	fixture_run("%s -O2 -o levels $DATA/levels.c", compilers[_i]);
	/* Of each call: its own address and the next instruction's. */
	fixture_run("objdump -d --no-show-raw-insn levels | awk '/>:$/ { f = $2 } from { print from, $1; "
		    "from = \"\" } /call.*<(add|fatal|take)/ { from = $1 }' | tr -d : > calls");
	module = fixture_open("levels", NO_ROOT);
	calls = fopen("calls", "re");
	ck_assert_ptr_nonnull(calls);
	while (fgets(line, sizeof(line), calls)) {
		char *end;
		uint64_t from = strtoull(line, &end, 16), back = strtoull(end, NULL, 16);
		char file[4096];
		uint32_t number;

		if (back == 0)       /* the function's last instruction */
			continue;
		ck_assert_int_gt(symbol_module_resolve(module, from, false, at), 0);
		number = at[0].line;
		snprintf(file, sizeof(file), "%s", at[0].file);
		ck_assert_int_gt(symbol_module_resolve(module, back, true, at), 0);
		ck_assert_uint_eq(at[0].line, number);
		ck_assert_str_eq(at[0].file, file);
		checked++;
	}
	fclose(calls);
	printf("%s: %u calls\n", compilers[_i], checked);
	ck_assert_uint_gt(checked, 1);
	symbol_module_free(module);
}
END_TEST

START_TEST(a_call_over_several_lines_has_the_line_of_the_call)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	uint64_t back;
	FILE *calls;

	fixture_run("%s -O1 -o levels $DATA/levels.c", compilers[_i]);
	fixture_run("objdump -d --no-show-raw-insn levels | awk 'from { print $1; exit } "
		    "/call.*<add>/ { from = 1 }' | tr -d : > calls");
	calls = fopen("calls", "re");
	ck_assert_ptr_nonnull(calls);
	ck_assert_int_eq(fscanf(calls, "%lx", &back), 1);
	fclose(calls);
	ck_assert_int_gt(resolve("levels", NO_ROOT, back, true, at, &module), 0);
	ck_assert_str_eq(at[0].function, "several_lines");
	ck_assert_uint_eq(at[0].line, 29);
	symbol_module_free(module);
}
END_TEST

/* --- symbol tables --- */

static void make_neighbours(const char *flags)
{
	fixture_run("gcc -O2 -shared -fPIC -fno-toplevel-reorder %s -Wl,--version-script=$DATA/neighbours.map "
		    "-o full.so $DATA/neighbours.c $DATA/labels.S", flags);
	fixture_run("strip -o bare.so full.so");
}

START_TEST(a_stripped_static_function_does_not_get_its_neighbours_name)
{
	uint64_t size, hidden, before, after;

	make_neighbours("");
	hidden = fixture_address("full.so", "without_symbol", &size);
	before = fixture_address("full.so", "before_it", NULL);
	after = fixture_address("full.so", "after_it", NULL);
	ck_assert(before < hidden && hidden < after && size > 0);
	for (uint64_t address = hidden; address < hidden + size; address++) {
		assert_name("full.so", address, "without_symbol");
		assert_name("bare.so", address, NULL);
	}
	assert_name("bare.so", before, "before_it");
	assert_name("bare.so", after, "after_it");
	ck_assert_uint_eq(sources_of("bare.so", NO_ROOT), SYMBOL_FROM_DYNSYM);
}
END_TEST

START_TEST(of_several_names_the_one_a_person_would_use_is_shown)
{
	make_neighbours("");
	/* weak and public before global with underscores; global before local */
	assert_name("full.so", fixture_address("full.so", "__internal_name", NULL), "public_name");
	assert_name("bare.so", fixture_address("full.so", "__internal_name", NULL), "public_name");
	assert_name("full.so", fixture_address("full.so", "local_only", NULL), "_exported_name");
	assert_name("bare.so", fixture_address("full.so", "local_only", NULL), "_exported_name");
}
END_TEST

START_TEST(versions_are_not_part_of_a_name_and_an_ifunc_has_one)
{
	make_neighbours("");
	assert_name("bare.so", fixture_address("full.so", "old_version", NULL), "versioned");
	assert_name("bare.so", fixture_address("full.so", "new_version", NULL), "versioned");
	assert_name("bare.so", fixture_address("full.so", "indirect", NULL), "indirect");
	fixture_run("nm full.so | grep -q 'versioned@@NEIGHBOURS_2'");
	assert_name("full.so", fixture_address("full.so", "new_version", NULL), "versioned");
}
END_TEST

START_TEST(a_label_does_not_hide_the_function_around_it)
{
	uint64_t sized, unsized, label;

	make_neighbours("");
	sized = fixture_address("full.so", "sized_function", NULL);
	unsized = fixture_address("full.so", "unsized_function", NULL);
	label = fixture_address("full.so", "bare_label", NULL);
	for (uint64_t i = 0; i < 4; i++)
		assert_name("full.so", sized + i, "sized_function");
	assert_name("full.so", sized + 4, NULL);
	assert_name("full.so", unsized + 1, "unsized_function");
	assert_name("full.so", label + 1, "bare_label");
	/* Stripped, nothing tells how far a function without a size reaches. */
	assert_name("bare.so", unsized + 1, NULL);
	assert_name("bare.so", sized + 1, "sized_function");
}
END_TEST

START_TEST(assembly_has_lines_and_the_names_of_its_symbols)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	uint64_t start;

	make_neighbours("-g");
	start = fixture_address("full.so", "sized_function", NULL);
	ck_assert_int_eq(resolve("full.so", NO_ROOT, start + 1, false, at, &module), 1);
	ck_assert_str_eq(at[0].function, "sized_function");
	ck_assert_str_eq(at[0].file, SYMBOL_DATA "/labels.S");
	ck_assert_uint_eq(at[0].line, 7);
	ck_assert_uint_eq(at[0].function_offset, 1);
	symbol_module_free(module);
}
END_TEST

START_TEST(compressed_symbols_in_the_file_name_what_dynsym_lacks)
{
	uint64_t hidden;

	make_neighbours("");
	hidden = fixture_address("full.so", "without_symbol", NULL);
	fixture_run("nm -D bare.so --format=posix --defined-only | awk '{print $1}' | sort > dynamic");
	fixture_run("nm full.so --format=posix --defined-only | awk '$2 ~ /[Tt]/ {print $1}' | sort > all");
	fixture_run("comm -13 dynamic all > wanted");
	fixture_run("objcopy -S --remove-section .gnu_debuglink --keep-symbols=wanted full.so mini");
	fixture_run("xz -f mini && objcopy --add-section .gnu_debugdata=mini.xz bare.so");
	assert_name("bare.so", hidden, "without_symbol");
	assert_name("bare.so", fixture_address("full.so", "after_it", NULL), "after_it");
	ck_assert_uint_eq(sources_of("bare.so", NO_ROOT), SYMBOL_FROM_MINIDEBUG | SYMBOL_FROM_DYNSYM);
}
END_TEST

/* --- separate debug files --- */

static void make_separate(const char *build_id)
{
	fixture_run("rm -rf where && mkdir -p where/.debug root");
	fixture_run("gcc -O2 -g -Wl,--build-id=%s -o full $DATA/levels.c", build_id);
	fixture_run("objcopy --only-keep-debug full levels.debug");
	fixture_run("objcopy --strip-all --add-gnu-debuglink=levels.debug full where/levels");
}

static bool has_lines(const char *debug_root)
{
	return sources_of("where/levels", debug_root) & SYMBOL_FROM_DEBUG_FILE;
}

START_TEST(a_debuglink_is_found_beside_in_its_folder_and_under_the_root)
{
	static const char *const places[] = { "where/levels.debug", "where/.debug/levels.debug",
					      "root$PWD/where/levels.debug" };

	make_separate(_i < 3 ? "none" : "sha1");
	ck_assert(!has_lines("root"));
	fixture_run("mkdir -p root$PWD/where && cp levels.debug %s", places[_i % 3]);
	ck_assert(has_lines("root"));
	assert_agrees(places[_i % 3], "where/levels", "full", "root", SIZE_MAX / 2, 300);
}
END_TEST

START_TEST(a_debuglink_with_the_wrong_crc_is_not_used)
{
	make_separate(_i == 0 ? "none" : "sha1");
	fixture_run("cp levels.debug where/levels.debug && printf x >> where/levels.debug");
	ck_assert(!has_lines("root"));
	/* The right one in the next place is found in spite of it. */
	fixture_run("cp levels.debug where/.debug/levels.debug");
	ck_assert(has_lines("root"));
}
END_TEST

START_TEST(a_debug_file_of_another_build_id_is_not_used)
{
	make_separate("0x0123456789abcdef0123456789abcdef01234567");
	/* Its CRC is the one asked for: only the build-id tells. */
	fixture_run("gcc -O2 -g -Wl,--build-id=sha1 -o other $DATA/levels.c");
	fixture_run("objcopy --only-keep-debug other levels.debug");
	fixture_run("objcopy --strip-all --add-gnu-debuglink=levels.debug full where/levels");
	fixture_run("cp levels.debug where/levels.debug");
	ck_assert(!has_lines("root"));
	fixture_run("mkdir -p root/.build-id/01 && cp levels.debug "
		    "root/.build-id/01/23456789abcdef0123456789abcdef01234567.debug");
	ck_assert(!has_lines("root"));
}
END_TEST

START_TEST(a_debug_file_is_found_by_build_id)
{
	make_separate("0x0123456789abcdef0123456789abcdef01234567");
	fixture_run("mkdir -p root/.build-id/01 && cp levels.debug "
		    "root/.build-id/01/23456789abcdef0123456789abcdef01234567.debug");
	ck_assert(has_lines("root"));
	assert_agrees("by build-id", "where/levels", "full", "root", SIZE_MAX / 2, 300);
}
END_TEST

START_TEST(a_debug_file_that_is_no_file_is_not_waited_for)
{
	make_separate("none");
	fixture_run("mkfifo where/levels.debug");
	ck_assert(!has_lines("root"));
}
END_TEST

/* Nor is it opened: who waits to write to it would go on. */
START_TEST(split_dwarf_that_is_no_file_is_not_opened)
{
	struct symbol_location at[SYMBOL_LOCATIONS_MAX];
	struct symbol_module *module;
	char events[512];
	int watch;

	fixture_run("gcc -gdwarf-5 -O2 -gsplit-dwarf -fPIE -c -o levels.o $DATA/levels.c && gcc -pie -o levels levels.o");
	fixture_run("rm levels.dwo && mkfifo levels.dwo");
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ck_assert_int_ge(inotify_add_watch(watch, "levels.dwo", IN_OPEN), 0);
	ck_assert_int_ge(resolve("levels", NO_ROOT, fixture_address("levels", "main", NULL), false, at, &module), 1);
	ck_assert_int_lt(read(watch, events, sizeof(events)), 0);
	symbol_module_free(module);
	close(watch);
}
END_TEST

/* dwz moves what two files share into a third. */
static void make_shared(void)
{
	fixture_run("gcc -O2 -g -gdwarf-4 -Wl,--build-id=sha1 -o full $DATA/levels.c");
	fixture_run("gcc -O2 -g -gdwarf-4 -Wl,--build-id=sha1 -Dadd=add2 -o second $DATA/levels.c");
	fixture_run("cp full unshared && dwz -m common -r full second");
	fixture_run("readelf -S full | grep -q gnu_debugaltlink");
}

START_TEST(what_dwz_shares_is_read_from_the_third_file)
{
	make_shared();
	assert_agrees("dwz", "full", "unshared", NO_ROOT, SIZE_MAX / 2, 300);
}
END_TEST

/* As packages have it: the link leads to where the file would be if it were installed. */
START_TEST(what_dwz_shares_is_found_below_the_debug_folder)
{
	static const char *const links[] = { "/nowhere/.dwz/some/common", "../../.dwz/some/common" };

	make_shared();
	fixture_run("gcc -O2 -g -gdwarf-4 -Wl,--build-id=sha1 -Dadd=add2 -o second $DATA/levels.c");
	fixture_run("mkdir -p root/.dwz/some && cp unshared full && rm common && dwz -m root/.dwz/some/common -M %s full second",
		    links[_i]);
	assert_agrees("dwz below the debug folder", "full", "unshared", "root", SIZE_MAX / 2, 300);
	/* Another one in its place. */
	fixture_run("g++ -g -gdwarf-4 -o third $DATA/shapes.cc && cp third fourth");
	fixture_run("rm root/.dwz/some/common && dwz -m root/.dwz/some/common -r third fourth");
	ck_assert(sources_of("full", "root") & SYMBOL_FROM_DWARF);
	ck_assert(is_incomplete("full", "root"));
}
END_TEST

START_TEST(a_module_says_that_files_of_its_are_missing)
{
	make_shared();
	ck_assert(!is_incomplete("unshared", NO_ROOT));
	ck_assert(!is_incomplete("full", NO_ROOT));
	fixture_run("rm common");
	ck_assert(is_incomplete("full", NO_ROOT));
	fixture_run("gcc -O2 -g -gsplit-dwarf -c -o levels.o $DATA/levels.c && gcc -o full levels.o");
	ck_assert(!is_incomplete("full", NO_ROOT));
	fixture_run("mv levels.dwo away");
	ck_assert(is_incomplete("full", NO_ROOT));
	/* A package with another program's units. */
	fixture_run("gcc -g -gdwarf-4 -gsplit-dwarf -c -o other.o $DATA/levels.c && dwp -o full.dwp other.dwo");
	ck_assert(is_incomplete("full", NO_ROOT));
}
END_TEST

START_TEST(a_wrong_third_file_of_dwz_is_not_used)
{
	make_shared();
	ck_assert(sources_of("full", NO_ROOT) & SYMBOL_FROM_DWARF);
	fixture_run("g++ -g -gdwarf-4 -o third $DATA/shapes.cc && cp third fourth");
	fixture_run("dwz -m other -r third fourth && mv other common");
	ck_assert_uint_eq(sources_of("full", NO_ROOT), SYMBOL_FROM_SYMTAB);
}
END_TEST

/* --- real files --- */

START_TEST(libc_reads_as_addr2line_says)
{
	char reference[256] = "";
	FILE *file;

	fixture_run("id=$(readelf -n /lib/x86_64-linux-gnu/libc.so.6 | awk '/Build ID/ {print $3}'); "
		    "echo " SYMBOL_DEBUG_ROOT "/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug "
		    "> reference");
	file = fopen("reference", "re");
	ck_assert_int_eq(fscanf(file, "%255s", reference), 1);
	fclose(file);
	ck_assert_msg(access(reference, R_OK) == 0, "%s is missing: install libc6-dbg", reference);
	assert_agrees("libc.so.6 and libc6-dbg", "/lib/x86_64-linux-gnu/libc.so.6", reference,
		      SYMBOL_DEBUG_ROOT, 15000, 10000);
}
END_TEST

START_TEST(a_debug_python_reads_as_addr2line_says)
{
	const char *python = "/usr/bin/python3.11d";

	ck_assert_msg(access(python, R_OK) == 0, "%s is missing: install python3.11-dbg", python);
	assert_agrees(python, python, python, SYMBOL_DEBUG_ROOT, 15000, 10000);
}
END_TEST

START_TEST(this_very_program_reads_as_addr2line_says)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	ck_assert_int_gt(len, 0);
	path[len] = '\0';
	assert_agrees("this program", path, path, SYMBOL_DEBUG_ROOT, 20000, 5000);
}
END_TEST

START_TEST(what_is_no_program_is_refused)
{
	static const char *const makers[] = {
		": > bad", "head -c 100 /dev/urandom > bad", "printf '\\177ELF' > bad",
		"gcc -c -g -o bad $DATA/levels.c", "ar rc bad /dev/null",
	};
	struct symbol_module *module;

	fixture_run("rm -f bad");
	fixture_run("%s", makers[_i]);
	ck_assert_int_eq(symbol_module_open(open("bad", O_RDONLY), NO_ROOT, &module), -ENOEXEC);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbol");
	TCase *compiled = tcase_create("compiled"), *tables = tcase_create("tables");
	TCase *separate = tcase_create("separate"), *real = tcase_create("real");
	TCase *cases[] = { compiled, tables, separate, real };
	SRunner *runner;
	int failed;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tcase_add_checked_fixture(cases[i], fixture_enter, fixture_leave);
		tcase_set_timeout(cases[i], 300);
		suite_add_tcase(suite, cases[i]);
	}
	tcase_add_loop_test(compiled, every_byte_of_a_c_program_reads_as_addr2line_says, 0,
			    COMPILER_COUNT * FORM_COUNT);
	tcase_add_loop_test(compiled, every_byte_of_a_cxx_program_reads_as_addr2line_says, 0, 7);
	tcase_add_test(compiled, units_of_dwarf_4_and_5_and_two_compilers_mix_in_one_file);
	tcase_add_loop_test(compiled, split_dwarf_is_read_from_its_own_file, 0, 4);
	tcase_add_loop_test(compiled, split_dwarf_is_read_from_a_package, 0, 8);
	tcase_add_loop_test(compiled, the_package_of_a_program_that_was_replaced_is_read, 0, 2);
	tcase_add_test(compiled, debug_information_that_is_compressed_in_the_old_way_is_read);
	tcase_add_test(compiled, a_package_with_a_damaged_index_is_no_harm);
	tcase_add_loop_test(compiled, two_inlined_levels_have_the_lines_of_their_own_files, 0,
			    COMPILER_COUNT);
	tcase_add_loop_test(compiled, a_return_address_has_the_line_of_its_call, 0, COMPILER_COUNT);
	tcase_add_loop_test(compiled, a_call_over_several_lines_has_the_line_of_the_call, 0,
			    COMPILER_COUNT);
	tcase_add_test(tables, a_stripped_static_function_does_not_get_its_neighbours_name);
	tcase_add_test(tables, of_several_names_the_one_a_person_would_use_is_shown);
	tcase_add_test(tables, versions_are_not_part_of_a_name_and_an_ifunc_has_one);
	tcase_add_test(tables, a_label_does_not_hide_the_function_around_it);
	tcase_add_test(tables, assembly_has_lines_and_the_names_of_its_symbols);
	tcase_add_test(tables, compressed_symbols_in_the_file_name_what_dynsym_lacks);
	tcase_add_loop_test(tables, what_is_no_program_is_refused, 0, 5);
	tcase_add_loop_test(separate, a_debuglink_is_found_beside_in_its_folder_and_under_the_root, 0, 6);
	tcase_add_loop_test(separate, a_debuglink_with_the_wrong_crc_is_not_used, 0, 2);
	tcase_add_test(separate, a_debug_file_of_another_build_id_is_not_used);
	tcase_add_test(separate, a_debug_file_is_found_by_build_id);
	tcase_add_test(separate, a_debug_file_that_is_no_file_is_not_waited_for);
	tcase_add_test(separate, split_dwarf_that_is_no_file_is_not_opened);
	tcase_add_test(separate, what_dwz_shares_is_read_from_the_third_file);
	tcase_add_loop_test(separate, what_dwz_shares_is_found_below_the_debug_folder, 0, 2);
	tcase_add_test(separate, a_module_says_that_files_of_its_are_missing);
	tcase_add_test(separate, a_wrong_third_file_of_dwz_is_not_used);
	tcase_add_test(real, libc_reads_as_addr2line_says);
	tcase_add_test(real, a_debug_python_reads_as_addr2line_says);
	tcase_add_test(real, this_very_program_reads_as_addr2line_says);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
