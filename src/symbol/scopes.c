#include "symbol/scopes.h"

#include "symbol/intervals.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

struct range {
	uint64_t lo, hi;
};

struct scopes {
	VEC_OF(struct scope) scopes;
	VEC_OF(struct range) ranges;
	struct intervals index;              /* values are indexes of `scopes` */
};

struct walk {
	struct scopes *scopes;
	const struct elf_file *file;
	size_t dies_left;                    /* a unit cannot have more DIEs than bytes */
};

static uint32_t number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) < 0 ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static int add_ranges(struct walk *walk, Dwarf_Die *die, uint32_t id, uint32_t depth)
{
	struct scopes *scopes = walk->scopes;
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		struct range *range;

		if (lo >= hi || !elf_file_is_code(walk->file, lo))
			continue;
		range = vec_push(&scopes->ranges);
		if (!range || intervals_add(&scopes->index, lo, hi, depth, id) < 0)
			return -ENOMEM;
		*range = (struct range){ lo, hi };
		scopes->scopes.items[id].range_count++;
	}
	return 0;
}

/* Makes a scope of a function or an inlined call that has code; *scope then becomes its id. */
static int add_scope(struct walk *walk, Dwarf_Die *die, bool inlined, uint32_t depth,
		     uint32_t *scope)
{
	struct scopes *scopes = walk->scopes;
	uint32_t id = (uint32_t)scopes->scopes.count;
	struct scope *added;

	if (id == SCOPE_NONE - 1)
		return -ENOMEM;
	added = vec_push(&scopes->scopes);
	if (!added)
		return -ENOMEM;
	added->die = dwarf_dieoffset(die);
	added->parent = inlined ? *scope : SCOPE_NONE;
	added->first_range = (uint32_t)scopes->ranges.count;
	if (add_ranges(walk, die, id, depth) < 0)
		return -ENOMEM;
	added = &scopes->scopes.items[id];
	if (added->range_count == 0) {
		scopes->scopes.count--;
		return 0;
	}
	if (inlined) {
		added->call_file = number(die, DW_AT_call_file);
		added->call_line = number(die, DW_AT_call_line);
	}
	*scope = id;
	return 0;
}

static bool may_hold_code(unsigned tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:    /* Rust puts the methods of an enum there */
	case DW_TAG_variant_part:
	case DW_TAG_variant:
		return true;
	default:
		return false;
	}
}

static int walk_children(struct walk *walk, Dwarf_Die *parent, uint32_t scope, uint32_t depth)
{
	Dwarf_Die die;
	int more = dwarf_child(parent, &die);

	for (; more == 0; more = dwarf_siblingof(&die, &die)) {
		unsigned tag = (unsigned)dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;
		uint32_t own = scope;
		int r;

		if (walk->dies_left-- == 0)
			return -ELOOP;
		if (!may_hold_code(tag))
			continue;
		if ((inlined || tag == DW_TAG_subprogram) &&
		    add_scope(walk, &die, inlined, depth, &own) < 0)
			return -ENOMEM;
		if (depth == SCOPE_DEPTH_MAX || !dwarf_haschildren(&die))
			continue;
		r = walk_children(walk, &die, own, depth + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static size_t unit_bytes(Dwarf_Die *unit)
{
	Dwarf_Off start = dwarf_dieoffset(unit) - dwarf_cuoffset(unit), next;
	size_t head;

	if (dwarf_next_unit(dwarf_cu_getdwarf(unit->cu), start, &next, &head, NULL, NULL, NULL, NULL,
			    NULL, NULL) != 0 || next < start)
		return 0;
	return next - start;
}

int scopes_new(Dwarf_Die *unit, const struct elf_file *file, struct scopes **ret)
{
	struct walk walk = { .scopes = calloc(1, sizeof(*walk.scopes)), .file = file };
	int r;

	if (!walk.scopes)
		return -ENOMEM;
	walk.dies_left = unit_bytes(unit);
	r = walk_children(&walk, unit, SCOPE_NONE, 0);
	/* A unit that is damaged further on is good up to there. */
	if (r == 0 || r == -ELOOP)
		r = intervals_flatten(&walk.scopes->index);
	if (r < 0) {
		scopes_free(walk.scopes);
		return r;
	}
	*ret = walk.scopes;
	return 0;
}

void scopes_free(struct scopes *scopes)
{
	if (!scopes)
		return;
	vec_fini(&scopes->scopes);
	vec_fini(&scopes->ranges);
	intervals_fini(&scopes->index);
	free(scopes);
}

uint32_t scopes_find(const struct scopes *scopes, uint64_t address)
{
	const struct interval *piece = intervals_find(&scopes->index, address);

	return piece ? piece->value : SCOPE_NONE;
}

struct scope *scopes_get(struct scopes *scopes, uint32_t scope)
{
	return &scopes->scopes.items[scope];
}

uint64_t scopes_start(const struct scopes *scopes, uint32_t id, uint64_t address)
{
	const struct scope *scope = &scopes->scopes.items[id];
	const struct range *ranges = &scopes->ranges.items[scope->first_range];

	for (uint32_t i = 0; i < scope->range_count; i++) {
		if (address >= ranges[i].lo && address < ranges[i].hi)
			return ranges[i].lo;
	}
	return ranges[0].lo;
}

int scopes_each_range(const struct scopes *scopes,
		      int (*add)(void *context, uint64_t lo, uint64_t hi), void *context)
{
	for (size_t i = 0; i < scopes->index.items.count; i++) {
		int r = add(context, scopes->index.items.items[i].lo,
			    scopes->index.items.items[i].hi);

		if (r < 0)
			return r;
	}
	return 0;
}
