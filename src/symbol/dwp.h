/* The .dwp file of a program: the .dwo files of all its units in one, with an index (DWARF 5, section 7.3.5; before that
 * GNU's, https://gcc.gnu.org/wiki/DebugFissionDWP).  libdw 0.188 does not know them. */
#ifndef ALLOCWATCH_SYMBOL_DWP_H
#define ALLOCWATCH_SYMBOL_DWP_H

#include "symbol/elf_file.h"

/* More is not written for one unit. */
#define DWP_UNIT_BYTES_MAX (128u << 20)

/* The unit with this id as a .dwo file of its own, in memory: a descriptor; -ENOENT: there is none, or what is said of it
 * is wrong; or another negative errno. */
int dwp_extract(const struct elf_file *package, uint64_t unit_id);

#endif
