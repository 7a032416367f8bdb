/* The entries of a .eh_frame or .debug_frame section: CIEs (heads, shared by functions) and FDEs (one per
 * function).  Reads what stands around their programs, bounded by the entry; nothing is interpreted.
 *
 * Formats: LSB Core 5.0, 10.6 (Exception Frames), and DWARF 5, 6.4.1. */
#ifndef ALLOCWATCH_UNWIND_CFI_ENTRY_H
#define ALLOCWATCH_UNWIND_CFI_ENTRY_H

#include "unwind/cfi_cursor.h"

#define CFI_REGISTER_MAX 160u          /* more than x86-64 has */

struct cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;                  /* ELF virtual address of bytes[0] */
	bool eh_frame;                     /* false: .debug_frame's form of the ids */
};

struct cfi_entry {
	uint64_t offset;                   /* in the section */
	uint64_t id;
	uint64_t cie_offset;               /* of an FDE: where its CIE is said to be */
	bool is_cie;
	struct cfi_cursor rest;            /* behind the id */
};

struct cfi_cie {
	uint64_t offset;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t fde_encoding;
	bool sized_augmentation, signal_frame;
	struct cfi_cursor program;
};

struct cfi_fde_body {
	uint64_t start, size;              /* ELF virtual address and bytes of its code */
	struct cfi_cursor program;
};

/* Reads the head of the entry at *offset and moves *offset behind it.  False at the end; at a broken
 * length *ret_broken is set: nothing behind it can be found. */
bool cfi_entry_next(const struct cfi_section *section, uint64_t *offset, struct cfi_entry *ret,
		    bool *ret_broken);
/* False when it is not what linkers write. */
bool cfi_cie_read(const struct cfi_section *section, const struct cfi_entry *entry, struct cfi_cie *ret);
bool cfi_fde_read(const struct cfi_section *section, const struct cfi_cie *cie,
		  const struct cfi_entry *entry, struct cfi_fde_body *ret);

#endif
