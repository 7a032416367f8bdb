/* This process as its own subject: its modules, its stack recorded, and what others say about it. */
#ifndef ALLOCWATCH_TESTS_UNWIND_FIXTURE_H
#define ALLOCWATCH_TESTS_UNWIND_FIXTURE_H

#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define PCS_MAX 512u
#define RECORDED_MAX 262144u
#define RECORDED_BELOW 256u

struct subject {
	struct module_map map;
	struct stack_table *stacks;
	struct unwinder *unwinder;
};

/* A copy of registers and of the stack above them. */
struct recorded {
	struct arch_regs regs;
	raddr start;                       /* of bytes[0] */
	size_t len;
	uint8_t bytes[RECORDED_MAX];
	raddr other_start;                 /* a piece of another stack, when other_len is not 0 */
	size_t other_len;
	uint8_t other[65536];
	unsigned int reads;                /* calls of the reader */
	raddr end;                         /* what the reader refuses to go beyond; 0: the bytes' end */
};

struct pcs {
	raddr at[PCS_MAX];
	uint16_t kind[PCS_MAX];            /* enum frame_kind */
	unsigned int count;
	enum truncation truncated;
};

/* The unwinder of this process, with libunwind or without; fails the test when it cannot be made. */
void subject_init(struct subject *subject);
void subject_fini(struct subject *subject);

/* The caller got the context by getcontext and is frame 0. */
void record_context(struct recorded *recorded, const ucontext_t *context);
/* Adds what is above another stack pointer. */
void record_other(struct recorded *recorded, raddr sp);
struct reader recorded_reader(struct recorded *recorded);

struct pcs unwind_recorded(struct subject *subject, struct recorded *recorded, uint32_t max_frames);
struct pcs pcs_of_node(const struct subject *subject, uint32_t node);

/* What libunwind says of the same context, as a list like ours.  In a file of its own: the local and the
 * remote libunwind have the same names. */
unsigned int local_libunwind(ucontext_t *context, uint64_t *pcs, unsigned int max);

#endif
