/* What the files of target/jumps.h share; nobody else includes it. */
#ifndef ALLOCWATCH_TARGET_JUMPS_PRIVATE_H
#define ALLOCWATCH_TARGET_JUMPS_PRIVATE_H

#include "target/target.h"

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

int jumps_add_area(struct target *target, raddr start, struct jump_area **ret_area);

#endif
