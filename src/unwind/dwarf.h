/* The unwind tables of one module: ordinary rows made by cfi_program.c, all others by libdw.
 *
 * Takes ELF virtual addresses; knows nothing of run-time addresses, caches or stacks. */
#ifndef ALLOCWATCH_UNWIND_DWARF_H
#define ALLOCWATCH_UNWIND_DWARF_H

#include "unwind/cfi_rows.h"
#include "unwind/stack_copy.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_cfi;

/* Reads .eh_frame and .debug_frame of an ELF file, which may be closed afterwards.  All that takes time
 * in proportion to the file is done here.  Returns the errors of cfi_image_make. */
int dwarf_cfi_open(int elf_fd, struct dwarf_cfi **ret_cfi);
void dwarf_cfi_close(struct dwarf_cfi *cfi);            /* accepts NULL */
size_t dwarf_cfi_memory(const struct dwarf_cfi *cfi);

/* The row of an address: its kind is PLAIN, END, OTHER_STACK or FULL; module and full are left 0.  *ret_frame is
 * what a FULL row is evaluated from, to be freed with free() before the cfi is closed; else NULL.
 * -ENOENT: the tables say nothing usable about this address. */
int dwarf_cfi_row(struct dwarf_cfi *cfi, uint64_t address, struct cfi_row *ret_row,
		  Dwarf_Frame **ret_frame);

/* Whether a function of .eh_frame begins at this address. */
bool dwarf_cfi_begins(const struct dwarf_cfi *cfi, uint64_t address);
/* Begins to load what dwarf_cfi_row() will read. */
void dwarf_cfi_prefetch(const struct dwarf_cfi *cfi, uint64_t address);
/* As dwarf_cfi_row, all of it by libdw: what cfi_program.c does for the ordinary rows of .eh_frame is measured by it. */
int dwarf_cfi_row_by_libdw(struct dwarf_cfi *cfi, uint64_t address, struct cfi_row *ret_row,
			   Dwarf_Frame **ret_frame);

struct dwarf_step {
	bool end;                          /* the return address is undefined */
	bool signal_frame;                 /* the caller was interrupted, it did not call */
};

/* One step outwards by full evaluation of a row: *regs become the caller's.  0; -EFAULT: memory; else the
 * row makes no sense. */
int dwarf_frame_step(Dwarf_Frame *frame, uint64_t bias, struct stack_copy *memory, struct arch_regs *regs,
		     struct dwarf_step *ret_step);

#endif
