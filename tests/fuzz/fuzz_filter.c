/* Filters that a client sends, and fnmatch patterns in them, against names that a target chose. */
#include "files.h"
#include "fuzz.h"

#include "model/filter.h"

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
	free(first);
}
