/* What a program does wrong with its heap, as far as frees show it: a bounded list, alike ones counted together. */
#ifndef ALLOCWATCH_MODEL_MISUSES_H
#define ALLOCWATCH_MODEL_MISUSES_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

#define MISUSES_MAX 64                 /* of different kinds or stacks; further ones are counted */

enum misuse_kind {
	MISUSE_MISMATCH,               /* freed by another family than it was made by */
	MISUSE_DOUBLE_FREE,            /* freed once more */
	MISUSE_WILD_FREE,              /* freed though it never was a block */
	MISUSE_KINDS
};

/* Which family of functions: bits, for a function may be of several. */
enum heap_form { FORM_NONE = 0, FORM_MALLOC = 1, FORM_NEW = 2, FORM_NEW_ARRAY = 4 };

struct misuse {
	enum misuse_kind kind;
	uint32_t made_form, freed_forms;   /* of a mismatch */
	uint32_t made_stack, freed_stack;  /* made_stack: of a mismatch, else STACK_ROOT */
	raddr address;                     /* of the first */
	uint64_t size;                     /* likewise, of a mismatch */
	uint64_t count;
	int32_t tid;                       /* who freed the first */
};

struct misuses {
	struct misuse items[MISUSES_MAX];
	uint32_t count;
	uint64_t more;                     /* that had no room */
};

/* Notes one; its count is of no interest. */
void misuses_note(struct misuses *misuses, const struct misuse *misuse);

/* "mismatch", "double-free", "wild-free". */
const char *misuse_kind_name(enum misuse_kind kind);
/* "malloc", "new", "new[]"; "" for none, or several. */
const char *form_maker(uint32_t forms);
/* "free", "delete", "delete[]"; likewise. */
const char *form_freer(uint32_t forms);

#endif
