/* The SIGTRAP handler that lives in the target; resident.h says what it does.  Data here: these bytes
 * never run in this process.  No relocations: all is reached relative to rip, and the header lies
 * directly before the handler. */

#define HEADER_SIZE	120		/* checked in x86_64_resident.c */
#define NEXT_AREA	16
#define ENTRY_COUNT	24
#define AREA_SIZE	28
#define OLD_HANDLER	32
#define OLD_FLAGS	40
#define OLD_RESTORER	48
#define CHAIN_MASK	64
#define TABLE_OFFSET	72

#define ENTRY_SLOT	8
#define ENTRY_SIZE	32

/* asm/sigcontext.h, asm/siginfo.h: ABI of x86-64 */
#define UC_RIP		168
#define SI_CODE		8
#define SI_KERNEL	0x80
#define SIGTRAP		5
#define SIG_BLOCK	0
#define SIGSET_SIZE	8
#define SA_RESTORER	0x04000000

#define NR_rt_sigaction		13
#define NR_rt_sigprocmask	14
#define NR_rt_sigreturn		15
#define NR_getpid		39
#define NR_gettid		186
#define NR_tgkill		234
#define NR_rt_tgsigqueueinfo	297

	.section .rodata
	.balign	16
.Lheader:
	.skip	HEADER_SIZE

	.globl	x86_64_resident_code, x86_64_resident_restorer, x86_64_resident_end
	.hidden	x86_64_resident_code, x86_64_resident_restorer, x86_64_resident_end
x86_64_resident_code:
/* rdi signal, rsi siginfo, rdx ucontext */
	endbr64
	cmpl	$SI_KERNEL, SI_CODE(%rsi)
	jne	.Lchain
	mov	UC_RIP(%rdx), %rax
	lea	-1(%rax), %rcx
	lea	.Lheader(%rip), %r8
.Larea:
	mov	ENTRY_COUNT(%r8), %r9d
	mov	TABLE_OFFSET(%r8), %r10d
	add	%r8, %r10
.Lentry:
	sub	$1, %r9d
	jb	.Lnext_area
	cmp	%rcx, (%r10)
	je	.Lfound
	add	$ENTRY_SIZE, %r10
	jmp	.Lentry
.Lnext_area:
	mov	NEXT_AREA(%r8), %r8
	test	%r8, %r8
	jnz	.Larea

	lea	.Lheader(%rip), %r8
.Linside:
	mov	%rax, %rcx
	sub	%r8, %rcx
	mov	AREA_SIZE(%r8), %r9d
	cmp	%r9, %rcx
	jb	.Ldone
	mov	NEXT_AREA(%r8), %r8
	test	%r8, %r8
	jnz	.Linside
	jmp	.Lchain

.Lfound:
	mov	ENTRY_SLOT(%r10), %rax
	mov	%rax, UC_RIP(%rdx)
.Ldone:
	ret

/* The program's own disposition. */
.Lchain:
	mov	.Lheader+OLD_HANDLER(%rip), %r9
	cmp	$1, %r9
	jb	.Ldefault
	je	.Lignored
	cmpq	$0, .Lheader+CHAIN_MASK(%rip)
	je	.Lcall
	push	%rdi
	push	%rsi
	push	%rdx
	mov	$SIG_BLOCK, %edi
	lea	.Lheader+CHAIN_MASK(%rip), %rsi
	xor	%edx, %edx
	mov	$SIGSET_SIZE, %r10d
	mov	$NR_rt_sigprocmask, %eax
	syscall
	pop	%rdx
	pop	%rsi
	pop	%rdi
/* It returns to the program's own restorer, for ours may be gone by then; but not where that stands on a shadow
 * stack, too. */
.Lcall:
	xor	%eax, %eax
	rdsspq	%rax
	test	%rax, %rax
	jnz	.Lgo
	testl	$SA_RESTORER, .Lheader+OLD_FLAGS(%rip)
	jz	.Lgo
	mov	.Lheader+OLD_RESTORER(%rip), %rax
	mov	%rax, (%rsp)
.Lgo:
	xor	%eax, %eax
	jmp	*%r9

/* The kernel lets nobody ignore a trap that the thread itself ran into. */
.Lignored:
	cmpl	$0, SI_CODE(%rsi)
	jle	.Ldone

/* Dies of the same signal at the same pc: sent again, it waits until sigreturn restores the mask. */
.Ldefault:
	mov	%rsi, %r9
	mov	$SIGTRAP, %edi
	lea	.Ldefault_action(%rip), %rsi
	xor	%edx, %edx
	mov	$SIGSET_SIZE, %r10d
	mov	$NR_rt_sigaction, %eax
	syscall
	mov	$SIG_BLOCK, %edi
	lea	.Ltrap_mask(%rip), %rsi
	mov	$NR_rt_sigprocmask, %eax
	syscall
	mov	$NR_getpid, %eax
	syscall
	mov	%eax, %edi
	mov	$NR_gettid, %eax
	syscall
	mov	%eax, %esi
	mov	$SIGTRAP, %edx
	mov	%r9, %r10
	mov	$NR_rt_tgsigqueueinfo, %eax
	syscall
	test	%eax, %eax
	jz	.Ldone
	mov	$NR_tgkill, %eax
	syscall
	ret

/* These very bytes tell unwinders and debuggers that a signal frame is above. */
	.balign	16
	nop			/* they look for a function at the byte before */
	.balign	16
x86_64_resident_restorer:
	.byte	0x48, 0xc7, 0xc0, NR_rt_sigreturn, 0, 0, 0	/* mov $15, %rax */
	syscall

	.balign	8
.Ldefault_action:
	.quad	0, 0, 0, 0
.Ltrap_mask:
	.quad	1 << (SIGTRAP - 1)
x86_64_resident_end:

	.section .note.GNU-stack, "", @progbits
