#include "model/hidden.h"

#include "model/hidden_rules.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Entry points of allocators and what lies behind them, and libc's for a static program; sorted. */
static const char *const allocators[] = {
	"_int_free", "_int_malloc", "_int_memalign", "_int_realloc", "_mid_memalign",
	"aligned_alloc", "allocate_full_cpp_throw_oom", "allocate_full_malloc_oom", "arena_get2",
	"arena_malloc_hard", "asprintf", "brk", "calloc", "cfree", "dallocx",
	"do_malloc_or_cpp_alloc", "do_memalign_or_cpp_memalign", "free", "free_aligned_sized",
	"free_sized", "imalloc_body", "irallocx_prof", "malloc", "malloc_default",
	"malloc_hook_ini", "mallocx", "memalign", "memalign_hook_ini", "mmap", "mmap64", "mremap",
	"munmap", "posix_memalign", "ptmalloc_init", "pvalloc", "rallocx", "realloc",
	"realloc_hook_ini", "reallocarray", "reallocf", "sbrk", "sdallocx", "strdup", "strndup",
	"sysmalloc", "sysmalloc_mmap", "tcache_init", "valloc", "vasprintf", "xallocx",
};

/* Further ones of tcmalloc and mimalloc, only with their prefix: `mi_zalloc`, not a user's zalloc. */
static const char *const prefixed_allocators[] = {
	"alloc_new", "alloc_new_n", "calloc_aligned", "calloc_aligned_at", "expand", "heap_calloc",
	"heap_calloc_aligned", "heap_malloc", "heap_malloc_aligned", "heap_malloc_small",
	"heap_mallocn", "heap_new", "heap_new_n", "heap_realloc", "heap_reallocf", "heap_reallocn",
	"heap_realpath", "heap_recalloc", "heap_rezalloc", "heap_strdup", "heap_strndup",
	"heap_zalloc", "heap_zalloc_aligned", "malloc_aligned", "malloc_aligned_at", "malloc_small",
	"mallocn", "mbsdup", "memalign_nothrow", "new", "new_aligned", "new_aligned_nothrow",
	"new_memalign", "new_n", "new_nothrow", "new_realloc", "new_reallocn", "newarray",
	"newarray_aligned", "newarray_aligned_nothrow", "newarray_nothrow", "realloc_aligned",
	"realloc_aligned_at", "reallocarr", "reallocn", "realpath", "recalloc", "recalloc_aligned",
	"rezalloc", "rezalloc_aligned", "wcsdup", "zalloc", "zalloc_aligned", "zalloc_aligned_at",
	"zalloc_small",
};

static const char *const allocator_prefixes[] = { "tc_", "mi_" };

/* Names nobody else may, or does, use. */
static const char *const reserved_prefixes[] = {
	"__libc_", "__GI_", "_IO_", "__cxa_", "_Unwind_", "__rust_", "__rdl_", "__rg_", "je_", "_rjem_",
	"_mi_",
};

/* The crates of Rust's runtime are common words: a C++ name, which has parameters, is not theirs. */
static const struct {
	const char *name;
	bool rust_only;
} namespaces[] = {
	{ "std", false }, { "__gnu_cxx", false }, { "__cxxabiv1", false }, { "tcmalloc", false },
	{ "alloc", true }, { "core", true }, { "hashbrown", true }, { "__rustc", true },
};

/* Of a longer name, without result and parameters, no rule of a user's is asked. */
#define HIDDEN_NAME_MAX 4096

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Most do not: their first character says so. */
static inline bool starts_with(const char *text, const char *prefix)
{
	return *text == *prefix && strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool in_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* --- C names --- */

struct word {
	const char *text;
	size_t len;
};

static int compare_word(const void *key, const void *element)
{
	const struct word *word = key;
	const char *name = *(const char *const *)element;
	int order = strncmp(word->text, name, word->len);

	return order != 0 ? order : -(int)(name[word->len] != '\0');
}

static bool is_one_of(const char *const *names, size_t count, const char *name, size_t len)
{
	struct word word = { name, len };

	return bsearch(&word, names, count, sizeof(*names), compare_word) != NULL;
}

static bool is_prefixed_allocator(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(allocator_prefixes); i++) {
		size_t skip = strlen(allocator_prefixes[i]);

		if (starts_with(name, allocator_prefixes[i]))
			return is_one_of(allocators, COUNT(allocators), name + skip, len - skip) ||
			       is_one_of(prefixed_allocators, COUNT(prefixed_allocators), name + skip,
					 len - skip);
	}
	return false;
}

/* "malloc", "__malloc", "tc_malloc", "malloc.part.0", "malloc@@GLIBC_2.2.5". */
static bool hidden_c_name(const char *name)
{
	size_t len = 0;

	for (size_t i = 0; i < COUNT(reserved_prefixes); i++) {
		if (starts_with(name, reserved_prefixes[i]))
			return true;
	}
	while (in_identifier(name[len]))
		len++;
	if (name[len] == ':' || name[len] == '<' || name[len] == ' ')
		return false;
	if (starts_with(name, "__"))
		return is_one_of(allocators, COUNT(allocators), name + 2, len - 2);
	return is_one_of(allocators, COUNT(allocators), name, len) || is_prefixed_allocator(name, len);
}

/* --- qualified names --- */

struct qualified {
	const char *start;         /* of the function's own name, behind its result */
	const char *end;           /* of the name, before its parameters */
	bool has_parameters;
};

static bool is_operator(const char *at)
{
	return starts_with(at, "operator") && !in_identifier(at[strlen("operator")]);
}

/* Where the parameters of "operator new(unsigned long)" or "operator()(int) const" begin, else its end. */
static const char *operator_end(const char *at)
{
	const char *rest = at + strlen("operator");

	if (starts_with(rest, "()"))
		rest += strlen("()");
	while (*rest && *rest != '(')
		rest++;
	return rest;
}

static bool after_decltype(const char *name, const char *at)
{
	static const char word[] = "decltype ";
	size_t len = sizeof(word) - 1;

	return (size_t)(at - name) >= len && starts_with(at - len, word);
}

/* Finds where a demangled name begins: "RESULT NAME(PARAMETERS)", "NAME(PARAMETERS) const", "NAME",
 * in all of which blanks and parentheses may also stand inside <>, {}, [] and (). */
static struct qualified find_name(const char *name)
{
	struct qualified found = { name, name + strlen(name), false };
	bool component = true;
	int depth = 0;

	for (const char *at = name; *at; at++) {
		if (depth == 0 && component && is_operator(at)) {
			found.has_parameters = strchr(at, '(') != NULL;
			found.end = operator_end(at);
			return found;
		}
		component = false;
		if (depth == 0 && starts_with(at, "(anonymous namespace)")) {
			at += strlen("(anonymous namespace)") - 1;
		} else if (depth == 0 && *at == '(' && !after_decltype(name, at)) {
			found.has_parameters = true;
			found.end = at;
			return found;
		} else if (strchr("<{[(", *at)) {
			depth++;
		} else if (strchr(">}])", *at) && depth > 0 && !(*at == '>' && at[-1] == '-')) {
			depth--;
		} else if (depth == 0 && *at == ' ') {
			if (starts_with(at, " [clone")) {
				found.end = at;
				return found;
			}
			found.start = at + 1;
			component = true;
		} else if (depth == 0 && *at == ':') {
			component = true;
		}
	}
	return found;
}

static bool in_runtime(const char *name, bool cxx)
{
	for (size_t i = 0; i < COUNT(namespaces); i++) {
		size_t len = strlen(namespaces[i].name);

		if (!starts_with(name, namespaces[i].name) || (namespaces[i].rust_only && cxx))
			continue;
		/* "alloc::", or with a crate's hash "alloc[3c1c0]::" */
		if (starts_with(name + len, "::") || name[len] == '[')
			return true;
	}
	return false;
}

/* Where "<TYPE as TRAIT>::" has its " as ", else where its '>' is. */
static const char *type_end(const char *type)
{
	int depth = 0;

	for (const char *at = type; *at; at++) {
		if (depth == 0 && (*at == '>' || starts_with(at, " as ")))
			return at;
		if (strchr("<([{", *at))
			depth++;
		else if (strchr(">)]}", *at) && !(*at == '>' && at[-1] == '-'))
			depth--;
	}
	return NULL;
}

static bool has_path(const char *from, const char *to)
{
	for (; from + 1 < to; from++) {
		if (from[0] == ':' && from[1] == ':')
			return true;
	}
	return false;
}

/* Rust's "<TYPE as TRAIT>::method" and "<TYPE>::method".  Rust lets a crate implement a foreign
 * trait for its own types only; so where TYPE has no crate, the code is in the trait's. */
static bool hidden_rust_impl(const char *name)
{
	const char *type = name + 1, *end = type_end(type);
	bool builtin;

	if (!end || end == type)
		return false;
	for (;;) {
		if (*type == '&')
			type++;
		else if (starts_with(type, "mut ") || starts_with(type, "dyn "))
			type += 4;
		else
			break;
	}
	if (in_runtime(type, false))
		return true;
	builtin = strchr("[(*", *type) || !has_path(type, end);
	if (!builtin)
		return false;
	return *end == '>' || in_runtime(end + strlen(" as "), false);
}

/* "operator new(unsigned long)", not "Pool::operator new(unsigned long)". */
static bool is_global_new(const char *name)
{
	static const char *const operators[] = { "operator new", "operator delete" };

	for (size_t i = 0; i < COUNT(operators); i++) {
		if (starts_with(name, operators[i]) && !in_identifier(name[strlen(operators[i])]))
			return true;
	}
	return false;
}

static bool is_plain(const char *name)
{
	while (in_identifier(*name))
		name++;
	return !*name;
}

/* The name alone: "pool::get" of "int* pool::get(unsigned long)", "xmalloc" of "xmalloc.part.0". */
static size_t bare_name(const char *name, const char **ret_start)
{
	struct qualified found;
	size_t len = 0;

	while (in_identifier(name[len]))
		len++;
	*ret_start = name;
	if (name[len] == '.' || name[len] == '@')
		return len;
	if (name[0] == '<')
		return strlen(name);
	found = find_name(name);
	*ret_start = found.start;
	return (size_t)(found.end - found.start);
}

static bool hidden_by_rule(const char *name)
{
	char bare[HIDDEN_NAME_MAX];
	const char *start;
	size_t len;

	if (!hidden_rules_have(HIDDEN_FUNCTION))
		return false;
	if (hidden_rules_match(HIDDEN_FUNCTION, name))
		return true;
	len = bare_name(name, &start);
	if (len >= sizeof(bare))
		return false;
	memcpy(bare, start, len);
	bare[len] = '\0';
	return hidden_rules_match(HIDDEN_FUNCTION, bare);
}

static bool is_of_runtime(const char *name)
{
	struct qualified found;

	if (name[0] == '<')
		return hidden_rust_impl(name);
	if (hidden_c_name(name))
		return true;
	if (is_plain(name))
		return false;   /* without a namespace and without a blank */
	found = find_name(name);
	return is_global_new(found.start) || in_runtime(found.start, found.has_parameters);
}

bool hidden_function(const char *name)
{
	return is_of_runtime(name) || hidden_by_rule(name);
}

/* --- objects and files --- */

/* "libc.so.6", "libc-2.31.so", "libc.so" for the name "libc". */
static bool is_library(const char *file, const char *name)
{
	size_t len = strlen(name);

	if (!starts_with(file, name))
		return false;
	return starts_with(file + len, ".so") || (file[len] == '-' && isdigit((unsigned char)file[len + 1]));
}

bool hidden_object(const char *path)
{
	static const char *const names[] = {
		"libc", "libpthread", "libdl", "librt", "ld", "libstdc++", "libc++", "libc++abi",
		"libgcc_s", "libglib-2.0", "libgobject-2.0",
	};
	static const char *const prefixes[] = {
		"ld-linux", "ld-musl-", "libc.musl-", "libjemalloc", "libtcmalloc", "libmimalloc", "libstd-",
	};
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

	for (size_t i = 0; i < COUNT(names); i++) {
		if (is_library(file, names[i]))
			return true;
	}
	for (size_t i = 0; i < COUNT(prefixes); i++) {
		if (starts_with(file, prefixes[i]))
			return true;
	}
	return hidden_rules_match(HIDDEN_OBJECT, path);
}

bool hidden_file(const char *path)
{
	return strstr(path, "/include/c++/") || strstr(path, "/rustlib/src/rust/library/") ||
	       (starts_with(path, "/rustc/") && strstr(path, "/library/")) || hidden_rules_match(HIDDEN_FILE, path);
}
