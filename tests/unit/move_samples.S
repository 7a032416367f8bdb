/* Functions made by hand for check_move.c: each from sample_NAME to sample_NAME_end, never run. */
	.macro	sample name
	.balign	16
	.globl	sample_\name, sample_\name\()_end
sample_\name:
	.endm
	.macro	sample_end name
sample_\name\()_end:
	int3
	.endm
	.text

	sample	room
	push	%rbx
	push	%rbp
	mov	%rdi, %rbx
	mov	%rsi, %rbp
1:	test	%rdi, %rdi
	je	2f
	dec	%rdi
	jne	1b
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
2:	xor	%eax, %eax
	jc	3f
4:	xor	%ecx, %ecx
	ret
	.byte	0x0f, 0x1f, 0x40, 0	/* nopl */
3:	jo	4b
	call	sample_room
	ret
	sample_end room

	sample	room_over_lock
	cmpl	$0, %fs:0x18
	je	1f
	lock
1:	cmpxchg	%ecx, (%rdx)
	ret
	sample_end room_over_lock

	sample	room_switch
	cmp	$3, %edi
	ja	1f
	lea	table(%rip), %rdx
	mov	%edi, %edi
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
2:	mov	$1, %eax
3:	mov	$2, %eax
	ret
1:	mov	$3, %eax
	ret
	sample_end room_switch

	.section .rodata
table:	.quad	0, 0, 0, 0
	.section .note.GNU-stack, "", @progbits
