/* tracemalloc's Filter and DomainFilter over a trace. */
#include "model/grouping.h"

#include <stdlib.h>
#include <string.h>

static bool matches_text(const char *pattern, const struct strtab *strings, uint32_t text)
{
	return !pattern || fnmatch_python(pattern, strtab_get(strings, text));
}

static bool matches_file(const char *pattern, const char *name)
{
	size_t len = strlen(name);
	char *source;
	bool matches;

	if (len < 4 || strcmp(name + len - 4, ".pyc") != 0)
		return fnmatch_python(pattern, name);
	source = strndup(name, len - 1);
	matches = source && fnmatch_python(pattern, source);
	free(source);
	return matches;
}

static bool matches_line(const struct filter *filter, const struct statistic_frame *frame)
{
	return filter->no_line ? frame->line == 0 : filter->line == 0 || frame->line == filter->line;
}

static bool matches_frame(const struct filter *filter, const struct strtab *strings,
			  const struct statistic_frame *frame)
{
	return matches_line(filter, frame) &&
	       (!filter->file_pattern || matches_file(filter->file_pattern, strtab_get(strings, frame->name))) &&
	       matches_text(filter->function_pattern, strings, frame->function) &&
	       matches_text(filter->object_pattern, strings, frame->object);
}

static bool matches(const struct filter *filter, const struct strtab *strings,
		    const struct statistic_frame *frames, uint32_t count, uint32_t domain)
{
	if (filter->domain >= 0 && (uint64_t)filter->domain != domain)
		return false;
	if (!filter->all_frames)
		count = 1;
	for (uint32_t i = 0; i < count; i++) {
		if (matches_frame(filter, strings, &frames[i]))
			return true;
	}
	return false;
}

/* One of the inclusive filters must match, if there are any, and none of the others. */
bool filters_pass(const struct filter *filters, size_t count, const struct strtab *strings,
		  const struct statistic_frame *frames, uint32_t frame_count, uint32_t domain)
{
	bool wanted = false, any_inclusive = false;

	for (size_t i = 0; i < count; i++) {
		bool match = matches(&filters[i], strings, frames, frame_count, domain);

		if (match && !filters[i].inclusive)
			return false;
		any_inclusive |= filters[i].inclusive;
		wanted |= match;
	}
	return wanted || !any_inclusive;
}
