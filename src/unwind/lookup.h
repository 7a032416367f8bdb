/* What is known of a pc: the row of its unwind table and its interned frame. */
#ifndef ALLOCWATCH_UNWIND_LOOKUP_H
#define ALLOCWATCH_UNWIND_LOOKUP_H

#include "unwind/unwinder.h"

/* Returns the row and *ret_frame; NULL with *ret_reason when there is none and the stack ends here.
 * exact: pc is the instruction itself.  The row is good until the next look-up. */
const struct cfi_row *lookup_pc(struct unwinder *unwinder, raddr pc, bool exact, uint32_t *ret_frame,
				enum truncation *ret_reason);

/* Whether a return address was written there by who made the stack (makecontext, and its __start_context): it is the
 * first byte of a function, and what precedes that is no call.  Such a row is of kind NONE. */
bool lookup_is_bottom(struct unwinder *unwinder, uint32_t module, raddr pc);

/* Notes how to go on from a pc about which the tables say nothing. */
void lookup_set_kind(struct unwinder *unwinder, raddr pc, bool exact, const struct cfi_row *row,
		     enum cfi_row_kind kind);

#endif
