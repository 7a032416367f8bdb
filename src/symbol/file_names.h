/* The file table of one unit as absolute paths, each made on first use. */
#ifndef ALLOCWATCH_SYMBOL_FILE_NAMES_H
#define ALLOCWATCH_SYMBOL_FILE_NAMES_H

#include "base/strtab.h"

#include <elfutils/libdw.h>

/* A longer path is cut. */
#define FILE_NAME_MAX 4096

struct file_names;

/* unit: whose DW_AT_comp_dir relative names are relative to.  NULL: no memory. */
struct file_names *file_names_new(Dwarf_Die *unit, Dwarf_Files *files, struct strtab *strings);
void file_names_free(struct file_names *names);               /* accepts NULL */
/* Interned in `strings`; NULL when there is no such file. */
const char *file_names_get(struct file_names *names, size_t number);

#endif
