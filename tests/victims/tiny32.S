/* A 32-bit program without a library: says "R", then waits for the end of input and exits with 0. */
	.text
	.globl _start
_start:
	movl $4, %eax
	movl $1, %ebx
	movl $ready, %ecx
	movl $2, %edx
	int $0x80
1:	movl $3, %eax
	xorl %ebx, %ebx
	movl $buffer, %ecx
	movl $1, %edx
	int $0x80
	testl %eax, %eax
	jle 2f
	cmpb $'q', buffer
	jne 1b
2:	movl $1, %eax
	xorl %ebx, %ebx
	int $0x80

	.data
ready:	.ascii "R\n"
buffer:	.zero 4
	.section .note.GNU-stack, "", @progbits
