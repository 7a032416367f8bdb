#include "unwind/cfi_section.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A place in the section and where it must not go past.  A read that would sets failed and yields 0. */
struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

struct cie {
	uint64_t offset;
	uint8_t fde_encoding;
	bool sized_augmentation;
};

struct walk {
	const struct cfi_section *section;
	VEC_OF(struct cie) cies;           /* sorted by offset: they come in that order */
	struct cfi_index index;
};

struct entry {
	uint64_t offset;
	uint64_t id;
	const uint8_t *id_at;
	bool wide;                         /* 64-bit DWARF */
	struct cursor rest;                /* behind the id */
};

static size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

static bool take(struct cursor *c, size_t len)
{
	if (c->failed || left(c) < len) {
		c->failed = true;
		return false;
	}
	c->at += len;
	return true;
}

static uint64_t take_unsigned(struct cursor *c, size_t len)
{
	uint64_t value = 0;

	if (take(c, len))
		memcpy(&value, c->at - len, len);
	return value;
}

static uint64_t take_uleb128(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint64_t byte = take_unsigned(c, 1);

		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->failed = true;
	return 0;
}

/* Bytes of an encoded pointer; 0 for a form that libdw reads differently from everybody else, or that
 * no linker writes. */
static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

static bool is_address_encoding(uint8_t encoding)
{
	uint8_t base = encoding & 0xf0;

	return encoded_size(encoding) != 0 && (base == 0 || base == DW_EH_PE_pcrel);
}

static uint64_t take_encoded(const struct cfi_section *section, struct cursor *c, uint8_t encoding)
{
	uint64_t base = 0, value;
	size_t size = encoded_size(encoding);

	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		base = section->address + (uint64_t)(c->at - section->bytes);
	value = take_unsigned(c, size);
	if ((encoding & DW_EH_PE_signed) && size < 8)
		value = (uint64_t)((int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size));
	return base + value;
}

static void take_register(struct cursor *c)
{
	if (take_uleb128(c) >= CFI_REGISTER_MAX)
		c->failed = true;
}

static void take_block(struct cursor *c)
{
	uint64_t len = take_uleb128(c);

	if (len == 0 || len > CFI_EXPRESSION_MAX)
		c->failed = true;
	else
		take(c, (size_t)len);
}

/* The operands of one instruction.  `remembered` is the nesting before and after it. */
static void take_instruction(const struct cie *cie, struct cursor *c, unsigned int *remembered)
{
	uint8_t opcode = (uint8_t)take_unsigned(c, 1);

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

static bool is_sane_program(const struct cie *cie, struct cursor c)
{
	unsigned int remembered = 0;

	if (left(&c) > CFI_PROGRAM_MAX)
		return false;
	while (!c.failed && c.at < c.end)
		take_instruction(cie, &c, &remembered);
	return !c.failed;
}

/* The augmentation data as the letters after 'z' describe it. */
static bool take_augmentation(const char *letters, struct cursor data, struct cie *cie)
{
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'S':
			break;
		case 'L':
			take(&data, 1);
			break;
		case 'R':
			cie->fde_encoding = (uint8_t)take_unsigned(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)take_unsigned(&data, 1);
			if (encoded_size(encoding) == 0)
				return false;
			take(&data, encoded_size(encoding));
			break;
		default:
			return false;
		}
	}
	return !data.failed && is_address_encoding(cie->fde_encoding);
}

static int add_cie(struct walk *walk, const struct entry *entry)
{
	struct cie cie = { .offset = entry->offset, .fde_encoding = DW_EH_PE_absptr }, *added;
	struct cursor c = entry->rest, data;
	uint64_t version = take_unsigned(&c, 1), len;
	const char *letters = (const char *)c.at;

	if (version != 1 && version != 3 && !(version == 4 && !walk->section->eh_frame))
		return -EINVAL;
	if (c.failed || !memchr(c.at, 0, left(&c)))
		return -EINVAL;
	take(&c, strlen(letters) + 1);
	if (version == 4 && (take_unsigned(&c, 1) != 8 || take_unsigned(&c, 1) != 0))
		return -EINVAL;
	take_uleb128(&c);                       /* code and data alignment */
	take_uleb128(&c);
	if (version == 1)
		take(&c, 1);                    /* the return address' register */
	else
		take_register(&c);
	if (*letters) {
		if (*letters != 'z')
			return -EINVAL;
		cie.sized_augmentation = true;
		len = take_uleb128(&c);
		data = c;
		if (!take(&c, len > left(&c) ? SIZE_MAX : (size_t)len))
			return -EINVAL;
		data.end = c.at;
		if (!take_augmentation(letters + 1, data, &cie))
			return -EINVAL;
	}
	/* libdw wants at least one byte behind each field. */
	if (c.failed || c.at >= c.end || !is_sane_program(&cie, c))
		return -EINVAL;
	added = vec_push(&walk->cies);
	if (!added)
		return -ENOMEM;
	*added = cie;
	return 0;
}

static int compare_cie(const void *a, const void *b)
{
	const struct cie *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static const struct cie *find_cie(const struct walk *walk, uint64_t offset)
{
	const struct cie key = { .offset = offset };

	if (walk->cies.count == 0)
		return NULL;
	if (walk->cies.items[walk->cies.count - 1].offset == offset)
		return &walk->cies.items[walk->cies.count - 1];
	return bsearch(&key, walk->cies.items, walk->cies.count, sizeof(key), compare_cie);
}

static int add_fde(struct walk *walk, const struct entry *entry)
{
	uint64_t cie_offset = entry->id, start, size, len;
	struct cursor c = entry->rest;
	struct cfi_fde *fde;
	const struct cie *cie;

	if (walk->section->eh_frame)
		cie_offset = (uint64_t)(entry->id_at - walk->section->bytes) - entry->id;
	cie = find_cie(walk, cie_offset);
	if (!cie)
		return -EINVAL;
	start = take_encoded(walk->section, &c, cie->fde_encoding);
	size = take_encoded(walk->section, &c, cie->fde_encoding & 0x0f);
	if (cie->sized_augmentation) {
		len = take_uleb128(&c);
		take(&c, len > left(&c) ? SIZE_MAX : (size_t)len);
	}
	if (c.failed || start + size <= start || !is_sane_program(cie, c))
		return -EINVAL;
	fde = vec_push(&walk->index.fdes);
	if (!fde)
		return -ENOMEM;
	*fde = (struct cfi_fde){ .start = start, .end = start + size, .offset = entry->offset };
	return 0;
}

/* Reads the head of the entry at *offset and moves *offset behind it.  False at the end; at a broken
 * length *ret_broken is set: nothing behind it can be found. */
static bool next_entry(const struct cfi_section *section, uint64_t *offset, struct entry *ret,
		       bool *ret_broken)
{
	struct cursor c = { section->bytes + *offset, section->bytes + section->size, false };
	uint64_t length;

	if (left(&c) <= 4)
		return false;
	*ret = (struct entry){ .offset = *offset };
	length = take_unsigned(&c, 4);
	if (length == 0)
		return false;
	if (length == 0xffffffff) {
		ret->wide = true;
		length = take_unsigned(&c, 8);
	}
	*ret_broken = c.failed || length > left(&c) || length < (ret->wide ? 9u : 5u);
	if (*ret_broken)
		return false;
	c.end = c.at + length;
	ret->id_at = c.at;
	ret->id = take_unsigned(&c, ret->wide ? 8 : 4);
	ret->rest = c;
	*offset = (uint64_t)(c.end - section->bytes);
	return true;
}

static bool is_cie(const struct cfi_section *section, const struct entry *entry)
{
	if (section->eh_frame)
		return entry->id == 0;
	return entry->id == (entry->wide ? UINT64_MAX : 0xffffffff);
}

static int compare_fde(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int cfi_section_index(const struct cfi_section *section, struct cfi_index *ret_index)
{
	struct walk walk = { .section = section };
	uint64_t offset = 0;
	uint32_t count = 0;
	bool broken = false;
	struct entry entry;
	int err = 0;

	while (count < CFI_ENTRIES_MAX && next_entry(section, &offset, &entry, &broken)) {
		count++;
		err = is_cie(section, &entry) ? add_cie(&walk, &entry) : add_fde(&walk, &entry);
		if (err == -ENOMEM)
			goto out;
		if (err < 0)
			walk.index.refused++;
	}
	err = 0;
	walk.index.complete = !broken && count < CFI_ENTRIES_MAX;
	if (walk.index.fdes.count > 1)
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
