#include "model/filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A whole decimal number up to `max`; -1 when it is none. */
static int64_t parse_number(const char *text, uint64_t max)
{
	uint64_t value = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return -1;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > max)
			return -1;
	}
	return (int64_t)value;
}

/* --- suffixes: each takes its value, 0 or -EINVAL with a reason --- */

static int take_text(char **text, const char *value, const char *twice, const char **ret_reason)
{
	if (*text) {
		*ret_reason = twice;
		return -EINVAL;
	}
	*text = strdup(value);
	return *text ? 0 : -ENOMEM;
}

static int take_all(struct filter *filter, const char *value, const char **ret_reason)
{
	(void)value;
	(void)ret_reason;
	filter->all_frames = true;
	return 0;
}

static int take_domain(struct filter *filter, const char *value, const char **ret_reason)
{
	if (filter->domain >= 0) {
		*ret_reason = "it has two domains";
		return -EINVAL;
	}
	filter->domain = domain_by_name(value);
	if (filter->domain < 0) {
		*ret_reason = "there is no such domain: malloc, mmap, new, python, user or a number";
		return -EINVAL;
	}
	return 0;
}

static int take_function(struct filter *filter, const char *value, const char **ret_reason)
{
	return take_text(&filter->function_pattern, value, "it has two functions", ret_reason);
}

static int take_object(struct filter *filter, const char *value, const char **ret_reason)
{
	return take_text(&filter->object_pattern, value, "it has two objects", ret_reason);
}

static const struct suffix {
	const char *name;              /* one that ends in '=' has a value */
	int (*take)(struct filter *filter, const char *value, const char **ret_reason);
} suffixes[] = {
	{ "@all", take_all }, { "@domain=", take_domain }, { "@function=", take_function },
	{ "@object=", take_object },
};

static const struct suffix *suffix_at(const char *text)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t len = strlen(suffixes[i].name);

		if (strncmp(text, suffixes[i].name, len) == 0 &&
		    (suffixes[i].name[len - 1] == '=' || text[len] == '\0'))
			return &suffixes[i];
	}
	return NULL;
}

/* Takes suffixes off the end, one after the other, as long as there is a known one. */
static int take_suffixes(struct filter *filter, char *text, const char **ret_reason)
{
	for (;;) {
		char *at = strrchr(text, '@');
		const struct suffix *suffix = at ? suffix_at(at) : NULL;
		int r;

		if (!suffix)
			return 0;
		r = suffix->take(filter, at + strlen(suffix->name), ret_reason);
		if (r < 0)
			return r;
		*at = '\0';
	}
}

static int take_line(struct filter *filter, char *text, const char **ret_reason)
{
	char *colon = strrchr(text, ':');
	int64_t line;

	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return 0;
	line = parse_number(colon + 1, UINT32_MAX);
	if (line < 0) {
		*ret_reason = "its line number is out of range";
		return -EINVAL;
	}
	if (colon == text) {
		*ret_reason = "it has a line but no file; write *:LINE for any file";
		return -EINVAL;
	}
	filter->line = (uint32_t)line;
	filter->no_line = line == 0;
	*colon = '\0';
	return 0;
}

/* Python's compiled files go by the names of their sources. */
static void cut_compiled(char *pattern)
{
	size_t len = strlen(pattern);

	if (len >= 4 && strcmp(pattern + len - 4, ".pyc") == 0)
		pattern[len - 1] = '\0';
}

static int parse(struct filter *filter, char *text, const char **ret_reason)
{
	int r = take_suffixes(filter, text, ret_reason);

	if (r == 0)
		r = take_line(filter, text, ret_reason);
	if (r < 0)
		return r;
	cut_compiled(text);
	if (*text)
		return take_text(&filter->file_pattern, text, NULL, ret_reason);
	if (filter->function_pattern || filter->object_pattern || filter->domain >= 0)
		return 0;
	*ret_reason = "it has no pattern";
	return -EINVAL;
}

int filter_parse(const char *text, struct filter *ret_filter, const char **ret_reason)
{
	struct filter filter = { .inclusive = *text != '-', .domain = -1 };
	char *copy;
	int r;

	if (strnlen(text, FILTER_LENGTH_MAX) == FILTER_LENGTH_MAX) {
		*ret_reason = "it is too long";
		return -EINVAL;
	}
	copy = strdup(*text == '+' || *text == '-' ? text + 1 : text);
	if (!copy)
		return -ENOMEM;
	r = parse(&filter, copy, ret_reason);
	free(copy);
	if (r < 0) {
		filter_fini(&filter);
		return r;
	}
	*ret_filter = filter;
	return 0;
}

void filter_fini(struct filter *filter)
{
	free(filter->file_pattern);
	free(filter->function_pattern);
	free(filter->object_pattern);
	memset(filter, 0, sizeof(*filter));
}
