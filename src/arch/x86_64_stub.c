/* A system call by a thread that afterwards knows nothing of it. */
#include "arch/resident.h"

#include <errno.h>
#include <string.h>

#define RED_ZONE 128           /* bytes below rsp that belong to the running function: psABI 3.2.2 */
#define DATA_ALIGN 8

enum {                         /* numbers of registers in instructions */
	RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15,
};

struct code {
	uint8_t *out;
	uint32_t length;
};

static void put(struct code *code, const void *bytes, size_t len)
{
	memcpy(code->out + code->length, bytes, len);
	code->length += (uint32_t)len;
}

/* mov $value, %reg: leaves the flags alone.  Always the long form, so that the data's place is known
 * before its address is. */
static void put_load(struct code *code, unsigned reg, uint64_t value)
{
	const uint8_t opcode[] = {reg < R8 ? 0x48 : 0x49, (uint8_t)(0xb8 | (reg & 7))};

	put(code, opcode, sizeof(opcode));
	put(code, &value, sizeof(value));
}

static void put_system_call(struct code *code, const struct arch_stub_call *call, raddr data,
			    struct arch_stub *stub)
{
	static const uint8_t registers[] = {RDI, RSI, RDX, R10, R8, R9};
	static const uint8_t instruction[] = {0x0f, 0x05};

	for (int i = 0; i < 6; i++)
		put_load(code, registers[i], i == call->data_arg ? data : call->args[i]);
	put_load(code, RAX, call->number);
	stub->syscall_offset = code->length;
	put(code, instruction, sizeof(instruction));
	stub->after_offset = code->length;
}

static void put_flags(struct code *code, uint64_t flags)
{
	static const uint8_t below[] = {0x48, 0x8d, 0x64, 0x24, (uint8_t)-RED_ZONE}; /* lea -128(%rsp), %rsp */
	static const uint8_t push = 0x68, popfq = 0x9d;
	uint32_t low = (uint32_t)flags;

	put(code, below, sizeof(below));
	put(code, &push, 1);
	put(code, &low, sizeof(low));
	put(code, &popfq, 1);
}

static void put_registers(struct code *code, const struct user_regs_struct *regs)
{
	put_flags(code, regs->eflags);
	put_load(code, RSP, regs->rsp);
	put_load(code, RAX, regs->rax);
	put_load(code, RCX, regs->rcx);
	put_load(code, RDX, regs->rdx);
	put_load(code, RBX, regs->rbx);
	put_load(code, RBP, regs->rbp);
	put_load(code, RSI, regs->rsi);
	put_load(code, RDI, regs->rdi);
	put_load(code, R8, regs->r8);
	put_load(code, R9, regs->r9);
	put_load(code, R10, regs->r10);
	put_load(code, R11, regs->r11);
	put_load(code, R12, regs->r12);
	put_load(code, R13, regs->r13);
	put_load(code, R14, regs->r14);
	put_load(code, R15, regs->r15);
}

static void put_jump(struct code *code, raddr target)
{
	static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */

	put(code, jump, sizeof(jump));
	put(code, &target, sizeof(target));
}

static void put_all(struct code *code, const struct arch_stub_call *call,
		    const struct user_regs_struct *regs, raddr data, struct arch_stub *stub)
{
	code->length = 0;
	put_system_call(code, call, data, stub);
	put_registers(code, regs);
	put_jump(code, regs->rip);
	while (code->length % DATA_ALIGN)
		put(code, "\xcc", 1);
}

int arch_build_stub(raddr at, const struct arch_stub_call *call, const struct user_regs_struct *regs,
		    uint8_t *out, size_t space, struct arch_stub *ret_stub)
{
	uint8_t bytes[ARCH_STUB_MAX] = {0};
	struct code code = {.out = bytes};
	struct arch_stub stub;

	put_all(&code, call, regs, 0, &stub);
	put_all(&code, call, regs, at + code.length, &stub);
	if (call->data_length > space || code.length > space - call->data_length)
		return -ENOSPC;
	memcpy(out, bytes, code.length);
	if (call->data_length > 0)
		memcpy(out + code.length, call->data, call->data_length);
	stub.length = code.length + call->data_length;
	*ret_stub = stub;
	return 0;
}
