/* A static 64-bit program without any allocator: says "R", waits for 'q' or the end of input. */
	.text
	.globl _start
_start:
	movl $1, %eax
	movl $1, %edi
	leaq ready(%rip), %rsi
	movl $2, %edx
	syscall
1:	xorl %eax, %eax
	xorl %edi, %edi
	leaq buffer(%rip), %rsi
	movl $1, %edx
	syscall
	testl %eax, %eax
	jle 2f
	cmpb $'q', buffer(%rip)
	jne 1b
2:	movl $60, %eax
	xorl %edi, %edi
	syscall

	.data
ready:	.ascii "R\n"
buffer:	.zero 4
	.section .note.GNU-stack, "", @progbits
