/* N threads that use every form of malloc and know to the block what is live.
 *
 *   hammer [--threads N] [--ops N] [--before N] [--block-signals] [--undumpable] [--no-new-code]
 *
 * --ops: operations per thread and round.  --before: so many blocks allocated before the "R"; the
 * first round gives them all back, half by free(), half by realloc().  --block-signals: the workers
 * block every signal.  --undumpable: by PR_SET_DUMPABLE.  --no-new-code: no mapping can become executable, by
 * PR_SET_MDWE and a filter that refuses mmap and mprotect.
 * Commands besides g and q: 't' the tally alone; 'r' work on until 's', which answers with the tally.
 * Tally: blocks, bytes (as requested), allocations, frees (a realloc counts as one of each),
 * before (how many of the --before blocks were given back) and wrong (blocks that did not hold what was written there). */
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 1024
#define SLOTS 48
#define CELLS 16
#define STACK_BYTES (64 * 1024)
#define FILL_BYTE 0x5a
#define FILLED_MOST 64         /* of a block */

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

struct block {
	void *p;
	size_t size;
};

/* On its own cache lines: the tallies must not slow each other down. */
struct worker {
	struct block slot[SLOTS];
	long blocks, bytes, allocations, frees, before, wrong;
	uint64_t random;
	long index;
} __attribute__((aligned(128)));

static struct worker workers[MAX_THREADS];
static long thread_count, ops_per_round, before_count;
static void **before_blocks;
static pthread_barrier_t round_begins, round_ends;
static atomic_int keep_running;
/* Blocks passed from thread to thread: the size stands in the block's first bytes. */
static _Atomic(void *) cells[CELLS];

static void *checked(void *p)
{
	if (!p)
		die("an allocation failed");
	return p;
}

static size_t random_size(struct worker *w)
{
	uint64_t r = random_next(&w->random);

	if (r % 256 == 0)
		return 128 * 1024 + (r >> 32) % (128 * 1024);
	if (r % 16 == 0)
		return (r >> 32) % 8192;
	return (r >> 32) % 400;
}

static size_t random_alignment(struct worker *w)
{
	return (size_t)8 << (random_next(&w->random) >> 32) % 8;
}

static void born(struct worker *w, struct block *b, void *p, size_t size)
{
	b->p = checked(p);
	b->size = size;
	if (size)
		memset(p, FILL_BYTE, size < FILLED_MOST ? size : FILLED_MOST);
	w->blocks++;
	w->bytes += (long)size;
	w->allocations++;
}

static void died(struct worker *w, struct block *b)
{
	w->blocks--;
	w->bytes -= (long)b->size;
	w->frees++;
	b->p = NULL;
	b->size = 0;
}

/* What stands in it, but for the size of one that was passed on. */
static void check(struct worker *w, const void *p, size_t size)
{
	const unsigned char *bytes = p;

	for (size_t i = sizeof(size_t); i < size && i < FILLED_MOST; i++) {
		if (bytes[i] != FILL_BYTE) {
			w->wrong++;
			return;
		}
	}
}

static void by_malloc(struct worker *w, struct block *b)
{
	size_t size = random_size(w);

	born(w, b, malloc(size), size);
}

static void by_calloc(struct worker *w, struct block *b)
{
	size_t each = random_size(w) % 32 + 1, count = random_next(&w->random) % 20;

	born(w, b, calloc(count, each), count * each);
}

static void by_memalign(struct worker *w, struct block *b)
{
	size_t size = random_size(w), alignment = random_alignment(w);

	born(w, b, memalign(alignment, size), size);
}

static void by_posix_memalign(struct worker *w, struct block *b)
{
	size_t size = random_size(w);
	void *p = NULL;

	if (posix_memalign(&p, random_alignment(w), size))
		die("posix_memalign failed");
	born(w, b, p, size);
}

static void by_aligned_alloc(struct worker *w, struct block *b)
{
	size_t alignment = random_alignment(w), size = alignment * (random_next(&w->random) % 8 + 1);

	born(w, b, aligned_alloc(alignment, size), size);
}

static void by_valloc(struct worker *w, struct block *b)
{
	size_t size = random_size(w);

	born(w, b, valloc(size), size);
}

static void by_pvalloc(struct worker *w, struct block *b)
{
	size_t size = random_size(w);

	born(w, b, pvalloc(size), size);
}

static void by_strdup(struct worker *w, struct block *b)
{
	char text[64];
	size_t len = random_next(&w->random) % (sizeof(text) - 1);

	memset(text, 'x', len);
	text[len] = '\0';
	born(w, b, strdup(text), len + 1);
}

static void (*const births[])(struct worker *, struct block *) = {
	by_malloc, by_malloc, by_malloc, by_malloc, by_calloc, by_calloc, by_memalign,
	by_posix_memalign, by_aligned_alloc, by_valloc, by_pvalloc, by_strdup,
};

static void allocate(struct worker *w, struct block *b)
{
	births[random_next(&w->random) % (sizeof(births) / sizeof(births[0]))](w, b);
}

static void resize(struct worker *w, struct block *b)
{
	size_t size = random_size(w) + 1;
	void *p = checked(realloc(b->p, size));

	check(w, p, size < b->size ? size : b->size);
	died(w, b);
	born(w, b, p, size);
}

static void resize_array(struct worker *w, struct block *b)
{
	size_t each = random_size(w) % 64 + 1, count = random_next(&w->random) % 16 + 1;
	void *p = checked(reallocarray(b->p, count, each));

	check(w, p, count * each < b->size ? count * each : b->size);
	died(w, b);
	born(w, b, p, count * each);
}

static void release(struct worker *w, struct block *b)
{
	check(w, b->p, b->size);
	free(b->p);
	died(w, b);
}

/* Gives the block to whoever comes next and frees what somebody else left there. */
static void pass_on(struct worker *w, struct block *b)
{
	_Atomic(void *) *cell = &cells[random_next(&w->random) % CELLS];
	void *other;

	if (b->size < sizeof(size_t)) {
		release(w, b);
		return;
	}
	memcpy(b->p, &b->size, sizeof(size_t));
	other = atomic_exchange(cell, b->p);
	b->p = NULL;
	if (!other)
		return;
	b->p = other;
	memcpy(&b->size, other, sizeof(size_t));
	release(w, b);
}

static void (*const uses[])(struct worker *, struct block *) = {
	release, release, release, release, release, resize, resize_array, pass_on, pass_on,
};

static void operate(struct worker *w)
{
	struct block *b = &w->slot[random_next(&w->random) % SLOTS];

	if (b->p)
		uses[random_next(&w->random) % (sizeof(uses) / sizeof(uses[0]))](w, b);
	else
		allocate(w, b);
}

/* A block from before the attach is not in the tally; by realloc() it becomes one that is. */
static void give_back(struct worker *w, long i)
{
	struct block *b = &w->slot[i / thread_count % SLOTS];
	void *p = before_blocks[i];

	before_blocks[i] = NULL;
	w->before++;
	w->frees++;
	if (i / thread_count % 2 == 0) {
		free(p);
		return;
	}
	if (b->p)
		release(w, b);
	born(w, b, realloc(p, 96), 96);
}

static void give_back_share(struct worker *w)
{
	for (long i = w->index; i < before_count; i += thread_count) {
		if (before_blocks[i])
			give_back(w, i);
	}
}

static void *work(void *argument)
{
	struct worker *w = argument;

	for (;;) {
		pthread_barrier_wait(&round_begins);
		give_back_share(w);
		do {
			for (long i = 0; i < ops_per_round; i++)
				operate(w);
		} while (atomic_load_explicit(&keep_running, memory_order_relaxed));
		pthread_barrier_wait(&round_ends);
	}
	return NULL;
}

static void allocate_before(void)
{
	if (before_count == 0)
		return;
	before_blocks = mmap(NULL, (size_t)before_count * sizeof(void *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (before_blocks == MAP_FAILED)
		die("no room for the list of blocks");
	for (long i = 0; i < before_count; i++)
		before_blocks[i] = checked(malloc((size_t)(i % 200) + 1));
}

static void start_workers(int block_signals)
{
	sigset_t all, old;

	pthread_barrier_init(&round_begins, NULL, (unsigned)thread_count + 1);
	pthread_barrier_init(&round_ends, NULL, (unsigned)thread_count + 1);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, NULL, &old);
	if (block_signals)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (long i = 0; i < thread_count; i++) {
		workers[i].index = i;
		workers[i].random = 0x9e3779b97f4a7c15ULL * (uint64_t)(i + 1);
		start_thread(work, &workers[i], STACK_BYTES);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void tell_tally(void)
{
	struct worker sum = { .index = 0 };

	for (long i = 0; i < thread_count; i++) {
		sum.blocks += workers[i].blocks;
		sum.bytes += workers[i].bytes;
		sum.allocations += workers[i].allocations;
		sum.frees += workers[i].frees;
		sum.before += workers[i].before;
		sum.wrong += workers[i].wrong;
	}
	say("blocks=%ld bytes=%ld allocations=%ld frees=%ld before=%ld wrong=%ld", sum.blocks, sum.bytes,
	    sum.allocations, sum.frees, sum.before, sum.wrong);
}

static void obey_hammer(void)
{
	int command;

	while ((command = next_command()) != 'q') {
		switch (command) {
		case 'r':
			atomic_store(&keep_running, 1);
			pthread_barrier_wait(&round_begins);
			break;
		case 's':
			atomic_store(&keep_running, 0);
			pthread_barrier_wait(&round_ends);
			tell_tally();
			break;
		case 'g':
			pthread_barrier_wait(&round_begins);
			pthread_barrier_wait(&round_ends);
			tell_tally();
			break;
		case 't':
			tell_tally();
			break;
		default:
			die("unknown command '%c'", command);
		}
	}
}

/* As systemd's MemoryDenyWriteExecute= and more: not even code from a file. */
static void forbid_new_code(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0); /* kernels before 6.3 have none */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("no filter");
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		die("the filter does not hold");
}

int main(int argc, char **argv)
{
	thread_count = option_number(argc, argv, "--threads", 1);
	ops_per_round = option_number(argc, argv, "--ops", 1000);
	before_count = option_number(argc, argv, "--before", 0);
	if (thread_count < 1 || thread_count > MAX_THREADS)
		die("--threads takes 1 to %d", MAX_THREADS);
	if (option_given(argc, argv, "--undumpable") && prctl(PR_SET_DUMPABLE, 0))
		die("PR_SET_DUMPABLE failed");
	if (option_given(argc, argv, "--no-new-code"))
		forbid_new_code();
	allocate_before();
	start_workers(option_given(argc, argv, "--block-signals"));
	say("R");
	obey_hammer();
	_exit(0);
}
