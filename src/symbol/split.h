/* The part of a unit that lies in another file: its .dwo file, or its piece of the program's .dwp file. */
#ifndef ALLOCWATCH_SYMBOL_SPLIT_H
#define ALLOCWATCH_SYMBOL_SPLIT_H

#include "symbol/elf_file.h"

/* skeleton: the unit's DIE in `file`.  0; -ENOENT: there is no such part, or none that belongs, and *ret is untouched. */
int split_unit(Dwarf_Die *skeleton, const struct elf_file *file, Dwarf_Die *ret);

#endif
