/* Known numbers of blocks of known sizes, by sites that take turns.
 *
 *   --threads N   so many threads do each round at once, default 1
 *   --once        one round, without being asked
 *
 * 'g' makes and keeps: `even` and `odd`, 20000 blocks of 100 bytes each, strictly in turns; `chain`, 2000 blocks that realloc
 * has brought to 700 bytes in five steps; `aligned`, 2000 blocks of 400 bytes by posix_memalign, which stores its result on the
 * stack; `zeroed`, 20000 of calloc(2, 50), freed at once.  'f' frees all.  'c' forks: the child obeys from then on,
 * until 'e' ends it.  'p' makes 10000 blocks each by allocators of its own, which may be described, and 'u' gives them back:
 * `box`, 100 bytes of malloc's behind a header; `grown`, resized from 50 to 100 bytes; `forward`, 100 bytes, which malloc returns
 * itself; `cell`, 100 bytes that are stored on the stack; `slab`, 64 bytes, from beside malloc.
 * Tally: blocks and bytes of each, that live, blocks of each of its own allocators, and the process. */
#include "victim.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 20000
#define CHAINS 2000
#define SIZE 100
#define CHAIN_SIZE 700
#define ALIGNED 2000
#define ALIGNED_SIZE 400
#define THREADS_MAX 16

#define POOLED 10000
#define BOX_HEAD 16
#define SLAB_SIZE 64
#define VISIBLE __attribute__((noinline, used))

struct kept {
	void *even[TURNS], *odd[TURNS], *chains[CHAINS], *aligned[ALIGNED];
};

static struct kept kept[THREADS_MAX];
static long threads, rounds, pooled;

static struct {
	void *boxes[POOLED], *grown[POOLED], *forwarded[POOLED], *cells[POOLED], *slabs[POOLED];
} own;

static void take_turns(struct kept *all)
{
	for (int i = 0; i < TURNS; i++) {
		all->even[i] = malloc(SIZE); /* even */
		all->odd[i] = malloc(SIZE); /* odd */
	}
}

static void grow_chains(struct kept *all)
{
	for (int i = 0; i < CHAINS; i++) {
		for (size_t size = CHAIN_SIZE / 5; size <= CHAIN_SIZE; size += CHAIN_SIZE / 5)
			all->chains[i] = realloc(all->chains[i], size); /* chain */
	}
}

static void align_some(struct kept *all)
{
	for (int i = 0; i < ALIGNED; i++) {
		void *block;

		if (posix_memalign(&block, 64, ALIGNED_SIZE) != 0) /* aligned */
			die("posix_memalign failed");
		all->aligned[i] = block;
	}
}

static void make_and_free(void)
{
	for (int i = 0; i < TURNS; i++) {
		void *block = calloc(2, SIZE / 2); /* zeroed */

		free(block);
	}
}

static void *work(void *number)
{
	struct kept *all = &kept[(long)number];

	take_turns(all);
	grow_chains(all);
	align_some(all);
	make_and_free();
	return NULL;
}

static void *give_back(void *number)
{
	struct kept *all = &kept[(long)number];

	for (int i = 0; i < TURNS; i++) {
		free(all->even[i]);
		free(all->odd[i]);
		all->even[i] = all->odd[i] = NULL;
	}
	for (int i = 0; i < CHAINS; i++) {
		free(all->chains[i]);
		all->chains[i] = NULL;
	}
	for (int i = 0; i < ALIGNED; i++) {
		free(all->aligned[i]);
		all->aligned[i] = NULL;
	}
	return NULL;
}

/* --- allocators of its own --- */

VISIBLE void *box_new(size_t count, size_t size);
VISIBLE void *box_resize(size_t size, void *old);
VISIBLE void box_free(int unused, void *p);
VISIBLE void *forward_get(size_t size);
VISIBLE void forward_put(void *p);
VISIBLE int cell_make(void **result, size_t size);
VISIBLE void cell_end(void *p);
VISIBLE void *slab_get(int unused);
VISIBLE void slab_put(void *p);

/* A jump has room at the entry. */
#define ROOM __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0")

void *box_new(size_t count, size_t size)
{
	char *p;

	ROOM;
	p = malloc(count * size + BOX_HEAD); /* in a box */
	return p ? p + BOX_HEAD : NULL;
}

void *box_resize(size_t size, void *old)
{
	char *p;

	ROOM;
	p = realloc((char *)old - BOX_HEAD, size + BOX_HEAD); /* in a grown box */
	return p ? p + BOX_HEAD : NULL;
}

void box_free(int unused, void *p)
{
	ROOM;
	(void)unused;
	free((char *)p - BOX_HEAD);
}

void *forward_get(size_t size)
{
	ROOM;
	return malloc(size);
}

void forward_put(void *p)
{
	ROOM;
	free(p);
}

int cell_make(void **result, size_t size)
{
	ROOM;
	*result = malloc(size);
	return *result == NULL;
}

void cell_end(void *p)
{
	ROOM;
	free(p);
}

void *slab_get(int unused)
{
	static char slabs[POOLED][SLAB_SIZE];

	ROOM;
	(void)unused;
	return slabs[pooled];
}

void slab_put(void *p)
{
	ROOM;
	*(volatile char *)p = 0;
}

/* No copy of a function is made for them. */
static volatile size_t whole = SIZE, half = SIZE / 2, two = 2, one = 1;
static volatile int none;

static void make_own(void)
{
	for (pooled = 0; pooled < POOLED; pooled++) {
		void *cell;

		own.boxes[pooled] = box_new(two, half); /* box */
		own.grown[pooled] = box_new(one, half);
		own.grown[pooled] = box_resize(whole, own.grown[pooled]); /* grown */
		own.forwarded[pooled] = forward_get(whole); /* forward */
		if (cell_make(&cell, whole) != 0) /* cell */
			die("no cell");
		own.cells[pooled] = cell;
		own.slabs[pooled] = slab_get(none); /* slab */
	}
}

static void give_own_back(void)
{
	while (pooled-- > 0) {
		box_free(none, own.boxes[pooled]);
		box_free(none, own.grown[pooled]);
		forward_put(own.forwarded[pooled]);
		cell_end(own.cells[pooled]);
		slab_put(own.slabs[pooled]);
	}
	pooled = 0;
}

static void *do_nothing(void *unused)
{
	return unused;
}

static void run_all(void *(*run)(void *))
{
	pthread_t ids[THREADS_MAX];

	for (long i = 1; i < threads; i++) {
		if (pthread_create(&ids[i], NULL, run, (void *)i) != 0)
			die("a thread");
	}
	run((void *)0);
	for (long i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
}

/* Who goes on is the child. */
static void fork_and_wait(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork failed");
	if (child == 0)
		return;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die("the child's end is %d", status);
}

static void tell(void)
{
	say("turns=%ld turn_bytes=%ld chains=%ld chain_bytes=%ld aligned=%ld aligned_bytes=%ld pooled=%ld pid=%d", rounds * threads * TURNS,
	    rounds * threads * TURNS * SIZE, rounds * threads * CHAINS, rounds * threads * CHAINS * CHAIN_SIZE,
	    rounds * threads * ALIGNED, rounds * threads * ALIGNED * ALIGNED_SIZE, pooled, (int)getpid());
}

int main(int argc, char **argv)
{
	pthread_t first;
	int command;

	threads = option_number(argc, argv, "--threads", 1);
	if (threads < 1 || threads > THREADS_MAX)
		die("--threads is from 1 to %d", THREADS_MAX);
	/* What the first thread changes of a process is changed before. */
	if (pthread_create(&first, NULL, do_nothing, NULL) != 0)
		die("a thread");
	pthread_join(first, NULL);
	if (option_given(argc, argv, "--once")) {
		run_all(work);
		return 0;
	}
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'g') {
			run_all(work);
			rounds = 1;
		} else if (command == 'f') {
			run_all(give_back);
			rounds = 0;
		} else if (command == 'p') {
			make_own();
		} else if (command == 'u') {
			give_own_back();
		} else if (command == 'c') {
			fork_and_wait();
		} else if (command == 'e') {
			_exit(0);
		}
		tell();
	}
	return 0;
}
