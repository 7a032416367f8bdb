/* Reading the bytes of a table of unwind information without ever going past its end.
 *
 * Formats: LSB Core 5.0, 10.6 (Exception Frames), and DWARF 5, 6.4 and 7.6. */
#ifndef ALLOCWATCH_UNWIND_CFI_CURSOR_H
#define ALLOCWATCH_UNWIND_CFI_CURSOR_H

#include <dwarf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A place in the section and where it must not go past.  A read that would sets failed and yields 0. */
struct cfi_cursor {
	const uint8_t *at, *end;
	bool failed;
};

static inline size_t cursor_left(const struct cfi_cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline bool take(struct cfi_cursor *c, size_t len)
{
	if (c->failed || cursor_left(c) < len) {
		c->failed = true;
		return false;
	}
	c->at += len;
	return true;
}

static inline uint8_t take_u8(struct cfi_cursor *c)
{
	return take(c, 1) ? c->at[-1] : 0;
}

static inline uint64_t take_unsigned(struct cfi_cursor *c, size_t len)
{
	uint64_t value = 0;

	if (take(c, len))
		memcpy(&value, c->at - len, len);
	return value;
}

/* At most 10 bytes, what is above 64 bits is dropped; longer ones fail.  *ret_shift, the bits that were
 * written, tells a signed number's sign. */
static inline uint64_t take_leb128(struct cfi_cursor *c, unsigned int *ret_shift)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint64_t byte = take_u8(c);

		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_shift = shift + 7;
			return value;
		}
	}
	c->failed = true;
	*ret_shift = 64;
	return 0;
}

static inline uint64_t take_uleb128(struct cfi_cursor *c)
{
	unsigned int shift;

	if (c->at < c->end && *c->at < 0x80 && !c->failed)
		return *c->at++;
	return take_leb128(c, &shift);
}

static inline int64_t take_sleb128(struct cfi_cursor *c)
{
	unsigned int shift;
	uint64_t value = take_leb128(c, &shift);

	if (shift < 64)
		return (int64_t)(value << (64 - shift)) >> (64 - shift);
	return (int64_t)value;
}

/* Bytes of an encoded pointer; 0 for a form that libdw reads differently from everybody else, or that
 * no linker writes. */
static inline size_t encoded_size(uint8_t encoding)
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

#endif
