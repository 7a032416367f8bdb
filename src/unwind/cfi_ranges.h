/* The plain rows that libdw has made of one module, by the range of addresses that each holds for.
 *
 * Several return addresses of a function mostly share a row: making one costs libdw some thousand instructions,
 * finding it here about two hundred. */
#ifndef ALLOCWATCH_UNWIND_CFI_RANGES_H
#define ALLOCWATCH_UNWIND_CFI_RANGES_H

#include "base/vec.h"
#include "unwind/cfi_rows.h"

#include <stddef.h>
#include <stdint.h>

#define CFI_RANGES_MAX (1u << 20)      /* of one module; rows of further ranges are made each time */

/* One entry of the search table of an .eh_frame_hdr: the start of a function's code, sorted. */
struct cfi_start {
	uint64_t start, entry;
};

struct cfi_ranges {
	const struct cfi_start *functions;
	uint32_t function_count;
	uint32_t *first;               /* by function: its first range + 1, 0 none */
	VEC_OF(struct cfi_range) ranges;
};

struct cfi_range {
	uint64_t start, end;
	struct cfi_row row;
	uint32_t next;                 /* as `first` */
};

/* The table must live as long.  0 or -ENOMEM. */
int cfi_ranges_init(struct cfi_ranges *ranges, const struct cfi_start *functions, uint32_t count);
void cfi_ranges_fini(struct cfi_ranges *ranges);

/* The row of an address, or NULL. */
const struct cfi_row *cfi_ranges_find(const struct cfi_ranges *ranges, uint64_t address);
/* Remembers the row of an address, which holds up to `end`; without memory it does not.  Where a row begins
 * is not asked: libdw (0.188) tells too low a start after a restore_state. */
void cfi_ranges_add(struct cfi_ranges *ranges, uint64_t address, uint64_t end, const struct cfi_row *row);
size_t cfi_ranges_memory(const struct cfi_ranges *ranges);

#endif
