/* A library whose malloc and free are chosen when it is loaded (IFUNC), and whose calloc has two versions (ifuncs.map). */
#include <stddef.h>
#include <string.h>

void *__libc_malloc(size_t size);
void __libc_free(void *block);
void *calloc_old(size_t count, size_t size);
void *calloc_new(size_t count, size_t size);

static void *malloc_chosen(size_t size)
{
	char *block = __libc_malloc(size);

	if (block)
		block[0] = 1;
	return block;
}

static void free_chosen(void *block)
{
	if (block)
		*(char *)block = 2;
	__libc_free(block);
}

__attribute__((used)) static void *(*choose_malloc(void))(size_t size)
{
	return malloc_chosen;
}

__attribute__((used)) static void (*choose_free(void))(void *block)
{
	return free_chosen;
}

void *malloc(size_t size) __attribute__((ifunc("choose_malloc")));
void free(void *block) __attribute__((ifunc("choose_free")));

/* What nobody may call: the version of before. */
void *calloc_old(size_t count, size_t size)
{
	(void)count;
	(void)size;
	return NULL;
}

void *calloc_new(size_t count, size_t size)
{
	void *block = __libc_malloc(count * size);

	return block ? memset(block, 0, count * size) : NULL;
}

__asm__(".symver calloc_old, calloc@IFUNCS_1\n.symver calloc_new, calloc@@IFUNCS_2");
