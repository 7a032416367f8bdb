/* What the tests of symbol/ share: a directory of their own, commands, a module opened from a path,
 * and the comparison with the tools everybody uses. */
#ifndef ALLOCWATCH_TESTS_SYMBOL_FIXTURE_H
#define ALLOCWATCH_TESTS_SYMBOL_FIXTURE_H

#include "base/vec.h"
#include "symbol/symbol.h"

#include <stdint.h>

/* Makes a directory that other users may read and changes to it; removes it. */
void fixture_enter(void);
void fixture_leave(void);
/* Runs a shell command, which must succeed.  $DATA is the directory of the sources. */
void fixture_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As above, but tells whether it succeeded. */
bool fixture_try(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens a file, which must succeed. */
struct symbol_module *fixture_open(const char *path, const char *debug_root);
/* The value of a symbol in .symtab, or in .dynsym without one; it must be there. */
uint64_t fixture_address(const char *path, const char *symbol, uint64_t *ret_size);

struct addresses {
	VEC_OF(uint64_t) items;
};
/* At most `max` addresses, evenly from all that the sizes of function symbols cover. */
void fixture_function_addresses(const char *path, size_t max, struct addresses *ret);

/* How a module's answers compare with addr2line's and, where they differ, with llvm-symbolizer's:
 * addr2line 2.40 misses inlined calls and names wrong files in DWARF 5. */
struct comparison {
	size_t compared;
	size_t same;             /* as addr2line: every level's name, file and line */
	size_t other_name;       /* another name of the same address, or without ".cold" and the like */
	size_t as_llvm;          /* addr2line is alone with its answer */
	size_t different;        /* unexplained; printed */
	double ours_s, theirs_s;
};
/* reference: the file with the debug information, for the tools. */
struct comparison fixture_compare(const char *path, const char *reference, const char *debug_root,
				  const struct addresses *addresses);
void fixture_print(const char *what, const struct comparison *comparison);

#endif
