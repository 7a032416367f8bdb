/* Allocators of its own: beside malloc, above it, and jumping to it.  Built by the test that watches it.
 * A round makes one of each kind, and gives one in two back; an answer is the address of the last box. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VISIBLE __attribute__((noinline, noclone, used))
#define BOX_HEAD 16

static char arena[1 << 20];
static size_t used;

VISIBLE void *pool_get(int pool, size_t size)
{
	char *p = arena + used;

	(void)pool;
	used += (size + 15) / 16 * 16;
	return p;
}

VISIBLE void pool_put(int pool, void *p)
{
	(void)pool;
	*(volatile char *)p = 0;
}

VISIBLE int cell_make(void **result, size_t size)
{
	*result = pool_get(1, size);
	return 0;
}

VISIBLE void *slab_get(int slab)
{
	return pool_get(slab, 64);
}

VISIBLE void *box_new(size_t count, size_t size)
{
	char *p = malloc(count * size + BOX_HEAD);

	return p ? p + BOX_HEAD : NULL;
}

VISIBLE void *box_resize(void *old, size_t size)
{
	char *p = realloc((char *)old - BOX_HEAD, size + BOX_HEAD);

	return p ? p + BOX_HEAD : NULL;
}

VISIBLE void box_free(void *p)
{
	free((char *)p - BOX_HEAD);
}

VISIBLE void *forward_get(size_t size)
{
	return malloc(size);
}

VISIBLE void forward_put(void *p)
{
	free(p);
}

/* It ends by a jump that says nothing. */
__asm__(".globl odd_get\n.type odd_get, @function\nodd_get:\n\tpop %rax\n\txor %eax, %eax\n\tjmp *%rax\n.size odd_get, . - odd_get\n");
void *odd_get(size_t size);

static void *volatile kept, *volatile box;

static void work(void)
{
	void *cell;

	kept = pool_get(0, 100); /* pool */
	pool_put(0, pool_get(0, 200));
	cell_make(&cell, 300); /* cell */
	kept = slab_get(0); /* slab */
	box = box_new(4, 100); /* box */
	box = box_resize(box, 1000); /* resized */
	box_free(box_new(1, 500));
	kept = forward_get(700); /* forwarded */
	forward_put(forward_get(800));
}

int main(void)
{
	char command, line[64];

	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 1;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		work();
		int length = snprintf(line, sizeof(line), "box=%ld\n", (long)(uintptr_t)box);
		if (write(STDOUT_FILENO, line, (size_t)length) != length)
			return 1;
	}
	return 0;
}
