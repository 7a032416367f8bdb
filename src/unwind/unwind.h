/* From registers and a reader to a stack of frames.
 *
 * Takes registers and a reader, never a thread: a test hands it recorded bytes.  Rows of the CFI
 * tables are cached per address; a row that is a DWARF expression is evaluated in full; code without
 * CFI is tried as a signal's trampoline, by its code and by libunwind, and by frame pointer.  Never stops, resumes or waits for
 * anything. */
#ifndef ALLOCWATCH_UNWIND_UNWIND_H
#define ALLOCWATCH_UNWIND_UNWIND_H

#include "arch/arch.h"
#include "base/reader.h"
#include "model/module.h"
#include "model/stack.h"

#include <stdbool.h>
#include <stdint.h>

struct unwinder;

struct unwind_counters {
	uint64_t stacks, frames;
	uint64_t row_misses;           /* rows made from CFI */
	uint64_t expression_steps;     /* steps by DWARF expression */
	uint64_t trampoline_steps, frame_pointer_steps;
	uint64_t code_rows;                /* made of code that no table knows */
	uint64_t truncated[TRUNCATED_COUNT];   /* [TRUNCATED_LIMIT] is not a fault */
};

/* map and stacks outlive the unwinder. */
struct unwinder *unwinder_new(const struct module_map *map, struct stack_table *stacks);
const struct stack_table *unwinder_stacks(const struct unwinder *unwinder);
void unwinder_free(struct unwinder *unwinder);                /* accepts NULL */

/* Bytes of the tables of all modules; Debian's libLLVM-14 has 8 MiB, with their index. */
#define UNWIND_TABLES_MAX ((size_t)512 << 20)
/* Makes a module's CFI known.  elf_fd is duplicated; .eh_frame and .debug_frame are opened here,
 * so call it while nothing is stopped.  0, or negative errno: the module then has no CFI; -ENOSPC: for UNWIND_TABLES_MAX. */
int unwinder_add_module(struct unwinder *unwinder, uint32_t module, int elf_fd);
void unwinder_remove_module(struct unwinder *unwinder, uint32_t module);

/* Another one after each of both; and when a module was made known last (0: it is not), with what came of that.  By these another unwinder
 * is made to know the same. */
uint64_t unwinder_generation(const struct unwinder *unwinder);
struct unwind_module {
	uint64_t since;
	int error;
};
struct unwind_module unwinder_module(const struct unwinder *unwinder, uint32_t module);
/* False: there are more functions that never return than it keeps, and which of them it knows hangs on the order. */
bool unwinder_knows_all_endings(const struct unwinder *unwinder);

/* How much was read of a stack. */
struct unwind_reach {
	uint32_t bytes;                /* from its stack pointer */
	uint32_t other_bytes;          /* and from other_start, when it goes on on another stack; else 0 */
	raddr other_start;
};

/* What a reader cannot know (-EAGAIN) is taken to be unreadable, but nothing is kept of what that has led to: such a stack may be another one
 * when all can be read.
 * Interns the stack of `regs` (pc in frame 0 is exact, not a return address), innermost first, at
 * most max_frames frames plus a FRAME_TRUNCATED one when it goes on or breaks.  Returns the stack's
 * node, always: at the worst a stack that says why it is short.
 * *ret_reach, when not NULL: to learn the next read. */
uint32_t unwinder_unwind(struct unwinder *unwinder, const struct arch_regs *regs,
			 const struct reader *reader, uint32_t max_frames, struct unwind_reach *ret_reach);

/* Why the stack that was unwound last is short; TRUNCATED_NONE: it is whole. */
enum truncation unwinder_last_reason(const struct unwinder *unwinder);

/* Where the frames of a stack stand, innermost first: what is called by whom, on which stack.  Nothing is
 * interned. */
struct unwind_frame {
	raddr pc;                      /* a return address, but for the innermost and `interrupted` ones */
	raddr sp;                      /* behind the return address that led to it */
	bool interrupted;              /* by a signal, whose handler is what it seems to have called */
};
#define UNWIND_CHAIN_MAX 256u

/* Takes at most UNWIND_CHAIN_MAX frames, up to the first with an sp above `until`.  Returns how many, at least one;
 * *ret_whole: the last one is the outermost of its stack. */
uint32_t unwinder_chain(struct unwinder *unwinder, const struct arch_regs *regs, const struct reader *reader,
			raddr until, struct unwind_frame *frames, bool *ret_whole);

/* Of a frame whose pc is exact: where that is in code which stands for a place in the text, the registers are made those of that place.
 * stack: to read what the frame has there. */
typedef void unwind_translate(void *context, struct arch_regs *regs, const struct reader *stack);
void unwinder_set_translation(struct unwinder *unwinder, unwind_translate *translate, void *context);

struct unwind_counters unwinder_counters(const struct unwinder *unwinder);
size_t unwinder_memory(const struct unwinder *unwinder);

#endif
