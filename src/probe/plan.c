#include "probe/plan.h"

#include "arch/arch.h"
#include "probe/elf_code.h"
#include "probe/plan_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What gives functions their meaning. */
struct naming {
	struct plan *plan;
	struct described *described;
	const char *path;
	/* By prefix: an allocator has both; other functions of such names are somebody's own. */
	unsigned *halves;
};

enum { HAS_MALLOC = 1, HAS_FREE = 2 };

/* Mappings are watched when that is asked for. */
static const struct catalog_entry *find_watched(const struct naming *naming, const char *symbol)
{
	const struct catalog_entry *entry = catalog_find(symbol);

	if (entry && entry->mapping != MAPPING_NONE && !(naming->described && naming->described->mappings))
		return NULL;
	return entry;
}

static const struct catalog_entry *find_entry(const struct naming *naming, const char *symbol, unsigned *ret_prefix)
{
	const struct catalog_entry *entry = find_watched(naming, symbol);

	*ret_prefix = 0;
	if (!entry)
		entry = described_find(naming->described, naming->path, symbol);
	return entry ? entry : catalog_find_prefixed(symbol, ret_prefix);
}

static bool read_site(struct elf_code *code, uint64_t vaddr, struct plan_site *ret_site)
{
	size_t len;
	const uint8_t *text = elf_code_at(code, vaddr, &len);

	if (!text)
		return false;
	*ret_site = (struct plan_site){ .vaddr = vaddr,
					.text_len = len < PLAN_TEXT_MAX ? (uint32_t)len : PLAN_TEXT_MAX };
	memcpy(ret_site->text, text, ret_site->text_len);
	return true;
}

static struct plan_site *add_site(struct plan *plan, struct elf_code *code, uint64_t vaddr)
{
	struct plan_site *site, read;

	for (size_t i = 0; i < plan->sites.count; i++) {
		if (plan->sites.items[i].vaddr == vaddr)
			return &plan->sites.items[i];
	}
	site = read_site(code, vaddr, &read) ? vec_push(&plan->sites) : NULL;
	if (site)
		*site = read;
	return site;
}

int plan_decode(struct elf_code *code, uint64_t vaddr, struct arch_function *ret, const char **ret_reason)
{
	size_t len;
	const uint8_t *text = elf_code_at(code, vaddr, &len);
	uint64_t size = elf_code_function_size(code, vaddr), reach = size > 0 ? size : elf_code_next_function(code, vaddr) - vaddr;

	if (!text) {
		*ret_reason = "its code is not in the file";
		return -ENOTSUP;
	}
	if (reach < len)
		len = reach;
	return size > 0 ? arch_decode_function(text, len, vaddr, ret, ret_reason) :
			  arch_decode_unsized(text, len, vaddr, ret, ret_reason);
}

/* One function's way out, which may lead through others. */
struct ways_out {
	const struct naming *naming;
	struct plan *plan;
	struct plan_function *function;
	struct elf_code *code;
	VEC_OF(uint64_t) parts;                /* to follow: the function, then what it jumps to */
	size_t part;                           /* the present one's number */
	size_t exits;
};

/* An instruction that leaves the function. */
struct way_out {
	uint64_t vaddr;
	uint32_t length;
	enum site_kind kind;
	bool ambiguous;
	struct arch_room room;
};

static int mark(struct ways_out *out, const struct way_out *way)
{
	struct plan_site *site = add_site(out->plan, out->code, way->vaddr);

	if (!site)
		return -ENOMEM;
	/* One that ends several functions: what one of them branches to may be in the way of all. */
	if (site->kinds == 0)
		plan_set_exit_window(site, out->code, way->vaddr, way->length, &way->room);
	else if (way->room.before < site->window.record)
		site->window.length = 0;
	if (out->part == 0)
		site->kinds &= ~SITE_SHARED;
	else if (site->kinds == 0)
		site->kinds |= SITE_SHARED;
	site->kinds |= way->kind;
	site->reads_memory |= out->function->entry->out_arg != ARG_NONE || out->function->entry->mapping != MAPPING_NONE;
	site->ambiguous |= way->ambiguous;
	out->exits++;
	return 0;
}

static int mark_exit(struct ways_out *out, const struct arch_exit *exit)
{
	return mark(out, &(struct way_out){ exit->address, exit->length, SITE_EXIT, exit->ambiguous, exit->room });
}

static int refuse(struct ways_out *out, const char *reason)
{
	out->function->refused = reason;
	return -ENOTSUP;
}

static int follow(struct ways_out *out, uint64_t target)
{
	uint64_t *part;

	for (size_t i = 0; i < out->parts.count; i++) {
		if (out->parts.items[i] == target)
			return 0;
	}
	if (out->parts.count >= PLAN_FUNCTIONS_MAX)
		return refuse(out, "it jumps to too many other functions");
	part = vec_push(&out->parts);
	if (!part)
		return -ENOMEM;
	*part = target;
	return 0;
}

/* Whichever object has it. */
static const struct catalog_entry *find_imported(const struct naming *naming, const char *name)
{
	const struct catalog_entry *entry = find_watched(naming, name);
	unsigned prefix;

	if (!entry)
		entry = catalog_find_prefixed(name, &prefix);
	for (size_t i = 0; !entry && naming->described && i < naming->described->functions.count; i++) {
		if (strcmp(naming->described->functions.items[i]->is.symbol, name) == 0)
			entry = &naming->described->functions.items[i]->entry;
	}
	return entry;
}

/* memset's returns are everybody's. */
static bool may_end_in_memset(const struct ways_out *out, const struct arch_jump *jump)
{
	return !jump->conditional && out->function->entry->count_arg != ARG_NONE && out->function->entry->old_arg == ARG_NONE;
}

static int mark_tail(struct ways_out *out, const struct arch_jump *jump)
{
	return mark(out, &(struct way_out){ jump->address, jump->length, SITE_TAIL, false, jump->room });
}

/* A jump to an imported function: another allocator function, whose own returns serve; or, in calloc,
 * memset. */
static int leave_by_import(struct ways_out *out, const struct arch_jump *jump, uint64_t pointer)
{
	const char *name = elf_code_import_name(out->code, pointer);
	const struct catalog_entry *entry = name ? find_imported(out->naming, name) : NULL;
	uint64_t target;

	if (entry && catalog_allocates(entry)) {
		out->function->tails_to_import = true;
		out->exits++;
		return 0;
	}
	if (name && (strcmp(name, "memset") == 0 || *name == '\0') && may_end_in_memset(out, jump))
		return mark_tail(out, jump);
	/* To itself by way of the linker, as libraries do that export all they have (tcmalloc, mimalloc). */
	if (name && elf_code_import_is_own(out->code, pointer, &target))
		return follow(out, target);
	return refuse(out, "it ends by a jump to another object");
}

static int leave_by_jump(struct ways_out *out, const struct arch_jump *jump)
{
	size_t len;
	const uint8_t *text = elf_code_at(out->code, jump->target, &len);
	uint64_t pointer;

	if (text && arch_decode_import_stub(text, len, jump->target, &pointer))
		return leave_by_import(out, jump, pointer);
	if (may_end_in_memset(out, jump) && elf_code_is_named(out->code, jump->target, "memset"))
		return mark_tail(out, jump);
	return follow(out, jump->target);
}

static int add_part(struct ways_out *out, uint64_t vaddr)
{
	struct arch_function part;
	int r = plan_decode(out->code, vaddr, &part, &out->function->refused);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < part.exits.count; i++)
		r = mark_exit(out, &part.exits.items[i]);
	for (size_t i = 0; r == 0 && i < part.jumps.count; i++)
		r = leave_by_jump(out, &part.jumps.items[i]);
	arch_function_fini(&part);
	return r;
}

static int note_part(struct plan_function *function, struct elf_code *code, uint64_t vaddr)
{
	struct code_part *part = vec_push(&function->parts);
	uint64_t next;

	if (!part)
		return -ENOMEM;
	part->address = vaddr;
	part->size = elf_code_function_size(code, vaddr);
	next = elf_code_next_function(code, vaddr);
	if (part->size == 0 && next != UINT64_MAX)
		part->size = next - vaddr;
	return 0;
}

/* Follows direct tail jumps: the rets they lead to are exits of the function that jumped, matched by the
 * stack pointer. */
static int add_exits(const struct naming *naming, struct plan_function *function, struct elf_code *code)
{
	struct ways_out out = { .naming = naming, .plan = naming->plan, .function = function, .code = code };
	int r = follow(&out, function->vaddr);

	for (; r == 0 && out.part < out.parts.count; out.part++)
		r = add_part(&out, out.parts.items[out.part]);
	if (r == 0 && out.exits == 0)
		r = refuse(&out, "it has no return instruction");
	for (size_t i = 1; r == 0 && i < out.parts.count; i++)
		r = note_part(function, code, out.parts.items[i]);
	vec_fini(&out.parts);
	return r;
}

/* Nothing else may begin on the way to its place, and no other function end there. */
static bool is_free_to_use(const struct plan *plan, const struct plan_function *function,
			   const struct arch_entry *entry)
{
	for (size_t i = 0; i < plan->functions.count; i++) {
		uint64_t distance = plan->functions.items[i].vaddr - function->vaddr;

		if (distance > 0 && distance <= entry->offset)
			return false;
	}
	for (size_t i = 0; i < plan->sites.count; i++) {
		if (plan->sites.items[i].vaddr == function->vaddr + entry->offset)
			return false;
	}
	return true;
}

static int add_entry(struct plan *plan, struct elf_code *code, uint32_t index,
		     const struct arch_function *decoded)
{
	struct plan_function *function = &plan->functions.items[index];
	struct arch_entry entry = decoded->entry;
	struct plan_site *site;

	if (!is_free_to_use(plan, function, &entry))
		entry = (struct arch_entry){ .ambiguous = decoded->first_is_ambiguous };
	site = add_site(plan, code, function->vaddr + entry.offset);
	if (!site || !read_site(code, function->vaddr, &function->first))
		return -ENOMEM;
	function->first.ambiguous = decoded->first_is_ambiguous;
	site->ambiguous |= entry.ambiguous;
	site->sp_below = entry.sp_below;
	site->kinds |= SITE_ENTRY;
	site->entry = function->entry;
	site->entry_index = index;
	if (entry.offset == decoded->entry.offset)
		plan_set_entry_window(site, code, function->vaddr, decoded);
	return 0;
}

static int add_function(const struct naming *naming, struct elf_code *code, uint32_t index)
{
	struct plan *plan = naming->plan;
	struct plan_function *function = &plan->functions.items[index];
	struct arch_function decoded;
	int r;

	r = plan_decode(code, function->vaddr, &decoded, &function->refused);
	/* Of a function that only frees, no more than its first instruction matters. */
	if (r == -ENOTSUP && !catalog_allocates(function->entry)) {
		function->refused = NULL;
		function->ends_by_jump = true;
		decoded = (struct arch_function){ .first_is_ambiguous = true, .entry.ambiguous = true };
	} else if (r < 0) {
		return r == -ENOTSUP ? 0 : r;
	}
	function->ends_by_jump |= !catalog_allocates(function->entry) && decoded.tail_calls.count > 0;
	r = note_part(function, code, function->vaddr);
	if (r == 0 && catalog_allocates(function->entry))
		r = add_exits(naming, function, code);
	if (r == 0)
		r = add_entry(plan, code, index, &decoded);
	arch_function_fini(&decoded);
	return r == -ENOTSUP ? 0 : r;
}

/* Several names, one function: the plain C name is the best one. */
static void choose_name(struct plan *plan, struct plan_function *function, const struct catalog_entry *entry)
{
	bool was_described = function->entry->domain >= DOMAIN_USER, is_described = entry->domain >= DOMAIN_USER;

	if (was_described != is_described)
		plan->clash = was_described ? function->entry->name : entry->name;
	if ((was_described && !is_described) || (function->entry->beside_malloc && !entry->beside_malloc && !is_described))
		function->entry = entry;
}

static int note_function(void *context, const char *symbol, uint64_t vaddr)
{
	const struct naming *naming = context;
	struct plan *plan = naming->plan;
	unsigned prefix;
	const struct catalog_entry *entry = find_entry(naming, symbol, &prefix);
	struct plan_function *function;

	plan->is_glibc |= strcmp(symbol, "__libc_memalign") == 0;
	if (!entry)
		return 0;
	if (prefix > 0)
		naming->halves[prefix] |= strcmp(entry->name, "malloc") == 0 ? HAS_MALLOC :
					  strcmp(entry->name, "free") == 0 ? HAS_FREE : 0;
	plan->defines_malloc |= strcmp(symbol, "malloc") == 0;
	for (size_t i = 0; i < plan->functions.count; i++) {
		function = &plan->functions.items[i];
		if (function->vaddr != vaddr)
			continue;
		if (prefix == 0)
			function->prefix = 0;
		choose_name(plan, function, entry);
		function->forms |= entry->form;
		return 0;
	}
	if (plan->functions.count >= PLAN_FUNCTIONS_MAX)
		return 0;
	function = vec_push(&plan->functions);
	if (!function)
		return -ENOMEM;
	function->entry = entry;
	function->vaddr = vaddr;
	function->prefix = prefix;
	function->forms = entry->form;
	return 0;
}

/* A static function of the program's own may have the name of one that libc has, too. */
static int note_local_function(void *context, const char *symbol, uint64_t vaddr)
{
	const struct naming *naming = context;
	unsigned prefix;
	const struct catalog_entry *entry = find_entry(naming, symbol, &prefix);

	for (size_t i = 0; entry && i < naming->plan->functions.count; i++) {
		const struct plan_function *function = &naming->plan->functions.items[i];

		if (!strcmp(function->entry->name, entry->name) && function->vaddr != vaddr)
			return 0;
	}
	return note_function(context, symbol, vaddr);
}

/* Those beside a malloc that is not there, and those of a prefix that is no allocator's. */
static void drop_strangers(struct plan *plan, const unsigned *halves, bool operators)
{
	for (size_t i = plan->functions.count; i-- > 0;) {
		const struct plan_function *function = &plan->functions.items[i];
		bool of_allocator = function->prefix > 0 && halves[function->prefix] == (HAS_MALLOC | HAS_FREE);
		bool by_itself = plan->defines_malloc || !function->entry->beside_malloc ||
				 (operators && function->entry->form != FORM_MALLOC);

		if (of_allocator || (function->prefix == 0 && by_itself))
			continue;
		vec_fini(&plan->functions.items[i].parts);
		vec_remove_unordered(&plan->functions, i);
	}
}

/* An allocator whose malloc cannot be watched is not watched at all: its frees alone would be of blocks that
 * nobody knows. */
static void leave_alone(struct plan *plan)
{
	const char *reason = NULL;

	for (size_t i = 0; i < plan->functions.count; i++) {
		const struct plan_function *function = &plan->functions.items[i];

		if (strcmp(function->entry->name, "malloc") == 0 && (function->prefix == 0 || !plan->defines_malloc))
			reason = function->refused;
	}
	if (!reason)
		return;
	plan->malloc_refused = reason;
	plan->sites.count = 0;
	for (size_t i = 0; i < plan->functions.count; i++)
		plan->functions.items[i].refused = reason;
}

int plan_make(int elf_fd, struct described *described, const char *path, bool with_windows, struct plan *ret_plan)
{
	struct plan plan = { 0 };
	unsigned halves[CATALOG_PREFIXES + 1] = { 0 };
	struct naming naming = { &plan, described, path, halves };
	struct elf_code *code;
	int r = elf_code_open(elf_fd, &code);

	if (r < 0)
		return r;
	r = elf_code_each_function(code, note_function, &naming);
	if (r == 0)
		r = elf_code_each_local_function(code, note_local_function, &naming);
	drop_strangers(&plan, halves, described && described->operators);
	plan_find_break(&plan, code);
	if (r == 0)
		r = plan_find_forms(&plan, code, path);
	if (!described || !described->operators)
		plan.forms.count = 0;
	for (uint32_t i = 0; r == 0 && i < plan.functions.count; i++)
		r = add_function(&naming, code, i);
	if (r == 0)
		leave_alone(&plan);
	if (r == 0 && with_windows)
		plan_check_windows(&plan, code);
	/* Where mappings are watched their functions have breakpoints. */
	if (r == 0 && with_windows && !(described && described->mappings))
		plan_find_unmaps(&plan, code);
	if (r == 0 && plan.is_glibc)
		plan_find_internal_range(&plan, code);
	elf_code_close(code);
	if (r < 0) {
		plan_fini(&plan);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

void plan_fini(struct plan *plan)
{
	for (size_t i = 0; i < plan->functions.count; i++)
		vec_fini(&plan->functions.items[i].parts);
	vec_fini(&plan->functions);
	vec_fini(&plan->sites);
	vec_fini(&plan->forms);
}

size_t plan_memory(const struct plan *plan)
{
	size_t bytes = vec_memory(&plan->functions) + vec_memory(&plan->sites) + vec_memory(&plan->forms);

	for (size_t i = 0; i < plan->functions.count; i++)
		bytes += vec_memory(&plan->functions.items[i].parts);
	return bytes;
}
