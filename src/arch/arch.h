/* The port manual: everything that names a register or knows an instruction.
 *
 * A new CPU implements the functions below in arch/<cpu>.c and arch/<cpu>_insn.c.  No processes here:
 * registers come in and go out as values, code as bytes. */
#ifndef ALLOCWATCH_ARCH_ARCH_H
#define ALLOCWATCH_ARCH_ARCH_H

#include "base/reader.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF register numbers of x86-64 (psABI, figure 3.36): 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi,
 * 6 rbp, 7 rsp, 8-15 r8-r15, 16 the return address (pc). */
#define ARCH_DWARF_REGS 17
#define ARCH_DWARF_BP 6
#define ARCH_DWARF_SP 7
#define ARCH_DWARF_PC 16

struct arch_regs {                     /* what the unwinder sees of a thread */
	uint64_t reg[ARCH_DWARF_REGS];
};

/* --- registers (arch/x86_64.c) --- */

/* One by one: compilers make `rep stos' of a memset() of this size, which takes longer to begin than all of them. */
static inline void arch_regs_clear(struct arch_regs *regs)
{
	for (unsigned i = 0; i < ARCH_DWARF_REGS; i++)
		*(volatile uint64_t *)&regs->reg[i] = 0;
}

#define ARCH_CALLEE_SAVED 6
/* DWARF numbers of the registers that a function hands back as it found them, apart from sp: rbx, rbp,
 * r12 to r15 (psABI, figure 3.4). */
extern const uint8_t arch_callee_saved[ARCH_CALLEE_SAVED];
#define ARCH_CALLEE_SAVED_BP 1         /* arch_callee_saved[1] is the frame pointer */

struct user_regs_struct;               /* of <sys/user.h>: what PTRACE_GETREGS delivers */

void arch_regs_from_user(const struct user_regs_struct *user, struct arch_regs *ret_regs);
/* What they do not tell is 0. */
void arch_regs_to_user(const struct arch_regs *regs, struct user_regs_struct *ret_user);

/* The registers with a meaning of their own; arguments by number, 0 to 3, as at a function's entry (System V
 * AMD64 ABI, 3.2.3). */
uint64_t arch_pc(const struct user_regs_struct *regs);
void arch_set_pc(struct user_regs_struct *regs, uint64_t pc);
/* Where PTRACE_POKEUSER finds the pc. */
size_t arch_user_pc_offset(void);
/* The base of a segment, by its place in the registers: a program may give itself one that the kernel takes from no
 * tracer. */
bool arch_is_segment_base(size_t offset);
uint64_t arch_sp(const struct user_regs_struct *regs);
uint64_t arch_frame_pointer(const struct user_regs_struct *regs);
uint64_t arch_argument(const struct user_regs_struct *regs, int number);
uint64_t arch_result(const struct user_regs_struct *regs);
/* What a thread's own data hangs from: of the threads of one memory each has another, and a fork's child its parent's. */
uint64_t arch_thread_pointer(const struct user_regs_struct *regs);

/* The counter that the ring's records are dated by, in its own unit. */
uint64_t arch_ticks(void);
/* What the kernel calls it among its clock sources, where it goes evenly and the same on all processors. */
#define ARCH_TICKS_CLOCK "tsc"

/* The bytes before a return address end in a call instruction.  May be true by chance, is never false
 * for a real return address as long as ARCH_CALL_MAX bytes are given. */
#define ARCH_CALL_MAX 7
bool arch_ends_in_call(const uint8_t *code, size_t len);
/* Where the call before `end` leads, whose bytes are the last ones of `code`; false when it may be none that says so itself. */
bool arch_direct_call(const uint8_t *code, size_t len, raddr end, raddr *ret_target);

/* Likewise, of a jump that begins there. */
bool arch_direct_jump(const uint8_t *code, size_t len, raddr at, raddr *ret_target);
/* Whether what a call that returned to `at` has returned is made the argument of another function, with nothing between; which it is. */
bool arch_passes_result(const uint8_t *code, size_t len, raddr at, raddr *ret_function);

/* Likewise, of a call through a pointer at a fixed address, where that lies. */
bool arch_call_through(const uint8_t *code, size_t len, raddr end, raddr *ret_pointer);

/* --- instructions (arch/x86_64_insn.c) --- */

#define ARCH_BREAKPOINT_BYTE 0xcc
#define ARCH_SLOT_SIZE 32              /* most code one displaced instruction needs */

/* What may be taken for a jump at an instruction that leaves its function, beside its own bytes. */
struct arch_room {
	uint8_t before;                    /* bytes of the instructions directly before it which nothing branches into:
					    * the fewest whole ones that make room, or as many as there are */
	uint8_t behind;                    /* padding behind it that is never run */
	bool at_end;                       /* of the function: arch_padding() tells of more */
};

/* What must be known of a function before it is probed. */
struct arch_function {
	uint32_t first_length;             /* bytes of its first instruction */
	bool first_is_ambiguous;           /* first + 1 may be reached by other means than the int3
					    * at first: one-byte instruction */
	/* Where to stop at its entry: at an instruction that is always reached through the first one, and that has the
	 * arguments as the caller gave them.  The first byte is where other tools put their breakpoints. */
	struct arch_entry {
		uint32_t offset;           /* 0: nowhere but at the first */
		uint32_t sp_below;         /* how much lower the stack pointer is there */
		bool ambiguous;
		bool stores;               /* something may have been stored there, perhaps below the stack pointer */
	} entry;
	VEC_OF(struct arch_exit {
		uint64_t address;          /* of a ret instruction */
		uint32_t length;           /* 1, 2 with a prefix, 3 with an immediate */
		bool ambiguous;            /* the byte after the first is reachable as code */
		struct arch_room room;
	}) exits;                          /* ascending */
	VEC_OF(uint64_t) tail_calls;       /* targets of direct jumps out of the function, conditional
					    * ones included; ascending, each once */
	VEC_OF(struct arch_jump {
		uint64_t address;          /* of the instruction */
		uint64_t target;
		uint32_t length;
		bool conditional;
		struct arch_room room;
	}) jumps;                          /* the same, each by itself, in the order of their addresses */
	/* For arch_entry_room: bytes from its start that nothing branches into, but to the first of them: whole instructions, up to the first
	 * that does not run on or calls; at most ARCH_WINDOW_MAX. */
	uint32_t entry_room;
};

/* Where at its entry a jump may be put: *ret_offset bytes behind its start, where the stack pointer is *ret_sp_below lower; returns
 * the bytes of whole instructions from there, 0: nowhere.  The kernel runs the first instruction of a function with a uprobe as it
 * stands in the file, and goes on behind it: that must not be in the midst of the jump.  So this stands behind the first
 * instruction, or within it. */
uint32_t arch_entry_room(const struct arch_function *function, uint32_t *ret_offset, uint32_t *ret_sp_below);

/* Decodes code[0..len), which runs at `address`, from its first instruction along all branches, then
 * what is left between the pieces reached so (landing pads, switch cases), unless that turns out to
 * be data.  A jump to outside of it is a tail call; so is a jump to its own start (its address then
 * is among the tail_calls), and so is running off its end.  A call that never returns ends a path.
 * 0, -ENOMEM, or -ENOTSUP with *ret_reason (static text) when its exits cannot be known: an indirect
 * jump that is no recognised switch table, a branch into the middle of the first instruction,
 * undecodable bytes, more than ARCH_FUNCTION_MAX of them.  Free with arch_function_fini. */
#define ARCH_FUNCTION_MAX (16u << 20)
int arch_decode_function(const uint8_t *code, size_t len, uint64_t address,
			 struct arch_function *ret_function, const char **ret_reason);
/* The same of a function that nobody says the length of, but that no other one begins in code[1..len) which has a name: what direct
 * branches lead to from its first instruction is all that is looked at, since what lies between may be another one's.  -ENOTSUP
 * with any indirect jump. */
int arch_decode_unsized(const uint8_t *code, size_t len, uint64_t address,
			struct arch_function *ret_function, const char **ret_reason);
void arch_function_fini(struct arch_function *function);

/* What stands around a function, for arch_hands_on. */
struct arch_surroundings {
	void *context;
	/* The bytes from there to the end of the function, or of the part of one, that it lies in; NULL: there is no code. */
	const uint8_t *(*code)(void *context, uint64_t address, size_t *ret_len);
	/* Whether what a call or jump leads to is the source of results; or what the pointer there leads to. */
	bool (*is_source)(void *context, uint64_t target, bool is_pointer, bool is_jump);
};

/* Whether the function at `address` returns nothing but what its one call or jump to a source returns, as it is, or 0: along all
 * branches, in what is behind its jumps, and where exceptions arrive.  False, too, when that cannot be seen. */
bool arch_hands_on(const struct arch_surroundings *around, uint64_t address);

/* The fewest whole instructions of code[0..room) that a jump has room in, in bytes; 0: there are not so many. */
uint32_t arch_window_length(const uint8_t *code, size_t room, uint64_t address);
/* How many of code[0..len), which lies behind a function, fill the space to the next one and are never run. */
uint32_t arch_padding(const uint8_t *code, size_t len, uint64_t address);
/* Of a function that begins with an instruction which a jump has room in: the bytes of that, and *ret_offset where it is, behind a landing
 * pad; else 0. */
uint32_t arch_long_instruction(const uint8_t *code, size_t len, uint64_t address, uint32_t *ret_offset);
/* Of a function that returns at once, the bytes of its instructions, when with the padding behind them a jump has room; else 0. */
uint32_t arch_empty_function(const uint8_t *code, size_t len, uint64_t address);
/* Whether anything in code[0..len), which runs at `address`, may be a jump or call of far reach that goes behind `start` and
 * before `end`: parts of a function that the compiler put elsewhere come back so.  May be true by chance: what begins an
 * instruction is not asked. */
bool arch_may_branch_into(const uint8_t *code, size_t len, uint64_t address, uint64_t start, uint64_t end);
/* The same of many: tells of each target that may lie behind `start` and before `end`. */
void arch_each_branch_into(const uint8_t *code, size_t len, uint64_t address, uint64_t start, uint64_t end,
			   void (*found)(void *context, uint64_t target), void *context);

/* Whether code[0..len) at `address` is a stub that only jumps through a pointer at a fixed address, as
 * the entries of a procedure linkage table are: tail calls to imported functions lead there.  Then
 * *ret_pointer is where the pointer lies.  Before the first call it may point to the loader's
 * resolver. */
bool arch_decode_import_stub(const uint8_t *code, size_t len, uint64_t address, raddr *ret_pointer);

/* Writes into `out` code which, at run-time address `to`, does what the instruction at `from` does
 * and goes on behind it.  The slot is ONE relocated instruction followed by one jump: a thread's pc
 * in it is either at its start (nothing done yet) or at *ret_jump (instruction done).  A ret and an
 * unconditional jump need no jump; *ret_jump is then the slot's length.  A conditional branch whose
 * target is out of reach is followed by two jumps, and a thread may be at either.  insn[0..len) holds
 * at least the instruction.  0 and the bytes used, or -ENOTSUP (a first instruction that cannot be
 * moved: call, system call, an rip-relative one out of reach, ...) with *ret_reason. */
int arch_displace(const uint8_t *insn, size_t len, uint64_t from, uint64_t to,
		  uint8_t out[ARCH_SLOT_SIZE], uint32_t *ret_length, uint32_t *ret_jump,
		  const char **ret_reason);

/* Where a thread found at `pc` in the slot that arch_displace makes of the same arguments would be
 * without the slot: `from` at its start, behind the instruction or at its branch target at one of
 * its jumps.  ARCH_NOWHERE for every other pc: no thread can be there. */
#define ARCH_NOWHERE UINT64_MAX
raddr arch_slot_resume(const uint8_t *insn, size_t len, uint64_t from, uint64_t to, raddr pc);

/* --- a frame without unwind tables (arch/x86_64_way_out.c) --- */

struct arch_code {
	int (*read)(void *context, raddr at, void *buf, size_t len);        /* as a reader's */
	bool (*never_returns)(void *context, raddr function);               /* what is called there */
	void *context;
};

/* Where a frame has what its caller is to have again: as a plain row of unwind tables says it. */
struct arch_way_out {
	bool from_bp;                      /* CFA = frame pointer + offset; else stack pointer + offset */
	int32_t cfa_offset;
	uint8_t saved_mask;                /* bit i: arch_callee_saved[i] is restored from */
	int16_t saved[ARCH_CALLEE_SAVED];  /* so far from the CFA; -8 for the others */
};

#define ARCH_FRAME_MAX (1 << 20)       /* bytes of a frame */
#define ARCH_SAVED_REACH 2048          /* registers are saved within so many bytes below the CFA */
#define ARCH_WAY_COST_MAX 64           /* calls on the way to a return, or fewer where a function may end behind one */

/* Found by following the code from pc, with the registers as they are there, on to a return.  False: none was found.  May be wrong
 * where a call on the way never returns and `never_returns` does not know it: the return address that it leads to is to be looked at. */
bool arch_find_way_out(const struct arch_code *code, raddr pc, struct arch_way_out *ret);

/* --- instructions moved to make room for a jump (arch/x86_64_move.c) --- */

#define ARCH_JUMP_SIZE 5               /* bytes of a jump to anywhere within 2 GiB */
#define ARCH_WINDOW_MAX 20             /* a jump less one, and the longest instruction, and one to spare */
#define ARCH_MOVED_MAX 160             /* most bytes that a window's instructions become */

/* Where a window's instructions are: code at the old offset begins at the new one. */
struct arch_moved {
	uint32_t length;                   /* of the new code */
	uint32_t count;
	struct arch_moved_insn {
		uint8_t from, to;          /* offsets; the first is 0, 0 */
	} insns[ARCH_WINDOW_MAX];
};

/* Writes into `out` code which, at run-time address `to`, does what the whole instructions code[0..len) do at
 * `from`, where a jump takes their place.  It runs on behind its end as they did behind theirs; what goes there is the
 * caller's.  A branch to their start goes on going there, and so meets the jump.  0, or -ENOTSUP with *ret_reason (static
 * text): they are more than ARCH_WINDOW_MAX, one of them is cut short, calls, enters the kernel, loops by count, reaches for what is
 * out of reach of `to`, or branches in among them. */
int arch_move(const uint8_t *code, size_t len, uint64_t from, uint64_t to, uint8_t out[ARCH_MOVED_MAX],
	      struct arch_moved *ret_moved, const char **ret_reason);
/* Where a thread in the window is to go on in the moved code, and back: ARCH_NOWHERE for a pc that no instruction begins
 * at.  The end of either is the end of the other. */
uint64_t arch_moved_to(const struct arch_moved *moved, size_t len, uint64_t from, uint64_t to, uint64_t pc);
uint64_t arch_moved_from(const struct arch_moved *moved, size_t len, uint64_t from, uint64_t to, uint64_t pc);

/* A jump at `from` to `to`.  False: it does not reach. */
bool arch_put_jump(uint64_t from, uint64_t to, uint8_t out[ARCH_JUMP_SIZE]);

/* --- jumps that breakpoints do not change (arch/x86_64_spared.c) --- */

/* At which bytes of a jump over code[0..len) instructions begin, but the first: bit i for byte i, 1 to 4. */
unsigned arch_starts_within(const uint8_t *code, size_t len);
/* Where a jump at `from` leads whose bytes there are int3s: of several places the choice-th, or ARCH_NOWHERE when nothing can be there;
 * 0: there are no more. */
uint64_t arch_spared_target(uint64_t from, unsigned starts, unsigned choice);

#endif
