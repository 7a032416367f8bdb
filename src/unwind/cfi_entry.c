#include "unwind/cfi_entry.h"

static bool is_address_encoding(uint8_t encoding)
{
	uint8_t base = encoding & 0xf0;

	return encoded_size(encoding) != 0 && (base == 0 || base == DW_EH_PE_pcrel);
}

static uint64_t take_encoded(const struct cfi_section *section, struct cfi_cursor *c, uint8_t encoding)
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

/* The augmentation data as the letters after 'z' describe it. */
static bool take_augmentation(const char *letters, struct cfi_cursor data, struct cfi_cie *cie)
{
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'S':
			cie->signal_frame = true;
			break;
		case 'L':
			take(&data, 1);
			break;
		case 'R':
			cie->fde_encoding = take_u8(&data);
			break;
		case 'P':
			encoding = take_u8(&data);
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

bool cfi_cie_read(const struct cfi_section *section, const struct cfi_entry *entry, struct cfi_cie *ret)
{
	struct cfi_cie cie = { .offset = entry->offset, .fde_encoding = DW_EH_PE_absptr };
	struct cfi_cursor c = entry->rest, data;
	uint64_t version = take_u8(&c), len;
	const char *letters = (const char *)c.at;

	if (version != 1 && version != 3 && !(version == 4 && !section->eh_frame))
		return false;
	if (c.failed || !memchr(c.at, 0, cursor_left(&c)))
		return false;
	take(&c, strlen(letters) + 1);
	if (version == 4 && (take_u8(&c) != 8 || take_u8(&c) != 0))
		return false;
	cie.code_align = take_uleb128(&c);
	cie.data_align = take_sleb128(&c);
	cie.return_register = version == 1 ? take_u8(&c) : take_uleb128(&c);
	if (version != 1 && cie.return_register >= CFI_REGISTER_MAX)
		return false;
	if (*letters) {
		if (*letters != 'z')
			return false;
		cie.sized_augmentation = true;
		len = take_uleb128(&c);
		data = c;
		if (!take(&c, len > cursor_left(&c) ? SIZE_MAX : (size_t)len))
			return false;
		data.end = c.at;
		if (!take_augmentation(letters + 1, data, &cie))
			return false;
	}
	/* libdw wants at least one byte behind each field. */
	if (c.failed || c.at >= c.end)
		return false;
	cie.program = c;
	*ret = cie;
	return true;
}

bool cfi_fde_read(const struct cfi_section *section, const struct cfi_cie *cie,
		  const struct cfi_entry *entry, struct cfi_fde_body *ret)
{
	struct cfi_cursor c = entry->rest;
	uint64_t start = take_encoded(section, &c, cie->fde_encoding), len;
	uint64_t size = take_encoded(section, &c, cie->fde_encoding & 0x0f);

	if (cie->sized_augmentation) {
		len = take_uleb128(&c);
		take(&c, len > cursor_left(&c) ? SIZE_MAX : (size_t)len);
	}
	if (c.failed || start + size <= start)
		return false;
	*ret = (struct cfi_fde_body){ .start = start, .size = size, .program = c };
	return true;
}

static bool is_cie(const struct cfi_section *section, uint64_t id, bool wide)
{
	if (section->eh_frame)
		return id == 0;
	return id == (wide ? UINT64_MAX : 0xffffffff);
}

bool cfi_entry_next(const struct cfi_section *section, uint64_t *offset, struct cfi_entry *ret,
		    bool *ret_broken)
{
	struct cfi_cursor c = { section->bytes + *offset, section->bytes + section->size, false };
	struct cfi_entry entry = { .offset = *offset };
	bool wide = false;                 /* 64-bit DWARF */
	uint64_t length;

	if (cursor_left(&c) <= 4)
		return false;
	length = take_unsigned(&c, 4);
	if (length == 0)
		return false;
	if (length == 0xffffffff) {
		wide = true;
		length = take_unsigned(&c, 8);
	}
	*ret_broken = c.failed || length > cursor_left(&c) || length < (wide ? 9u : 5u);
	if (*ret_broken)
		return false;
	c.end = c.at + length;
	entry.cie_offset = (uint64_t)(c.at - section->bytes);
	entry.id = take_unsigned(&c, wide ? 8 : 4);
	entry.is_cie = is_cie(section, entry.id, wide);
	entry.cie_offset = section->eh_frame ? entry.cie_offset - entry.id : entry.id;
	entry.rest = c;
	*ret = entry;
	*offset = (uint64_t)(c.end - section->bytes);
	return true;
}
