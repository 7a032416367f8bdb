/* A library with a malloc family of its own, from one static array: what is loaded later by dlopen.
 *
 * Blocks have a header with their size; freed ones are kept in one list and reused when they fit.
 * own_hook, when set, is called in the middle of malloc: it may leave by siglongjmp. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARENA_BYTES (1 << 20)

struct header {
	size_t size;
	struct header *next;
};

static _Alignas(16) char arena[ARENA_BYTES];
static size_t used;
static struct header *freed;

void *malloc(size_t size);
void free(void *p);
void *calloc(size_t count, size_t size);
void *realloc(void *p, size_t size);
int own_holds(const void *p);

extern void (*own_hook)(void);
void (*own_hook)(void);

static struct header *reuse(size_t size)
{
	for (struct header **link = &freed; *link; link = &(*link)->next) {
		struct header *h = *link;

		if (h->size >= size) {
			*link = h->next;
			return h;
		}
	}
	return NULL;
}

#ifdef IDLE
/* So that no other function begins where it does elsewhere. */
int own_idle(int number);

int own_idle(int number)
{
	return number * 3;
}
#endif

__attribute__((noinline)) void *malloc(size_t size)
{
	size_t room = (size + sizeof(struct header) + 15) & ~(size_t)15;
	struct header *h;

	if (own_hook)
		own_hook();
	h = reuse(size);
	if (h)
		return h + 1;
	if (size > ARENA_BYTES || used + room > ARENA_BYTES)
		return NULL;
	h = (struct header *)(void *)(arena + used);
	used += room;
	h->size = room - sizeof(struct header);
	return h + 1;
}

__attribute__((noinline)) void free(void *p)
{
	struct header *h = p;

	if (!p)
		return;
	h--;
	h->next = freed;
	freed = h;
}

void *calloc(size_t count, size_t size)
{
	void *p = malloc(count * size);

	if (p)
		memset(p, 0, count * size);
	return p;
}

void *realloc(void *p, size_t size)
{
	struct header *h = p;
	void *q = malloc(size);

	if (q && p) {
		memcpy(q, p, h[-1].size < size ? h[-1].size : size);
		free(p);
	}
	return q;
}

int own_holds(const void *p)
{
	return (uintptr_t)p >= (uintptr_t)arena && (uintptr_t)p < (uintptr_t)arena + ARENA_BYTES;
}
