/* A traced child that runs single instructions from random registers and memory. */
#ifndef ALLOCWATCH_TESTS_STEPPED_CHILD_H
#define ALLOCWATCH_TESTS_STEPPED_CHILD_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* Shared with the child, at the same addresses. */
#define PAGE 4096UL
#define FROM_PAGE 0x10000000UL
#define NEAR_PAGE 0x10100000UL
#define DATA_PAGE 0x10200000UL
#define DATA_SIZE (4 * PAGE)
#define FAR_PAGE 0x7e0000000000UL
#define FROM (FROM_PAGE + 0x800)
#define NEAR_SLOT (NEAR_PAGE + 0x120)
#define FAR_SLOT (FAR_PAGE + 0x120)

struct state {
	struct user_regs_struct regs;
	struct user_fpregs_struct fpregs;
	uint8_t memory[DATA_SIZE];
	int signal;                     /* SIGTRAP: stepped; else what the instruction raised */
	uint64_t fault_address;
};

void start_child(void);
void end_child(void);

void random_state_fill(struct state *state);
void put_state(const struct state *state, uint64_t pc);
void get_state(struct state *state);
/* One step; the pc after it. */
uint64_t step(struct state *state);

#endif
