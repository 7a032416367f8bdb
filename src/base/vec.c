#include "base/vec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int vec_reserve_(void **items, size_t *space, size_t count, size_t more, size_t item_size)
{
	size_t want = *space ? *space : 8;
	void *grown;

	if (more > SIZE_MAX / 2 / item_size - count)
		return -ENOMEM;
	if (count + more <= *space)
		return 0;
	while (want < count + more)
		want *= 2;
	grown = realloc(*items, want * item_size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*space = want;
	return 0;
}

void *vec_push_(void **items, size_t *count, size_t *space, size_t item_size)
{
	char *item;

	if (vec_reserve_(items, space, *count, 1, item_size) < 0)
		return NULL;
	item = (char *)*items + *count * item_size;
	memset(item, 0, item_size);
	(*count)++;
	return item;
}

void vec_fini_(void **items, size_t *count, size_t *space)
{
	free(*items);
	*items = NULL;
	*count = *space = 0;
}
