/* What the files of target/jumps.h share; nobody else includes it. */
#ifndef ALLOCWATCH_TARGET_JUMPS_PRIVATE_H
#define ALLOCWATCH_TARGET_JUMPS_PRIVATE_H

#include "target/jumps.h"
#include "target/maps.h"
#include "target/target.h"

#include "arch/resident.h"

#define JUMPS_PAGE 4096u
/* Noted as begun (resident_header), where else an address stands: the process has the ring's memfd open. */
#define JUMPS_DESCRIPTOR_BEGUN 1
#define JUMPS_RING_NAME "allocwatch-ring"       /* of the memfd, as the process's maps show it */

struct jump_area {
	struct jump_area *next;
	raddr start;
	uint32_t used;                 /* bytes of sites, from the start */
	uint32_t notes;
};

/* A system call of a held task's.  0, or negative errno of ours or of the call's own. */
int jumps_call(struct task *task, const struct arch_stub_call *call, int64_t *ret_result);
int jumps_call_plain(struct task *task, uint64_t number, uint64_t a, uint64_t b, uint64_t c);

/* A tracer that died had made the ring's memfd in the process, and not closed it yet. */
bool jumps_descriptor_is_begun(const struct target *target);
int jumps_close_descriptor(struct target *target, struct task *task);

/* A mapping that is the ring's, or a part of it, is made known; and all that there are, in the place of what was known. */
void jumps_note_ring(struct target *target, const struct map_line *map);
int jumps_find_ring(struct target *target);

/* Whose code a pc is in; NULL: none of them. */
const struct jump_area *jumps_area_at(const struct target *target, raddr pc);
int jumps_add_area(struct target *target, raddr start, struct jump_area **ret_area);

/* jumps_pads.c */

/* A jump that is prepared gets a pad, when it has to have one and there is a place for it; else it is exposed.  note_at: of its note's
 * pad. */
void jumps_spare(struct target *target, struct jump *jump, raddr note_at);
/* Of a jump that a tracer left which died, where its note says its pad is: the mappings, also when its object is gone; and the pad. */
void jumps_adopt_pads(struct target *target, raddr pad);
void jumps_adopt_pad(struct target *target, struct jump *jump, raddr pad);
/* Whether it is at one: what else is there may be the program's. */
bool jumps_pads_contain(const struct target *target, raddr pc);
/* The jumps are out, and no thread is in a pad.  0 or negative errno. */
int jumps_remove_pads(struct target *target, struct task *task);
void jumps_forget_pads(struct target *target);

#endif
