/* What the files of plans share; nobody else includes it. */
#ifndef ALLOCWATCH_PROBE_PLAN_PRIVATE_H
#define ALLOCWATCH_PROBE_PLAN_PRIVATE_H

#include "probe/elf_code.h"
#include "probe/plan.h"

/* Where brk finds the break; without that it is not watched.  Before functions have parts, as the next one. */
void plan_find_break(struct plan *plan, struct elf_code *code);
/* The forms of operator new; those that only hand on what malloc returns, which tells of it, are probed no more.  0 or -ENOMEM. */
int plan_find_forms(struct plan *plan, struct elf_code *code, const char *path);
void plan_find_internal_range(struct plan *plan, struct elf_code *code);

#endif
