/* Preloaded into the tracer, it counts how often the tracing thread and the others ask for memory, in the
 * file named by ALLOCATION_COUNTER_FILE; see allocation_counter.h. */
#define _GNU_SOURCE
#include "allocation_counter.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own names of its functions, for those who put others before them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static struct allocation_counter nowhere, *counter = &nowhere;
/* ptrace belongs to one thread, and that is the process's first. */
static pthread_t tracing;

__attribute__((constructor)) static void open_counter(void)
{
	const char *path = getenv("ALLOCATION_COUNTER_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *shared;

	if (fd < 0)
		_exit(98);
	shared = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		_exit(98);
	tracing = pthread_self();
	counter = shared;
}

static void count(void)
{
	atomic_fetch_add_explicit(pthread_equal(pthread_self(), tracing) ? &counter->tracing : &counter->others,
				  1, memory_order_relaxed);
}

void *malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	count();
	return __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *p;

	count();
	p = __libc_memalign(alignment, size);
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}
