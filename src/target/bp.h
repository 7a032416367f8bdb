/* Breakpoints: an int3 over the first byte of an instruction, whose displaced copy lies in the
 * resident code, so that the int3 never leaves the text while threads run.
 *
 * The original byte comes from the ELF file and is compared with memory before planting; a difference
 * is another tracer's and is reported, not overwritten. */
#ifndef ALLOCWATCH_TARGET_BP_H
#define ALLOCWATCH_TARGET_BP_H

#include "arch/arch.h"
#include "target/target.h"

struct breakpoint {
	raddr address;
	struct breakpoint *hash_next;
	uint8_t original;
	bool ambiguous;                /* address + 1 is also reached by other means: ask si_code */
	bool planted;
	bool was_planted;              /* at some time: a copy of the memory may have it still */
	uint32_t module;
	raddr slot;                    /* the displaced copy */
	uint8_t text[15];              /* the instruction as the ELF file has it, and what follows */
	uint32_t text_len;
	void *site;                    /* the probe's; NULL: the loader's hook */
};

/* The breakpoint at an address, or NULL. */
struct breakpoint *bp_find(const struct target *target, raddr address);

/* Prepares one: reads `text` (the instruction's bytes from the ELF file, at most 15), gets a slot and
 * writes the displaced copy.  Not planted yet.  -EEXIST (*ret_bp is it), -ENOTSUP (the instruction
 * cannot be displaced, with *ret_reason), -ENOSPC, -EBUSY: memory differs from the file. */
int bp_prepare(struct target *target, raddr address, uint32_t module, const uint8_t *text, size_t text_len,
	       struct breakpoint **ret_bp, const char **ret_reason);
/* Takes over one that a tracer which is dead has planted; -EEXIST, -ENOSPC, -ENOMEM. */
int bp_adopt(struct target *target, raddr address, uint32_t module, const uint8_t *text, size_t text_len,
	     raddr slot);
/* Writes the int3.  The handler must be installed. */
int bp_plant(struct target *target, struct breakpoint *bp);
/* Puts its original byte back, and forgets it; a thread that stands at the displaced copy goes on from there.  0 or negative errno. */
int bp_take_out(struct target *target, struct breakpoint *bp);
/* Puts all original bytes back where ours still stand.  Returns how many could not be. */
unsigned bp_restore_all(struct target *target);
/* Counts those whose int3 is missing, and plants them again where the original byte stands. */
unsigned bp_verify(struct target *target, bool replant);
/* The module is gone, and its memory with it. */
void bp_drop_module(struct target *target, uint32_t module);
void bp_drop_all(struct target *target);

/* Puts original bytes into a copy of the target's memory. */
void bp_hide(const struct target *target, raddr at, void *buf, size_t len);

#endif
