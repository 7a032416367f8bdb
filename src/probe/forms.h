/* Which form of function has asked for a block: malloc, new or new[].
 *
 * Told by the stack of the call, without a stop of its own: operator new is among the callers, and what its caller has called,
 * operator new[] it may be, which goes on in operator new by a jump, stands in that caller's call instruction. */
#ifndef ALLOCWATCH_PROBE_FORMS_H
#define ALLOCWATCH_PROBE_FORMS_H

#include "base/reader.h"
#include "base/vec.h"
#include "model/misuses.h"
#include "model/module.h"
#include "model/stack.h"

#include <stddef.h>
#include <stdint.h>

struct form_function {
	raddr start;
	uint64_t size;                 /* 0: unknown */
	uint32_t module;
	uint32_t form;                 /* enum heap_form */
};

/* Stacks whose answer is kept, by the lowest bits of their number. */
#define FORMS_KEPT 2048

struct forms {
	VEC_OF(struct form_function) functions;
	struct { uint32_t stack, forms; } kept[FORMS_KEPT];     /* STACK_ROOT: none */
};

/* 0 or -ENOMEM. */
int forms_add(struct forms *forms, const struct form_function *function);
void forms_drop_module(struct forms *forms, uint32_t module);
void forms_fini(struct forms *forms);

/* Of an allocation with this stack, from the allocator's function on outwards: FORM_MALLOC, or what operator new it may have been,
 * several bits where that cannot be told (the call was a jump, or went through a register).  code: reads the process. */
uint32_t forms_of_stack(struct forms *forms, const struct stack_table *stacks, const struct module_map *map,
			const struct reader *code, uint32_t stack);
size_t forms_memory(const struct forms *forms);         /* beyond the struct itself */

#endif
