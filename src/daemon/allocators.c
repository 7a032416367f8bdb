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
static int hide_functions(struct hidden_rules *rules, const char *text)
{
	struct allocator allocator;
	char *reason = NULL;
	int r = allocator_parse(text, &allocator, &reason);

	free(reason);
	for (size_t i = 0; r == 0 && i < allocator.function_count; i++) {
		const char *why;

		r = hidden_rules_add_to(rules, allocator.functions[i].symbol, &why);
		if (r == -E2BIG || r == -EINVAL)
			r = 0;
	}
	return r;
}

/* Calls add(described, line) for the lines of a text that was checked before; NULL: there are none. */
static int each_line(struct described *described, const char *lines, int (*add)(struct described *described, const char *line))
{
	int r = 0;

	while (r == 0 && lines && *lines) {
		size_t len = strcspn(lines, "\n");
		char *line = strndup(lines, len);

		r = line ? add(described, line) : -ENOMEM;
		free(line);
		lines += len + (lines[len] != '\0');
	}
	return r;
}

static int add_rule(struct described *described, const char *line)
{
	const char *reason;

	return hidden_rules_add_to(described->rules, line, &reason);
}

static int add_allocator(struct described *described, const char *line)
{
	char *reason = NULL;
	int r = allocators_add(&described->allocators, line, &reason);

	free(reason);
	return r < 0 ? r : hide_functions(described->rules, line);
}

int described_init(struct described *described, const char *allocators, const char *hide)
{
	int r;

	*described = (struct described){ .rules = hidden_rules_new() };
	r = described->rules ? each_line(described, hide, add_rule) : -ENOMEM;
	if (r == 0)
		r = each_line(described, allocators, add_allocator);
	if (r < 0)
		described_fini(described);
	return r;
}

void described_fini(struct described *described)
{
	hidden_rules_unref(described->rules);
	described->rules = NULL;
}
