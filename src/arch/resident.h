/* Code that stays in the target, so that it lives on when its tracer dies; and code that is put there
 * for a moment.  Only bytes are made here: target/ knows where they go and how they get there.
 *
 * An area is memory of the target, readable and executable, that begins with a resident_header.  The
 * first area, the main one, also holds the SIGTRAP handler; further areas are chained to it.  Every
 * area has a table of breakpoints and the slots (see arch_displace) their instructions run in:
 *
 *	header | handler and restorer (main area only) | table of entries | slots
 *
 * What the handler does with a SIGTRAP:
 *  - an int3 that the table knows: the thread goes on in the slot;
 *  - an int3 it does not know and pc inside an area: the tracer had already moved the thread and then
 *    died before it continued it; nothing is left to do;
 *  - all else is the program's own and goes where it would have gone without us: a handler, nowhere, or
 *    the end of the process by SIGTRAP at the same pc.  (One difference: a program's own SA_RESETHAND
 *    is not obeyed here; a tracer sees to it.)
 *
 * It uses four words of stack, calls nothing, writes nothing but the signal frame's pc and, for a handler of the program's,
 * where that returns to, and may run in any number of threads, one inside the other. */
#ifndef ALLOCWATCH_ARCH_RESIDENT_H
#define ALLOCWATCH_ARCH_RESIDENT_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define RESIDENT_MAGIC "allocwatch.area4"      /* 16 bytes, no NUL; the last one is the version */
#define RESIDENT_MAGIC_SIZE 16

/* The handler reads it, the tracer alone writes it, in words of 8 aligned bytes. */
struct resident_header {
	uint8_t magic[RESIDENT_MAGIC_SIZE];
	uint64_t next_area;            /* address, 0: the last one */
	uint32_t entry_count;
	uint32_t area_size;            /* bytes, header and slots included */
	/* The program's own action for SIGTRAP; in the main area only. */
	uint64_t old_handler;          /* 0 SIG_DFL, 1 SIG_IGN, else an address */
	uint64_t old_flags;
	uint64_t old_restorer;
	uint64_t old_mask;
	uint64_t chain_mask;           /* blocked while the program's handler runs: old_mask without
					* SIGTRAP, which must never be blocked */
	uint32_t table_offset;         /* of the entries, from the header */
	uint32_t slots_offset;
	uint32_t entry_capacity;       /* as many slots */
	uint32_t tracer;               /* who has put a time there and is to renew it; 0: nobody is */
	uint64_t note;                 /* the tracer's own; the handler does not look at it.  A time of
					* CLOCK_MONOTONIC, ns: until then the process is on its way
					* from one tracer to another, or traced without ptrace */
	uint64_t tracer_namespace;     /* inode of the PID namespace in which that is the tracer's number; 0: not known */
	uint64_t masks;                /* address of a struct resident_masks, 0: none; the handler does not look at
					* it, either */
	uint64_t begun;                /* address of an area or of masks that is not linked yet, or not any more, 0:
					* none: for who finds it there; 1: a descriptor of the ring's */
};

/* A thread may look for an entry at any moment.  To add: write it behind the last one, then raise
 * entry_count.  To remove: copy the last one over it in the order breakpoint = 0, slot, breakpoint,
 * then lower entry_count. */
struct resident_entry {
	uint64_t breakpoint;           /* address of the int3 */
	uint64_t slot;                 /* address of its displaced instruction */
	/* What stood there, and behind it: for who takes it out when the object's file is gone by then.  The handler
	 * does not look at it. */
	uint8_t text[15];
	uint8_t text_len;
};

/* In which threads the tracer took SIGTRAP out of the mask, noted before it did: in a mapping of its own, which is made
 * for the first of them. */
struct resident_mask {
	uint32_t tid;                  /* 0: none (any more) */
	uint32_t start_time;           /* low part of field 22 of its stat: a number may be used again */
	uint64_t thread_pointer;       /* by which a copy of it that a fork made is known */
};

#define RESIDENT_MASKS_MAX 65534           /* with their head a megabyte */

struct resident_masks {
	uint8_t magic[RESIDENT_MAGIC_SIZE];
	uint32_t pid, start_time;      /* whose threads they are: a copy of the memory has a copy of this */
	uint32_t count;                /* of those that were ever used */
	uint32_t reserved;
};                                     /* and behind it the notes */
#define RESIDENT_MASKS_SIZE (sizeof(struct resident_masks) + RESIDENT_MASKS_MAX * sizeof(struct resident_mask))

/* Fills in the part of a header that says where things are in an area of `size` bytes; the rest is
 * zero.  `size` is cut to a multiple of 8.  0, or -ENOSPC when not even one slot has room. */
int resident_layout(uint32_t size, bool is_main, struct resident_header *ret_header);

/* The handler and restorer of the main area; they lie directly behind the header. */
struct resident_code {
	const uint8_t *bytes;
	uint32_t length;
	uint32_t handler, restorer;    /* offsets from the header's start */
};
struct resident_code resident_code(void);

/* --- one system call by a thread of the target --- */

struct arch_stub_call {
	uint64_t number;
	uint64_t args[6];
	const void *data;              /* copied behind the code, readable by the call; may be NULL */
	uint32_t data_length;
	int data_arg;                  /* index of the argument that gets its address; -1: none */
};

struct arch_stub {
	uint32_t length;               /* code and data */
	uint32_t syscall_offset;       /* of the system call instruction */
	uint32_t after_offset;         /* of the one behind it: the result is in the return register */
};

#define ARCH_STUB_MAX 320              /* most bytes of a stub without its data */

/* Writes code into out[0..space) which, at address `at`, makes one system call, gives all general
 * registers and flags the values in `regs` and jumps to the pc in there.  The tracer only sets the
 * pc of a thread stopped with those registers to `at` (and sees to it that the kernel restarts no
 * system call); from then on the thread needs nobody: should the tracer die, it ends the stub and goes on
 * as if nothing had happened.  The stack is valid at every instruction, the red zone untouched.
 * 0, or -ENOSPC. */
int arch_build_stub(raddr at, const struct arch_stub_call *call, const struct user_regs_struct *regs,
		    uint8_t *out, size_t space, struct arch_stub *ret_stub);

#endif
