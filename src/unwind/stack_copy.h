/* The stack memory of one unwind, read in few large pieces.
 *
 * One call to the reader is a system call, and every kilobyte costs something, too: the first piece
 * should be exactly what will be needed.  A stack is needed up to its outermost frame, which stays where
 * it is while the thread lives, so that address is remembered.  Further pieces (a very large frame,
 * another stack) go into windows of their own.  No bytes are kept from one unwind to the next. */
#ifndef ALLOCWATCH_UNWIND_STACK_COPY_H
#define ALLOCWATCH_UNWIND_STACK_COPY_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STACK_WINDOWS 4u
#define STACK_WINDOW_MAX 65536u        /* most bytes one piece holds */
#define STACK_IN_PLACE_MAX (1u << 20)  /* of one that is in place */
#define STACK_FETCHES_MAX 64u          /* pieces read for one unwind, at most */
#define STACK_FIRST 4096u              /* bytes of a stack about which nothing is known yet */
#define STACK_TOPS 256u

struct stack_window {
	raddr start;
	uint32_t len;
	const uint8_t *bytes;              /* in a buffer, or where the reader has them: may change at any time */
};

struct stack_copy {
	struct stack_window windows[STACK_WINDOWS];
	struct stack_window *current;      /* where the last word was found */
	uint32_t fetches;                  /* of this unwind */
	bool unknown;                      /* something that it asked for could not be known (-EAGAIN) */
	const struct reader *reader;
	raddr sp;
	uint8_t *buffers;                  /* the windows', one behind the other */
	raddr tops[STACK_TOPS];            /* how far out stacks were needed, by the 64 KiB piece of their sp */
};

int stack_copy_init(struct stack_copy *copy);           /* 0 or -ENOMEM */
void stack_copy_fini(struct stack_copy *copy);

/* Forgets the last stack.  Reads nothing yet. */
void stack_copy_begin(struct stack_copy *copy, const struct reader *reader, raddr sp);
/* The stack was needed from its sp up to `top`. */
void stack_copy_learn(struct stack_copy *copy, raddr top);

/* Finds len bytes that are not in the current window, reading them if need be; NULL when they cannot be
 * read or too much was read already. */
const uint8_t *stack_copy_fetch(struct stack_copy *copy, raddr at, size_t len);

/* Reads a few bytes that are no part of a stack (tables) past the windows. */
bool stack_copy_peek(struct stack_copy *copy, raddr at, void *buf, size_t len);
/* The same of instructions, also of those in no object. */
bool stack_copy_code(struct stack_copy *copy, raddr at, void *buf, size_t len);

/* The bytes at an address; good until the next call. */
static inline const uint8_t *stack_copy_at(struct stack_copy *copy, raddr at, size_t len)
{
	const struct stack_window *window = copy->current;
	uint64_t offset = at - window->start;

	if (__builtin_expect(offset < window->len && len <= window->len - offset, 1))
		return window->bytes + offset;
	return stack_copy_fetch(copy, at, len);
}

/* One of them, wherever it begins; it is loaded just once, for what is in place may be another one the next time. */
static inline uint64_t stack_copy_load(const uint8_t *bytes)
{
	struct unaligned {
		uint64_t word;
	} __attribute__((packed, may_alias));

	return ((const volatile struct unaligned *)(const void *)bytes)->word;
}

static inline bool stack_copy_word(struct stack_copy *copy, raddr at, uint64_t *ret_word)
{
	const uint8_t *bytes = stack_copy_at(copy, at, sizeof(*ret_word));

	if (!bytes)
		return false;
	*ret_word = stack_copy_load(bytes);
	return true;
}

#endif
