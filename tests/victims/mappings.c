/* Maps and unmaps, and knows what is left.
 *
 * A round: a hole in a mapping, a move, an unmapping across two, one that fails, a file's, the break raised and lowered.
 * Commands besides g and q:
 *   m   what malloc maps for itself, large blocks and many small ones; f gives all of it back
 *   x   all threads map and unmap at once for a while
 *   t   a thread is made, which waits
 *   p   a pool that lies in a mapping gives 100 bytes
 * Tally: bytes mapped by what it has called, without malloc's and the thread's stack; address: where the pool has given. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define THREADS 4
#define HELD 12
#define STEPS 1500
#define LARGE 8
#define SMALL 2000
#define STACK_BYTES (256UL << 10)

static long bytes;
static char *pool;
static size_t pool_used;
static void *large[LARGE], *small[SMALL];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turns, finished;

static char *map(size_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return p;
}

static void unmap(char *p, size_t pages)
{
	if (munmap(p, pages * PAGE) < 0)
		die("munmap: %s", strerror(errno));
}

static void hole(void)
{
	char *p = mmap(NULL, 10 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* hole */

	unmap(p + 4 * PAGE, 3);
	bytes += 7 * (long)PAGE;
}

static void move(void)
{
	char *p = map(5), *after;

	after = mremap(p, 5 * PAGE, 300 * PAGE, MREMAP_MAYMOVE); /* moved */
	if (after == MAP_FAILED)
		die("mremap: %s", strerror(errno));
	bytes += 300 * (long)PAGE;
}

static void across(void)
{
	char *p = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* under */

	if (mmap(p + 4 * PAGE, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p + 4 * PAGE) /* over */
		die("mmap: %s", strerror(errno));
	unmap(p + 2 * PAGE, 4);
	bytes += 4 * (long)PAGE;
}

static void fail(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* failing */

	if (munmap(p + 1, PAGE) == 0 || mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		die("a call that cannot succeed did");
	bytes += 2 * (long)PAGE;
}

static void map_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = mmap64(NULL, 2 * PAGE + 100, PROT_READ, MAP_PRIVATE, fd, 0); /* file */

	if (p == MAP_FAILED)
		die("mmap64: %s", strerror(errno));
	close(fd);
	bytes += 3 * (long)PAGE;
}

/* The first time it begins in the midst of a page. */
static void move_break(void)
{
	unsigned long before = ((unsigned long)(uintptr_t)sbrk(0) + PAGE - 1) & ~(PAGE - 1);

	sbrk(3 * PAGE + 5); /* break */
	sbrk(-(intptr_t)PAGE);
	bytes += (long)((((unsigned long)(uintptr_t)sbrk(0) + PAGE - 1) & ~(PAGE - 1)) - before);
}

static void report(void)
{
	say("bytes=%ld address=%ld", bytes, (long)(uintptr_t)pool);
}

static void play(void)
{
	hole();
	move();
	across();
	fail();
	map_file();
	move_break();
	report();
}

static void use_malloc(void)
{
	for (int i = 0; i < LARGE; i++)
		large[i] = malloc(1 << 20);
	for (int i = 0; i < SMALL; i++)
		small[i] = malloc(1000);
	report();
}

static void use_free(void)
{
	for (int i = 0; i < LARGE; i++)
		free(large[i]);
	for (int i = SMALL; i-- > 0;)
		free(small[i]);
	report();
}

/* Described by a test: an allocator whose memory is a mapping. */
void *pool_get(size_t size);

__attribute__((noinline)) void *pool_get(size_t size)
{
	char *p;

	if (!pool) {
		pool = map(16); /* pool */
		bytes += 16 * (long)PAGE;
	}
	p = pool + pool_used;
	pool_used += size;
	return p;
}

/* --- all at once --- */

struct held {
	char *start;
	size_t pages;
};

static void drop_part(struct held *held, uint64_t *state)
{
	size_t cut = 1 + random_next(state) % held->pages;

	if (random_next(state) % 2) {
		unmap(held->start, cut);
		held->start += cut * PAGE;
	} else {
		unmap(held->start + (held->pages - cut) * PAGE, cut);
	}
	held->pages -= cut;
}

static void resize(struct held *held, uint64_t *state)
{
	size_t pages = 1 + random_next(state) % 30;
	char *p = mremap(held->start, held->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);

	if (p == MAP_FAILED)
		die("mremap: %s", strerror(errno));
	held->start = p;
	held->pages = pages;
}

static long churn(uint64_t *state)
{
	struct held held[HELD] = { { NULL, 0 } };
	long left = 0;

	for (int i = 0; i < STEPS; i++) {
		struct held *one = &held[random_next(state) % HELD];

		if (one->pages == 0) {
			one->pages = 1 + random_next(state) % 20;
			one->start = map(one->pages); /* churn */
		} else if (random_next(state) % 4) {
			drop_part(one, state);
		} else {
			resize(one, state);
		}
	}
	for (int i = 0; i < HELD; i++)
		left += (long)(held[i].pages * PAGE);
	return left;
}

static void *work(void *argument)
{
	uint64_t state = 77 + (uintptr_t)argument;

	for (unsigned seen = 0;; seen++) {
		long left;

		pthread_mutex_lock(&turn);
		while (turns == seen)
			pthread_cond_wait(&changed, &turn);
		pthread_mutex_unlock(&turn);
		left = churn(&state);
		pthread_mutex_lock(&turn);
		bytes += left;
		finished++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&turn);
	}
	return NULL;
}

static void all_at_once(void)
{
	pthread_mutex_lock(&turn);
	finished = 0;
	turns++;
	pthread_cond_broadcast(&changed);
	while (finished < THREADS)
		pthread_cond_wait(&changed, &turn);
	pthread_mutex_unlock(&turn);
	report();
}

static void *wait_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void make_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (pthread_create(&thread, &attributes, wait_for_ever, NULL) != 0) /* thread */
		die("no thread");
	report();
}

int main(void)
{
	for (uintptr_t i = 0; i < THREADS; i++)
		start_thread(work, (void *)i, STACK_BYTES);
	say("R");
	for (;;) {
		switch (next_command()) {
		case 'g':
			play();
			break;
		case 'm':
			use_malloc();
			break;
		case 'f':
			use_free();
			break;
		case 'p':
			pool_get(100); /* given */
			report();
			break;
		case 't':
			make_thread();
			break;
		case 'x':
			all_at_once();
			break;
		default:
			return 0;
		}
	}
}
