#include "arch/arch.h"

#include <stddef.h>
#include <string.h>
#include <sys/user.h>

const uint8_t arch_callee_saved[ARCH_CALLEE_SAVED] = { 3, 6, 12, 13, 14, 15 };

void arch_regs_from_user(const struct user_regs_struct *user, struct arch_regs *ret)
{
	*ret = (struct arch_regs){ .reg = {
		user->rax, user->rdx, user->rcx, user->rbx, user->rsi, user->rdi, user->rbp, user->rsp,
		user->r8, user->r9, user->r10, user->r11, user->r12, user->r13, user->r14, user->r15,
		user->rip,
	} };
}

void arch_regs_to_user(const struct arch_regs *regs, struct user_regs_struct *ret_user)
{
	const uint64_t *reg = regs->reg;

	*ret_user = (struct user_regs_struct){
		.rax = reg[0],	.rdx = reg[1],	.rcx = reg[2],	.rbx = reg[3],	.rsi = reg[4],	.rdi = reg[5],
		.rbp = reg[6],	.rsp = reg[7],	.r8 = reg[8],	.r9 = reg[9],	.r10 = reg[10], .r11 = reg[11],
		.r12 = reg[12], .r13 = reg[13], .r14 = reg[14], .r15 = reg[15], .rip = reg[16],
	};
}

/* Bytes of a ModRM operand behind the opcode of `call r/m64`; 0 when it is no such call. */
static size_t indirect_call_length(const uint8_t *code, size_t len)
{
	uint8_t mod = code[1] >> 6, rm = code[1] & 7;
	size_t length = 2;

	if (((code[1] >> 3) & 7) != 2)
		return 0;
	if (mod != 3 && rm == 4) {
		if (len < 3)
			return 0;
		length++;
		if (mod == 0 && (code[2] & 7) == 5)
			length += 4;
	}
	if (mod == 1)
		length += 1;
	else if (mod == 2 || (mod == 0 && rm == 5))
		length += 4;
	return length;
}

bool arch_ends_in_call(const uint8_t *code, size_t len)
{
	if (len >= 5 && code[len - 5] == 0xe8)
		return true;
	for (size_t length = 2; length <= 7 && length <= len; length++)
		if (code[len - length] == 0xff &&
		    indirect_call_length(code + len - length, length) == length)
			return true;
	return false;
}

bool arch_direct_call(const uint8_t *code, size_t len, raddr end, raddr *ret_target)
{
	int32_t distance;

	if (len < 5 || code[len - 5] != 0xe8)
		return false;
	memcpy(&distance, code + len - sizeof(distance), sizeof(distance));
	*ret_target = end + (uint64_t)(int64_t)distance;
	return true;
}

bool arch_direct_jump(const uint8_t *code, size_t len, raddr at, raddr *ret_target)
{
	int32_t distance;

	if (len < 5 || code[0] != 0xe9)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	*ret_target = at + 5 + (uint64_t)(int64_t)distance;
	return true;
}

/* mov %eax, %edi or mov %rax, %rdi; call */
bool arch_passes_result(const uint8_t *code, size_t len, raddr at, raddr *ret_function)
{
	size_t wide = len > 0 && code[0] == 0x48;

	return len >= wide + 7 && code[wide] == 0x89 && code[wide + 1] == 0xc7 &&
	       arch_direct_call(code, wide + 7, at + wide + 7, ret_function);
}

bool arch_call_through(const uint8_t *code, size_t len, raddr end, raddr *ret_pointer)
{
	int32_t distance;

	if (len < 6 || code[len - 6] != 0xff || code[len - 5] != 0x15)
		return false;
	memcpy(&distance, code + len - sizeof(distance), sizeof(distance));
	*ret_pointer = end + (uint64_t)(int64_t)distance;
	return true;
}

uint64_t arch_pc(const struct user_regs_struct *regs)
{
	return regs->rip;
}

void arch_set_pc(struct user_regs_struct *regs, uint64_t pc)
{
	regs->rip = pc;
}

bool arch_is_segment_base(size_t offset)
{
	return offset == offsetof(struct user_regs_struct, fs_base) ||
	       offset == offsetof(struct user_regs_struct, gs_base);
}

size_t arch_user_pc_offset(void)
{
	return offsetof(struct user, regs.rip);
}

uint64_t arch_sp(const struct user_regs_struct *regs)
{
	return regs->rsp;
}

uint64_t arch_frame_pointer(const struct user_regs_struct *regs)
{
	return regs->rbp;
}

uint64_t arch_argument(const struct user_regs_struct *regs, int number)
{
	switch (number) {
	case 0:
		return regs->rdi;
	case 1:
		return regs->rsi;
	case 2:
		return regs->rdx;
	case 3:
		return regs->rcx;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

uint64_t arch_thread_pointer(const struct user_regs_struct *regs)
{
	return regs->fs_base;
}

uint64_t arch_result(const struct user_regs_struct *regs)
{
	return regs->rax;
}

uint64_t arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
