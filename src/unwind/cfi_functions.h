/* Finds the function of an address in a sorted table of their starts.
 *
 * A search by halves of 60,000 starts waits for memory a dozen times; here a bucket of the address space says
 * where to look, and halves are only needed where functions crowd. */
#ifndef ALLOCWATCH_UNWIND_CFI_FUNCTIONS_H
#define ALLOCWATCH_UNWIND_CFI_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* One entry of the search table of an .eh_frame_hdr: the start of a function's code, sorted. */
struct cfi_start {
	uint64_t start, entry;             /* ELF virtual addresses, of the code and of its FDE */
};

struct cfi_functions {
	const struct cfi_start *starts;
	uint32_t count;
	uint64_t first;                    /* the first start */
	unsigned int shift;                /* a bucket is 1 << shift bytes of code */
	uint32_t buckets;                  /* at most as many as functions */
	uint32_t *before;                  /* by bucket, and one more: functions that start before it */
};

/* The table must live as long.  0 or -ENOMEM. */
int cfi_functions_init(struct cfi_functions *functions, const struct cfi_start *starts, uint32_t count);
void cfi_functions_fini(struct cfi_functions *functions);
/* The last function that starts at or before an address; NULL before all. */
const struct cfi_start *cfi_functions_find(const struct cfi_functions *functions, uint64_t address);
size_t cfi_functions_memory(const struct cfi_functions *functions);

#endif
