/* .gnu_debugdata: the symbols that .dynsym lacks, as an xz-compressed ELF file in a section. */
#ifndef ALLOCWATCH_SYMBOL_MINIDEBUG_H
#define ALLOCWATCH_SYMBOL_MINIDEBUG_H

#include "symbol/elf_file.h"

struct minidebug;

/* -ENOENT when the file has none or it cannot be unpacked; -ENOMEM. */
int minidebug_open(const struct elf_file *file, struct minidebug **ret);
Elf *minidebug_elf(const struct minidebug *minidebug);
void minidebug_free(struct minidebug *minidebug);            /* accepts NULL */

#endif
