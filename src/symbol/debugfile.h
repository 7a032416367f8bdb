/* Finds the separate files that hold an ELF file's debug information, as gdb does:
 * ROOT/.build-id/xx/yyy.debug, then the .gnu_debuglink name beside the file, in .debug/ there and
 * in ROOT/<directory>.  A file is used only when it provably belongs: it has the file's build-id,
 * if that has one, and for a debuglink the CRC too. */
#ifndef ALLOCWATCH_SYMBOL_DEBUGFILE_H
#define ALLOCWATCH_SYMBOL_DEBUGFILE_H

#include "symbol/elf_file.h"

/* 0 with the caller's file, or -ENOENT when there is none that belongs; -ENOMEM. */
int debugfile_find(const struct elf_file *file, const char *debug_root, struct elf_file **ret);

/* The same from elsewhere (opener_fetch()), for one with a build-id; -EINPROGRESS: later. */
int debugfile_fetch(const struct elf_file *file, struct elf_file **ret);

/* The file that dwz moved common parts to (.gnu_debugaltlink): by build-id, by its name, in ROOT/.dwz, where distributions
 * have it, or from elsewhere.  0: *ret is it, or NULL when `dwarf` needs none; -ENOENT: there is none; -EXDEV: nor is there, but
 * a wrong one lies in its place, so that `dwarf` must not be read: libdw would open that one unasked; -EINPROGRESS: later;
 * -ENOMEM. */
int debugfile_find_alternate(Dwarf *dwarf, const struct elf_file *file, const char *debug_root,
			     struct elf_file **ret);

/* The CRC-32 of .gnu_debuglink over a whole file; 0 or negative errno. */
int debugfile_crc(int fd, uint32_t *ret_crc);

#endif
