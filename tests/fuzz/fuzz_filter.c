/* Filters that a client sends, and fnmatch patterns in them, against names that a target chose. */
#include "files.h"
#include "fuzz.h"

#include "model/allocators.h"
#include "model/filter.h"
#include "model/hidden.h"
#include "model/hidden_rules.h"

#include <errno.h>
#include <string.h>

/* The first line; the rest is another text. */
static char *split(const uint8_t *data, size_t len, char **ret_text)
{
	char *copy = malloc(len + 2), *newline;

	MUST(copy);
	memcpy(copy, data, len);
	copy[len] = copy[len + 1] = '\0';
	newline = strchr(copy, '\n');
	if (newline)
		*newline = '\0';
	*ret_text = newline ? newline + 1 : copy + strlen(copy) + 1;
	return copy;
}

/* What holds for each pattern and each text. */
static bool match(const char *pattern, const char *text)
{
	bool matches = fnmatch_python(pattern, text);

	MUST(fnmatch_python("*", text));
	if (strlen(pattern) < FILTER_LENGTH_MAX && strcspn(pattern, "*?[") == strlen(pattern))
		MUST(matches == (strcmp(pattern, text) == 0));
	return matches;
}

/* The same line as a description of an allocator, and as a rule of what is hidden. */
static void describe(const char *line)
{
	struct allocator allocator;
	char *reason = NULL;
	int r = allocator_parse(line, &allocator, &reason);

	MUST(r == 0 || (r == -EINVAL && reason && *reason));
	for (size_t i = 0; r == 0 && i < allocator.function_count; i++) {
		MUST(allocator.functions[i].size < ALLOCATOR_ARGUMENTS_MAX && allocator.functions[i].old < ALLOCATOR_ARGUMENTS_MAX);
		allocator_function_is_in(&allocator.functions[i], line);
	}
	free(reason);
}

static void hide(const char *line, const char *text)
{
	const char *reason = NULL;
	int r = hidden_rules_add(line, &reason);

	MUST(r == 0 || (r == -EINVAL && reason && *reason));
	hidden_function(text);
	hidden_object(text);
	hidden_file(text);
	hidden_rules_clear();
}

void fuzz_filter_run(const uint8_t *data, size_t len)
{
	char *text, *first = split(data, len, &text);
	struct filter filter;
	const char *reason = NULL;
	int r = filter_parse(first, &filter, &reason);
	bool matches = false;

	if (r < 0) {
		MUST(r == -EINVAL && reason && *reason);
	} else {
		const char *const patterns[] = { filter.file_pattern, filter.function_pattern, filter.object_pattern };

		fuzz_reached(0);
		MUST(filter.domain >= -1 && filter.domain <= UINT32_MAX);
		for (unsigned i = 0; i < 3; i++)
			matches |= patterns[i] && match(patterns[i], text);
		filter_fini(&filter);
	}
	matches |= match(first, text) && strlen(first) > 1;
	if (matches)
		fuzz_reached(1);
	describe(first);
	hide(first, text);
	free(first);
}
