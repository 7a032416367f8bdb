/* What the files of plans share; nobody else includes it. */
#ifndef ALLOCWATCH_PROBE_PLAN_PRIVATE_H
#define ALLOCWATCH_PROBE_PLAN_PRIVATE_H

#include "arch/arch.h"
#include "probe/elf_code.h"
#include "probe/plan.h"

/* Where brk finds the break; without that it is not watched.  Before functions have parts, as the next one. */
void plan_find_break(struct plan *plan, struct elf_code *code);
/* The forms of operator new; those that only hand on what malloc returns, which tells of it, are probed no more.  0 or -ENOMEM. */
int plan_find_forms(struct plan *plan, struct elf_code *code, const char *path);
void plan_find_internal_range(struct plan *plan, struct elf_code *code);
/* Of the C library alone. */
void plan_find_unmaps(struct plan *plan, struct elf_code *code);

/* 0, -ENOMEM, or -ENOTSUP with *ret_reason: as arch_decode_function. */
int plan_decode(struct elf_code *code, uint64_t vaddr, struct arch_function *ret, const char **ret_reason);

/* plan_windows.c: where there is room for a jump to the ring engine's code.  A site has no window where there is none. */

/* Of an instruction of `length` bytes that leaves its function. */
void plan_set_exit_window(struct plan_site *site, struct elf_code *code, uint64_t vaddr, uint32_t length,
			  const struct arch_room *room);
/* Of an entry; one that is more than that has none: there are two places for one record. */
void plan_set_entry_window(struct plan_site *site, struct elf_code *code, uint64_t vaddr,
			   const struct arch_function *decoded);
bool plan_find_entry_window(struct plan_window *window, struct elf_code *code, uint64_t vaddr,
			    const struct arch_function *decoded);
/* Once all sites are known: those go that are in each other's way, or that a branch leads into. */
void plan_check_windows(struct plan *plan, struct elf_code *code);

#endif
