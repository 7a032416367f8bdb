/* Functions that go on on another stack, of which their unwind tables do not tell: who has called them cannot be found that way, and
 * what is found instead is nobody.  Known is Go's runtime.asmcgocall, by which all C code of a Go program is called: where it has
 * left its caller's stack stands in Go's own records, which differ from version to version.  Debuggers show wrong callers there. */
#ifndef ALLOCWATCH_UNWIND_OTHER_STACK_H
#define ALLOCWATCH_UNWIND_OTHER_STACK_H

#include <stdbool.h>
#include <stdint.h>

#define OTHER_STACK_MAX 4              /* functions of one file */

struct other_stack {
	unsigned count;
	struct {
		uint64_t start, size;  /* ELF virtual address, bytes */
	} functions[OTHER_STACK_MAX];
};

/* By the symbol table of an ELF file, which may be closed afterwards; a file that Go did not link has none of them. */
void other_stack_find(int elf_fd, struct other_stack *ret);
bool other_stack_has(const struct other_stack *other, uint64_t address);

#endif
