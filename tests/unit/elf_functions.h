/* The functions of an ELF file as the tests of arch/ want them: address, size, name and bytes. */
#ifndef ALLOCWATCH_TESTS_ELF_FUNCTIONS_H
#define ALLOCWATCH_TESTS_ELF_FUNCTIONS_H

#include "base/vec.h"

#include <stdint.h>

struct elf_function {
	uint64_t address, size;
	const char *name;
	const uint8_t *code;
};

struct elf_functions {
	void *file;                               /* mapped */
	size_t file_size;
	void *elf;
	VEC_OF(struct elf_function) items;        /* by address, each address once per size */
};

/* Aborts the test when the file cannot be read: it then lacks a package the README names. */
void elf_functions_load(struct elf_functions *functions, const char *path);
void elf_functions_fini(struct elf_functions *functions);

struct addresses {
	VEC_OF(uint64_t) items;                   /* ascending */
};

/* Addresses of all ret instructions that `objdump -d` shows in the file. */
void objdump_rets(const char *path, struct addresses *ret);
/* The index of the first one that is not below `address`. */
size_t addresses_find(const struct addresses *addresses, uint64_t address);

#endif
