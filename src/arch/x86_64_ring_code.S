/* The routines that write records; arch/ring_code.h and ring/layout.h say what they do.  Data here: these bytes never run in
 * this process.  No relocations: all is reached relative to rip.  Every register is kept, and none but general ones
 * are used; flags are kept, too: behind a function's first instruction they may be that one's, and DF should be clear there (psABI 3.2.1), but
 * code written by hand may do as it likes, and so may the compiler where it knows both sides of a call (gcc's -fipa-ra). */

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
#define CONTROL_UNKNOWN	88
#define CONTROL_HOLES	92
#define CONTROL_SAMPLE	96
#define CONTROL_SERVED	104
#define CONTROL_FAMILIES 112
#define CONTROL_HEAD	128
#define CONTROL_TAIL	192
#define CONTROL_LOST	256
#define CONTROL_WAITS	264
#define CONTROL_NUMBER	272		/* of draws */
#define CONTROL_LEFT	280		/* of the loader's hook, these two */
#define CONTROL_HOOKS	288
#define CONTROL_LOGS	512
#define CONTROL_SLOTS	4096
#define CONTROL_LENGTHS	69632
#define CONTROL_DRAWS	135168
#define CONTROL_FILTER	2494464
#define CONTROL_SHAPES	2691072
#define CONTROL_DATA	2756608
#define SHAPE_SHIFT	4
#define SHAPE_FIXED	0
#define SHAPE_SIZE	8
#define SHAPE_COUNT	9
#define SHAPE_OLD	10
#define SHAPE_OUT	11
#define SHAPE_FAMILY	12
#define FAMILIES	9
#define SLOTS		1024
#define SLOT_SHIFT	6
#define SLOT_SIZE	64
#define SLOT_THREAD	0
#define SLOT_SP		8
#define WITHIN_MAX	65536
#define DRAWS		4096
#define DRAWS_SHIFT	12
#define DRAW_SHIFT	6
#define FAMILY_SHIFT	18		/* DRAWS_SHIFT + DRAW_SHIFT */
#define DRAW_COUNTDOWN	0
#define DRAW_SP		8
#define DRAW_RETURN	16
#define DRAW_SITE	24
#define DRAW_FATE	28
#define DRAW_OUT	32
#define DRAW_TAG	0x8000
#define DRAW_TAG_SHIFT	48
#define SAMPLED		1
#define OLD_ALONE	2
#define LOGS_SHIFT	7
#define LOG_BITS	16
#define FILTER_LOW	8		/* an address in two numbers, */
#define FILTER_HIGH	24
#define FILTER_MASK	0xffff		/* of as many bits */
#define FILTER_FULL	0xc0
#define UNSAMPLED	0x20000000
#define RESIZES		0x10000000
#define COUNT_SHIFT	26
#define SIZE_SHIFT	24
#define NO_ARGUMENT	3
#define TOLD		3
#define NUMBER_MASK	0x0fff		/* of those that have a shape */
#define NESTED		0x800000
#define OTHER_WITHIN	16384
#define ALLOCATES	0x40000000
#define EXECUTES_SHIFT	28
#define STORED		0x40000000	/* of a return */
#define BELOW_SHIFT	14	/* of a number of words, in a site */
#define BELOW_MASK	0x1f8
#define STATE_ON	1
#define STATE_STALLED	2
#define KEY_SHIFT	24
#define SET_SHIFT	51		/* of the whole product */
#define SET_SIZE	8
#define TAG_SHIFT	3
#define UNIT_SHIFT	6

#define RECORD_LENGTH	8
#define RECORD_SITE	12
#define RECORD_THREAD	16
#define RECORD_SP	24
#define CALL_RETURN	32
#define CALL_ARGS	40
#define CALL_SIZE	64
#define WITHIN_LENGTH	64
#define WITHIN_FIRST	68
#define WITHIN_AREA	72
#define WITHIN_OTHER	80
#define WITHIN_SAVED	88
#define WITHIN_SIZE	136
#define RETURN_TIME	32
#define RETURN_RESULT	40
#define RETURN_LENGTH	48
#define RETURN_FIRST	52
#define RETURN_OTHER	56
#define RETURN_SAVED	64
#define RETURN_KEY	112
#define RETURN_POINTER	116
#define RETURN_SIZE	120

/* Of a signal's frame (struct ucontext of the kernel): the word with the segment registers, and how far below its end the stack
 * pointer is.  Below that there may be what the interrupted function keeps in its red zone. */
#define SEGMENTS	0x002b000000000033
#define SP_BELOW	32
#define RED_ZONE	128

#define NR_gettid	186
#define NR_futex	202
#define FUTEX_WAIT	0		/* the reader is another process */
#define HOOK_LOOK_NS	1000000
#define ROOM_LOOK_NS	50000		/* a part of what the reader takes for the rest of a full ring */
#define ROOM_LOOK_MAX_NS 4000000	/* twice as much as all of it takes */
#define NR_process_vm_readv 310

#define PROT_ANY	7		/* whatever a page may be used for, it can be read */
#define MADV_GUARD_INSTALL	102
#define UNMAP_LOWEST	65536
#define FIRST_STACK_ROOM (64 << 20)	/* below the first stack, as the kernel leaves it free at least */

/* r8 ring, edx length: rax becomes the mark of an open record, rcx its address, r10 its position.  Uses r11.  What is known of a
 * thread by its pc goes to a table: x86_64_ring_site.c. */
	.macro	reserve	start, kept, committed, end, give_up
	xor	%r10d, %r10d		/* when the wait ends; 0: it has not begun */
	jmp	1f
3:	call	.Lwait
	test	%eax, %eax
	jnz	\give_up
1:	mov	CONTROL_HEAD(%r8), %rax
2:	lea	(%rax,%rdx), %rcx
	mov	%rcx, %r11
	sub	CONTROL_TAIL(%r8), %r11
	cmp	CONTROL_SIZE(%r8), %r11
	ja	3b
	lock cmpxchg %rcx, CONTROL_HEAD(%r8)
4:	jne	2b
5:	mov	%rax, %r10
6:	mov	CONTROL_SIZE(%r8), %rcx
	dec	%rcx
	and	%rax, %rcx
	lea	CONTROL_DATA(%r8,%rcx), %rcx
	xor	CONTROL_KEY(%r8), %rax
	inc	%rax
	.pushsection .rodata.x86_64_ring_stretches, "a", @progbits
	.long	\start - x86_64_ring_code, 4b - x86_64_ring_code, 5b - x86_64_ring_code
	.long	6b - x86_64_ring_code, \kept - x86_64_ring_code, \committed - x86_64_ring_code, \end - x86_64_ring_code
	.popsection
	.endm

/* r8 ring: r11 becomes the thread, r10 its slot. */
	.macro	find_slot
	mov	CONTROL_THREAD(%r8), %r11
	mov	%fs:(%r11), %r11
	and	CONTROL_MASK(%r8), %r11
	mov	%r11d, %r10d
	and	$(SLOTS - 1), %r10d
	shl	$SLOT_SHIFT, %r10d
	lea	CONTROL_SLOTS(%r8,%r10), %r10
	.endm

/* r8 ring: r11 becomes the thread, r10 what is drawn for it. */
	.macro	find_draw
	mov	CONTROL_THREAD(%r8), %r11
	mov	%fs:(%r11), %r11
	and	CONTROL_MASK(%r8), %r11
	mov	%r11d, %r10d
	and	$(DRAWS - 1), %r10d
	shl	$DRAW_SHIFT, %r10d
	lea	CONTROL_DRAWS(%r8,%r10), %r10
	.endm

/* \to becomes the place in the ring's filter of the block's address in \address, which changes.  filter_place() in ring_sampling.c. */
	.macro	find_filter address, to
	mov	\address, \to
	shr	$FILTER_LOW, \to
	and	$FILTER_MASK, \to
	shr	$FILTER_HIGH, \address
	and	$FILTER_MASK, \address
	lea	(\address,\to,2), \to
	lea	CONTROL_FILTER(%r8,\to), \to
	.endm

/* r9d site: \to becomes the size's argument, or TOLD. */
	.macro	find_size_argument to
	mov	%r9d, \to
	shr	$SIZE_SHIFT, \to
	and	$3, \to
	.endm

/* r8 ring, r9d site: \to becomes its shape; \low is its lower half. */
	.macro	find_shape to, low
	mov	%r9d, \low
	and	$NUMBER_MASK, \low
	shl	$SHAPE_SHIFT, \low
	lea	CONTROL_SHAPES(%r8,\to), \to
	.endm

/* \to, the lower half of \whole, becomes the argument's number: what the page says is not trusted. */
	.macro	shape_argument offset, shape, to
	movzbl	\offset(\shape), \to
	and	$3, \to
	.endm

/* r8 ring: \to becomes how many families there are. */
	.macro	find_families to, none
	mov	CONTROL_FAMILIES(%r8), \to
	dec	\to
	cmp	$(FAMILIES - 1), \to
	ja	\none
	inc	\to
	.endm

/* How far the stack at rsi is certainly mapped: the program's first one and a thread's own to their ends, which they are
 * as long as something runs on them, unless the program has made holes in such; of all others what is left of the page.  rdi becomes the
 * end, rdx the start or -1: it is not known. */
	.macro	find_bounds
	cmpl	$0, CONTROL_HOLES(%r8)
	jne	2f
	mov	CONTROL_MAIN_END(%r8), %rdi
	cmp	%rdi, %rsi
	jae	1f
	mov	CONTROL_MAIN(%r8), %rdx
	cmp	%rdx, %rsi
	jae	3f
1:	mov	CONTROL_STACK(%r8), %rdx
	mov	%fs:(%rdx), %rdx
	mov	%fs:0, %rdi
	test	%rdx, %rdx
	jz	2f
	cmp	%rdx, %rsi
	jb	2f
	cmp	%rdi, %rsi
	jb	3f
2:	mov	%rsi, %rdi
	or	$4095, %rdi
	inc	%rdi
	mov	$-1, %rdx
3:
	.endm

/* All that a routine changes; the frame's offsets are from rsp behind it. */
	.macro	save
	pushfq
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	.endm
#define FRAME_RDI 32
#define FRAME_RSI 40
#define FRAME_RDX 48
#define RESULT 80
#define CALLER 88

	.macro	restore
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
	.endm

/* The ring's address, or there is nothing to do; eax is the site: goes to r9d.  off: the ring is not on. */
	.macro	begin	done, off
	save
	mov	.Lheader+CODE_SIZE(%rip), %r8
	test	%r8, %r8
	jz	\done
	cmpl	$STATE_ON, CONTROL_STATE(%r8)
	jne	\off
	mov	%eax, %r9d
	lea	CALLER(%rsp), %rsi
	.endm

/* An entry's record is written when the function has lowered the stack pointer, as its site in r9d says; uses the register. */
	.macro	add_below low, whole
	mov	%r9d, %\low
	shr	$BELOW_SHIFT, %\low
	and	$BELOW_MASK, %\low
	add	%\whole, %rsi
	.endm

/* What both records begin with; uses r11. */
	.macro	begin_record
	mov	%edx, RECORD_LENGTH(%rcx)
	mov	%r9d, RECORD_SITE(%rcx)
	mov	CONTROL_THREAD(%r8), %r11
	mov	%fs:(%r11), %r11
	and	CONTROL_MASK(%r8), %r11
	mov	%r11, RECORD_THREAD(%rcx)
	mov	%rsi, RECORD_SP(%rcx)
	mov	%rax, (%rcx)
	.endm

/* What stands on the stack of a call's record, whose rsp is `pushed` bytes below the frame. */
	.macro	fill_call pushed
	mov	(%rsi), %r11
	mov	%r11, CALL_RETURN(%rcx)
	mov	FRAME_RDI+\pushed(%rsp), %r11
	mov	%r11, CALL_ARGS(%rcx)
	mov	FRAME_RSI+\pushed(%rsp), %r11
	mov	%r11, CALL_ARGS+8(%rcx)
	mov	FRAME_RDX+\pushed(%rsp), %r11
	mov	%r11, CALL_ARGS+16(%rcx)
	.endm

	.macro	fill_saved offset
	mov	%rbx, \offset(%rcx)
	mov	%rbp, \offset+8(%rcx)
	mov	%r12, \offset+16(%rcx)
	mov	%r13, \offset+24(%rcx)
	mov	%r14, \offset+32(%rcx)
	mov	%r15, \offset+40(%rcx)
	.endm

/* Of a return's record, whose rsp is `pushed` bytes below the frame; the key is above r9d, the stack pointer in rsi.  Uses rax, rdx
 * and r9. */
	.macro	fill_return pushed
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, RETURN_TIME(%rcx)
	mov	RESULT+\pushed(%rsp), %rax
	mov	%rax, RETURN_RESULT(%rcx)
	fill_saved RETURN_SAVED
	shr	$32, %r9
	mov	%r9d, RETURN_KEY(%rcx)
	mov	%fs:0, %r9
	sub	%rsi, %r9
	shr	$3, %r9
	mov	%r9d, RETURN_POINTER(%rcx)
	.endm

	.section .rodata
	.balign	16
.Lheader:
	.skip	HEADER_SIZE
	.globl	x86_64_ring_code, x86_64_ring_return, x86_64_ring_hook, x86_64_ring_exec, x86_64_ring_end, x86_64_ring_stretches
	.hidden	x86_64_ring_code, x86_64_ring_return, x86_64_ring_hook, x86_64_ring_exec, x86_64_ring_end, x86_64_ring_stretches
	.globl	x86_64_ring_out
	.hidden	x86_64_ring_out
	.globl	x86_64_ring_unmap, x86_64_ring_protect, x86_64_ring_advise
	.hidden	x86_64_ring_unmap, x86_64_ring_protect, x86_64_ring_advise
	.globl	x86_64_ring_sample, x86_64_ring_sample_return
	.hidden	x86_64_ring_sample, x86_64_ring_sample_return
	.globl	x86_64_ring_pieces
	.hidden	x86_64_ring_pieces
	.pushsection .rodata.x86_64_ring_stretches, "a", @progbits
	.balign	4
x86_64_ring_stretches:
	.popsection

/* At an entry: eax site, on the stack the site's return address, its rax, the function's return address. */
x86_64_ring_code:
	begin	.Lcall_done, .Lcall_off
	add_below eax, rax
.Lcall_begun:
	find_slot
	mov	SLOT_SP(%r10), %rcx
	or	SLOT_SP+8(%r10), %rcx
	or	SLOT_SP+16(%r10), %rcx
	or	SLOT_SP+24(%r10), %rcx
	or	SLOT_SP+32(%r10), %rcx
	or	SLOT_SP+40(%r10), %rcx
	or	SLOT_SP+48(%r10), %rcx
	jnz	.Lwithin
	test	$ALLOCATES, %r9d
	jz	.Lcall_plain
	mov	%r11, SLOT_THREAD(%r10)
	mov	%rsi, SLOT_SP(%r10)
.Lcall_plain:
	mov	$CALL_SIZE, %edx
	reserve	x86_64_ring_code, .Lcall_done, .Lcall_done, .Lwithin, .Lcall_lost
	begin_record
	fill_call 0
	inc	%rax
	mov	%rax, (%rcx)
.Lcall_done:
	restore

/* The thread has calls pending, or had some that it has left: so this record has the stack with it, up to the outermost
 * of them when all are further out on the same one, else as much as there is. */
.Lwithin:
	find_bounds
	cmp	%r11, SLOT_THREAD(%r10)
	je	1f
	xor	%r11d, %r11d		/* another thread's: nothing of it is changed */
1:	xor	%eax, %eax		/* how far, -1: all */
2:	add	$8, %r10
	mov	(%r10), %rcx
	test	%rcx, %rcx
	jz	5f
	cmp	%rsi, %rcx
	je	5f			/* it had this one's place */
	jb	4f
	cmp	%rdi, %rcx
	jae	4f
	cmp	%rcx, %rax
	cmovb	%rcx, %rax
	jmp	5f
4:	mov	$-1, %rax
5:	lea	8(%r10), %rcx
	test	$(SLOT_SIZE - 1), %ecx
	jnz	2b
	test	%rax, %rax
	jz	.Lcall_plain

	test	%r11, %r11
	jz	.Lnoted
	test	$ALLOCATES, %r9d
	jz	.Lnoted
1:	cmp	%rsi, (%r10)
	je	.Lnoted
	sub	$8, %r10
	test	$(SLOT_SIZE - 1), %r10d
	jnz	1b
2:	add	$8, %r10
	cmpq	$0, (%r10)
	je	3f
	lea	8(%r10), %rcx
	test	$(SLOT_SIZE - 1), %ecx
	jnz	2b
	sub	$(SLOT_SIZE - 8), %r10
2:	add	$8, %r10		/* in the place of one that is gone */
	mov	(%r10), %rcx
	cmp	%rsi, %rcx
	ja	1f
	cmp	%rdx, %rcx
	jae	3f
1:	lea	8(%r10), %rcx
	test	$(SLOT_SIZE - 1), %ecx
	jnz	2b
	jmp	.Lnoted			/* no room: that shows in the records within this one */
3:	mov	%rsi, (%r10)
.Lnoted:
	sub	%rsi, %rdi
	cmp	$-1, %rax
	je	1f
	sub	%rsi, %rax
	add	$64, %rax
	cmp	%rdi, %rax
	cmovb	%rax, %rdi
	mov	$WITHIN_MAX, %eax
	jmp	3f
1:	mov	$WITHIN_MAX, %eax
	test	%rdx, %rdx
	jns	3f
	cmpl	$0, CONTROL_YIELD(%r8)
	cmovne	%rax, %rdi
3:	cmp	%rax, %rdi
	cmova	%rax, %rdi
	and	$-8, %edi
	push	%rdx
	test	%rdx, %rdx
	lea	WITHIN_SIZE+63(%rdi), %edx
	jns	4f
	add	$OTHER_WITHIN, %edx
4:	and	$-64, %edx
	reserve	.Lwithin, .Lwithin_kept, .Lwithin_done, x86_64_ring_return, .Lwithin_lost
	push	%r10
.Lwithin_kept:
	begin_record
	fill_call 16
	mov	%edi, WITHIN_LENGTH(%rcx)
	mov	8(%rsp), %r11
	mov	%r11, WITHIN_AREA(%rcx)
	fill_saved WITHIN_SAVED
	movq	$0, WITHIN_OTHER(%rcx)
	test	%r11, %r11
	jns	4f
	cmpl	$0, CONTROL_YIELD(%r8)
	je	4f
	push	%rcx
	mov	RECORD_THREAD(%rcx), %r9
	mov	%edi, %edx
	mov	$OTHER_WITHIN, %r8d
	lea	WITHIN_SIZE(%rcx), %rdi
	call	.Lread_stacks
	pop	%rcx
	mov	%eax, WITHIN_LENGTH(%rcx)
	mov	%edx, WITHIN_FIRST(%rcx)
	mov	%rsi, WITHIN_OTHER(%rcx)
	mov	%rcx, %rdx
	mov	(%rdx), %rax
	jmp	5f
4:	mov	%rcx, %rdx
	mov	%edi, %ecx
	lea	WITHIN_SIZE(%rdx), %rdi
	shr	$3, %ecx
	cld
	rep movsq
5:	inc	%rax
	mov	%rax, (%rdx)
.Lwithin_done:
	pop	%r10
	pop	%rdx
	test	%rdx, %rdx
	js	.Lcall_done
	/* What is below this one on the same stack is gone: the record says so, and not before is it forgotten here. */
	lea	CALLER(%rsp), %rsi
	add_below eax, rax
	find_slot
	cmp	%r11, SLOT_THREAD(%r10)
	jne	.Lcall_done
1:	add	$8, %r10
	mov	(%r10), %rcx
	cmp	%rsi, %rcx
	jae	2f
	cmp	%rdx, %rcx
	jb	2f
	movq	$0, (%r10)
2:	lea	8(%r10), %rcx
	test	$(SLOT_SIZE - 1), %ecx
	jnz	1b
	jmp	.Lcall_done

/* Before a return instruction, and before a jump that ends a function: the same, and rax is the result. */
	.balign	16
x86_64_ring_return:
	begin	.Lreturn_done, .Lreturn_off
.Lreturn_recorded:
	cld
	find_bounds
	mov	%rdx, %rcx
	sub	%rsi, %rdi
	mov	%rcx, %rdx		/* distances are multiples of 8: one from a thread's end has 1 more, from a page's 3 */
	shr	$62, %rdx
	cmp	CONTROL_MAIN(%r8), %rcx
	adc	%rdi, %rdx
	shl	$KEY_SHIFT, %rdx
	xor	CALLER(%rsp), %rdx
	imul	.Lfactor(%rip), %rdx
	mov	%rdx, %r10
	shr	$SET_SHIFT, %r10
	mov	CONTROL_LENGTHS(%r8,%r10,SET_SIZE), %r11
	shr	$32, %rdx
	mov	%rdx, %r10
	shl	$32, %r10
	or	%r10, %r9
	shr	$TAG_SHIFT, %edx
	cmp	%r11w, %dx
	je	1f
	shr	$32, %r11
	cmp	%r11w, %dx
	je	1f
	mov	CONTROL_UNKNOWN(%r8), %edx
	jmp	2f
1:	shr	$16, %r11d
	shl	$UNIT_SHIFT, %r11d
	mov	%r11d, %edx
2:	test	$STORED, %r9d
	jnz	.Lelsewhere
	test	%rcx, %rcx
	js	.Lelsewhere
.Lreturn_plain:
	cmp	%rdi, %rdx
	cmova	%rdi, %rdx
	and	$-8, %edx
	mov	%edx, %edi
	add	$RETURN_SIZE+63, %edx
	and	$-64, %edx

	reserve	x86_64_ring_return, .Lreturned, .Lreturned, .Lelsewhere, .Lreturn_lost
	begin_record
	mov	%rax, %r11
	fill_return 0
	mov	%edi, RETURN_LENGTH(%rcx)
	movq	$0, RETURN_OTHER(%rcx)
	mov	%rcx, %rdx
	mov	%edi, %ecx
	lea	RETURN_SIZE(%rdx), %rdi
	shr	$3, %ecx
	rep movsq
	inc	%r11
	mov	%r11, (%rdx)
.Lreturned:
	cmpq	$0, CONTROL_SAMPLE(%r8)
	jne	.Lsample_returned
	find_slot
	cmp	%r11, SLOT_THREAD(%r10)
	jne	.Lreturn_done
	lea	CALLER(%rsp), %rsi
1:	add	$8, %r10
	cmp	%rsi, (%r10)
	je	2f
	lea	8(%r10), %rcx
	test	$(SLOT_SIZE - 1), %ecx
	jnz	1b
	jmp	.Lreturn_done
2:	movq	$0, (%r10)
.Lreturn_done:
	restore

/* On a stack of which no bounds are known, a coroutine's or a signal handler's own, or where more than the stack is to be read; edx bytes
 * of it are needed. */
.Lelsewhere:
	cmpl	$0, CONTROL_YIELD(%r8)
	jne	1f
	btr	$30, %r9		/* STORED: it is not told */
	jmp	.Lreturn_plain
1:
	mov	%edx, %edi
	push	%rdx
	lea	RETURN_SIZE+63(%rdx,%rdx), %edx
	and	$-64, %edx
	reserve	.Lelsewhere, .Lelsewhere_kept, .Lelsewhere_done, .Lread_stacks, .Lelsewhere_lost
	push	%r10
.Lelsewhere_kept:
	begin_record
	fill_return 16
	push	%r8
	push	%rcx
	mov	%r11, %r9
	mov	%edi, %edx
	mov	%edi, %r8d
	lea	RETURN_SIZE(%rcx), %rdi
	call	.Lread_stacks
	pop	%rcx
	pop	%r8
	mov	%eax, RETURN_LENGTH(%rcx)
	mov	%edx, RETURN_FIRST(%rcx)
	mov	%rsi, RETURN_OTHER(%rcx)
	testl	$STORED, RECORD_SITE(%rcx)
	jz	1f
	call	.Lread_stored
1:	mov	(%rcx), %rax
	inc	%rax
	mov	%rax, (%rcx)
.Lelsewhere_done:
	pop	%r10
	pop	%rdx
	jmp	.Lreturned

/* Into the record that is open, the stack at rsi as far as it goes, edx bytes at most, and where a signal's handler runs on it
 * the one that it has interrupted, r8d bytes at most.  rdi where to, r9 the thread.  eax becomes the bytes of both, edx of the
 * first, rsi where the other one begins or 0.  Uses all. */
.Lread_stacks:
	cld
	call	.Lread
	test	%eax, %eax
	jnz	1f
	/* Perhaps it may not be asked: what is left of the page. */
	mov	%esi, %ecx
	or	$-4096, %ecx
	neg	%ecx
	cmp	%edx, %ecx
	cmova	%edx, %ecx
	and	$-8, %ecx
	mov	%ecx, %eax
	shr	$3, %ecx
	rep movsq
	sub	%rax, %rsi
	sub	%rax, %rdi
1:	mov	%rdi, %r10
	mov	%eax, %edx
	mov	%eax, %ecx
	shr	$3, %ecx
	mov	.Lsegments(%rip), %rax
2:	test	%ecx, %ecx
	jz	3f
	repne scasq
	jne	3f
	mov	-SP_BELOW(%rdi), %r11
	sub	%rsi, %r11
	cmp	%rdx, %r11
	jb	2b			/* a handler that interrupted another one on the same stack */
	lea	-RED_ZONE(%rsi,%r11), %rsi
	and	$-8, %rsi
	lea	(%r10,%rdx), %rdi
	push	%rdx
	mov	%r8d, %edx
	call	.Lread
	pop	%rdx
	test	%eax, %eax
	jz	3f
	add	%edx, %eax
	ret
3:	mov	%edx, %eax
	xor	%esi, %esi
	ret

/* Into the record at rcx of a return, the block that its call has stored, where the function was asked to: by the kernel, for who is asked
 * to store it somewhere may be asked by a call that was not recorded.  A record without is told by its site.  Uses all but rcx and r8. */
.Lread_stored:
	push	%rcx
	mov	RECORD_SP(%rcx), %rsi
	mov	RECORD_THREAD(%rcx), %r9
	cmpl	$0, RETURN_RESULT(%rcx)
	jne	.Lstored_not
	mov	%r9d, %r10d
	and	$(DRAWS - 1), %r10d
	shl	$DRAW_SHIFT, %r10d
	lea	CONTROL_DRAWS(%r8,%r10), %r10
	cmpq	$0, CONTROL_SAMPLE(%r8)
	jne	1f
	mov	%r9, %rax		/* another thread's, or the half of it */
	xor	%rsi, %rax
	xor	DRAW_OUT(%r10), %rax
	cmp	DRAW_RETURN(%r10), %rax
	jne	.Lstored_not
	mov	$1, %ecx
	jmp	2f
1:	find_families %ecx, .Lstored_not
2:	cmp	%rsi, DRAW_SP(%r10)
	jne	3f
	cmpq	$0, DRAW_OUT(%r10)
	jne	4f
3:	add	$(1 << FAMILY_SHIFT), %r10
	dec	%ecx
	jnz	2b
.Lstored_not:
	pop	%rcx
	andl	$~STORED, RECORD_SITE(%rcx)
	ret
4:	pushq	DRAW_SITE(%r10)		/* the fate is above it */
	mov	8(%rsp), %rdi
	lea	RETURN_RESULT(%rdi), %rdi
	mov	DRAW_OUT(%r10), %rsi
	mov	$8, %edx
	call	.Lread
	pop	%r9
	mov	(%rsp), %rcx
	cmp	$8, %eax
	je	5f
	movq	$0, RETURN_RESULT(%rcx)
	jmp	.Lstored_not
5:	pop	%rcx
	shr	$32, %r9
	cmp	$SAMPLED, %r9d
	jne	6f
	mov	%rsi, %r10
	mov	RECORD_SP(%rcx), %rsi
	find_bounds
	cmp	%rsi, %r10
	jb	5f
	sub	$8, %rdi
	cmp	%rdi, %r10
	jbe	6f			/* on its caller's stack: it was counted before */
5:	mov	RETURN_RESULT(%rcx), %r11
	find_filter %r11, %rdi
	cmpb	$FILTER_FULL, (%rdi)
	jae	6f
	lock incb (%rdi)
6:	ret

/* By the kernel, which does not mind what is not there: edx bytes from rsi to rdi, of the thread r9.  rax becomes how many; uses rcx,
 * r10, r11. */
.Lread:
	push	%r8
	push	%r9
	push	%rdx
	push	%rsi			/* from where and to where, each a struct iovec */
	push	%rdx
	push	%rdi
	mov	%r9, %rdi
	mov	%rsp, %rsi
	lea	16(%rsp), %r10
	mov	$1, %edx
	mov	$1, %r8d
	xor	%r9d, %r9d
	mov	$NR_process_vm_readv, %eax
	syscall
	pop	%rdi
	pop	%rdx
	pop	%rsi
	pop	%rdx
	pop	%r9
	pop	%r8
	xor	%ecx, %ecx
	test	%rax, %rax
	cmovs	%rcx, %rax
	and	$-8, %eax
	ret
.Lread_end:
	/* All of it in the midst of a record. */
	.pushsection .rodata.x86_64_ring_stretches, "a", @progbits
	.rept	5
	.long	.Lread_stacks - x86_64_ring_code
	.endr
	.long	.Lread_end - x86_64_ring_code, .Lread_end - x86_64_ring_code
	.popsection

/* At the entry of a function that stores its result where an argument says, without sampling: that is noted for its return, and the rest
 * is as at any entry. */
	.balign	16
x86_64_ring_out:
	begin	.Lcall_done, .Lcall_off
	add_below eax, rax
	find_shape %rdi, %edi
	shape_argument SHAPE_OUT, %rdi, %edi
	mov	FRAME_RDI(%rsp,%rdi,8), %rdi
	find_draw
	mov	%rdi, DRAW_OUT(%r10)
	mov	%rsi, DRAW_SP(%r10)
	xor	%rsi, %rdi
	xor	%r11, %rdi
	mov	%rdi, DRAW_RETURN(%r10)
	jmp	.Lcall_begun
.Lout_end:
	/* Nothing is reserved. */
	.pushsection .rodata.x86_64_ring_stretches, "a", @progbits
	.long	x86_64_ring_out - x86_64_ring_code
	.rept	6
	.long	.Lout_end - x86_64_ring_code
	.endr
	.popsection

/* One turn of waiting for room: eax 0, try again; else this call is lost.  r10 when to give up; uses rcx, r11.  It sleeps, and nobody wakes
 * it: with sched_yield one that shared its processor with the reader kept it until the wait was over (seen with Linux 6.18, the two being
 * in different groups of the scheduler's by autogroup).  The longer it has waited, the longer it sleeps, a quarter of the ticks taken for
 * nanoseconds: many threads that look all the time would leave the reader as little. */
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
	mov	%rax, %rcx
	sub	%r10, %rcx
	add	CONTROL_WAIT(%r8), %rcx
	shr	$2, %rcx
	add	$ROOM_LOOK_NS, %rcx
	cmp	$ROOM_LOOK_MAX_NS, %rcx
	jbe	3f
	mov	$ROOM_LOOK_MAX_NS, %ecx
3:	push	%rdi
	push	%rsi
	push	%r10
	mov	CONTROL_TAIL(%r8), %edx
	push	%rcx
	push	$0			/* a struct timespec */
	lea	CONTROL_TAIL(%r8), %rdi
	mov	$FUTEX_WAIT, %esi
	mov	%rsp, %r10
	mov	$NR_futex, %eax
	syscall
	add	$16, %rsp
	pop	%r10
	pop	%rsi
	pop	%rdi
2:	xor	%eax, %eax
	pop	%rdx
	ret
.Ltoo_long:
	mov	$STATE_ON, %eax
	mov	$STATE_STALLED, %ecx
	lock cmpxchg %ecx, CONTROL_STATE(%r8)
.Llost:
	mov	$1, %eax
	pop	%rdx
	ret

/* At the C library's execve, and only where somebody will wait: who has the memory of its parent until then (vfork) has its
 * thread's data as well, and is known by its number.  To ask for that takes a system call. */
	.balign	16
x86_64_ring_exec:
	begin	.Lhook_done, .Lhook_done
	cmpl	$0, CONTROL_HOOKS(%r8)
	je	.Lhook_done
	cmpl	$0, CONTROL_YIELD(%r8)
	je	.Lhook_done
	mov	$NR_gettid, %eax
	syscall
	mov	CONTROL_THREAD(%r8), %r11
	mov	%fs:(%r11), %r11
	and	CONTROL_MASK(%r8), %r11
	cmp	%rax, %r11
	jne	.Lhook_done
	jmp	.Lhook_begun

/* In the loader's hook: as at an entry; and then it waits until that is served, of which it is woken up; it looks now and then at
 * whether it is still to wait.  In vain only once: then nobody waits until the reader says that it serves again. */
x86_64_ring_hook:
	begin	.Lhook_done, .Lhook_done
.Lhook_begun:
	mov	$CALL_SIZE, %edx
	reserve	x86_64_ring_exec, .Lhook_written, .Lhook_written, .Lhook_end, .Lhook_lost
	begin_record
	fill_call 0
	inc	%rax
	mov	%rax, (%rcx)
.Lhook_written:
	shr	$EXECUTES_SHIFT, %r9d
	and	$1, %r9d		/* when the wait ends, above the lowest bit: who waits executes a program; 0: it has not begun */
1:	mov	CONTROL_SERVED(%r8), %rsi
	cmp	%r10, %rsi
	jg	.Lhook_done
	cmpl	$0, CONTROL_HOOKS(%r8)
	je	.Lhook_left
	cmpl	$STATE_ON, CONTROL_STATE(%r8)
	jne	.Lhook_left
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	cmp	$1, %r9
	ja	2f
	mov	%rax, %rdx
	add	CONTROL_WAIT(%r8), %rdx
	and	$-2, %rdx
	or	%rdx, %r9
2:	cmp	%r9, %rax
	jae	.Lhook_left
	pause
	cmpl	$0, CONTROL_YIELD(%r8)
	je	1b
	mov	%esi, %edx
	push	%r10
	push	$HOOK_LOOK_NS
	push	$0			/* a struct timespec */
	lea	CONTROL_SERVED(%r8), %rdi
	mov	$FUTEX_WAIT, %esi
	mov	%rsp, %r10
	mov	$NR_futex, %eax
	syscall
	add	$16, %rsp
	pop	%r10
	jmp	1b
.Lhook_left:
	movl	$0, CONTROL_HOOKS(%r8)
	test	$1, %r9b		/* whose exec is not seen in time says nothing of the loader */
	jnz	.Lhook_done
	inc	%r10
	mov	%r10, CONTROL_LEFT(%r8)
	jmp	.Lhook_done
.Lhook_lost:
	lock incq CONTROL_LOST(%r8)
.Lhook_done:
	restore
.Lhook_end:

/* Of the memory from rdi to rsi, a hole in the stack from rdx to r9, where rcx is the stack pointer, is noted.  What lies below
 * that and within the lowest part of the stack may be a guard of the program's own.  r8 ring; uses r10. */
	.macro	note_hole
	cmp	%r9, %rdi
	jae	2f
	lea	UNMAP_LOWEST(%rdx), %r10
	cmp	%r9, %rcx
	jae	1f
	cmp	%rdx, %rcx
	jb	1f
	cmp	%r10, %rcx
	cmovb	%rcx, %r10
1:	cmp	%r10, %rsi
	jbe	2f
	movl	$1, CONTROL_HOLES(%r8)
2:
	.endm

/* Before memory is made such that it may not be read, by its protection or as a guard, and before it is unmapped: its start and length are
 * the first two arguments.  No record is written. */
	.balign	16
x86_64_ring_advise:
	save
	cmp	$MADV_GUARD_INSTALL, %edx
	jne	.Lunmap_done		/* each thread that ends gives MADV_DONTNEED of its own stack */
	jmp	.Lunmap
	.balign	16
x86_64_ring_protect:
	save
	test	$PROT_ANY, %dl
	jnz	.Lunmap_done
	jmp	.Lunmap
	.balign	16
x86_64_ring_unmap:
	save
.Lunmap:
	mov	.Lheader+CODE_SIZE(%rip), %r8
	test	%r8, %r8
	jz	.Lunmap_done
	add	%rdi, %rsi
	lea	CALLER(%rsp), %rcx
	mov	CONTROL_MAIN(%r8), %rdx
	mov	CONTROL_MAIN_END(%r8), %r9
	mov	%rdx, %r10
	sub	%rcx, %r10
	cmp	$FIRST_STACK_ROOM, %r10
	cmovb	%rcx, %rdx		/* it has grown */
	note_hole
	mov	CONTROL_STACK(%r8), %rdx
	mov	%fs:(%rdx), %rdx
	test	%rdx, %rdx
	jz	.Lunmap_done
	mov	%fs:0, %r9
	note_hole
.Lunmap_done:
	restore

/* --- what is not recorded --- */

/* Each call counts once: at its entry; at its return when the entry was recorded, which the slot says, or what was drawn.  A thread
 * that is stopped behind the count is put to behind the record, as if there was one. */

	/* An entry that has waited in vain. */
	.balign	16
.Lwithin_lost:
	pop	%r10
.Lcall_lost:
	call	.Lfind_noted
	jne	.Lcall_count
	movq	$0, (%r10)
	jmp	.Lcall_count
.Lcall_off:
	cmpl	$STATE_STALLED, CONTROL_STATE(%r8)
	jne	.Lcall_done
.Lcall_count:
	lock incq CONTROL_LOST(%r8)
.Lcall_counted:
	restore
.Lcall_counted_end:

	/* A return that has. */
.Lelsewhere_lost:
	pop	%rdx
.Lreturn_lost:
	lock incq CONTROL_LOST(%r8)
.Lreturn_counted:
	jmp	.Lreturned
.Lreturn_off:
	cmpl	$STATE_STALLED, CONTROL_STATE(%r8)
	jne	.Lreturn_done
	lea	CALLER(%rsp), %rsi
	call	.Lfind_noted
	jne	.Lreturn_done
	lock incq CONTROL_LOST(%r8)
.Lreturn_missed:
	movq	$0, (%r10)
	restore
.Lreturn_missed_end:
	.pushsection .rodata.x86_64_ring_stretches, "a", @progbits
	.rept	6
	.long	.Lcall_counted - x86_64_ring_code
	.endr
	.long	.Lcall_counted_end - x86_64_ring_code
	.rept	6
	.long	.Lreturn_counted - x86_64_ring_code
	.endr
	.long	.Lreturn_off - x86_64_ring_code
	.rept	6
	.long	.Lreturn_missed - x86_64_ring_code
	.endr
	.long	.Lreturn_missed_end - x86_64_ring_code
	.popsection

/* Zero flag: r10 is where the call at rsi is noted, whose entry was recorded; with sampling, or whose old block was.  Uses rcx, r11. */
.Lfind_noted:
	cmpq	$0, CONTROL_SAMPLE(%r8)
	jne	2f
	find_slot
	cmp	%r11, SLOT_THREAD(%r10)
	jne	3f
1:	add	$8, %r10
	cmp	%rsi, (%r10)
	je	3f
	lea	8(%r10), %rcx
	test	$(SLOT_SIZE - 1), %ecx
	jnz	1b
	test	%r8, %r8
	ret
2:	find_draw
	add	$DRAW_SP, %r10
	find_families %ecx, 3f
1:	cmp	%rsi, (%r10)
	jne	2f
	cmpl	$0, DRAW_FATE-DRAW_SP(%r10)
	jne	4f
2:	add	$(1 << FAMILY_SHIFT), %r10
	dec	%ecx
	jnz	1b
	test	%r8, %r8
3:	ret
4:	xor	%ecx, %ecx
	ret

/* --- sampling --- */

/* Most calls are not sampled.  These pieces stand in sites before the call of a routine, each in a site of its own, and jump over it when
 * there is nothing to record.  What they keep is stored below the stack, where a signal's handler leaves room, so that wherever a thread
 * is stopped in a piece it is had from there.  A call and its return alone take as long as all of this. */
#define KEPT_RCX	-8
#define KEPT_RDX	-16
#define KEPT_RAX	-24
#define KEPT_FLAGS	-32
#define KEPT_BLOCK	-24
#define OVER		12		/* bytes of what a site has behind the piece */

	.macro	piece	start, kept, flags, ring, site, sp, caller, end
	.pushsection .rodata.x86_64_ring_pieces, "a", @progbits
	.long	\start - x86_64_ring_code, \kept - \start, \flags - \start, \ring - \start
	.long	\site - \start, \sp - \start, \caller - \start, \end - \start
	.popsection
	.endm

	.macro	restore_two
	mov	KEPT_RDX(%rsp), %rdx
	mov	KEPT_RCX(%rsp), %rcx
	.endm

/* Flags by lahf and sahf, which take a quarter of what pushfq and popfq take.  DF is not touched. */
	.macro	restore_flags
	mov	KEPT_FLAGS(%rsp), %eax
	add	$127, %al
	sahf
	mov	KEPT_RAX(%rsp), %rax
	restore_two
	.endm

/* Of functions whose first argument is the block.  Its place in the filter is had by reading two pieces of the address from where it
 * is stored: that changes no flags, and neither does any other instruction here. */
.Lpass_free:
	mov	%rcx, KEPT_RCX(%rsp)
	mov	%rdx, KEPT_RDX(%rsp)
.Lpass_free_kept:
	mov	0(%rip), %rcx		/* the ring, as the site is told */
.Lpass_free_ring:
	jrcxz	1f
	mov	%rdi, KEPT_BLOCK(%rsp)
	movzwl	KEPT_BLOCK+FILTER_LOW/8(%rsp), %edx
	lea	(%rcx,%rdx,2), %rcx
	movzwl	KEPT_BLOCK+FILTER_HIGH/8(%rsp), %edx
	movzbl	CONTROL_FILTER(%rcx,%rdx), %ecx
	jrcxz	1f
	restore_two
	jmp	.Lpass_free_end
1:	restore_two
	jmp	.Lpass_free_end+OVER
.Lpass_free_end:

/* Before a return: of a call that was passed over, or of none.  The distance of the stack pointer from that of the pending call by `not`,
 * which changes no flags either. */
.Lpass_return:
	mov	%rcx, KEPT_RCX(%rsp)
	mov	%rdx, KEPT_RDX(%rsp)
.Lpass_return_kept:
	mov	0(%rip), %rcx
.Lpass_return_ring:
	jrcxz	1f
	mov	CONTROL_THREAD(%rcx), %rdx
	mov	%fs:(%rdx), %edx
	lea	(,%rdx,8), %edx
	lea	(%rdx,%rdx), %edx
	movzwl	%dx, %edx		/* a quarter of the draw's offset */
	lea	CONTROL_DRAWS(%rcx,%rdx,4), %rdx
	mov	DRAW_SP(%rdx), %rcx
	not	%rcx
	lea	1(%rsp,%rcx), %rcx
	jrcxz	2f
1:	restore_two
	jmp	.Lpass_return_end+OVER
2:	mov	DRAW_FATE(%rdx), %ecx
	jrcxz	3f
	restore_two
	jmp	.Lpass_return_end
3:	mov	%rcx, DRAW_SP(%rdx)
	restore_two
	jmp	.Lpass_return_end+OVER
.Lpass_return_end:

/* Of functions that allocate: \size is what they are asked for, times \count, and the first argument of one that \resizes is a block that
 * may go. */
	.macro	pass_call start, size, count, resizes
\start:
	mov	%rcx, KEPT_RCX(%rsp)
	mov	%rdx, KEPT_RDX(%rsp)
	mov	%rax, KEPT_RAX(%rsp)
\start\()_kept:
	lahf
	seto	%al
	mov	%eax, KEPT_FLAGS(%rsp)
\start\()_flags:
	mov	0(%rip), %rcx
\start\()_ring:
	test	%rcx, %rcx
	jz	1f
	.ifnb	\resizes
	mov	%rdi, %rdx
	shr	$FILTER_LOW, %rdx
	movzwl	%dx, %eax
	shr	$(FILTER_HIGH - FILTER_LOW), %rdx
	movzwl	%dx, %edx
	lea	(%rdx,%rax,2), %rax
	cmpb	$0, CONTROL_FILTER(%rcx,%rax)
	jne	2f
	.endif
	mov	CONTROL_THREAD(%rcx), %rdx
	mov	%fs:(%rdx), %edx
	mov	%edx, %eax
	and	$(DRAWS - 1), %eax
	shl	$DRAW_SHIFT, %eax
	lea	CONTROL_DRAWS(%rcx,%rax), %rcx
	shr	$DRAWS_SHIFT, %edx
	or	$DRAW_TAG, %edx
	cmp	%dx, DRAW_COUNTDOWN+DRAW_TAG_SHIFT/8(%rcx)
	jne	2f			/* another thread's */
	cmpq	$0, DRAW_SP(%rcx)
	jne	2f
	mov	DRAW_COUNTDOWN(%rcx), %rax
	.ifnb	\count
	mov	\size, %rdx
	test	%rdx, %rdx
	js	2f			/* with a count below 0 the product might look small */
	imul	\count, %rdx
	jo	2f
	cmp	$1, %rdx
	sbb	%rdx, %rax
	.else
	cmp	$1, \size
	sbb	\size, %rax		/* a call asks for 1 byte at least */
	.endif
	jb	2f
	movzwl	DRAW_COUNTDOWN+DRAW_TAG_SHIFT/8(%rcx), %edx
	shl	$DRAW_TAG_SHIFT, %rdx
	cmp	%rdx, %rax
	jbe	2f			/* it comes to 0 */
	movq	$0, DRAW_SITE(%rcx)	/* the site's word, as the site is told, */
\start\()_site:
	lea.d32	0(%rsp), %rdx		/* and how far the return address is */
\start\()_sp:
	mov	%rdx, DRAW_SP(%rcx)
	mov.d32	0(%rsp), %rdx
\start\()_caller:
	mov	%rdx, DRAW_RETURN(%rcx)
	mov	%rax, DRAW_COUNTDOWN(%rcx)	/* last, or not at all */
1:	restore_flags
	jmp	\start\()_end+OVER
2:	restore_flags
\start\()_end:
	piece	\start, \start\()_kept, \start\()_flags, \start\()_ring, \start\()_site, \start\()_sp, \start\()_caller, \start\()_end
	.endm

	.pushsection .rodata.x86_64_ring_pieces, "a", @progbits
	.balign	4
x86_64_ring_pieces:
	.popsection
	piece	.Lpass_free, .Lpass_free_kept, .Lpass_free, .Lpass_free_ring, .Lpass_free, .Lpass_free, .Lpass_free, .Lpass_free_end
	piece	.Lpass_return, .Lpass_return_kept, .Lpass_return, .Lpass_return_ring, .Lpass_return, .Lpass_return, .Lpass_return, .Lpass_return_end
	pass_call .Lpass_first, %rdi
	pass_call .Lpass_second, %rsi
	pass_call .Lpass_times, %rsi, %rdi
	pass_call .Lpass_resize, %rsi, , resizes

/* At an entry: rsi becomes where the return address is. */
	.balign	16
x86_64_ring_sample:
	begin	.Lcall_done, .Lcall_off
	add_below eax, rax
	find_size_argument %eax
	test	$ALLOCATES, %r9d
	jnz	.Lsample_call
	mov	FRAME_RDI(%rsp,%rax,8), %rdi
.Lsample_old:
	find_filter %rdi, %rcx
	cmpb	$0, (%rcx)
	jne	.Lcall_plain
	jmp	.Lcall_done

.Lsample_call:
	mov	%r9d, %ecx
	shr	$COUNT_SHIFT, %ecx
	and	$3, %ecx
	cmp	$TOLD, %eax
	je	.Lsample_told
	xor	%edi, %edi
.Lsample_argument:
	mov	FRAME_RDI(%rsp,%rax,8), %rax
.Lsample_times:
	cmp	$NO_ARGUMENT, %ecx
	je	1f
	mulq	FRAME_RDI(%rsp,%rcx,8)
	jnc	1f
	mov	$-1, %rax		/* that fails */
1:	cmp	$1, %rax
	adc	$0, %rax
	find_draw
	shl	$FAMILY_SHIFT, %edi
	add	%rdi, %r10
	shr	$DRAWS_SHIFT, %r11d
	or	$DRAW_TAG, %r11d
	shl	$DRAW_TAG_SHIFT, %r11
	mov	DRAW_COUNTDOWN(%r10), %rcx
	xor	%r11, %rcx
	mov	%rcx, %rdx
	shr	$DRAW_TAG_SHIFT, %rdx
	jnz	.Lsample_new
	mov	DRAW_SP(%r10), %rdx
	test	%rdx, %rdx
	jnz	.Lsample_within
	/* rax bytes, rcx countdown, r11 tag.  What is stored last, or not at all: the countdown. */
.Lsample_outermost:
	mov	(%rsi), %rdx
	mov	%rdx, DRAW_RETURN(%r10)
	mov	%r9, DRAW_SITE(%r10)
	call	.Lout
	mov	%rdx, DRAW_OUT(%r10)
	mov	%rsi, DRAW_SP(%r10)
	cmp	%rcx, %rax
	jae	.Lsample_hit
	sub	%rax, %rcx
	or	%r11, %rcx
	mov	%rcx, DRAW_COUNTDOWN(%r10)
	test	$RESIZES, %r9d
	jz	.Lcall_done
	/* A block that was sampled is resized, and the new one is not. */
	call	.Lold
	find_filter %rdi, %rcx
	cmpb	$0, (%rcx)
	je	.Lcall_done
	movl	$OLD_ALONE, DRAW_FATE(%r10)
	or	$UNSAMPLED, %r9d
	jmp	.Lcall_plain

	/* Whoever is stopped from here on, and put to before the call, comes to it again with the same fate. */
.Lsample_hit:
	movl	$SAMPLED, DRAW_FATE(%r10)
	call	.Ldraw
	or	%r11, %rcx
	mov	%rcx, DRAW_COUNTDOWN(%r10)
	jmp	.Lcall_plain

	/* Another thread has had the place, or none. */
.Lsample_new:
	mov	%rax, %rsi
	call	.Ldraw
	mov	%rsi, %rax
	lea	CALLER(%rsp), %rsi
	add_below edx, rdx
	mov	%rcx, %rdx
	or	%r11, %rdx
	movq	$0, DRAW_SP(%r10)
	mov	%rdx, DRAW_COUNTDOWN(%r10)
	jmp	.Lsample_outermost

	/* rdx: where a call was made that has not returned.  The present one is a part of it, or it was left. */
.Lsample_within:
	cmp	%rsi, %rdx
	jb	.Lsample_outermost
	ja	1f
	cmp	%r9d, DRAW_SITE(%r10)
	jne	.Lsample_part		/* it has jumped here */
	cmpl	$SAMPLED, DRAW_FATE(%r10)
	jne	.Lsample_outermost
	jmp	.Lcall_plain
1:	find_bounds
	test	%rdx, %rdx
	mov	DRAW_SP(%r10), %rdx
	jns	1f
	cmp	%rdi, %rdx
	jb	2f
	/* Behind the page that is certainly there, of a stack without known bounds: it cannot be looked at. */
	sub	%rsi, %rdx
	cmp	$4096, %rdx
	jb	.Lsample_part
	jmp	.Lsample_outermost
1:	cmp	%rdi, %rdx
	jae	.Lsample_outermost
2:	mov	(%rdx), %rdx
	cmp	DRAW_RETURN(%r10), %rdx
	jne	.Lsample_outermost
.Lsample_part:
	test	$RESIZES, %r9d
	jz	.Lcall_done
	call	.Lold
	or	$(UNSAMPLED | NESTED), %r9d
	jmp	.Lsample_old

	/* Of which the site has no room to say what it asks for. */
.Lsample_told:
	find_shape %rdi, %edi
	shape_argument SHAPE_COUNT, %rdi, %ecx
	shape_argument SHAPE_SIZE, %rdi, %eax
	mov	SHAPE_FIXED(%rdi), %rdx
	mov	SHAPE_FAMILY(%rdi), %edi
	cmp	$FAMILIES, %edi
	jae	.Lcall_done
	test	%rdx, %rdx
	jz	.Lsample_argument
	mov	%rdx, %rax
	jmp	.Lsample_times

/* r9d site: rdi becomes the block that is resized. */
.Lold:
	find_size_argument %edi
	cmp	$TOLD, %edi
	mov	$0, %edi
	jne	1f
	find_shape %rdi, %edi
	shape_argument SHAPE_OLD, %rdi, %edi
1:	mov	FRAME_RDI+8(%rsp,%rdi,8), %rdi
	ret

/* r9d site: rdx becomes where the result is stored, or 0.  Uses rdi. */
.Lout:
	xor	%edx, %edx
	find_size_argument %edi
	cmp	$TOLD, %edi
	jne	1f
	find_shape %rdi, %edi
	shape_argument SHAPE_OUT, %rdi, %edi
	cmp	$NO_ARGUMENT, %edi
	je	1f
	mov	FRAME_RDI+8(%rsp,%rdi,8), %rdx
1:	ret

/* rsi where the return address is, r10 what is drawn for it: r11 becomes the block that the call returns or has stored, 0: none, or
 * it is stored where nobody knows that it is mapped: elsewhere than on the caller's stack.  Uses rdx, rdi. */
.Lmade:
	mov	DRAW_OUT(%r10), %rdi
	mov	RESULT+8(%rsp), %r11
	test	%rdi, %rdi
	jz	9f
	test	%r11d, %r11d
	mov	$0, %r11d
	jnz	9f
	find_bounds
	sub	$8, %rdi
	mov	DRAW_OUT(%r10), %rdx
	cmp	%rsi, %rdx
	jb	9f
	cmp	%rdi, %rdx
	ja	9f
	mov	(%rdx), %r11
9:	ret

/* rcx becomes what -ln(x) * sample_bytes is for an x between 0 and 1, by chance, and 1 more, for the countdown reaches 0 with
 * the byte that is sampled.  Uses rax, rdx, rdi. */
.Ldraw:
	mov	$1, %eax
	lock xadd %rax, CONTROL_NUMBER(%r8)
	mov	.Lfactor(%rip), %rcx	/* splitmix64 */
	imul	%rcx, %rax
	add	CONTROL_KEY(%r8), %rax
	mov	%rax, %rdx
	shr	$30, %rdx
	xor	%rdx, %rax
	mov	.Lmix(%rip), %rcx
	imul	%rcx, %rax
	mov	%rax, %rdx
	shr	$27, %rdx
	xor	%rdx, %rax
	mov	.Lmix+8(%rip), %rcx
	imul	%rcx, %rax
	mov	%rax, %rdx
	shr	$31, %rdx
	xor	%rdx, %rax
	or	$1, %rax
	/* x = m * 2^-n, m from 1/2 to 1. */
	bsr	%rax, %rdi
	mov	$63, %ecx
	sub	%edi, %ecx
	shl	%cl, %rax
	mov	%ecx, %ecx
	imul	CONTROL_LOGS(%r8), %rcx
	shl	$1, %rax
	mov	%rax, %rdi
	shr	$(64 - LOGS_SHIFT), %rdi
	shl	$LOGS_SHIFT, %rax
	lea	CONTROL_LOGS(%r8,%rdi,8), %rdi
	mov	(%rdi), %rdx
	add	%rdx, %rcx
	sub	8(%rdi), %rdx
	mul	%rdx
	sub	%rdx, %rcx
	shr	$LOG_BITS, %rcx
	inc	%rcx
	ret

/* Before a return, which may be that of several families' calls: of the one that has jumped to the other. */
	.balign	16
x86_64_ring_sample_return:
	begin	.Lreturn_done, .Lreturn_off
	find_draw
	find_families %ecx, .Lreturn_done
	xor	%eax, %eax		/* whether it is recorded */
1:	cmp	%rsi, DRAW_SP(%r10)
	jne	4f
	cmpl	$1, CONTROL_FAMILIES(%r8)
	je	2f
	mov	(%rsi), %rdx
	cmp	%rdx, DRAW_RETURN(%r10)
	jne	4f			/* one that was left: its place is another one's */
2:	mov	DRAW_FATE(%r10), %edx
	or	%edx, %eax
	test	%edx, %edx
	jnz	3f
	movq	$0, DRAW_SP(%r10)
	jmp	4f
3:	cmp	$SAMPLED, %edx
	jne	4f
	call	.Lmade
	test	%r11, %r11
	jz	4f
	find_filter %r11, %rdi
	cmpb	$FILTER_FULL, (%rdi)
	jae	4f
	lock incb (%rdi)
4:	add	$(1 << FAMILY_SHIFT), %r10
	dec	%ecx
	jnz	1b
	test	%eax, %eax
	jz	.Lreturn_done
	jmp	.Lreturn_recorded
.Lsample_returned:
	find_draw
	find_families %ecx, .Lreturn_done
	lea	CALLER(%rsp), %rsi
1:	cmp	%rsi, DRAW_SP(%r10)
	jne	2f
	movq	$0, DRAW_SP(%r10)
2:	add	$(1 << FAMILY_SHIFT), %r10
	dec	%ecx
	jnz	1b
	jmp	.Lreturn_done
.Lsample_returned_end:
	/* Behind a record. */
	.pushsection .rodata.x86_64_ring_stretches, "a", @progbits
	.rept	6
	.long	.Lsample_returned - x86_64_ring_code
	.endr
	.long	.Lsample_returned_end - x86_64_ring_code
	.popsection

	.balign	8
.Lfactor:
	.quad	0x9e3779b97f4a7c15
.Lsegments:
	.quad	SEGMENTS
.Lmix:
	.quad	0xbf58476d1ce4e5b9, 0x94d049bb133111eb
x86_64_ring_end:

	.section .note.GNU-stack, "", @progbits
