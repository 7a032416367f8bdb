/* The modules of a process, from its maps file, for tests and benchmarks of the unwinder.
 * The daemon has its own, careful way to them; this one is for processes that hold still. */
#ifndef ALLOCWATCH_TESTS_PROCESS_MAP_H
#define ALLOCWATCH_TESTS_PROCESS_MAP_H

#include "model/module.h"
#include "unwind/unwind.h"

#include <sys/types.h>

/* Adds what is mapped now and not yet in the map, in place of what was there before.  New modules get their CFI in `unwinder`
 * when it is not NULL.  0 or negative errno. */
int process_map_update(pid_t pid, struct module_map *map, struct unwinder *unwinder);
/* Opens the file of a module, the vdso as a copy in memory; -errno. */
int process_map_open(pid_t pid, const struct module_map *map, uint32_t module);

#endif
