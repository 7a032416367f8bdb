/* One ELF file opened for its symbols: the file itself, its build-id and where its code is.
 * Every byte of it is hostile; libelf checks the structure. */
#ifndef ALLOCWATCH_SYMBOL_ELF_FILE_H
#define ALLOCWATCH_SYMBOL_ELF_FILE_H

#include "base/vec.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_segment {
	uint64_t lo, hi;             /* [lo, hi) */
};

struct elf_file {
	int fd;
	Elf *elf;
	GElf_Half type;              /* ET_EXEC, ... */
	const void *build_id;        /* inside the mapped file; NULL: it has none */
	size_t build_id_len;
	VEC_OF(struct elf_segment) code;     /* executable PT_LOADs */
};

/* Takes fd over in any case.  -ENOEXEC: no ELF file; -ENOMEM. */
int elf_file_open(int fd, struct elf_file **ret);
/* As above from a path; -ENOENT and the like, -EINVAL when it is no regular file. */
int elf_file_open_path(const char *path, struct elf_file **ret);
void elf_file_free(struct elf_file *file);                   /* accepts NULL */

/* The section of that name, or NULL; with contents in the file, not merely listed. */
Elf_Scn *elf_file_section(const struct elf_file *file, const char *name);
/* The uncompressed bytes of such a section, or NULL. */
Elf_Data *elf_file_section_data(const struct elf_file *file, const char *name);
/* Whether [address, address + 1) is code.  Debug information of functions that the linker threw
 * away speaks of addresses near 0, which are not. */
bool elf_file_is_code(const struct elf_file *file, uint64_t address);
/* A program or a shared library: no object file, no core file. */
bool elf_file_is_linked(const struct elf_file *file);
/* Both have a build-id and it is the same. */
bool elf_file_same_build_id(const struct elf_file *file, const void *build_id, size_t len);

#endif
