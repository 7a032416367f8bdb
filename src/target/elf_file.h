/* What the tracer must know of an ELF file to find its way in a mapping of it: load segments,
 * build-id, entry points of the loader.  Symbols of allocators are probe/'s, names are symbol/'s. */
#ifndef ALLOCWATCH_TARGET_ELF_FILE_H
#define ALLOCWATCH_TARGET_ELF_FILE_H

#include "base/vec.h"
#include "model/module.h"

#include <stdbool.h>
#include <stdint.h>

struct elf_segment {
	uint64_t offset, vaddr, file_size, memory_size;
	bool executable;
};

#define ELF_SEGMENTS_MAX 256
#define ELF_NOTES_MAX 65536
/* Looked at of one table of symbols; chromium's has 1.5 million. */
#define ELF_TABLE_SYMBOLS_MAX (4u << 20)

struct elf_file {
	bool is_64;
	uint16_t machine;
	VEC_OF(struct elf_segment) segments;       /* PT_LOAD */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_len;
	uint64_t build_id_vaddr;                   /* where its bytes are mapped */
	uint64_t dynamic_vaddr;                    /* PT_DYNAMIC, 0: none */
};

/* 0, -ENOEXEC (no ELF file), -ENOMEM.  Free with elf_file_fini. */
int elf_file_read(int fd, struct elf_file *ret);
void elf_file_fini(struct elf_file *file);
/* The segment that a mapping of file offset `offset` belongs to, executable or not; NULL: none. */
const struct elf_segment *elf_file_segment_at(const struct elf_file *file, uint64_t offset, bool executable);

/* The value of a defined symbol of .dynsym; -ENOENT. */
int elf_file_symbol(int fd, const char *name, uint64_t *ret_vaddr);
/* The same of several in one pass; 0 for those that are not defined.  Returns how many are. */
unsigned elf_file_symbols(int fd, const char *const *names, unsigned count, uint64_t *ret_vaddrs);
/* The same by .symtab, of a program that binds to nothing at run time; of any other object none. */
unsigned elf_file_program_symbols(int fd, const char *const *names, unsigned count, uint64_t *ret_vaddrs);
/* Whether a function that is defined begins at this address, by .dynsym or .symtab. */
bool elf_file_has_function(int fd, uint64_t vaddr);
/* The bytes at an address of an executable segment, as many as there are; -ENOENT. */
int elf_file_text(int fd, uint64_t vaddr, uint8_t *buf, size_t space, size_t *ret_len);
/* The same of a file whose program headers were read before. */
int elf_file_text_of(int fd, const struct elf_file *file, uint64_t vaddr, uint8_t *buf, size_t space, size_t *ret_len);

#endif
