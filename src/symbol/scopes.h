/* The functions of one compilation unit and the calls inlined into them, as a table by address:
 * made once from the unit's DIE tree, then a lookup is a binary search. */
#ifndef ALLOCWATCH_SYMBOL_SCOPES_H
#define ALLOCWATCH_SYMBOL_SCOPES_H

#include "symbol/elf_file.h"

#define SCOPE_NONE UINT32_MAX
/* Deeper nesting of DIEs is ignored. */
#define SCOPE_DEPTH_MAX 512

struct scope {
	Dwarf_Off die;
	uint32_t parent;             /* the scope it is inlined into; SCOPE_NONE: a function proper */
	uint32_t call_file, call_line;     /* of the inlined call; 0 unknown */
	uint32_t first_range, range_count;
	const char *name;            /* the caller's cache of its name; NULL: not looked up yet */
};

struct scopes;

/* unit: the unit's DIE with the children (of the split file, where there is one).  -ENOMEM. */
int scopes_new(Dwarf_Die *unit, const struct elf_file *file, struct scopes **ret);
void scopes_free(struct scopes *scopes);                      /* accepts NULL */

/* The innermost scope at an address, or SCOPE_NONE. */
uint32_t scopes_find(const struct scopes *scopes, uint64_t address);
struct scope *scopes_get(struct scopes *scopes, uint32_t scope);
/* Start of that one of the scope's ranges which holds an address (or of its first one). */
uint64_t scopes_start(const struct scopes *scopes, uint32_t scope, uint64_t address);

/* Calls add(context, lo, hi) for each range of code of the functions; stops at a negative result
 * and returns it. */
int scopes_each_range(const struct scopes *scopes,
		      int (*add)(void *context, uint64_t lo, uint64_t hi), void *context);

#endif
