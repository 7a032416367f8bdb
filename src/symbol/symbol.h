/* From a place in an ELF file to names: function, source file, line, and the calls inlined there.
 *
 * A module is one ELF file (program or library) with whatever tells about it: its own .debug_*
 * sections or a separate debug file, .symtab, .gnu_debugdata, .dynsym, in this order.  Knows no
 * process and no run-time address.  All input is hostile: whoever calls this has given up its
 * privileges, and must reckon with a crash, a hang or a failed allocation inside the libraries. */
#ifndef ALLOCWATCH_SYMBOL_SYMBOL_H
#define ALLOCWATCH_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More inlined levels than this are left out between the innermost ones and the function itself. */
#define SYMBOL_LOCATIONS_MAX 64
/* Longer function names are cut. */
#define SYMBOL_NAME_MAX 8192
#define SYMBOL_DEBUG_ROOT "/usr/lib/debug"

struct symbol_module;

struct symbol_location {
	const char *function;        /* demangled; NULL unknown.  Strings live as long as the module */
	const char *file;            /* absolute where DWARF tells the directory; NULL: no line */
	uint32_t line;               /* 0 without a file */
	uint64_t function_offset;    /* of the address from the start of the function, or of the
	                              * inlined call's code */
	bool inlined;                /* into the next location */
};

/* Takes fd over in any case.  debug_root: where separate debug files are looked for, normally
 * SYMBOL_DEBUG_ROOT.  -ENOEXEC: no ELF program or library; -ENOMEM. */
int symbol_module_open(int fd, const char *debug_root, struct symbol_module **ret);
void symbol_module_free(struct symbol_module *module);        /* accepts NULL */

/* Fills in up to SYMBOL_LOCATIONS_MAX locations, innermost first, and returns their number; 0 when
 * nothing is known, -ENOMEM when memory was too short to tell.  address: an ELF virtual address; is_call: it is a return address, so that the
 * call before it is meant. */
int symbol_module_resolve(struct symbol_module *module, uint64_t address, bool is_call,
			  struct symbol_location *locations);

/* What the names come from: bits of these, for people and tests. */
enum { SYMBOL_FROM_DWARF = 1, SYMBOL_FROM_DEBUG_FILE = 2, SYMBOL_FROM_SYMTAB = 4,
       SYMBOL_FROM_MINIDEBUG = 8, SYMBOL_FROM_DYNSYM = 16 };
unsigned symbol_module_sources(const struct symbol_module *module);

/* Whether files that belong to its debug information were missing so far: split units are only looked for when they are
 * needed. */
bool symbol_module_is_incomplete(const struct symbol_module *module);

#endif
