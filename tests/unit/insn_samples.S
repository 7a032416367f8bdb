/* Functions made by hand for check_insn.c: each from sample_NAME to sample_NAME_end, never run. */
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

	.globl	sample_elsewhere
sample_elsewhere:
	ret

	sample	loops_to_its_start
	dec	%rdi
	jnz	sample_loops_to_its_start
	ret
	sample_end loops_to_its_start

	sample	conditional_tail_call
	test	%rdi, %rdi
	je	sample_elsewhere
	ret
	sample_end conditional_tail_call

	sample	branch_into_first
	.byte	0x48, 0xb8		/* movabs $imm64, %rax, with a ret inside */
1:	.byte	0xc3, 0, 0, 0, 0, 0, 0, 0
	jmp	1b
	sample_end branch_into_first

	sample	kinds_of_ret
	je	1f
	jc	2f
	js	3f
	ret
1:	repz	ret
2:	ret	$8
3:	.byte	0xf2			/* bnd, which not every assembler knows */
	ret
	sample_end kinds_of_ret

	sample	ambiguous_ret
	test	%rdi, %rdi
	je	1f
	ret				/* the next byte is a branch target */
1:	xor	%eax, %eax
	ret				/* padding follows */
	nopl	0(%rax,%rax)
	ret				/* the end follows */
	sample_end ambiguous_ret

	sample	branch_into_ret
	test	%rdi, %rdi
	je	1f
	.byte	0xf3
1:	ret
	sample_end branch_into_ret

	sample	data_between
	test	%rdi, %rdi
	je	1f
	ret
	.byte	0x06, 0x0e, 0xc3, 0x16	/* no instructions in 64-bit code, and a ret's byte */
1:	ret
	sample_end data_between

	sample	landing_pad
	call	sample_elsewhere
	ret
	mov	%rax, %rdi		/* nobody branches here */
	ret
	sample_end landing_pad

	sample	after_noreturn
	test	%rdi, %rdi
	je	1f
	ret
1:	call	sample_elsewhere
	.byte	0x06
	sample_end after_noreturn

	sample	over_lock
	cmpl	$0, %fs:0x18
	je	1f
	lock
1:	cmpxchg	%ecx, (%rdx)
	ret
	sample_end over_lock

	sample	runs_off
	test	%rdi, %rdi
	je	1f
	ret
1:	xor	%eax, %eax
	sample_end runs_off

	sample	switch_of_gcc
	cmp	$3, %edi
	ja	1f
	lea	table(%rip), %rdx
	mov	%edi, %edi
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
2:	mov	$1, %eax
	ret
3:	mov	$2, %eax
	jmp	sample_elsewhere
1:	xor	%eax, %eax
	ret
	sample_end switch_of_gcc

	sample	switch_of_clang
	cmp	$3, %edi
	ja	1f
	mov	%edi, %eax
	lea	table(%rip), %rcx
	movslq	(%rcx,%rax,4), %rax
	add	%rcx, %rax
	jmp	*%rax
2:	mov	$1, %eax
	ret
1:	xor	%eax, %eax
	ret
	sample_end switch_of_clang

	sample	switch_with_cet
	endbr64
	lea	table(%rip), %rdx
	notrack	jmp *%rax
	ret
	sample_end switch_with_cet

	sample	switch_without_pic
	cmp	$3, %edi
	ja	1f
	jmp	*0x404000(,%rdi,8)
	mov	$1, %eax
	ret
1:	ret
	sample_end switch_without_pic

	sample	switch_and_data
	lea	table(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
	.byte	0x06, 0x0e
	ret
	sample_end switch_and_data

	sample	indirect_register
	mov	(%rdi), %rax
	jmp	*%rax
	sample_end indirect_register

	sample	indirect_method
	mov	(%rdi), %rax
	jmp	*0x10(%rax)
	sample_end indirect_method

	sample	table_of_functions
	lea	table(%rip), %rdx
	jmp	*(%rdx,%rdi,8)
	sample_end table_of_functions

	sample	table_entry_overwritten
	lea	table(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	add	%rdx, %rax
	mov	(%rsi), %rax
	jmp	*%rax
	sample_end table_entry_overwritten

	sample	far_return
	test	%rdi, %rdi
	lretq
	sample_end far_return

	sample	narrow_branch
	test	%rdi, %rdi
	.byte	0x66, 0x0f, 0x84, 0, 0
	ret
	ret
	sample_end narrow_branch

	sample	bad_bytes
	test	%rdi, %rdi
	.byte	0x06
	sample_end bad_bytes

	sample	system_call_at_the_end
	mov	$15, %eax
	syscall
	sample_end system_call_at_the_end

	sample	import_stub
	endbr64
	.byte	0xf2			/* bnd */
	jmp	*table(%rip)
	sample_end import_stub

	.section .rodata
table:	.quad	0, 0, 0, 0
	.section .note.GNU-stack, "", @progbits
