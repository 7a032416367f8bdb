/* What a plan says of the C and C++ libraries alone. */
#include "probe/plan_private.h"

#include "arch/arch.h"
#include "model/event.h"

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

/* --- functions that unmap --- */

struct unmaps {
	struct plan *plan;
	bool is_libc;
};

static int note_unmap(void *context, const char *symbol, uint64_t vaddr)
{
	static const struct {
		const char *name;
		enum ring_unmaps by;
	} names[] = { { "mprotect", RING_UNMAPS_BY_PROTECTION }, { "munmap", RING_UNMAPS }, { "mmap", RING_UNMAPS_BY_PROTECTION },
		    { "mremap", RING_UNMAPS }, { "madvise", RING_UNMAPS_BY_ADVICE } };
	struct unmaps *unmaps = context;
	struct plan *plan = unmaps->plan;

	unmaps->is_libc |= strcmp(symbol, "__libc_start_main") == 0;
	for (size_t i = 0; symbol[0] == 'm' && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(symbol, names[i].name) == 0 && plan->unmap_count < PLAN_UNMAPS_MAX)
			plan->unmaps[plan->unmap_count++] = (struct plan_unmap){ .vaddr = vaddr, .by = names[i].by };
	}
	return 0;
}

static bool is_one_instruction(const struct plan_window *window)
{
	uint8_t out[ARCH_MOVED_MAX];
	struct arch_moved moved;
	const char *reason;

	return arch_move(window->text, window->length, window->vaddr, window->vaddr, out, &moved, &reason) == 0 && moved.count == 1;
}

/* Over one instruction, into which nothing branches. */
static bool find_unmap_window(struct plan_unmap *unmap, struct elf_code *code)
{
	struct arch_function decoded;
	const char *reason;
	bool found;

	if (plan_decode(code, unmap->vaddr, &decoded, &reason) < 0)
		return false;
	found = plan_find_entry_window(&unmap->window, code, unmap->vaddr, &decoded);
	arch_function_fini(&decoded);
	return found && is_one_instruction(&unmap->window);
}

void plan_find_unmaps(struct plan *plan, struct elf_code *code)
{
	struct unmaps unmaps = { .plan = plan };
	uint32_t kept = 0;

	if (!plan->defines_malloc || elf_code_each_function(code, note_unmap, &unmaps) != 0 || !unmaps.is_libc)
		plan->unmap_count = 0;
	for (uint32_t i = 0; i < plan->unmap_count; i++) {
		if (find_unmap_window(&plan->unmaps[i], code))
			plan->unmaps[kept++] = plan->unmaps[i];
	}
	plan->unmap_count = kept;
}

/* --- operators new --- */

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

/* --- operators that hand on what malloc, or another such operator, has returned --- */

struct callees {
	const struct plan *plan;
	struct elf_code *code;
};

static const uint8_t *code_of(void *context, uint64_t address, size_t *ret_len)
{
	struct callees *callees = context;
	const uint8_t *text = elf_code_at(callees->code, address, ret_len);
	uint64_t size = text ? elf_code_function_size(callees->code, address) : 0;

	if (size < *ret_len)
		*ret_len = size;
	return size > 0 ? text : NULL;
}

/* Its blocks are told by their stack, in which a function that jumps to it does not stand. */
static bool is_plain_malloc(const struct catalog_entry *entry)
{
	return entry && entry->mapping == MAPPING_NONE && entry->form == FORM_MALLOC && entry->domain == DOMAIN_MALLOC &&
	       catalog_allocates(entry) && entry->old_arg == ARG_NONE && entry->out_arg == ARG_NONE;
}

static bool is_told(const struct plan *plan, uint64_t vaddr)
{
	for (size_t i = 0; i < plan->forms.count; i++) {
		if (plan->forms.items[i].vaddr == vaddr)
			return plan->forms.items[i].is_told;
	}
	return false;
}

static bool is_own_source(const struct plan *plan, uint64_t vaddr, bool is_jump)
{
	if (is_told(plan, vaddr))
		return true;
	for (size_t i = 0; !is_jump && i < plan->functions.count; i++) {
		if (plan->functions.items[i].vaddr == vaddr && is_plain_malloc(plan->functions.items[i].entry))
			return true;
	}
	return false;
}

static bool is_imported_source(const struct callees *callees, uint64_t pointer, bool is_jump)
{
	const char *name = elf_code_import_name(callees->code, pointer);
	uint64_t own;

	if (name && elf_code_import_is_own(callees->code, pointer, &own))
		return is_own_source(callees->plan, own, is_jump);
	return name && !is_jump && is_plain_malloc(catalog_find(name));
}

static bool is_source(void *context, uint64_t target, bool is_pointer, bool is_jump)
{
	struct callees *callees = context;
	uint64_t pointer;
	size_t len;
	const uint8_t *text;

	if (is_pointer)
		return is_imported_source(callees, target, is_jump);
	if (is_own_source(callees->plan, target, is_jump))
		return true;
	text = elf_code_at(callees->code, target, &len);
	return text && arch_decode_import_stub(text, len, target, &pointer) &&
	       is_imported_source(callees, pointer, is_jump);
}

/* One may hand on what another does. */
static void find_told(struct plan *plan, struct elf_code *code)
{
	struct callees callees = { plan, code };
	const struct arch_surroundings around = { &callees, code_of, is_source };
	bool found;

	do {
		found = false;
		for (size_t i = 0; i < plan->forms.count; i++) {
			struct plan_form *form = &plan->forms.items[i];

			if (form->is_told || !arch_hands_on(&around, form->vaddr))
				continue;
			form->is_told = found = true;
		}
	} while (found);
}

int plan_find_forms(struct plan *plan, struct elf_code *code, const char *path)
{
	bool is_known_to_be = !plan->defines_malloc && is_cxx_library(path);

	for (size_t i = plan->functions.count; i-- > 0;) {
		const struct plan_function *function = &plan->functions.items[i];
		struct plan_form *form;

		if (function->prefix > 0 || !is_of_one_form(function))
			continue;
		form = vec_push(&plan->forms);
		if (!form)
			return -ENOMEM;
		*form = (struct plan_form){ function->vaddr, elf_code_function_size(code, function->vaddr), function->forms,
					    is_known_to_be };
	}
	find_told(plan, code);
	for (size_t i = plan->functions.count; i-- > 0;) {
		if (is_told(plan, plan->functions.items[i].vaddr))
			vec_remove_unordered(&plan->functions, i);
	}
	return 0;
}
