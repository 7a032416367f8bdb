/* The functions and the code bytes of an ELF file. */
#ifndef ALLOCWATCH_PROBE_ELF_CODE_H
#define ALLOCWATCH_PROBE_ELF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_code;

/* Bytes of an object's executable segments; what is larger is not read. */
#define ELF_CODE_MAX (1u << 30)
/* Symbols read from one object at most; later ones are not seen. */
#define ELF_SYMBOLS_MAX (4u << 20)

/* elf_fd is borrowed until elf_code_close. 0, -ENOEXEC, -ENOMEM. */
int elf_code_open(int elf_fd, struct elf_code **ret);
void elf_code_close(struct elf_code *code);                 /* accepts NULL */

/* Visits every defined function symbol of .dynsym and .symtab that other objects could bind to; a non-zero
 * return ends it and is returned. */
int elf_code_each_function(struct elf_code *code,
			   int (*visit)(void *context, const char *symbol, uint64_t vaddr), void *context);
/* The local ones of a program that binds to nothing at run time; of any other object none.  Linkers make the hidden functions of
 * a static libc local ones when the program may be loaded anywhere (-static-pie). */
int elf_code_each_local_function(struct elf_code *code,
				 int (*visit)(void *context, const char *symbol, uint64_t vaddr), void *context);
/* Where a variable of this name is; false: there is none. */
bool elf_code_find_variable(struct elf_code *code, const char *name, uint64_t *ret_vaddr);
/* How far the function at vaddr reaches, by the unwind tables (which know static functions, too, and cut
 * off cold parts that lie elsewhere), else by a symbol's size; 0: unknown. */
uint64_t elf_code_function_size(struct elf_code *code, uint64_t vaddr);
/* Where the next function behind vaddr begins that has a symbol; UINT64_MAX: there is none. */
uint64_t elf_code_next_function(struct elf_code *code, uint64_t vaddr);
/* Whether the function at vaddr has this name, perhaps among others. */
bool elf_code_is_named(struct elf_code *code, uint64_t vaddr, const char *name);
/* What the pointer at vaddr (of an import stub) is bound to: a symbol's name, "" for a function of this
 * object that is chosen at run time (IFUNC) and has no name here; NULL: no relocation fills it. */
const char *elf_code_import_name(const struct elf_code *code, uint64_t vaddr);
/* Whether the pointer at vaddr is bound to a function that this object itself has, unless another one has its name first. */
bool elf_code_import_is_own(const struct elf_code *code, uint64_t vaddr, uint64_t *ret_vaddr);
/* The bytes from vaddr to the end of its executable segment; NULL when it is in none, or this cannot be read. */
const uint8_t *elf_code_at(struct elf_code *code, uint64_t vaddr, size_t *ret_len);
/* Visits every executable segment that can be read. */
void elf_code_each_segment(struct elf_code *code,
			   void (*visit)(void *context, const uint8_t *bytes, size_t len, uint64_t vaddr), void *context);

#endif
