/* An allocator with int3s of its own where breakpoints are: behind the first instruction of an entry, and before a
 * return.  Blocks are 64 bytes and never used again. */
	.text
	.globl	malloc
	.type	malloc, @function
malloc:
	.cfi_startproc
	lea	8(%rdi), %rax
	int3
	mov	used(%rip), %rax
	addq	$64, used(%rip)
	int3
	ret
	.cfi_endproc
	.size	malloc, . - malloc

	.globl	free
	.type	free, @function
free:
	.cfi_startproc
	test	%rdi, %rdi
	int3
	ret
	.cfi_endproc
	.size	free, . - free

	.data
	.balign	16
used:	.quad	arena

	.bss
	.balign	64
arena:	.skip	65536

	.section .note.GNU-stack, "", @progbits
