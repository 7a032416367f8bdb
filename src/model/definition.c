#include "model/definition.h"

#include <stdbool.h>
#include <string.h>

struct suffix {
	const char *text;
	bool number_follows;
};

/* GCC's and LLVM's.  No function of C or C++ has a dot in its name. */
static const struct suffix suffixes[] = {
	{ ".cold", false },     { ".localalias", false }, { ".omp_outlined", false }, { ".constprop", true },
	{ ".isra", true },      { ".part", true },        { ".lto_priv", true },      { ".llvm", true },
	{ ".__uniq", true },    { "._omp_fn", true },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Of ".NUMBER" at the end of the first `len` bytes: where it begins, else len. */
static size_t before_number(const char *name, size_t len)
{
	size_t at = len;

	while (at > 0 && is_digit(name[at - 1]))
		at--;
	return at < len && at > 0 && name[at - 1] == '.' ? at - 1 : len;
}

static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t of = strlen(end);

	return len > of && memcmp(name + len - of, end, of) == 0;
}

/* The first `len` bytes without one suffix; len when there is none. */
static size_t before_suffix(const char *name, size_t len)
{
	size_t number = before_number(name, len);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		if (number < len && ends_with(name, number, suffixes[i].text))
			return number - strlen(suffixes[i].text);
		if (!suffixes[i].number_follows && ends_with(name, len, suffixes[i].text))
			return len - strlen(suffixes[i].text);
	}
	return len;
}

/* As the demangler writes one. */
static size_t before_clone(const char *name, size_t len)
{
	static const char begin[] = " [clone .";
	size_t of = sizeof(begin) - 1;

	if (len == 0 || name[len - 1] != ']')
		return len;
	for (size_t at = len - 1; at > of; at--) {
		if (memcmp(name + at - of, begin, of) == 0)
			return at - of;
	}
	return len;
}

size_t definition_function_length(const char *name)
{
	size_t len = strlen(name), before;

	do {
		before = len;
		len = before_clone(name, before_suffix(name, before));
	} while (len < before);
	return len;
}

const char *definition_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *definition_object_name(const char *path, size_t *ret_len)
{
	const char *name = definition_base_name(path);
	const char *version = strstr(name, ".so.");

	*ret_len = version && version > name ? (size_t)(version - name) + 3 : strlen(name);
	return name;
}

/* --- folders --- */

/* The folder that ends before `at`, a slash or the first byte behind the last folder; NULL: there is none. */
static const char *folder_before(const char *path, const char *at)
{
	if (at == path)
		return NULL;
	for (at--; at > path && at[-1] != '/';)
		at--;
	return at;
}

static const char *folders_end(const char *path)
{
	const char *name = definition_base_name(path);

	return name > path ? name - 1 : path;
}

static unsigned common_from_the_end(const char *a, const char *b)
{
	const char *a_end = folders_end(a), *b_end = folders_end(b);
	unsigned count = 0;

	for (;;) {
		const char *in_a = folder_before(a, a_end), *in_b = folder_before(b, b_end);

		if (!in_a || !in_b || a_end - in_a != b_end - in_b || memcmp(in_a, in_b, (size_t)(a_end - in_a)) != 0)
			return count;
		count++;
		a_end = in_a > a ? in_a - 1 : a;
		b_end = in_b > b ? in_b - 1 : b;
	}
}

static unsigned common_from_the_beginning(const char *a, const char *b)
{
	size_t a_len = (size_t)(folders_end(a) - a), b_len = (size_t)(folders_end(b) - b);
	unsigned count = 0;
	size_t i = 0;

	for (; i < a_len && i < b_len && a[i] == b[i]; i++)
		count += a[i] == '/';
	/* The last one is whole, too. */
	return count + (i > 0 && (i == a_len || a[i] == '/') && (i == b_len || b[i] == '/'));
}

#define MOST_FOLDERS 0x7fffu

static unsigned at_most(unsigned count)
{
	return count < MOST_FOLDERS ? count : MOST_FOLDERS;
}

unsigned definition_likeness(const char *a, const char *b)
{
	return at_most(common_from_the_end(a, b)) << 16 | at_most(common_from_the_beginning(a, b));
}
