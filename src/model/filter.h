/* tracemalloc's Filter and DomainFilter, and the command line's way to write them:
 * '[+-]PATTERN[:LINE][@all][@domain=NAME]', '[+-]@domain=NAME', also @function=, @object=.
 * Patterns are Python's fnmatch (case-sensitive), not libc's; as in tracemalloc, x.pyc means x.py, in a pattern and in a
 * name. */
#ifndef ALLOCWATCH_MODEL_FILTER_H
#define ALLOCWATCH_MODEL_FILTER_H

#include "model/domain_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter {
	bool inclusive;
	char *file_pattern;       /* NULL: any */
	char *function_pattern;   /* NULL: any */
	char *object_pattern;     /* NULL: any */
	uint32_t line;            /* 0: any */
	bool no_line;             /* written :0: only frames without a line, whose number is 0 in tracemalloc */
	bool all_frames;
	int64_t domain;           /* -1: any */
};

#define FILTER_LENGTH_MAX 4096

/* 0, -ENOMEM, or -EINVAL with *ret_reason (static text).  Free with filter_fini. */
int filter_parse(const char *text, struct filter *ret_filter, const char **ret_reason);
void filter_fini(struct filter *filter);

/* Python's fnmatch.fnmatchcase: * ? [seq] [!seq]; linear in practice, never exponential.  A pattern
 * of FILTER_LENGTH_MAX bytes or more matches nothing. */
bool fnmatch_python(const char *pattern, const char *text);

#endif
