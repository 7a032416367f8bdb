/* Preloaded into a victim, it counts what the victim allocates: a second opinion on the victim's own
 * tally, by quite another way than tracing.
 *
 * The counts stand in the file named by COUNTER_FILE, as struct counter in counter.h. */
#define _GNU_SOURCE
#include "counter.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLE_SLOTS (1u << 20)

/* glibc's own names of its functions, for those who put others before them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
void __libc_free(void *p);

static struct {
	const void *address;
	size_t size;
} table[TABLE_SLOTS];
static struct counter nowhere, *counter = &nowhere;
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void)
{
	while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
		;
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&busy, memory_order_release);
}

__attribute__((constructor)) static void open_counter(void)
{
	const char *path = getenv("COUNTER_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *shared;

	if (fd < 0)
		_exit(98);
	shared = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		_exit(98);
	lock();
	counter = shared;
	*counter = nowhere;
	unlock();
}

static size_t home_of(const void *address)
{
	return (size_t)((uintptr_t)address / 16 * 0x9e3779b97f4a7c15ULL >> 40) % TABLE_SLOTS;
}

static size_t slot_of(const void *address)
{
	size_t i = home_of(address);

	while (table[i].address && table[i].address != address)
		i = (i + 1) % TABLE_SLOTS;
	return i;
}

static void count_birth(const void *p, size_t size)
{
	size_t i = slot_of(p);

	table[i].address = p;
	table[i].size = size;
	counter->blocks++;
	counter->bytes += (long)size;
	counter->allocations++;
}

/* Closes the gap, so that a search never ends too early. */
static void empty_slot(size_t gap)
{
	size_t i = gap;

	for (;;) {
		i = (i + 1) % TABLE_SLOTS;
		if (!table[i].address)
			break;
		if ((i - home_of(table[i].address)) % TABLE_SLOTS >= (i - gap) % TABLE_SLOTS) {
			table[gap] = table[i];
			gap = i;
		}
	}
	table[gap].address = NULL;
}

static void count_death(const void *p)
{
	size_t i = slot_of(p);

	if (!table[i].address) {
		counter->unknown++;
		return;
	}
	counter->blocks--;
	counter->bytes -= (long)table[i].size;
	counter->frees++;
	empty_slot(i);
}

static void *born(void *p, size_t size)
{
	if (p) {
		lock();
		count_birth(p, size);
		unlock();
	}
	return p;
}

void *malloc(size_t size)
{
	return born(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
	return born(__libc_calloc(count, size), count * size);
}

void *memalign(size_t alignment, size_t size)
{
	return born(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return born(__libc_memalign(alignment, size), size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *p = born(__libc_memalign(alignment, size), size);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void *valloc(size_t size)
{
	return born(__libc_valloc(size), size);
}

void *pvalloc(size_t size)
{
	return born(__libc_pvalloc(size), size);
}

void free(void *p)
{
	if (!p)
		return;
	lock();
	count_death(p);
	unlock();
	__libc_free(p);
}

/* Under the lock as a whole: the old address may be another thread's at once. */
void *realloc(void *p, size_t size)
{
	void *q;

	lock();
	q = __libc_realloc(p, size);
	if (p && (q || size == 0))
		count_death(p);
	if (q)
		count_birth(q, size);
	unlock();
	return q;
}

void *reallocarray(void *p, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}
