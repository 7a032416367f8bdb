/* The memory that a program's allocator calls are written into and a tracer reads from: its layout alone.
 *
 *	control page | data | the same data mapped again, so that a record is in one piece wherever it begins
 *
 * Positions are bytes ever written, so they never repeat; a record's place is its position modulo the data's size.  Records are
 * multiples of RING_UNIT.  A writer
 *  - reserves by moving `head` (compare and exchange): the order of reservations is the order of truth between threads;
 *  - marks the record as open, which says how long it is and whose, and fills it in;
 *  - marks it as committed, last.
 * A mark holds the position and the ring's key, so nothing that lies there from an earlier round, nor the contents of a stack,
 * can be taken for one.  Only the reader moves `tail`.  The program may write anything at any time: the reader trusts nothing.
 *
 * Full is when a record does not fit between head and tail + size.  Then a writer waits until `wait_ticks` have
 * passed, and turns the ring to RING_STALLED: nobody waits any more, nothing is recorded but counted (`lost`), until the reader turns it on again.  So a
 * program whose tracer has died or stopped is held up once, and runs on.
 *
 * A call of the loader's hook is a struct ring_call as well.  Its writer waits until `hook_served` is behind it, so that nobody calls
 * what was loaded before the reader knows of it: for `wait_ticks`, too, and once, when nobody serves.  So does that of a call that
 * executes a program.
 *
 * Offsets are checked where the stub's assembly uses them (arch/x86_64_ring_site.c). */
#ifndef ALLOCWATCH_RING_LAYOUT_H
#define ALLOCWATCH_RING_LAYOUT_H

#include <stdint.h>

#define RING_MAGIC "allocwatch.ring8"          /* 16 bytes, no NUL; the last one is the version */
#define RING_MAGIC_SIZE 16
#define RING_CONTROL_SIZE (4096u + RING_SLOTS * 64u + RING_LENGTHS * 4u + RING_FAMILIES * RING_DRAWS * 64u + RING_FILTER_SIZE + RING_SHAPES * 16u)
#define RING_UNIT 64u
#define RING_SIZE_MIN (1u << 20)
#define RING_STACK_MAX 262144u                 /* most bytes of one stack in a record; two have room in the smallest ring */
#define RING_WITHIN_MAX 65536u                 /* in that of a call within another one */

enum ring_state { RING_OFF, RING_ON, RING_STALLED };
enum ring_mark { RING_OPEN = 1, RING_COMMITTED = 2 };  /* beside (position ^ key), whose low bits are zero */

/* How much stack a call's record is to have is learned for the place that it is made from: its return address, and how far from the
 * end of its stack it is, which together tell the way that led there but for few.  The outermost frame is as far from the end on each
 * thread's stack, and further on the program's first one, behind the environment: so which kind of stack it is belongs to
 * the distance, in bits that are 0 in a number of words.  All is made into a key: the upper half of
 *	(return address ^ distance << RING_KEY_SHIFT) * RING_KEY_FACTOR
 * whose upper bits are a set of entries, the next 16 its tag in that. */
#define RING_LENGTHS 16384u                    /* a power of two */
#define RING_LENGTHS_WAYS 2u                   /* entries of a set; they are read in one piece */
#define RING_KEY_FACTOR 0x9e3779b97f4a7c15ULL
#define RING_KEY_SHIFT 24
#define RING_KEY_SET_SHIFT 19
#define RING_KEY_TAG_SHIFT 3

#define RING_SLOTS 1024u                       /* a power of two; by a thread's lowest bits */

#define RING_PENDING_MAX 7

#define RING_FAMILIES 9u                       /* of functions: malloc's is the first, the others are allocators that users describe */
#define RING_DRAWS 4096u                       /* a power of two; by a thread's lowest bits */
#define RING_DRAWS_SHIFT 12
#define RING_DRAW_TAG 0x8000u                  /* set in every thread's tag */
#define RING_DRAW_TAG_SHIFT 48
#define RING_LOGARITHMS_SHIFT 7
#define RING_LOGARITHMS ((1u << RING_LOGARITHMS_SHIFT) + 1)
#define RING_LOGARITHM_BITS 16                 /* behind the point */
/* A block's place in the filter: two numbers of 16 bits from its address, the lower one twice and the upper one.  So 8 KiB of addresses
 * share a cache line, and the place is had without an instruction that changes flags. */
#define RING_FILTER_SIZE (3u << 16)
#define RING_FILTER_LOW 8
#define RING_FILTER_HIGH 24
#define RING_FILTER_FULL 0xc0u                 /* such a count stays as it is */
#define RING_SHAPES 4096u                      /* by a site's number; what has a higher one has none */

/* The calls that allocate and have not returned, of one of the threads that the slot is for.  What another thread or a call that was
 * left leaves here makes records longer; what has no room shows to the reader, who knows all of them. */
struct ring_slot {
	uint64_t thread;
	uint64_t sp[RING_PENDING_MAX];         /* 0: none */
};

/* With sampling: of the thread that had it last.  `countdown` is one word with the thread's tag above it (its bits behind those
 * that chose the place), so that no thread goes on with what another one has drawn. */
struct ring_draw {
	uint64_t countdown;                    /* bytes to the next one that is sampled; it is drawn when it is another's */
	uint64_t sp;                           /* the outermost call that allocates and has not returned; 0: none */
	uint64_t return_address;               /* which stands there while it is pending */
	uint32_t site;
	uint32_t fate;                         /* enum ring_fate */
	uint64_t out;                          /* its result is stored here, and 0 returned; 0: its result is returned.  Without sampling:
						* of the last such call, with sp, and return_address is out ^ sp ^ thread */
	uint64_t reserved[3];
};
/* Of a call with sampling: its return is passed over; is recorded, with a block; is recorded since it resizes a sampled block. */
enum ring_fate { RING_PASSED, RING_SAMPLED, RING_OLD_ALONE };

/* What a call asks for, and which block may go, where its site (RING_TOLD) has no room to say it.  Arguments are 0 to 2;
 * RING_NO_ARGUMENT: none. */
struct ring_shape {
	uint64_t fixed_size;                   /* bytes; 0: an argument says them */
	uint8_t size_argument, count_argument, old_argument;
	uint8_t out_argument;                  /* where the result is stored */
	uint32_t family;
};

/* Bytes below the program's first stack, into which it grows: the kernel leaves that free at least (mmap_base(): 128 MiB). */
#define RING_FIRST_STACK_ROOM (64u << 20)

#define RING_HOLES_UNKNOWN 2u

struct ring_control {
	uint8_t magic[RING_MAGIC_SIZE];
	/* Set by the reader. */
	uint64_t size;                         /* of the data, bytes: a power of two */
	uint64_t key;
	uint64_t wait_ticks;                   /* of the time stamp counter */
	uint32_t state;                        /* enum ring_state; writers turn it from on to stalled */
	uint32_t may_yield;                    /* our code may call process_vm_readv, futex and gettid */
	/* A thread is told by the word at this distance from its thread pointer, as far as the mask goes. */
	uint64_t thread_offset, thread_mask;
	/* Stacks that are mapped up to their end while a thread runs on them: of a thread, from the address in the word
	 * at this distance from its thread pointer up to the thread pointer; 0: that is not known.  And the program's
	 * first one. */
	uint64_t stack_offset;
	uint64_t main_stack, main_stack_end;
	uint32_t unknown_length;               /* bytes of stack to hand over from where nothing is known */
	/* Not 0: such a stack may have a page in it that cannot be read, with something running below that, so that none of them is
	 * certainly mapped but for the page that is run on.  RING_HOLES_UNKNOWN: that has not been looked at yet; who sees one meanwhile
	 * writes 1 over it. */
	uint32_t has_holes;
	/* One sample for so many bytes, by chance: each byte that is asked for is drawn with this probability, and a block is sampled
	 * with its first one.  What a call asks for is 1 byte at least.  0: all is recorded. */
	uint64_t sample_bytes;
	uint64_t hook_served;                  /* calls of the loader's hook that were recorded before this position were served; its
						* lower half is a futex */
	uint32_t families;                     /* that there are; a call of one within a call of another is drawn, too */
	uint8_t padding1[128 - 116];
	uint64_t head;                         /* writers */
	uint8_t padding2[56];
	uint64_t tail;                         /* the reader, now and then */
	uint8_t padding3[56];
	/* Writers, seldom. */
	uint64_t lost;                         /* calls that are not recorded: given up after a wait, or made while it is stalled */
	uint64_t waits;                        /* calls that had to wait */
	uint64_t draws;                        /* how often something was drawn: the generator's state */
	uint64_t hook_left;                    /* behind the last record of the loader's hook that was not waited for to the end */
	uint32_t hook_waits;                   /* set by the reader: who is there waits; turned off by whoever waited in vain */
	uint8_t padding4[512 - 292];
	/* sample_bytes * -ln(x) from x = 1/2 to x = 1, with RING_LOGARITHM_BITS behind the point; between them it is a line. */
	uint64_t logarithms[RING_LOGARITHMS];
	uint8_t padding5[4096 - 512 - RING_LOGARITHMS * 8];
	struct ring_slot slots[RING_SLOTS];
	/* Set by the reader: a tag, and in the upper half how much stack to hand over, in RING_UNITs. */
	uint32_t lengths[RING_LENGTHS];
	struct ring_draw draws_of[RING_FAMILIES][RING_DRAWS];
	/* How many sampled blocks live whose address comes to this place: counted up before the program has the block, and down by the
	 * reader when the block is gone.  0: a free there is of no sampled one. */
	uint8_t filter[RING_FILTER_SIZE];
	struct ring_shape shapes[RING_SHAPES]; /* set by the reader before their sites are planted */
};

/* In `site`. */
#define RING_RETURN 0x80000000u                /* a struct ring_return */
#define RING_ALLOCATES 0x40000000u             /* a call that is pending until it returns */
#define RING_STORED 0x40000000u                /* of a return: the result is what the call has stored, and 0 was returned */
#define RING_UNSAMPLED 0x20000000u             /* what the call makes is not sampled: only the old block counts */
#define RING_RESIZES 0x10000000u               /* the first argument, or the one that is told, is a block that may go */
#define RING_EXECUTES RING_RESIZES             /* of a call that allocates nothing: its thread is about to execute a program */
#define RING_COUNT_SHIFT 26                    /* which argument the size is multiplied by; RING_NO_ARGUMENT: none */
#define RING_SIZE_SHIFT 24                     /* which one the size is, of a call that only frees the block; RING_TOLD */
#define RING_NO_ARGUMENT 3u
#define RING_TOLD 3u                           /* of a call that allocates: that stands in the control page's shapes */
#define RING_NESTED 0x00800000u                /* with RING_UNSAMPLED: within another call, and its return is not recorded */
#define RING_BELOW_SHIFT 17                    /* of a call: how many words lower the stack pointer was than at the function's start */
#define RING_BELOW_MAX 63u
#define RING_NUMBER_MASK 0x0001ffffu
#define RING_VOID 0x0001ffffu                  /* no record: its writer was put back to before it */

struct ring_head {
	uint64_t mark;
	uint32_t length;                       /* of the whole record */
	uint32_t site;                         /* number of the place in the code, and RING_RETURN */
	uint64_t thread;
	uint64_t sp;                           /* where the return address is */
};

#define RING_ARGUMENTS 3

/* At a function's entry, and at a jump out of it. */
struct ring_call {
	struct ring_head head;
	uint64_t return_address;
	uint64_t args[RING_ARGUMENTS];
};

/* A call with the stack that it was made on: the slot said that another one of the thread may be pending. */
struct ring_call_within {
	struct ring_call call;
	uint32_t stack_length;                 /* bytes, a multiple of 8: from sp, */
	uint32_t first_length;                 /* but behind so many, */
	uint64_t stack_start;                  /* lowest address of the stack; ~0: not known */
	uint64_t other_start;                  /* when this is not 0, from here: another stack, on which a signal came in */
	uint64_t saved[6];
	uint64_t stack[];
};

/* At its return instruction. */
struct ring_return {
	struct ring_head head;
	uint64_t time;                         /* time stamp counter */
	uint64_t result;
	uint32_t stack_length, first_length;   /* these three as above */
	uint64_t other_start;
	uint64_t saved[6];                     /* rbx, rbp, r12 to r15: arch_callee_saved */
	uint32_t length_key;
	uint32_t pointer_words;                /* as far is the thread pointer from sp, where that is on the thread's own stack */
	uint64_t stack[];
};

_Static_assert(sizeof(struct ring_control) == RING_CONTROL_SIZE, "the control page");
_Static_assert(sizeof(struct ring_call) == RING_UNIT, "a call's record is one unit");

#endif
