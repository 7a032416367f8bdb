/* The compilation units of one file's DWARF (versions 2 to 5, split units included): which unit an
 * address belongs to, and per unit, made on first use, its functions and its line rows. */
#ifndef ALLOCWATCH_SYMBOL_UNITS_H
#define ALLOCWATCH_SYMBOL_UNITS_H

#include "base/strtab.h"
#include "symbol/elf_file.h"
#include "symbol/scopes.h"

struct units;
struct unit;

/* dwarf and file are borrowed; paths are interned in `strings`.  -ENOENT: no units; -ENOMEM. */
int units_new(Dwarf *dwarf, const struct elf_file *file, struct strtab *strings,
	      struct units **ret);
void units_free(struct units *units);                         /* accepts NULL */

/* The unit whose code holds an address, or NULL. */
struct unit *units_find(struct units *units, uint64_t address);
/* Whether something is missing from what was read only because memory ran out. */
bool units_out_of_memory(const struct units *units);
/* Whether the other file of a split unit that was needed was missing, or none that belongs. */
bool units_incomplete(const struct units *units);

/* The unit's scopes; NULL when it has none that can be read. */
struct scopes *unit_scopes(struct unit *unit);
/* The DIE of a scope; -ENOENT. */
int unit_die(struct unit *unit, Dwarf_Off offset, Dwarf_Die *ret);
/* The file and line of the row that holds an address; -ENOENT when there is none or the compiler
 * named no line for it (line 0). */
int unit_line(struct unit *unit, uint64_t address, const char **ret_file, uint32_t *ret_line);
/* The path of a file number in DW_AT_call_file's table, or NULL. */
const char *unit_call_file(struct unit *unit, uint32_t number);

#endif
