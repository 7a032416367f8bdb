/* An allocator that gives memory and never takes it back, and takes its time where others have their first instructions. */
	.text
	.macro	dawdle
	.rept	4
	pause
	.endr
	.endm

	.globl	malloc, calloc, realloc, free
	.type	malloc, @function
	.type	calloc, @function
	.type	realloc, @function
	.type	free, @function

	.balign	16
malloc:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	dawdle
	lea	15(%rdi), %rax
	and	$-16, %rax
	lock xadd %rax, next(%rip)
	dawdle
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	malloc, .-malloc

	.balign	16
calloc:
	.cfi_startproc
	imul	%rsi, %rdi
	jmp	malloc
	.cfi_endproc
	.size	calloc, .-calloc

	.balign	16
realloc:
	.cfi_startproc
	mov	%rsi, %rdi
	jmp	malloc
	.cfi_endproc
	.size	realloc, .-realloc

	.balign	16
free:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	dawdle
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	free, .-free

	.data
	.balign	8
next:
	.quad	memory

	.bss
	.balign	16
memory:
	.skip	1 << 30

	.section .note.GNU-stack, "", @progbits
