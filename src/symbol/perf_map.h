/* The text in which a process tells what it has compiled, /tmp/perf-PID.map (tools/perf/Documentation/jit-interface.txt of
 * the kernel): a line "START SIZE NAME" for each piece of code, both numbers hexadecimal, appended as they are made. */
#ifndef ALLOCWATCH_SYMBOL_PERF_MAP_H
#define ALLOCWATCH_SYMBOL_PERF_MAP_H

#include "symbol/jit_table.h"

/* Of a longer file its end is read. */
#define PERF_MAP_BYTES_MAX (256ULL << 20)

/* Lines that are none are passed over, as is a last one that is not yet whole.  0; negative errno: of reading, -ENOMEM. */
int perf_map_read(int fd, struct jit_table *table);

#endif
