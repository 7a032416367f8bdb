/* The file in which a process tells what it has compiled, with its source lines: jit-PID.dump, of which it maps a page as
 * code (tools/perf/Documentation/jitdump-specification.txt of the kernel).  Of this machine's byte order. */
#ifndef ALLOCWATCH_SYMBOL_JITDUMP_H
#define ALLOCWATCH_SYMBOL_JITDUMP_H

#include "symbol/jit_table.h"

#include <stdbool.h>

/* Limits.  Records behind the first are not read; code that is said to have moved is looked for in so many steps, in all
 * moves together; a line in so many of the lines of its piece of code. */
#define JITDUMP_RECORDS_MAX (4u << 20)
#define JITDUMP_STEPS_MAX (64u << 20)
#define JITDUMP_LINES_MAX 65536

bool jitdump_is(int fd);
/* A record that is not whole, or says what cannot be, is the last.  0; negative errno: of reading, -ENOMEM. */
int jitdump_read(int fd, struct jit_table *table);
/* The source line of an address in an entry of this file, if it is told: 0, file is filled in (cut to the space) and *ret_line
 * set; or -ENOENT. */
int jitdump_line(int fd, const struct jit_entry *entry, uint64_t pc, char *file, size_t space, uint32_t *ret_line);

#endif
