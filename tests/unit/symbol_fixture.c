#define _GNU_SOURCE

#include "symbol_fixture.h"

#include "base/clock.h"
#include "symbol/path.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <gelf.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[PATH_MAX];

void fixture_enter(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(directory, sizeof(directory), "%s/check_symbol.XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chmod(directory, 0755), 0);
	ck_assert_int_eq(chdir(directory), 0);
	setenv("DATA", SYMBOL_DATA, 1);
	setenv("LC_ALL", "C", 1);
	unsetenv("DEBUGINFOD_URLS");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void fixture_leave(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static bool run(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
static bool run(const char *format, va_list arguments)
{
	char command[4096];
	int len = vsnprintf(command, sizeof(command), format, arguments);

	ck_assert_int_lt(len, (int)sizeof(command));
	return system(command) == 0;
}

bool fixture_try(const char *format, ...)
{
	va_list arguments;
	bool ok;

	va_start(arguments, format);
	ok = run(format, arguments);
	va_end(arguments);
	return ok;
}

void fixture_run(const char *format, ...)
{
	va_list arguments;
	bool ok;

	va_start(arguments, format);
	ok = run(format, arguments);
	va_end(arguments);
	ck_assert_msg(ok, "command failed: %s", format);
}

struct symbol_module *fixture_open(const char *path, const char *debug_root)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_module *module;

	ck_assert_msg(fd >= 0, "cannot open %s", path);
	ck_assert_int_eq(symbol_module_open(fd, debug_root, &module), 0);
	return module;
}

/* --- symbols, read without the code under test --- */

struct symbols {
	int fd;
	Elf *elf;
	Elf_Data *data;
	size_t names, count;
};

static bool open_table(struct symbols *symbols, GElf_Word type)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(symbols->elf, section))) {
		ck_assert_ptr_nonnull(gelf_getshdr(section, &shdr));
		if (shdr.sh_type != type)
			continue;
		symbols->data = elf_getdata(section, NULL);
		symbols->names = shdr.sh_link;
		symbols->count = shdr.sh_size / shdr.sh_entsize;
		return true;
	}
	return false;
}

static void symbols_open(struct symbols *symbols, const char *path)
{
	elf_version(EV_CURRENT);
	symbols->fd = open(path, O_RDONLY | O_CLOEXEC);
	symbols->elf = elf_begin(symbols->fd, ELF_C_READ_MMAP, NULL);
	ck_assert_msg(symbols->elf, "cannot read %s", path);
	ck_assert(open_table(symbols, SHT_SYMTAB) || open_table(symbols, SHT_DYNSYM));
}

static void symbols_close(struct symbols *symbols)
{
	elf_end(symbols->elf);
	close(symbols->fd);
}

static const char *symbol_at(const struct symbols *symbols, size_t i, GElf_Sym *sym)
{
	ck_assert_ptr_nonnull(gelf_getsym(symbols->data, (int)i, sym));
	return elf_strptr(symbols->elf, symbols->names, sym->st_name);
}

uint64_t fixture_address(const char *path, const char *symbol, uint64_t *ret_size)
{
	struct symbols symbols;
	uint64_t value = 0, size = 0;

	symbols_open(&symbols, path);
	for (size_t i = 1; i < symbols.count && value == 0; i++) {
		GElf_Sym sym;
		const char *name = symbol_at(&symbols, i, &sym);

		if (sym.st_shndx != SHN_UNDEF && strcmp(name, symbol) == 0) {
			value = sym.st_value;
			size = sym.st_size;
		}
	}
	symbols_close(&symbols);
	ck_assert_msg(value != 0, "no symbol %s in %s", symbol, path);
	if (ret_size)
		*ret_size = size;
	return value;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool is_function(const GElf_Sym *sym)
{
	return GELF_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx != SHN_UNDEF;
}

void fixture_function_addresses(const char *path, size_t max, struct addresses *ret)
{
	struct symbols symbols;
	uint64_t total = 0, step, at = 0;
	size_t kept = 0;

	*ret = (struct addresses){ 0 };
	symbols_open(&symbols, path);
	for (size_t i = 1; i < symbols.count; i++) {
		GElf_Sym sym;

		symbol_at(&symbols, i, &sym);
		total += is_function(&sym) ? sym.st_size : 0;
	}
	step = total / max + 1;
	for (size_t i = 1; i < symbols.count; i++) {
		GElf_Sym sym;

		symbol_at(&symbols, i, &sym);
		for (; is_function(&sym) && at < sym.st_size; at += step)
			*vec_push(&ret->items) = sym.st_value + at;
		at -= is_function(&sym) ? sym.st_size : 0;
	}
	symbols_close(&symbols);
	ck_assert_uint_gt(ret->items.count, 0);
	qsort(ret->items.items, ret->items.count, sizeof(uint64_t), compare_u64);
	for (size_t i = 0; i < ret->items.count; i++) {
		if (kept == 0 || ret->items.items[i] != ret->items.items[kept - 1])
			ret->items.items[kept++] = ret->items.items[i];
	}
	ret->items.count = kept;
}

/* --- answers of a tool, in one form --- */

struct level {
	char *function, *file;   /* "" unknown */
	unsigned line;
};

struct answer {
	struct level levels[SYMBOL_LOCATIONS_MAX];
	size_t count;
};

static void answer_fini(struct answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		free(answer->levels[i].function);
		free(answer->levels[i].file);
	}
	answer->count = 0;
}

static void add_level(struct answer *answer, const char *function, const char *file, unsigned line)
{
	struct level *level = &answer->levels[answer->count];
	char path[PATH_MAX] = "";

	ck_assert_uint_lt(answer->count, SYMBOL_LOCATIONS_MAX);
	if (line > 0 && file[0])
		path_join(NULL, file, path, sizeof(path));
	level->function = strdup(function);
	level->file = strdup(path);
	level->line = path[0] ? line : 0;
	answer->count++;
}

/* "FILE:LINE", "FILE:LINE (discriminator N)", "??:0", "FILE:?". */
static void parse_place(char *text, char **ret_file, unsigned *ret_line)
{
	char *at = strstr(text, " (discriminator");

	if (at)
		*at = '\0';
	at = strrchr(text, ':');
	*ret_line = at ? (unsigned)strtoul(at + 1, NULL, 10) : 0;
	if (at)
		*at = '\0';
	*ret_file = strcmp(text, "??") == 0 ? text + 2 : text;
}

static char *chomp(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Without a version. */
static char *bare_name(char *line)
{
	line[strcspn(line, "@")] = '\0';
	return strcmp(line, "??") == 0 ? line + 2 : line;
}

static struct answer *parse_output(const char *path, size_t count)
{
	struct answer *answers = calloc(count, sizeof(*answers));
	FILE *file = fopen(path, "re");
	char *name = NULL, *place = NULL;
	size_t name_space = 0, place_space = 0, at = 0;

	ck_assert_ptr_nonnull(file);
	while (getline(&name, &name_space, file) > 0) {
		char *where;
		unsigned line;

		if (strncmp(name, "0x", 2) == 0) {
			at++;
			continue;
		}
		ck_assert(at > 0 && at <= count);
		ck_assert_int_gt(getline(&place, &place_space, file), 0);
		parse_place(chomp(place), &where, &line);
		add_level(&answers[at - 1], bare_name(chomp(name)), where, line);
	}
	ck_assert_uint_eq(at, count);
	free(name);
	free(place);
	fclose(file);
	return answers;
}

static struct answer *ask_tool(const char *tool, const char *reference,
			       const struct addresses *addresses)
{
	FILE *file = fopen("addresses", "we");

	ck_assert_ptr_nonnull(file);
	for (size_t i = 0; i < addresses->items.count; i++)
		fprintf(file, "0x%jx\n", (uintmax_t)addresses->items.items[i]);
	fclose(file);
	fixture_run("%s %s < addresses > answers 2> errors", tool, reference);
	return parse_output("answers", addresses->items.count);
}

static struct answer *ask_module(const char *path, const char *debug_root,
				 const struct addresses *addresses)
{
	struct answer *answers = calloc(addresses->items.count, sizeof(*answers));
	struct symbol_module *module = fixture_open(path, debug_root);

	for (size_t i = 0; i < addresses->items.count; i++) {
		struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
		int count = symbol_module_resolve(module, addresses->items.items[i], false, locations);

		ck_assert_int_ge(count, 0);
		for (int j = 0; j < count; j++)
			add_level(&answers[i], locations[j].function ? locations[j].function : "",
				  locations[j].file ? locations[j].file : "", locations[j].line);
		if (count == 0)
			add_level(&answers[i], "", "", 0);
	}
	symbol_module_free(module);
	return answers;
}

/* --- comparing --- */

static bool same_places(const struct answer *a, const struct answer *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->levels[i].file, b->levels[i].file) != 0 ||
		    a->levels[i].line != b->levels[i].line)
			return false;
	}
	return true;
}

/* How many levels have the same name, from the innermost one. */
static size_t same_names(const struct answer *a, const struct answer *b)
{
	size_t i = 0;

	while (i < a->count && i < b->count &&
	       strcmp(a->levels[i].function, b->levels[i].function) == 0)
		i++;
	return i;
}

/* "f" and "f.cold", "f [clone .cold]", "f.constprop.0". */
static bool is_part_of(const char *name, const char *part)
{
	size_t len = strlen(name);

	return len > 0 && strncmp(name, part, len) == 0 &&
	       (part[len] == '.' || strncmp(part + len, " [clone", 7) == 0);
}

static bool is_alias(const struct symbols *symbols, const char *a, const char *b)
{
	uint64_t at_a = 0, at_b = 0;

	for (size_t i = 1; i < symbols->count; i++) {
		GElf_Sym sym;
		const char *name = symbol_at(symbols, i, &sym);
		size_t len = strcspn(name, "@");

		if (strlen(a) == len && strncmp(name, a, len) == 0)
			at_a = sym.st_value;
		if (strlen(b) == len && strncmp(name, b, len) == 0)
			at_b = sym.st_value;
	}
	return at_a != 0 && at_a == at_b;
}

static bool other_name_is_fine(const struct symbols *symbols, const struct answer *ours,
			       const struct answer *theirs)
{
	const char *a = ours->levels[ours->count - 1].function;
	const char *b = theirs->levels[theirs->count - 1].function;

	return same_names(ours, theirs) == ours->count - 1 &&
	       (is_part_of(a, b) || is_alias(symbols, a, b));
}

static void print_answer(const char *who, const struct answer *answer)
{
	for (size_t i = 0; i < answer->count; i++)
		printf("    %s: %s %s:%u\n", who, answer->levels[i].function, answer->levels[i].file,
		       answer->levels[i].line);
}

static bool same_last_name(const struct answer *a, const struct answer *b)
{
	return strcmp(a->levels[a->count - 1].function, b->levels[b->count - 1].function) == 0;
}

/* What addr2line and we disagree on: LLVM is the third opinion.  It takes the outermost name from
 * the symbol table when that has one, so addr2line's or an alias will do there. */
static void settle(const char *reference, const struct symbols *symbols,
		   const struct addresses *disputed, struct answer **ours, struct answer **theirs,
		   struct comparison *result)
{
	struct answer *third = ask_tool("llvm-symbolizer --output-style=GNU -a -f -i -C --obj", reference,
					disputed);

	for (size_t i = 0; i < disputed->items.count; i++) {
		size_t names = same_names(ours[i], &third[i]);

		if (same_places(ours[i], &third[i]) &&
		    (names == ours[i]->count ||
		     (names + 1 == ours[i]->count && same_last_name(ours[i], theirs[i])) ||
		     other_name_is_fine(symbols, ours[i], &third[i]))) {
			result->as_llvm++;
		} else if (result->different++ < 20) {
			printf("0x%jx\n", (uintmax_t)disputed->items.items[i]);
			print_answer("ours", ours[i]);
			print_answer("addr2line", theirs[i]);
			print_answer("llvm-symbolizer", &third[i]);
		}
		answer_fini(&third[i]);
	}
	free(third);
}

static double seconds_since(uint64_t start_ns)
{
	return (double)(clock_monotonic_ns() - start_ns) / (double)NSEC_PER_SEC;
}

struct comparison fixture_compare(const char *path, const char *reference, const char *debug_root,
				  const struct addresses *addresses)
{
	struct comparison result = { .compared = addresses->items.count };
	VEC_OF(struct answer *) our_disputed = { 0 }, their_disputed = { 0 };
	struct addresses disputed = { 0 };
	uint64_t start = clock_monotonic_ns();
	struct answer *ours = ask_module(path, debug_root, addresses), *theirs;
	struct symbols symbols;

	result.ours_s = seconds_since(start);
	start = clock_monotonic_ns();
	theirs = ask_tool("addr2line -afiCe", reference, addresses);
	result.theirs_s = seconds_since(start);
	symbols_open(&symbols, reference);
	for (size_t i = 0; i < addresses->items.count; i++) {
		bool places = same_places(&ours[i], &theirs[i]);

		if (places && same_names(&ours[i], &theirs[i]) == ours[i].count) {
			result.same++;
		} else if (places && other_name_is_fine(&symbols, &ours[i], &theirs[i])) {
			result.other_name++;
		} else {
			*vec_push(&disputed.items) = addresses->items.items[i];
			*vec_push(&our_disputed) = &ours[i];
			*vec_push(&their_disputed) = &theirs[i];
		}
	}
	if (disputed.items.count > 0)
		settle(reference, &symbols, &disputed, our_disputed.items, their_disputed.items,
		       &result);
	symbols_close(&symbols);
	for (size_t i = 0; i < addresses->items.count; i++) {
		answer_fini(&ours[i]);
		answer_fini(&theirs[i]);
	}
	free(ours);
	free(theirs);
	vec_fini(&disputed.items);
	vec_fini(&our_disputed);
	vec_fini(&their_disputed);
	return result;
}

void fixture_print(const char *what, const struct comparison *c)
{
	printf("%s: %zu addresses compared with addr2line: %zu the same, %zu by another name of the "
	       "place, %zu as llvm-symbolizer only, %zu different; %.2f s, addr2line %.2f s\n",
	       what, c->compared, c->same, c->other_name, c->as_llvm, c->different, c->ours_s,
	       c->theirs_s);
	fflush(stdout);
}
