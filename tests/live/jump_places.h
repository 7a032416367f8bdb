/* The jumps that stand in the text of a process, as whoever compares it with its files finds them. */
#ifndef ALLOCWATCH_TESTS_JUMP_PLACES_H
#define ALLOCWATCH_TESTS_JUMP_PLACES_H

#include "arch/arch.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PLACES_MAX 512
#define PLACE_TEXT 20                  /* the jump, and the longest instruction behind it */

struct place {
	uint64_t address;
	uint8_t file[PLACE_TEXT], memory[ARCH_JUMP_SIZE];
	unsigned starts;               /* bit i: an instruction of the file begins at byte i */
};

struct places {
	size_t count;
	struct place items[PLACES_MAX];
};

/* Where a jump leads from the text of a file to code that is in none; the same memory each time. */
const struct places *find_places(pid_t pid);
/* How many instructions begin within all of them. */
unsigned starts_within(const struct places *places);
/* Fails when there are other bytes; and with those of one of the jumps. */
void require_bytes(pid_t pid, const struct place *place, const uint8_t *bytes);
void require_jumps(pid_t pid, const struct places *places);

#endif
