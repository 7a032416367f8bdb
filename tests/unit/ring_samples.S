/* An allocator of nothing for check_ring_code.c, and a caller of it that shows every register. */
	.text
/* (size): hands out addresses from *sample_next, which it moves on by the size. */
	.balign	16
	.globl	sample_alloc, sample_alloc_end, sample_free, sample_free_end
	.type	sample_alloc, @function
sample_alloc:
	push	%rbx
	mov	%rdi, %rbx
	test	%rdi, %rdi
	je	1f
	mov	%rbx, %rax
	lock xadd %rax, sample_next(%rip)
	mov	%rax, %rax
	pop	%rbx
	ret
1:	xor	%eax, %eax
	pop	%rbx
	ret
	nopl	0(%rax,%rax)
sample_alloc_end:

	.balign	16
sample_free:
	test	%rdi, %rdi
	je	1f
	lock incq sample_freed(%rip)
1:	ret
	nopl	0(%rax,%rax)
sample_free_end:

/* As the loader's hook: nothing, and padding. */
	.balign	16
	.globl	sample_hook
sample_hook:
	ret
	nopl	0(%rax,%rax)
	nopw	0(%rax,%rax)

/* Stands for munmap and mprotect: does nothing of the kind. */
	.balign	16
	.globl	sample_unmap
sample_unmap:
	mov	$11, %eax
	ret

/* (function, in[15], out[16]): registers but rsp in the order of rax to r15; out[15]: the red zone's word was kept. */
	.balign	16
	.globl	sample_caller, sample_caller_return
sample_caller:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rdx
	push	%rdi
	mov	%rsi, %rax
	push	(%rax)
	mov	8(%rax), %rcx
	mov	16(%rax), %rdx
	mov	24(%rax), %rbx
	mov	32(%rax), %rbp
	mov	40(%rax), %rsi
	mov	48(%rax), %rdi
	mov	56(%rax), %r8
	mov	64(%rax), %r9
	mov	72(%rax), %r10
	mov	80(%rax), %r11
	mov	88(%rax), %r12
	mov	96(%rax), %r13
	mov	104(%rax), %r14
	mov	112(%rax), %r15
	pop	%rax
	call	*(%rsp)
sample_caller_return:
	push	%rax
	mov	16(%rsp), %rax
	pop	(%rax)
	mov	%rcx, 8(%rax)
	mov	%rdx, 16(%rax)
	mov	%rbx, 24(%rax)
	mov	%rbp, 32(%rax)
	mov	%rsi, 40(%rax)
	mov	%rdi, 48(%rax)
	mov	%r8, 56(%rax)
	mov	%r9, 64(%rax)
	mov	%r10, 72(%rax)
	mov	%r11, 80(%rax)
	mov	%r12, 88(%rax)
	mov	%r13, 96(%rax)
	mov	%r14, 104(%rax)
	mov	%r15, 112(%rax)
	pop	%rdi
	pop	%rdx
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

/* (out, address): stores it there, and returns 0. */
	.balign	16
	.globl	sample_store, sample_store_end
	.type	sample_store, @function
sample_store:
	push	%rbx
	mov	%rdi, %rbx
	mov	%rsi, (%rbx)
	xor	%eax, %eax
	lea	0(%rsi), %rsi
	pop	%rbx
	ret
	nopl	0(%rax,%rax)
sample_store_end:

/* Returns the flags at its entry. */
	.balign	16
	.globl	sample_flags, sample_flags_end
	.type	sample_flags, @function
sample_flags:
	.byte	0x48, 0x8d, 0xbf, 0, 0, 0, 0	/* lea 0(%rdi), %rdi */
	.byte	0x48, 0x8d, 0xb6, 0, 0, 0, 0
	pushfq
	pop	%rax
	lea	0(%rax), %rax
	ret
	nopl	0(%rax,%rax)
sample_flags_end:

/* (function, flags, *behind): calls it with these flags, for 16 bytes; returns what it does, and the flags behind that. */
	.balign	16
	.globl	sample_with_flags
sample_with_flags:
	push	%rbx
	mov	%rdx, %rbx
	mov	%rdi, %rax
	mov	$16, %edi
	push	%rsi
	popfq
	call	*%rax
	pushfq
	pop	(%rbx)
	cld
	pop	%rbx
	ret

	.data
	.balign	8
	.globl	sample_next, sample_freed
sample_next:
	.quad	0x1000
sample_freed:
	.quad	0
	.section .note.GNU-stack, "", @progbits
