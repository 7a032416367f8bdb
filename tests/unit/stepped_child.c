#include "stepped_child.h"

#include "random.h"

#include <check.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void map_at(unsigned long address, size_t size, int prot)
{
	void *got = mmap((void *)address, size, prot, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	ck_assert_ptr_eq(got, (void *)address);
}

static pid_t child;

void start_child(void)
{
	int status;

	map_at(FROM_PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	map_at(NEAR_PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	map_at(FAR_PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	map_at(DATA_PAGE, DATA_SIZE, PROT_READ | PROT_WRITE);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status));
}

void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void random_registers(struct state *state)
{
	unsigned long long *regs[] = {
		&state->regs.rax, &state->regs.rbx, &state->regs.rcx, &state->regs.rdx, &state->regs.rsi,
		&state->regs.rdi, &state->regs.rbp, &state->regs.r8, &state->regs.r9, &state->regs.r10,
		&state->regs.r11, &state->regs.r12, &state->regs.r13, &state->regs.r14, &state->regs.r15,
	};

	for (size_t i = 0; i < sizeof(regs) / sizeof(*regs); i++) {
		switch (random_u64() % 4) {
		case 0:
			*regs[i] = random_u64() % 3;
			break;
		case 1:
			*regs[i] = random_u64();
			break;
		default:
			*regs[i] = DATA_PAGE + PAGE + random_u64() % (2 * PAGE) / 16 * 16;
		}
	}
	state->regs.rsp = DATA_PAGE + 2 * PAGE + random_u64() % PAGE / 16 * 16;
	state->regs.fs_base = DATA_PAGE + PAGE;
	state->regs.gs_base = DATA_PAGE + 2 * PAGE;
	state->regs.eflags = 0x202 | (random_u64() & 0x8d5);
	state->regs.orig_rax = ~0ULL;
}

void random_state_fill(struct state *state)
{
	memset(state, 0, sizeof(*state));
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &state->regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_GETFPREGS, child, NULL, &state->fpregs), 0);
	random_registers(state);
	for (size_t i = 0; i < sizeof(state->fpregs.xmm_space) / sizeof(*state->fpregs.xmm_space); i++)
		state->fpregs.xmm_space[i] = (unsigned)random_u64();
	for (size_t i = 0; i < sizeof(state->memory); i += sizeof(uint64_t)) {
		uint64_t word = random_u64() % 4 ? random_u64() : DATA_PAGE + random_u64() % DATA_SIZE;

		memcpy(state->memory + i, &word, sizeof(word));
	}
}

void put_state(const struct state *state, uint64_t pc)
{
	struct user_regs_struct regs = state->regs;

	regs.rip = pc;
	memcpy((void *)DATA_PAGE, state->memory, DATA_SIZE);
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, child, NULL, &regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_SETFPREGS, child, NULL, &state->fpregs), 0);
}

void get_state(struct state *state)
{
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &state->regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_GETFPREGS, child, NULL, &state->fpregs), 0);
	memcpy(state->memory, (void *)DATA_PAGE, DATA_SIZE);
	state->regs.orig_rax = 0;
	state->regs.eflags &= ~0x10000ULL;      /* RF: set by a fault, says nothing about the copy */
	state->fpregs.rip = state->fpregs.rdp = 0;
}

uint64_t step(struct state *state)
{
	siginfo_t info;
	int status;

	ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status));
	state->signal = WSTOPSIG(status);
	state->fault_address = 0;
	if (state->signal == SIGSEGV) {
		ck_assert_int_eq(ptrace(PTRACE_GETSIGINFO, child, NULL, &info), 0);
		state->fault_address = (uint64_t)info.si_addr;
	}
	return (uint64_t)ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), NULL);
}
