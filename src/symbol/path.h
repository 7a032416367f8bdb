/* Source paths as DWARF spells them, made readable: joined and without detours. */
#ifndef ALLOCWATCH_SYMBOL_PATH_H
#define ALLOCWATCH_SYMBOL_PATH_H

#include <stddef.h>

/* Writes comp_dir/name (name alone when it is absolute, or comp_dir NULL or empty) to buf, cut to
 * space bytes with the NUL.  "//" and "/./" are shortened and "dir/.." is resolved in the
 * text: one file then has one name, whatever directory it was compiled from. */
void path_join(const char *comp_dir, const char *name, char *buf, size_t space);

#endif
