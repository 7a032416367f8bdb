/* Stacks recorded from live programs: registers and the bytes above the stack pointer, with the modules
 * they ran in.  One file, one process.
 *
 * Format, all numbers little-endian: "AWSTACK1", then records of { u32 type, u32 length, length bytes }:
 *   1 module  u64 bias, u32 ranges, u32 path length, { u64 start, u64 end } per range, path
 *   2 image   the bytes of the file of the module before it, when it is none on disk (the vdso)
 *   3 stack   17 u64 registers in DWARF's order, u64 address of the bytes, bytes
 * A module's id is its place among the modules. */
#ifndef ALLOCWATCH_TESTS_RECORDING_H
#define ALLOCWATCH_TESTS_RECORDING_H

#include "arch/arch.h"
#include "base/vec.h"
#include "model/module.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct recorded_stack {
	struct arch_regs regs;
	raddr address;
	uint32_t len;
	uint8_t *bytes;
};

struct recording {
	struct module_map map;
	VEC_OF(struct recorded_image { uint8_t *bytes; uint32_t len; }) images;   /* by module; len 0: on disk */
	VEC_OF(struct recorded_stack) stacks;
};

/* Writing: start, any number of stacks, then the modules; 0 or negative errno. */
int recording_write_start(FILE *file);
int recording_write_stack(FILE *file, const struct recorded_stack *stack);
int recording_write_modules(FILE *file, pid_t process, const struct module_map *map);

/* Fills in *ret (free with recording_fini); 0, -EINVAL for a file that is no recording, or errno. */
int recording_read(const char *path, struct recording *ret);
void recording_fini(struct recording *recording);
/* A descriptor of a module's file; -errno. */
int recording_open_module(const struct recording *recording, uint32_t module);
/* A reader over one recorded stack, which must outlive it. */
#define RECORDING_READ_MAX 65536u
struct reader recording_reader(const struct recorded_stack *stack);

#endif
