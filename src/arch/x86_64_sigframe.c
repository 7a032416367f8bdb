#include "arch/sigframe.h"

#include <string.h>
#include <sys/user.h>

/* struct rt_sigframe of arch/x86/include/asm/sigframe.h, its ucontext as in asm/sigcontext.h */
#define REGISTERS_AT ARCH_SIGFRAME_USER
#define SP_AT 168
#define FLAGS_AT 184
#define CS_AT 192
#define FPSTATE_AT 232
#define MASK_AT 304
#define USER_CS 0x33
#define FLAGS_ALWAYS 2                 /* of rflags, always set */
#define FPSTATE_FAR_MOST (64u << 10)   /* above the frame, with the largest registers that there are */

static uint64_t word(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static bool are_flags_and_cs(uint64_t flags, uint64_t cs)
{
	return (cs & 0xffff) == USER_CS && flags & FLAGS_ALWAYS;
}

bool arch_may_be_sigframe(const uint64_t *words, size_t count)
{
	return count <= CS_AT / 8 || are_flags_and_cs(words[FLAGS_AT / 8], words[CS_AT / 8]);
}

bool arch_is_restorer(const uint8_t code[ARCH_RESTORER_SIZE])
{
	/* mov $15, %rax; syscall */
	static const uint8_t sigreturn[ARCH_RESTORER_SIZE] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return memcmp(code, sigreturn, sizeof(sigreturn)) == 0;
}

bool arch_parse_sigframe(const uint8_t bytes[ARCH_SIGFRAME_SIZE], raddr at, struct arch_sigframe *ret_frame)
{
	uint64_t fpstate = word(bytes + FPSTATE_AT);

	if (!are_flags_and_cs(word(bytes + FLAGS_AT), word(bytes + CS_AT)) ||
	    (fpstate != 0 && (fpstate <= at || fpstate - at > FPSTATE_FAR_MOST)))
		return false;
	*ret_frame = (struct arch_sigframe){ word(bytes + ARCH_SIGFRAME_PC), word(bytes + SP_AT), word(bytes + MASK_AT) };
	return true;
}

void arch_sigframe_regs(const uint8_t bytes[ARCH_SIGFRAME_SIZE], struct arch_regs *ret_regs)
{
	/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, by their numbers in DWARF */
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 };

	for (size_t i = 0; i < sizeof(order); i++)
		ret_regs->reg[order[i]] = word(bytes + REGISTERS_AT + 8 * i);
}

/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, and the flags. */
static unsigned long long *user_register(struct user_regs_struct *regs, size_t number)
{
	unsigned long long *const all[ARCH_SIGFRAME_USER_SIZE / 8] = {
		&regs->r8,  &regs->r9,	&regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14, &regs->r15,	  &regs->rdi,
		&regs->rsi, &regs->rbp, &regs->rbx, &regs->rdx, &regs->rax, &regs->rcx, &regs->rsp, &regs->rip, &regs->eflags,
	};

	return all[number];
}

void arch_sigframe_get_user(const uint8_t bytes[ARCH_SIGFRAME_SIZE], struct user_regs_struct *regs)
{
	for (size_t i = 0; i < ARCH_SIGFRAME_USER_SIZE / 8; i++)
		*user_register(regs, i) = word(bytes + REGISTERS_AT + 8 * i);
}

void arch_sigframe_put_user(const struct user_regs_struct *regs, uint8_t bytes[ARCH_SIGFRAME_SIZE])
{
	struct user_regs_struct copy = *regs;

	for (size_t i = 0; i < ARCH_SIGFRAME_USER_SIZE / 8; i++)
		memcpy(bytes + REGISTERS_AT + 8 * i, user_register(&copy, i), 8);
}
