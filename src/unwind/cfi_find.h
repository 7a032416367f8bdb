/* Where in an ELF file its unwind tables are. */
#ifndef ALLOCWATCH_UNWIND_CFI_FIND_H
#define ALLOCWATCH_UNWIND_CFI_FIND_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_place {
	uint64_t address, offset, size;    /* size 0: there is none */
	Elf_Scn *section;                  /* NULL: known from the program header only */
	bool compressed;
};

/* What a running program unwinds with: the .eh_frame that PT_GNU_EH_FRAME points to, else the section
 * of that name.  Section headers are used only for its size. */
struct cfi_place cfi_find_eh_frame(Elf *elf, int fd);
struct cfi_place cfi_find_debug_frame(Elf *elf);
/* That has contents. */
bool cfi_has_section(Elf *elf, const char *name);

#endif
