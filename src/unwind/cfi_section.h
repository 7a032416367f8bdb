/* Walks a .eh_frame or .debug_frame section once, before libdw sees it.
 *
 * The section comes from a file of somebody who may mean harm, and libdw trusts some of what stands in
 * it: lengths of augmentation data, register numbers (an array that large is made), the nesting of
 * remember_state (each level is an allocation).  What passes here keeps libdw's work bounded.  Each FDE
 * that passes goes into an index; nothing is interpreted.
 *
 * Formats: LSB Core 5.0, 10.6 (Exception Frames), and DWARF 5, 6.4.1. */
#ifndef ALLOCWATCH_UNWIND_CFI_SECTION_H
#define ALLOCWATCH_UNWIND_CFI_SECTION_H

#include "base/vec.h"
#include "unwind/cfi_entry.h"

#include <stdbool.h>
#include <stdint.h>

/* Limits.  In 873 files of Debian 12 with 1.5 million functions (cc1, python3, LLVM, the libraries) the longest
 * program has 20,051 bytes, remember_state is nested 1 deep, and the longest expression has 14 bytes. */
#define CFI_ENTRIES_MAX (4u << 20)     /* CIEs and FDEs of one section */
#define CFI_CIES_MAX (1u << 18)        /* CIEs alone: linkers merge those that are the same */
#define CFI_PROGRAM_MAX 65536u         /* bytes of instructions of one entry */
#define CFI_REMEMBER_MAX 16u           /* nested remember_state */
#define CFI_EXPRESSION_MAX 1024u       /* bytes */

struct cfi_fde {
	uint64_t start, end;               /* ELF virtual addresses of its code */
	uint64_t offset;                   /* of the entry in the section */
};

struct cfi_index {
	VEC_OF(struct cfi_fde) fdes;       /* sorted by start */
	uint32_t refused;                  /* entries that did not pass */
	bool complete;                     /* the section was read to its end */
};

/* Fills in *ret_index (free with cfi_index_fini); 0 or -ENOMEM. */
int cfi_section_index(const struct cfi_section *section, struct cfi_index *ret_index);
void cfi_index_fini(struct cfi_index *index);

#endif
