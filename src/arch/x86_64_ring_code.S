/* The routines that write records; arch/ring_code.h and ring/layout.h say what they do.  Data here: these bytes never run in
 * this process.  No relocations: all is reached relative to rip.  Every register is kept, and none but general ones
 * are used; flags are kept, too: nobody should have any at these places, and DF should be clear there (psABI 3.2.1), but code
 * written by hand may do as it likes. */

#define HEADER_SIZE	64		/* these are checked in x86_64_ring_site.c */
#define CODE_SIZE	65536

#define CONTROL_SIZE	16
#define CONTROL_KEY	24
#define CONTROL_WAIT	32
#define CONTROL_STATE	40
#define CONTROL_YIELD	44
#define CONTROL_THREAD	48
#define CONTROL_MASK	56
#define CONTROL_STACK	64
#define CONTROL_MAIN	72
#define CONTROL_MAIN_END	80
#define CONTROL_HEAD	128
#define CONTROL_TAIL	192
#define CONTROL_LOST	256
#define CONTROL_WAITS	264
#define CONTROL_LENGTHS	2048
#define CONTROL_DATA	4096
#define STATE_ON	1
#define STATE_STALLED	2
#define LENGTHS_SHIFT	54
#define UNIT_SHIFT	6

#define RECORD_LENGTH	8
#define RECORD_SITE	12
#define RECORD_THREAD	16
#define RECORD_SP	24
#define CALL_RETURN	32
#define CALL_ARGS	40
#define CALL_SIZE	64
#define RETURN_TIME	32
#define RETURN_RESULT	40
#define RETURN_LENGTH	48
#define RETURN_SAVED	56
#define RETURN_SIZE	104

#define NR_sched_yield	24

/* r8 ring, edx length: rax becomes the mark of an open record, rcx its address.  Uses r10, r11. */
	.macro	reserve	give_up
	xor	%r10d, %r10d		/* when the wait ends; 0: it has not begun */
1:	mov	CONTROL_HEAD(%r8), %rax
2:	lea	(%rax,%rdx), %rcx
	mov	%rcx, %r11
	sub	CONTROL_TAIL(%r8), %r11
	cmp	CONTROL_SIZE(%r8), %r11
	ja	3f
	lock cmpxchg %rcx, CONTROL_HEAD(%r8)
	jne	2b
	jmp	4f
3:	call	.Lwait
	test	%eax, %eax
	jz	1b
	jmp	\give_up
4:	mov	CONTROL_SIZE(%r8), %rcx
	dec	%rcx
	and	%rax, %rcx
	lea	CONTROL_DATA(%r8,%rcx), %rcx
	xor	CONTROL_KEY(%r8), %rax
	inc	%rax
	.endm

/* What both records begin with; uses r11. */
	.macro	begin_record
	mov	%edx, RECORD_LENGTH(%rcx)
	mov	%r9d, RECORD_SITE(%rcx)
	mov	CONTROL_THREAD(%r8), %r11
	mov	%fs:(%r11), %r11
	and	CONTROL_MASK(%r8), %r11
	mov	%r11, RECORD_THREAD(%rcx)
	mov	%rax, (%rcx)
	.endm

	.section .rodata
	.balign	16
.Lheader:
	.skip	HEADER_SIZE
	.globl	x86_64_ring_code, x86_64_ring_return, x86_64_ring_end
	.hidden	x86_64_ring_code, x86_64_ring_return, x86_64_ring_end

/* At an entry, and before a jump that ends a function: eax site, on the stack the site's return address, its rax, the
 * function's return address. */
x86_64_ring_code:
	pushfq
	push	%rcx
	push	%rdx
	push	%r8
	push	%r9
	push	%r10
	push	%r11
#define CALLER 72
	mov	.Lheader+CODE_SIZE(%rip), %r8
	test	%r8, %r8
	jz	.Lcall_done
	cmpl	$STATE_ON, CONTROL_STATE(%r8)
	jne	.Lcall_done
	mov	%eax, %r9d
	mov	$CALL_SIZE, %edx
	reserve	.Lcall_done
	begin_record
	lea	CALLER(%rsp), %r11
	mov	%r11, RECORD_SP(%rcx)
	mov	CALLER(%rsp), %r11
	mov	%r11, CALL_RETURN(%rcx)
	mov	%rdi, CALL_ARGS(%rcx)
	mov	%rsi, CALL_ARGS+8(%rcx)
	mov	32(%rsp), %r11		/* rdx */
	mov	%r11, CALL_ARGS+16(%rcx)
	inc	%rax
	mov	%rax, (%rcx)
.Lcall_done:
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdx
	pop	%rcx
	popfq
	ret
#undef CALLER

/* Before a return instruction: the same, and rax is the result. */
	.balign	16
x86_64_ring_return:
	pushfq
	cld
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
#define RESULT 80
#define CALLER 88
	mov	.Lheader+CODE_SIZE(%rip), %r8
	test	%r8, %r8
	jz	.Lreturn_done
	cmpl	$STATE_ON, CONTROL_STATE(%r8)
	jne	.Lreturn_done
	mov	%eax, %r9d
	lea	CALLER(%rsp), %rsi

	/* How far the stack is certainly mapped: the program's first one and a thread's own to their ends, which
	 * they are as long as something runs on them; of all others what is left of the page. */
	mov	CONTROL_MAIN_END(%r8), %rdi
	cmp	%rdi, %rsi
	jae	.Lthread_stack
	cmp	CONTROL_MAIN(%r8), %rsi
	jae	.Lbounded
.Lthread_stack:
	mov	CONTROL_STACK(%r8), %rcx
	mov	%fs:(%rcx), %rcx
	mov	%fs:0, %rdi
	test	%rcx, %rcx
	jz	.Lpage
	cmp	%rcx, %rsi
	jb	.Lpage
	cmp	%rdi, %rsi
	jb	.Lbounded
.Lpage:
	mov	%rsi, %rdi
	or	$4095, %rdi
	inc	%rdi
.Lbounded:
	sub	%rsi, %rdi

	mov	.Lfactor(%rip), %rdx
	imul	CALLER(%rsp), %rdx
	shr	$LENGTHS_SHIFT, %rdx
	movzwl	CONTROL_LENGTHS(%r8,%rdx,2), %edx
	shl	$UNIT_SHIFT, %edx
	cmp	%rdi, %rdx
	cmova	%rdi, %rdx
	and	$-8, %edx
	mov	%edx, %edi
	add	$RETURN_SIZE+63, %edx
	and	$-64, %edx

	reserve	.Lreturn_done
	begin_record
	mov	%rsi, RECORD_SP(%rcx)
	mov	%rax, %r11
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, RETURN_TIME(%rcx)
	mov	RESULT(%rsp), %rax
	mov	%rax, RETURN_RESULT(%rcx)
	mov	%edi, RETURN_LENGTH(%rcx)
	mov	%rbx, RETURN_SAVED(%rcx)
	mov	%rbp, RETURN_SAVED+8(%rcx)
	mov	%r12, RETURN_SAVED+16(%rcx)
	mov	%r13, RETURN_SAVED+24(%rcx)
	mov	%r14, RETURN_SAVED+32(%rcx)
	mov	%r15, RETURN_SAVED+40(%rcx)
	mov	%rcx, %rdx
	mov	%edi, %ecx
	lea	RETURN_SIZE(%rdx), %rdi
	shr	$3, %ecx
	rep movsq
	inc	%r11
	mov	%r11, (%rdx)
.Lreturn_done:
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	popfq
	ret
#undef RESULT
#undef CALLER

/* One turn of waiting for room: eax 0, try again; else this call is lost.  r10 when to give up; uses rcx, r11. */
	.balign	16
.Lwait:
	push	%rdx
	cmpl	$STATE_ON, CONTROL_STATE(%r8)
	jne	.Llost
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	test	%r10, %r10
	jnz	1f
	lock incq CONTROL_WAITS(%r8)
	mov	%rax, %r10
	add	CONTROL_WAIT(%r8), %r10
1:	cmp	%r10, %rax
	jae	.Ltoo_long
	pause
	cmpl	$0, CONTROL_YIELD(%r8)
	je	2f
	mov	$NR_sched_yield, %eax
	syscall
2:	xor	%eax, %eax
	pop	%rdx
	ret
.Ltoo_long:
	mov	$STATE_ON, %eax
	mov	$STATE_STALLED, %ecx
	lock cmpxchg %ecx, CONTROL_STATE(%r8)
.Llost:
	lock incq CONTROL_LOST(%r8)
	mov	$1, %eax
	pop	%rdx
	ret

	.balign	8
.Lfactor:
	.quad	0x9e3779b97f4a7c15
x86_64_ring_end:

	.section .note.GNU-stack, "", @progbits
