#include "daemon/allocators.h"

#include "base/reason.h"
#include "model/allocators.h"
#include "model/domain_names.h"
#include "model/hidden_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int allocators_add(struct allocators *allocators, const char *text, char **ret_reason)
{
	struct allocator allocator;
	int64_t domain;
	int r = allocator_parse(text, &allocator, ret_reason);

	if (r < 0)
		return r;
	if (allocators->count == WIRE_ALLOCATORS_MAX)
		return reason_set(ret_reason, -E2BIG, "is one more than the %d that a process may have", WIRE_ALLOCATORS_MAX);
	domain = domain_of_user(allocator.name);
	if (domain < 0)
		return reason_set(ret_reason, -E2BIG, "has a new name, and the daemon has %d of them already", DOMAIN_NAMES_MAX);
	allocators->list[allocators->count].domain = (uint32_t)domain;
	snprintf(allocators->list[allocators->count].text, ALLOCATOR_TEXT_MAX, "%s", text);
	allocators->count++;
	return 0;
}

/* They are allocators to whoever describes them. */
static int hide_functions(const char *text)
{
	struct allocator allocator;
	char *reason = NULL;
	int r = allocator_parse(text, &allocator, &reason);

	free(reason);
	for (size_t i = 0; r == 0 && i < allocator.function_count; i++) {
		const char *why;

		r = hidden_rules_add(allocator.functions[i].symbol, &why);
		if (r == -E2BIG || r == -EINVAL)
			r = 0;
	}
	return r;
}

int allocators_add_lines(struct allocators *allocators, const char *lines)
{
	int r = 0;

	while (r == 0 && lines && *lines) {
		size_t len = strcspn(lines, "\n");
		char *line = strndup(lines, len), *reason = NULL;

		r = line ? allocators_add(allocators, line, &reason) : -ENOMEM;
		if (r == 0)
			r = hide_functions(line);
		free(reason);
		free(line);
		lines += len + (lines[len] != '\0');
	}
	return r;
}
