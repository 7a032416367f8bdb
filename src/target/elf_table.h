/* Tables of ELF files that belong to who is traced, and may be changed meanwhile.  They are read, not mapped: whoever cuts a file short ends
 * nobody by SIGBUS.  What is read is memory of ours, so there is a limit. */
#ifndef ALLOCWATCH_TARGET_ELF_TABLE_H
#define ALLOCWATCH_TARGET_ELF_TABLE_H

#include <gelf.h>
#include <stdbool.h>

#define ELF_TABLE_MAX (256u << 20)         /* bytes of one table, or of its names; what is larger is not read */

/* fd is borrowed until elf_end().  NULL: it is no ELF file. */
Elf *elf_table_begin(int fd);
/* A section with this header: symbols or relocations.  NULL: it, or what it refers to, is too large or cannot be read. */
Elf_Data *elf_table_data(Elf *elf, Elf_Scn *section, const GElf_Shdr *shdr);
/* A program that binds to nothing at run time. */
bool elf_table_is_static_program(Elf *elf);

#endif
