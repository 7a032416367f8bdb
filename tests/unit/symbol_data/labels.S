# Assembly with line numbers but no function DIE, and symbols without a size.
	.text
	.globl	sized_function
	.type	sized_function, @function
sized_function:
	nop
	nop
label_inside:
	nop
	ret
	.size	sized_function, . - sized_function
	.p2align 4
	.globl	unsized_function
	.type	unsized_function, @function
unsized_function:
	nop
	ret
	.p2align 4
	.globl	bare_label
bare_label:
	nop
	ret
	.section .note.GNU-stack,"",@progbits
