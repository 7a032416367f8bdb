/* Rows of .eh_frame, made by running the program of a function up to an address.
 *
 * Knows what compilers write for ordinary code and leaves everything else (expressions in use, signal frames,
 * other return registers, odd alignments) to libdw: -ENOTSUP then, never a guess.  Runs only entries that
 * passed cfi_section_index, and bounds its own reads and loops all the same: one run is one pass over at
 * most CFI_PROGRAM_MAX bytes.
 *
 * Instructions: DWARF 5, 6.4.2. */
#ifndef ALLOCWATCH_UNWIND_CFI_PROGRAM_H
#define ALLOCWATCH_UNWIND_CFI_PROGRAM_H

#include "unwind/cfi_entry.h"
#include "unwind/cfi_functions.h"
#include "unwind/cfi_rows.h"

/* A plain row reads the stack in one piece of at most this many bytes. */
#define CFI_PLAIN_DEPTH_MAX 2048

/* What decides a row: the callee-saved registers in the order of arch_callee_saved, sp, pc. */
#define CFI_TRACKED (ARCH_CALLEE_SAVED + 2)
#define CFI_TRACKED_SP ARCH_CALLEE_SAVED
#define CFI_TRACKED_PC (ARCH_CALLEE_SAVED + 1)

struct cfi_state {
	uint64_t cfa_register;             /* UINT64_MAX: not register + offset */
	int64_t cfa_offset;
	uint8_t rule[CFI_TRACKED];
	int32_t offset[CFI_TRACKED];       /* from the CFA, where saved there */
};

/* The CIE used last and the state that its program leaves. */
struct cfi_head {
	struct cfi_cie cie;
	struct cfi_state initial;
	bool known, plain;                 /* plain: its functions can be run here */
};

#define CFI_HEADS 4u

struct cfi_programs {
	struct cfi_section section;
	struct cfi_functions functions;
	struct cfi_head heads[CFI_HEADS];  /* by offset */
};

/* The section and the table of starts must live as long.  0 or -ENOMEM. */
int cfi_programs_init(struct cfi_programs *programs, const struct cfi_section *section,
		      const struct cfi_start *starts, uint32_t count);
void cfi_programs_fini(struct cfi_programs *programs);
/* The row of an address, of kind PLAIN or END; its module and full are 0.  -ENOTSUP: ask libdw. */
int cfi_programs_row(struct cfi_programs *programs, uint64_t address, struct cfi_row *ret_row);
/* Finds the function, and begins to load its entry. */
void cfi_programs_prefetch(const struct cfi_programs *programs, uint64_t address);
size_t cfi_programs_memory(const struct cfi_programs *programs);

#endif
