/* Code for check_resident.c.  It is copied to where it runs. */
	.text

/* f(x) = 2x + 1, with a first instruction and a ret of one byte */
	.balign	16
	.globl	sample_twice, sample_twice_ret, sample_twice_end
sample_twice:
	push	%rbx
	mov	%rdi, %rbx
	lea	1(%rbx,%rbx), %rax
	pop	%rbx
sample_twice_ret:
	ret
sample_twice_end:

/* Stores all general registers and the flags at SAMPLE_DUMP, in the order of the enum in the test,
 * and the 128 bytes under the stack pointer behind them; then exits with status 0.  Changes the
 * stack only after that. */
#define SAMPLE_DUMP 0x10300000
	.balign	16
	.globl	sample_dump, sample_dump_end
sample_dump:
	movabs	%rax, SAMPLE_DUMP
	mov	%rcx, %rax
	movabs	%rax, SAMPLE_DUMP + 8
	mov	$SAMPLE_DUMP, %ecx
	mov	%rdx, 0x10(%rcx)
	mov	%rbx, 0x18(%rcx)
	mov	%rsp, 0x20(%rcx)
	mov	%rbp, 0x28(%rcx)
	mov	%rsi, 0x30(%rcx)
	mov	%rdi, 0x38(%rcx)
	mov	%r8, 0x40(%rcx)
	mov	%r9, 0x48(%rcx)
	mov	%r10, 0x50(%rcx)
	mov	%r11, 0x58(%rcx)
	mov	%r12, 0x60(%rcx)
	mov	%r13, 0x68(%rcx)
	mov	%r14, 0x70(%rcx)
	mov	%r15, 0x78(%rcx)
	lea	0x2000(%rcx), %rsp
	pushfq
	popq	0x80(%rcx)
	cld
	mov	0x20(%rcx), %rsi
	sub	$128, %rsi
	lea	0x88(%rcx), %rdi
	mov	$16, %ecx
	rep	movsq
	xor	%edi, %edi
	mov	$231, %eax
	syscall
	int3
sample_dump_end:

/* A signal handler that changes what a handler may change. */
	.balign	16
	.globl	sample_handler
sample_handler:
	mov	$-1, %rax
	mov	%rax, %rcx
	mov	%rax, %r11
	ret

	.section .note.GNU-stack, "", @progbits
