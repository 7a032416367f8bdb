/* What a plan says of the C and C++ libraries alone. */
#include "probe/plan_private.h"

#include <errno.h>
#include <string.h>

/* How much more or less a new break is, only libc's own variable says. */
void plan_find_break(struct plan *plan, struct elf_code *code)
{
	for (size_t i = plan->functions.count; i-- > 0;) {
		struct plan_function *function = &plan->functions.items[i];

		if (function->entry->mapping == MAPPING_BREAK && !elf_code_find_variable(code, "__curbrk", &function->word))
			vec_remove_unordered(&plan->functions, i);
	}
}

/* malloc.o is one piece of libc's text; between the functions that it surely holds is nothing else. */
void plan_find_internal_range(struct plan *plan, struct elf_code *code)
{
	static const char *const names[] = { "malloc", "free", "realloc", "calloc", "memalign", "posix_memalign" };

	for (size_t i = 0; i < plan->functions.count; i++) {
		const struct plan_function *function = &plan->functions.items[i];
		uint64_t end = function->vaddr + elf_code_function_size(code, function->vaddr);

		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			if (strcmp(function->entry->name, names[k]) != 0)
				continue;
			if (plan->internal_start == 0 || function->vaddr < plan->internal_start)
				plan->internal_start = function->vaddr;
			if (end > plan->internal_end)
				plan->internal_end = end;
		}
	}
}

/* Their operator new does nothing but call malloc, or another operator new. */
static bool is_cxx_library(const char *path)
{
	static const char *const names[] = { "libstdc++.so", "libc++.so", "libc++abi.so" };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

static bool is_of_one_form(const struct plan_function *function)
{
	return catalog_allocates(function->entry) && (function->forms & (FORM_NEW | FORM_NEW_ARRAY)) != 0 &&
	       (function->forms & (function->forms - 1)) == 0;
}

int plan_find_forms(struct plan *plan, struct elf_code *code, const char *path)
{
	bool is_told_by_caller = !plan->defines_malloc && is_cxx_library(path);

	for (size_t i = plan->functions.count; i-- > 0;) {
		const struct plan_function *function = &plan->functions.items[i];
		struct plan_form *form;

		if (function->prefix > 0 || !is_of_one_form(function))
			continue;
		form = vec_push(&plan->forms);
		if (!form)
			return -ENOMEM;
		*form = (struct plan_form){ function->vaddr, elf_code_function_size(code, function->vaddr), function->forms };
		if (is_told_by_caller)
			vec_remove_unordered(&plan->functions, i);
	}
	return 0;
}
