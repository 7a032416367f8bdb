/* Allocators that a user describes: pools, arenas, whatever stands above malloc or beside it.
 *
 * One line describes one allocator: its name, which becomes the name of its domain, and its functions with what each of their
 * arguments is:
 *
 *   pool pool_get(-, size) pool_resize(-, old, size) libpool.so*:pool_make(result, size) slab_get(-)=64 pool_put(-, old)
 *
 *   size, count    how many bytes, and how many times that
 *   old            the block that is freed or resized
 *   result         a pointer to where the result is stored; the function then returns 0. Else it returns the result
 *   align, -       nothing that matters
 *   =BYTES         behind the arguments of a function to which nobody tells a size
 *
 * A function with size or =BYTES allocates, one with both size and old resizes, one with old alone frees.  Before the
 * function may stand the object that it is in: a pattern of Python's fnmatch, for the file's name, or with a slash for its path.
 * A function's name is its symbol; of C++ the mangled one. */
#ifndef ALLOCWATCH_MODEL_ALLOCATORS_H
#define ALLOCWATCH_MODEL_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATOR_ARGUMENTS_MAX 6          /* those in registers */
#define ALLOCATOR_FUNCTIONS_MAX 16
#define ALLOCATOR_TEXT_MAX 1024            /* of a description */
#define ALLOCATOR_SYMBOL_MAX 256
#define ALLOCATOR_NO_ARGUMENT (-1)

struct allocator_function {
	char object[ALLOCATOR_SYMBOL_MAX];  /* "": any */
	char symbol[ALLOCATOR_SYMBOL_MAX];
	int8_t size, count, old, result;   /* numbers of arguments, or ALLOCATOR_NO_ARGUMENT */
	uint64_t fixed_size;               /* 0: none */
};

#define DOMAIN_NAME_SPACE 32
struct allocator {
	char name[DOMAIN_NAME_SPACE];
	struct allocator_function functions[ALLOCATOR_FUNCTIONS_MAX];
	size_t function_count;
};

static inline bool allocator_function_allocates(const struct allocator_function *function)
{
	return function->size != ALLOCATOR_NO_ARGUMENT || function->fixed_size > 0;
}

/* 0, or -EINVAL with *ret_reason (to be freed; a sentence without its subject), or -ENOMEM. */
int allocator_parse(const char *text, struct allocator *ret, char **ret_reason);

/* How many of its arguments matter, from the first one on. */
int allocator_function_arguments(const struct allocator_function *function);

/* Whether the function may be in this object. */
bool allocator_function_is_in(const struct allocator_function *function, const char *path);

#endif
