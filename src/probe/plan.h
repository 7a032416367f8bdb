/* What to probe in one object: made from its ELF file alone, while nothing is stopped. */
#ifndef ALLOCWATCH_PROBE_PLAN_H
#define ALLOCWATCH_PROBE_PLAN_H

#include "arch/arch.h"
#include "arch/ring_code.h"
#include "base/vec.h"
#include "probe/catalog.h"
#include "probe/described.h"
#include "probe/probe.h"

#include <stdbool.h>
#include <stdint.h>

#define PLAN_TEXT_MAX 15               /* the longest x86 instruction */
#define PLAN_FUNCTIONS_MAX 256         /* of one object, tail calls included */

enum site_kind {
	SITE_ENTRY = 1,
	SITE_EXIT = 2,             /* a return instruction */
	SITE_TAIL = 4,             /* a jump to memset, as calloc's last act: it will return its first
				    * argument */
	SITE_LOADER = 8,           /* the loader's hook; in no plan */
	SITE_EXEC = 32,            /* the C library's execve; in no plan */
	SITE_UNMAP = 64,           /* memory goes, or cannot be read any more; in no plan's sites */
	SITE_SHARED = 16,          /* with SITE_EXIT: in a function that is jumped to, and which others may call as well */
};

/* The instructions that a jump can take the place of, with the one that is watched. */
struct plan_window {
	uint64_t vaddr;
	uint32_t length;                   /* bytes of them; 0: there is no room for a jump */
	uint32_t record;                   /* offset of the one that is watched */
	uint32_t sp_below;                 /* of an entry: how much lower the stack pointer is there */
	uint8_t text[ARCH_WINDOW_MAX];     /* them, and what else the jump lies over */
};

struct plan_site {
	uint64_t vaddr;
	unsigned kinds;                    /* enum site_kind bits */
	const struct catalog_entry *entry; /* of an entry */
	uint32_t entry_index;              /* in `functions` */
	bool ambiguous;                    /* see struct breakpoint */
	bool reads_memory;                 /* of an exit: the result is not in a register */
	uint32_t sp_below;                 /* how much lower the stack pointer is than at the entry */
	struct plan_window window;
	uint8_t text[PLAN_TEXT_MAX];
	uint32_t text_len;
};

struct plan_function {
	const struct catalog_entry *entry;
	uint64_t vaddr;
	uint32_t forms;                    /* of all its names: enum heap_form */
	unsigned prefix;                   /* of its name, see catalog_find_prefixed(); 0: it has a name without one */
	struct plan_site first;            /* its first instruction, for the case that another tool has the place of
					    * its entry's site */
	/* Its code: itself first, then other functions that it may jump to at its end. */
	VEC_OF(struct code_part) parts;
	bool tails_to_import;              /* it may jump to an allocator function of whichever object */
	bool ends_by_jump;                 /* of one that frees: it may end in another function */
	uint64_t word;                     /* of brk: where libc keeps the break */
	const char *refused;               /* why it cannot be probed (static text), NULL: it can */
};

/* An operator new: what is allocated below it is of its form. */
struct plan_form {
	uint64_t vaddr;
	uint64_t size;                     /* 0: unknown */
	uint32_t form;                     /* enum heap_form */
	bool is_told;                      /* by what it calls, whose stack says so: it has no probe */
};

/* A function of the C library's by which memory is unmapped, or made unreadable. */
struct plan_unmap {
	uint64_t vaddr;
	enum ring_unmaps by;
	struct plan_window window;
};
#define PLAN_UNMAPS_MAX 8

struct plan {
	VEC_OF(struct plan_function) functions;
	VEC_OF(struct plan_site) sites;
	VEC_OF(struct plan_form) forms;    /* when these are asked for */
	struct plan_unmap unmaps[PLAN_UNMAPS_MAX];     /* with windows: those that have one */
	uint32_t unmap_count;
	bool defines_malloc, is_glibc;
	const char *clash;                 /* a described function that is one of those which are watched anyway; NULL: none */
	const char *malloc_refused;        /* why its malloc cannot be probed, and nothing of it is */
	/* glibc's own code around malloc frees what a thread had cached when it ends, by plain calls of free:
	 * blocks that the program gave back long ago, and the cache itself.  A call from [start, end) is
	 * such a one.  0: not glibc. */
	uint64_t internal_start, internal_end;
};

/* described: what a user has described, which outlives the plan, or NULL; path: of the object.  with_windows: for jumps, for which
 * all of its code is looked through; without, those of the sites mean nothing.  0 (an object without allocator functions has an
 * empty plan), -ENOEXEC, -ENOMEM. */
int plan_make(int elf_fd, struct described *described, const char *path, bool with_windows, struct plan *ret_plan);
void plan_fini(struct plan *plan);
size_t plan_memory(const struct plan *plan);        /* beyond the struct itself */

#endif
