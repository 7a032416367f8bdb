/* Names of code that a process has made while it runs, from the file in which it tells them: a perf map (perf_map.h) or a
 * jitdump (jitdump.h).  The file is hostile, and is still being written. */
#ifndef ALLOCWATCH_SYMBOL_JIT_NAMES_H
#define ALLOCWATCH_SYMBOL_JIT_NAMES_H

#include "symbol/symbol.h"

struct jit_names;

/* Takes fd over in any case.  What it is, it says itself; one that is neither has no names.  Negative errno: of reading,
 * -ENOMEM. */
int jit_names_open(int fd, struct jit_names **ret);
void jit_names_free(struct jit_names *names);                 /* accepts NULL */
/* address: at run time; is_call: it is a return address.  1 and the location, 0: nothing is known of it, -ENOMEM. */
int jit_names_resolve(struct jit_names *names, uint64_t address, bool is_call, struct symbol_location *ret);

#endif
