/* Evaluates DWARF expressions of unwind tables (DWARF 5, 2.5 and 6.4.2).
 *
 * Input is hostile: at most EXPRESSION_STEPS_MAX operations run, on a stack of EXPRESSION_DEPTH. */
#ifndef ALLOCWATCH_UNWIND_EXPRESSION_H
#define ALLOCWATCH_UNWIND_EXPRESSION_H

#include "arch/arch.h"
#include "unwind/stack_copy.h"

#include <elfutils/libdw.h>

#define EXPRESSION_STEPS_MAX 1024u
#define EXPRESSION_DEPTH 64u

struct expression_context {
	const struct arch_regs *regs;
	struct stack_copy *memory;
	uint64_t cfa;                      /* what DW_OP_call_frame_cfa pushes */
	uint64_t bias;                     /* added to DW_OP_addr */
};

enum expression_kind {
	EXPRESSION_ADDRESS,                /* the value stands in memory there */
	EXPRESSION_VALUE,                  /* this is the value */
};

/* 0; -EINVAL: a bad expression; -ENOTSUP: an operation that has no meaning in unwind tables; -EFAULT: memory
 * that cannot be read; -ELOOP: too many steps. */
int expression_evaluate(const Dwarf_Op *ops, size_t count, const struct expression_context *context,
			enum expression_kind *ret_kind, uint64_t *ret_value);

#endif
