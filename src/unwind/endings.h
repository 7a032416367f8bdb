/* Functions that never return, of the objects of a process: by their names, as C libraries export them. */
#ifndef ALLOCWATCH_UNWIND_ENDINGS_H
#define ALLOCWATCH_UNWIND_ENDINGS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENDINGS_MAX 1024               /* of all objects; further ones are not known */

struct ending {
	uint32_t module;
	bool takes_result;             /* exit() and its like: what it is called with is what another function has returned */
	uint64_t vaddr;
};

struct endings {
	VEC_OF(struct ending) items;
};

/* Reads the symbols of one object.  0 or -ENOMEM; of what is no ELF file there are none. */
int endings_add(struct endings *endings, uint32_t module, int elf_fd);
void endings_drop(struct endings *endings, uint32_t module);
void endings_fini(struct endings *endings);
/* NULL: no such function is there. */
const struct ending *endings_find(const struct endings *endings, uint32_t module, uint64_t vaddr);

#endif
