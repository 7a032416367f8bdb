/* The ring engine's code that lives in the target, as bytes: target/ knows where it goes and how it gets there.
 *
 * An area is memory of the target within reach of what is probed, readable and executable, with a page of data behind it:
 *
 *	ring_code_header | routines | sites ....  .... notes | ring_switch
 *	<------------------- RING_CODE_SIZE ---------------->
 *
 * A site takes the place of a window, some instructions of a function that a jump now stands for.  It runs them, and
 * in the midst of them has a record written into the ring that the switch points to (ring/layout.h): at a function's entry before
 * the first of them, at its end before the return or the jump that ends it.  Before that, with sampling, a piece of code of its own looks
 * whether there is nothing to record, as mostly there is not.  No frame of ours is ever on the stack of what runs outside of the
 * area.  What a routine uses of the stack lies below the function's own, where at these places nothing is.
 *
 * Switch 0: nothing is recorded.  The page is the process's own and wiped in a child (MADV_WIPEONFORK): so a child does not write
 * to its parent's ring. */
#ifndef ALLOCWATCH_ARCH_RING_CODE_H
#define ALLOCWATCH_ARCH_RING_CODE_H

#include "arch/arch.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

#define RING_CODE_MAGIC "allocwatch.codeD"     /* 16 bytes, no NUL; the last one is the version */
#define RING_CODE_MAGIC_SIZE 16
#define RING_CODE_SIZE 65536u

/* For who takes the code out when the tracer that brought it is dead; the code itself reads none of it. */
struct ring_code_header {
	uint8_t magic[RING_CODE_MAGIC_SIZE];
	uint64_t ring, ring_size;              /* where the ring is mapped, bytes of the whole mapping */
	uint32_t notes;                        /* how many; a note is there before its jump is */
	uint32_t reserved1;
	uint64_t reserved[3];
};

/* Of one site; the first one ends the area, the next ones lie before it. */
struct ring_code_note {
	uint64_t window, site;                 /* addresses */
	uint64_t pad;                          /* where the jump leads that leads to the site; 0: there is none */
	uint32_t number;
	uint8_t length, record, is_return, hands_on;
	uint8_t text[ARCH_WINDOW_MAX];         /* what stood there, as far as the jump or the window reaches */
	uint8_t allocates, resizes, size_argument, count_argument;
	uint8_t words_below;                   /* sp_below */
	uint8_t waits, sampled, told, old_argument, described;
	uint8_t unmaps, stored;
};

struct ring_switch {
	uint64_t ring;                         /* address of the control page, or 0 */
};

/* The routines; they lie directly behind the header. */
struct ring_code {
	const uint8_t *bytes;
	uint32_t length;
	uint32_t sites;                        /* offset from the header's start of the first site */
};
struct ring_code ring_code(void);

#define RING_WINDOW_NO_ARGUMENT 3

/* Whose record is waited for: nobody's, the loader's, when its list of objects changes; who executes a program, but not who only has the
 * memory of the thread that it says it is (vfork). */
enum ring_waits { RING_WAITS_NOT, RING_WAITS_LOADER, RING_WAITS_EXEC };
/* How memory goes that the first two arguments tell the start and the length of: by itself; when the third argument has nothing of PROT_READ,
 * PROT_WRITE and PROT_EXEC; or when that is MADV_GUARD_INSTALL: no other advice makes memory unreadable. */
enum ring_unmaps { RING_UNMAPS_NOT, RING_UNMAPS, RING_UNMAPS_BY_PROTECTION, RING_UNMAPS_BY_ADVICE };

struct ring_window {
	uint64_t address;
	const uint8_t *text;                   /* the instructions: whole ones, that arch_move moves */
	uint32_t length;                       /* bytes of them; with padding behind them that is not run, room for a jump */
	uint32_t record;                       /* offset of the instruction before which the record is written; behind the first only
						* where the flags mean nothing: at a return and an unconditional jump */
	uint32_t number;                       /* below RING_VOID */
	bool allocates;                        /* an entry, of a call that is pending until it returns */
	bool resizes;                          /* and its first argument is a block that may go */
	uint8_t size_argument, count_argument; /* of such an entry, 0 to 2: what is asked for, and what times, or RING_WINDOW_NO_ARGUMENT */
	bool told;                             /* in place of these: they and the block are told by the ring's shape for the number */
	uint8_t old_argument;                  /* of an entry that does not allocate: the block */
	uint32_t sp_below;                     /* how much lower the stack pointer is there than at the function's start */
	bool is_return;                        /* a struct ring_return, before a return instruction */
	bool stored;                           /* of a function that stores its result where an argument of its call, which is told, says */
	bool sampled;                          /* the ring takes samples (ring_set_sampling) */
	bool described;                        /* and there are several families */
	bool hands_on;                         /* of a return, but before a jump to a function that returns its first argument: that
						* is the result */
	enum ring_waits waits;                 /* its record is waited for (ring/layout.h) */
	enum ring_unmaps unmaps;               /* such a function: no record is written, but it is noted (ring_control's has_holes) when that
						* is a part of the calling thread's own stack, or of the first one */
};

#define RING_PIECE_MAX 240
#define RING_SITE_MAX (ARCH_MOVED_MAX + RING_PIECE_MAX + 32)

struct ring_site {
	uint64_t window, at;                   /* addresses of the old place and of the new */
	uint32_t window_length;
	uint32_t length;                       /* bytes of code */
	/* The instructions in two runs: before the record, behind it. */
	uint32_t record;                       /* offset in the window, and bytes of the first run */
	/* Between them, first a piece that passes over a call that is not sampled: bytes, 0: it has none; and from which of them on registers
	 * stand below the stack pointer, and the flags; 0: it changes none. */
	uint32_t piece, kept, flags_kept;
	uint32_t behind;                       /* offset in the site of the second run */
	bool is_return, hands_on;
	enum ring_waits waits;
	enum ring_unmaps unmaps;
	struct arch_moved moved[2];
};

/* Writes the site's code into out[], which will run at address `at` of the area at `area`.  0, or -ENOTSUP with *ret_reason as
 * arch_move; or when `record` is the start of no instruction of the window. */
int ring_site_build(const struct ring_window *window, raddr area, raddr at, uint8_t out[RING_SITE_MAX],
		    struct ring_site *ret_site, const char **ret_reason);

/* Where a thread found at an instruction of the window goes on in the site: it has not been recorded there yet, unless
 * it is past the record's place.  ARCH_NOWHERE: no instruction begins there.  The window's first byte stays: a jump is there. */
uint64_t ring_site_enter(const struct ring_site *site, uint64_t pc);
/* Where a thread found at this pc in the site would be without it.  ARCH_NOWHERE: it is writing a record, and is to run on until
 * it has left the code that does. */
uint64_t ring_site_leave(const struct ring_site *site, uint64_t pc);

/* A thread that is stopped in the site, or in a routine that the site has called, is put to where it is neither: to before
 * the record, when this is not written yet, else behind it, and behind a plain return instruction, too.  words[] are what stands on
 * its stack from the stack pointer on, behind RING_CODE_BELOW that stand below it; at: how far from the stack pointer is the first
 * that is ring_site_back(), of this or any other site, when it is in a routine.  Other places stay as they are. */
#define RING_CODE_WORDS 32
#define RING_CODE_BELOW 4
uint64_t ring_site_back(const struct ring_site *site);
enum ring_progress { RING_ELSEWHERE, RING_NOT_WRITTEN, RING_WRITTEN };
struct ring_unfinished {
	bool reserved;                         /* a piece of the ring, that its record will not be written into */
	uint64_t position;
	uint32_t length;                       /* as far as the record itself does not say it */
};
enum ring_progress ring_site_settle(const struct ring_site *site, raddr area, const uint64_t words[RING_CODE_BELOW + RING_CODE_WORDS],
				    unsigned at, struct user_regs_struct *regs, struct ring_unfinished *ret);

/* Where a thread is put to before the record. */
uint64_t ring_site_before(const struct ring_site *site);
/* A thread that stands there goes on behind the record, which it does not write; caller: what is on top of its stack, when it is to go
 * behind a plain return instruction, too, else 0. */
void ring_site_pass(const struct ring_site *site, uint64_t caller, struct user_regs_struct *regs);

/* Of a step of one instruction that a thread in the site has done: was it of the window, or one that is only there, into the site or
 * in the record?  One that is about to jump back is put to where it jumps. */
bool ring_site_is_extra_step(const struct ring_site *site, struct user_regs_struct *regs);

#endif
