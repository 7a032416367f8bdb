#include "unwind/cfi_section.h"

#include <errno.h>
#include <stdlib.h>

struct walk {
	const struct cfi_section *section;
	VEC_OF(struct cfi_cie) cies;           /* sorted by offset: they come in that order */
	struct cfi_index index;
};

static void take_register(struct cfi_cursor *c)
{
	if (take_uleb128(c) >= CFI_REGISTER_MAX)
		c->failed = true;
}

static void take_block(struct cfi_cursor *c)
{
	uint64_t len = take_uleb128(c);

	if (len == 0 || len > CFI_EXPRESSION_MAX)
		c->failed = true;
	else
		take(c, (size_t)len);
}

/* The operands of one instruction.  `remembered` is the nesting before and after it. */
static void take_instruction(const struct cfi_cie *cie, struct cfi_cursor *c, unsigned int *remembered)
{
	uint8_t opcode = take_u8(c);

	switch (opcode & 0xc0) {
	case DW_CFA_offset:
		take_uleb128(c);
		return;
	case DW_CFA_advance_loc:
	case DW_CFA_restore:
		return;
	}
	switch (opcode) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		take(c, encoded_size(cie->fde_encoding));
		break;
	case DW_CFA_advance_loc1:
		take(c, 1);
		break;
	case DW_CFA_advance_loc2:
		take(c, 2);
		break;
	case DW_CFA_advance_loc4:
		take(c, 4);
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		take_register(c);
		take_uleb128(c);
		break;
	case DW_CFA_register:
		take_register(c);
		take_register(c);
		break;
	case DW_CFA_def_cfa_register:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_restore_extended:
		take_register(c);
		break;
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size:
		take_uleb128(c);
		break;
	case DW_CFA_def_cfa_expression:
		take_block(c);
		break;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		take_register(c);
		take_block(c);
		break;
	case DW_CFA_remember_state:
		if (++*remembered > CFI_REMEMBER_MAX)
			c->failed = true;
		break;
	case DW_CFA_restore_state:
		if ((*remembered)-- == 0)
			c->failed = true;
		break;
	default:
		c->failed = true;
	}
}

static bool is_sane_program(const struct cfi_cie *cie, struct cfi_cursor c)
{
	unsigned int remembered = 0;

	if (cursor_left(&c) > CFI_PROGRAM_MAX)
		return false;
	while (!c.failed && c.at < c.end)
		take_instruction(cie, &c, &remembered);
	return !c.failed;
}

static int add_cie(struct walk *walk, const struct cfi_entry *entry)
{
	struct cfi_cie cie, *added;

	if (walk->cies.count >= CFI_CIES_MAX || !cfi_cie_read(walk->section, entry, &cie) || !is_sane_program(&cie, cie.program))
		return -EINVAL;
	added = vec_push(&walk->cies);
	if (!added)
		return -ENOMEM;
	*added = cie;
	return 0;
}

static int compare_cie(const void *a, const void *b)
{
	const struct cfi_cie *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static const struct cfi_cie *find_cie(const struct walk *walk, uint64_t offset)
{
	const struct cfi_cie key = { .offset = offset };

	if (walk->cies.count == 0)
		return NULL;
	if (walk->cies.items[walk->cies.count - 1].offset == offset)
		return &walk->cies.items[walk->cies.count - 1];
	return bsearch(&key, walk->cies.items, walk->cies.count, sizeof(key), compare_cie);
}

static int add_fde(struct walk *walk, const struct cfi_entry *entry)
{
	const struct cfi_cie *cie = find_cie(walk, entry->cie_offset);
	struct cfi_fde_body body;
	struct cfi_fde *fde;

	if (!cie || !cfi_fde_read(walk->section, cie, entry, &body) || !is_sane_program(cie, body.program))
		return -EINVAL;
	fde = vec_push(&walk->index.fdes);
	if (!fde)
		return -ENOMEM;
	*fde = (struct cfi_fde){ .start = body.start, .end = body.start + body.size, .offset = entry->offset };
	return 0;
}

static int compare_fde(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Linkers write the functions in the order of their code, for the most part. */
static bool is_sorted(const struct cfi_index *index)
{
	for (size_t i = 1; i < index->fdes.count; i++)
		if (index->fdes.items[i - 1].start > index->fdes.items[i].start)
			return false;
	return true;
}

int cfi_section_index(const struct cfi_section *section, struct cfi_index *ret_index)
{
	struct walk walk = { .section = section };
	uint64_t offset = 0;
	uint32_t count = 0;
	bool broken = false;
	struct cfi_entry entry;
	int err = 0;

	while (count < CFI_ENTRIES_MAX && cfi_entry_next(section, &offset, &entry, &broken)) {
		count++;
		err = entry.is_cie ? add_cie(&walk, &entry) : add_fde(&walk, &entry);
		if (err == -ENOMEM)
			goto out;
		if (err < 0)
			walk.index.refused++;
	}
	err = 0;
	walk.index.complete = !broken && count < CFI_ENTRIES_MAX;
	if (!is_sorted(&walk.index))
		qsort(walk.index.fdes.items, walk.index.fdes.count, sizeof(struct cfi_fde), compare_fde);
	*ret_index = walk.index;
	walk.index = (struct cfi_index){ 0 };
out:
	cfi_index_fini(&walk.index);
	vec_fini(&walk.cies);
	return err;
}

void cfi_index_fini(struct cfi_index *index)
{
	vec_fini(&index->fdes);
}
