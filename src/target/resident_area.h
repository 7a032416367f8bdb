/* Shared by the parts of resident code: where the areas are and what stands in them. */
#ifndef ALLOCWATCH_TARGET_RESIDENT_AREA_H
#define ALLOCWATCH_TARGET_RESIDENT_AREA_H

#include "arch/resident.h"
#include "target/target.h"

#define STUB_SPACE (ARCH_STUB_MAX + 64)    /* a stub with its data */
#define INJECTED_SIZE 65536u               /* of an area that had no slack: 1,300 slots */

struct resident_area {
	struct resident_area *next;
	raddr start;
	bool injected;
	uint32_t module;                   /* whose slack it is */
	struct resident_header header;
	struct resident_entry *entries;    /* what the target's table holds */
	uint32_t *slots;                   /* index of each entry's slot */
	uint8_t *slot_used;
};

int resident_area_new(raddr start, uint32_t size, bool is_main, struct resident_area **ret_area);
void resident_area_free(struct resident_area *area);     /* accepts NULL */
/* A mapping within reach of `near`, noted as begun. */
int resident_map(struct target *target, struct task *task, raddr near, uint64_t size, int protection,
		 raddr *ret_start);
/* Calls are made from other unused bytes from now on; they are to be zeroed in the end.  -ENOSPC: there are none. */
int resident_move_stub(struct target *target);
/* 0: it is linked, or gone. */
int resident_note_begun(struct target *target, raddr at);
/* Takes out what a tracer that died was about to link, or had unlinked, and is still there. */
int resident_remove_begun(struct target *target, struct task *task);
/* What is noted as begun; and takes out what is there, unless it is linked. */
int resident_begun(struct target *target, raddr *ret_at);
int resident_remove_unlinked(struct target *target, struct task *task, raddr at);
int resident_area_write_header(struct target *target, const struct resident_area *area);
/* By a system call of the task.  0 or negative errno. */
int resident_unmap(struct task *task, raddr start, uint64_t size);
/* Zeroes it, and the stub behind it; or takes out one that was mapped for us. */
int resident_area_clear(struct target *target, const struct resident_area *area, bool with_stub);
int resident_area_unmap(struct task *task, const struct resident_area *area);

#endif
