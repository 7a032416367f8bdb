/* The ring engine's code put into the test's own process, and jumps into functions of it. */
#ifndef ALLOCWATCH_TESTS_RING_FIXTURE_H
#define ALLOCWATCH_TESTS_RING_FIXTURE_H

#include "arch/ring_code.h"
#include "ring/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an entry's window says of a call's arguments. */
struct ring_form {
	uint8_t size_argument, count_argument;
	bool resizes;
};

struct ring_area {
	uint8_t *start;
	uint32_t used;
	struct ring_switch *ring_switch;
	bool notes_pending;            /* calls of functions whose returns are patched are */
	bool sampled, described, told, stored; /* as the ring's windows */
	const struct ring_form *form;  /* NULL: as malloc */
};

#define RING_PATCHES_MAX 64

struct ring_patch {
	uint8_t *at;                   /* where the jump is */
	uint8_t text[ARCH_JUMP_SIZE];
	struct ring_site site;
	bool is_return;
};

struct ring_patches {
	uint32_t count;
	struct ring_patch items[RING_PATCHES_MAX];
};

/* Within reach of `near`; aborts when there is no room. */
void ring_area_map(struct ring_area *area, const void *near);
void ring_area_record(struct ring_area *area, struct ring *ring);    /* NULL: no more */
void ring_area_unmap(struct ring_area *area);

/* Puts jumps to sites of these numbers at the function's entry (first) and returns (behind that). */
void ring_patch_function(struct ring_area *area, void *function, size_t size, bool returns, uint32_t number,
			 struct ring_patches *patches);
/* The same for a symbol of a library that is loaded. */
void ring_patch_symbol(struct ring_area *area, const char *name, bool returns, uint32_t number,
		       struct ring_patches *patches);
/* One to a site at a function that does nothing, where it is waited. */
void ring_patch_hook(struct ring_area *area, void *function, enum ring_waits waits, uint32_t number, struct ring_patches *patches);
/* One to a site at a function that unmaps, which begins with an instruction as long as the jump. */
void ring_patch_unmap(struct ring_area *area, void *function, enum ring_unmaps by, uint32_t number, struct ring_patches *patches);
void ring_unpatch(struct ring_patches *patches);

#endif
