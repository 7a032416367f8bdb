/* The entry, and system calls: number and five arguments as the C calling convention has them. */
	.text
	.globl	_start
	.type	_start, @function
_start:
	xor	%ebp, %ebp
	mov	%rsp, %rdi
	and	$-16, %rsp
	call	shim_main
	hlt
	.size	_start, . - _start

	.globl	shim_syscall
	.type	shim_syscall, @function
shim_syscall:
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	syscall
	ret
	.size	shim_syscall, . - shim_syscall

	.section .note.GNU-stack, "", @progbits
