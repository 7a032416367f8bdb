/* A malloc and a free that write down every register they were entered with, and a caller that sets
 * every register before and writes them down after: the shared object that registers.c loads.
 *
 * Each area is laid out as struct registers in registers.c: 16 general registers in the order rax
 * rcx rdx rbx rsp rbp rsi rdi r8..r15 (rsp stays unused), the flags, 8 bytes unused, xmm0..xmm15. */
	.text

	.macro general op, area
	\op rax, 0, \area
	\op rcx, 8, \area
	\op rdx, 16, \area
	\op rbx, 24, \area
	\op rbp, 40, \area
	\op rsi, 48, \area
	\op rdi, 56, \area
	\op r8, 64, \area
	\op r9, 72, \area
	\op r10, 80, \area
	\op r11, 88, \area
	\op r12, 96, \area
	\op r13, 104, \area
	\op r14, 112, \area
	\op r15, 120, \area
	.endm

	.macro store reg, at, area
	movq %\reg, \area+\at(%rip)
	.endm

	.macro load reg, at, area
	movq \area+\at(%rip), %\reg
	.endm

	.macro store_vectors area
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movdqu %xmm\n, \area+144+16*\n(%rip)
	.endr
	.endm

	.macro load_vectors area
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movdqu \area+144+16*\n(%rip), %xmm\n
	.endr
	.endm

	/* None of these instructions but pushf and pop touch anything else, and these two only rsp. */
	.macro store_all area
	general store, \area
	pushfq
	.cfi_adjust_cfa_offset 8
	popq \area+128(%rip)
	.cfi_adjust_cfa_offset -8
	store_vectors \area
	.endm

	/* Its first instruction is relative to rip; rax is all it changes. */
	.globl malloc
	.type malloc, @function
malloc:
	.cfi_startproc
	store_all seen_at_entry
	leaq block(%rip), %rax
	ret
	.cfi_endproc
	.size malloc, . - malloc

	/* Its first instructions are a test and a jump. */
	.globl free
	.type free, @function
free:
	.cfi_startproc
	testq %rdi, %rdi
	je 1f
	store_all seen_at_entry
	ret
1:	ret
	.cfi_endproc
	.size free, . - free

	/* void call_checked(void *function) */
	.globl call_checked
	.type call_checked, @function
call_checked:
	.cfi_startproc
	.irp reg, rbx, rbp, r12, r13, r14, r15
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.endr
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movq %rdi, callee(%rip)
	load_vectors set_before
	pushq set_before+128(%rip)
	.cfi_adjust_cfa_offset 8
	popfq
	.cfi_adjust_cfa_offset -8
	general load, set_before
	call *callee(%rip)
	store_all seen_after
	cld
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp reg, r15, r14, r13, r12, rbp, rbx
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.endr
	ret
	.cfi_endproc
	.size call_checked, . - call_checked

	.bss
	.balign 16
	.globl seen_at_entry, set_before, seen_after
	.protected seen_at_entry, set_before, seen_after
	.type seen_at_entry, @object
	.type set_before, @object
	.type seen_after, @object
	.size seen_at_entry, 400
	.size set_before, 400
	.size seen_after, 400
seen_at_entry:
	.zero 400
set_before:
	.zero 400
seen_after:
	.zero 400
callee:	.zero 8
	.balign 16
block:	.zero 64

	.section .note.GNU-stack, "", @progbits
