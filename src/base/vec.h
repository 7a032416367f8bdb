/* A growing array, as three fields inside its owner:
 *
 *	struct { struct thing *items; size_t count, space; } things;
 *
 * vec_push(&things) returns a pointer to a new zeroed item, or NULL when there is no memory.
 * The pointer is good until the next push. */
#ifndef ALLOCWATCH_BASE_VEC_H
#define ALLOCWATCH_BASE_VEC_H

#include <stddef.h>

#define VEC_OF(type) struct { type *items; size_t count, space; }

/* Makes room for `more` items; 0 or -ENOMEM, the array untouched. */
int vec_reserve_(void **items, size_t *space, size_t count, size_t more, size_t item_size);
void *vec_push_(void **items, size_t *count, size_t *space, size_t item_size);
void vec_fini_(void **items, size_t *count, size_t *space);

#define vec_reserve(v, more) \
	vec_reserve_((void **)&(v)->items, &(v)->space, (v)->count, (more), sizeof(*(v)->items))
#define vec_push(v) \
	((__typeof__((v)->items))vec_push_((void **)&(v)->items, &(v)->count, &(v)->space, \
					   sizeof(*(v)->items)))
#define vec_fini(v) vec_fini_((void **)&(v)->items, &(v)->count, &(v)->space)
/* Bytes. */
#define vec_memory(v) ((v)->space * sizeof(*(v)->items))
/* Removes item i; the last one takes its place. */
#define vec_remove_unordered(v, i) ((v)->items[i] = (v)->items[--(v)->count])

#endif
