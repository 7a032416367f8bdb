#include "probe/described.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int described_add(struct described *described, const struct allocator *allocator, uint32_t domain)
{
	for (size_t i = 0; i < allocator->function_count; i++) {
		struct described_function *function = calloc(1, sizeof(*function)), **slot;

		slot = function ? vec_push(&described->functions) : NULL;
		if (!slot) {
			free(function);
			return -ENOMEM;
		}
		function->is = allocator->functions[i];
		function->entry = (struct catalog_entry){
			.name = function->is.symbol, .size_arg = function->is.size, .count_arg = function->is.count,
			.old_arg = function->is.old, .out_arg = function->is.result, .domain = domain,
			.fixed_size = function->is.fixed_size,
		};
		*slot = function;
	}
	return 0;
}

void described_fini(struct described *described)
{
	for (size_t i = 0; i < described->functions.count; i++)
		free(described->functions.items[i]);
	vec_fini(&described->functions);
}

const struct catalog_entry *described_find(struct described *described, const char *path, const char *symbol)
{
	for (size_t i = 0; described && i < described->functions.count; i++) {
		struct described_function *function = described->functions.items[i];

		if (function->is.symbol[0] != symbol[0] || strcmp(function->is.symbol, symbol) != 0 ||
		    !allocator_function_is_in(&function->is, path))
			continue;
		function->found = true;
		return &function->entry;
	}
	return NULL;
}

int described_arguments(const struct described *described)
{
	int count = 0;

	for (size_t i = 0; i < described->functions.count; i++) {
		int arguments = allocator_function_arguments(&described->functions.items[i]->is);

		count = arguments > count ? arguments : count;
	}
	return count;
}

static bool is_first_of_domain(const struct described *described, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (described->functions.items[i]->entry.domain == described->functions.items[at]->entry.domain)
			return false;
	}
	return true;
}

uint32_t described_domains(const struct described *described)
{
	uint32_t count = 0;

	for (size_t i = 0; i < described->functions.count; i++)
		count += is_first_of_domain(described, i);
	return count;
}

uint32_t described_number(const struct described *described, uint32_t domain)
{
	uint32_t number = 0;

	for (size_t i = 0; i < described->functions.count; i++) {
		number += is_first_of_domain(described, i);
		if (described->functions.items[i]->entry.domain == domain)
			return number;
	}
	return 0;
}

const char *described_missing(const struct described *described)
{
	for (size_t i = 0; described && i < described->functions.count; i++) {
		if (!described->functions.items[i]->found)
			return described->functions.items[i]->is.symbol;
	}
	return NULL;
}
