/* The parts of units that lie in other files: each in its .dwo file, or all in the program's .dwp file. */
#ifndef ALLOCWATCH_SYMBOL_SPLIT_H
#define ALLOCWATCH_SYMBOL_SPLIT_H

#include "symbol/elf_file.h"

/* Zeroed, but for `file`: the program's. */
struct split {
	const struct elf_file *file;
	struct elf_file *package;    /* NULL: there is none, or it was not needed yet */
	bool looked_for;
};

/* skeleton: the unit's DIE in the program's debug information.  0; -ENOENT: there is no such part, or none that belongs,
 * and *ret is untouched. */
int split_unit(struct split *split, Dwarf_Die *skeleton, Dwarf_Die *ret);
void split_fini(struct split *split);

#endif
