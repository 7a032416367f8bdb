/* Function symbols of one ELF file: .symtab (its own or the debug file's), .gnu_debugdata and
 * .dynsym merged.  A symbol answers for the addresses that its size covers and for no other, so that
 * a stripped function does not get its neighbour's name. */
#ifndef ALLOCWATCH_SYMBOL_SYMTAB_H
#define ALLOCWATCH_SYMBOL_SYMTAB_H

#include "symbol/elf_file.h"

struct symtab;

struct symtab_symbol {
	const char *name;        /* without a version; lives as long as the ELF file it is from */
	uint64_t start;
};

struct symtab *symtab_new(void);                              /* NULL: no memory */
void symtab_free(struct symtab *symtab);                      /* accepts NULL */

enum symtab_source { SYMTAB_STATIC, SYMTAB_DYNAMIC };
/* Adds the functions of elf's SHT_SYMTAB or SHT_DYNSYM that lie in the code of `file`.  The number
 * added (0: none there), or -ENOMEM. */
int64_t symtab_add(struct symtab *symtab, Elf *elf, const struct elf_file *file,
		   enum symtab_source source);
/* After the last addition, before the first lookup; 0 or -ENOMEM. */
int symtab_finish(struct symtab *symtab);

/* The best name of the function that holds an address; false when there is none. */
bool symtab_find(const struct symtab *symtab, uint64_t address, struct symtab_symbol *ret);

#endif
