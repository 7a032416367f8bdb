/* Threads that time themselves from the end of each call of malloc to that of the next, so that no stop falls in between, and a heap
 * of many live blocks beside them.
 *
 *   latency [--threads N] [--sleepers N] [--blocks N] [OBJECT...]
 *
 * Further threads sleep, and the objects are loaded.
 * Commands besides q: 'f' allocates the --blocks blocks by some thousand different stacks ("blocks=N
 * ns=T"); 'r' all threads allocate and free until 's', which answers with "calls=N longest_ns=T": the
 * longest time that one malloc has come after another, of any thread. */
#include "../victims/victim.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_THREADS 256
#define STACK_BYTES (64 * 1024)
#define PATH_BITS 12           /* 2^12 stacks of blocks */

struct worker {
	uint64_t longest_ns, ended_ns;
	long calls;
} __attribute__((aligned(128)));

static struct worker workers[MAX_THREADS];
static long thread_count, sleeper_count, block_count;
static void **blocks;
static atomic_int keep_running;
static pthread_barrier_t round_begins, round_ends;

static void time_one(struct worker *w)
{
	void *p = malloc(64);
	uint64_t now = now_ns(), took_ns = now - w->ended_ns;

	if (!p)
		die("an allocation failed");
	__asm__ volatile("" : "+r"(p) : : "memory");
	free(p);
	w->calls++;
	w->ended_ns = now;
	if (took_ns > w->longest_ns)
		w->longest_ns = took_ns;
}

static void *work(void *argument)
{
	struct worker *w = argument;

	for (;;) {
		pthread_barrier_wait(&round_begins);
		w->calls = 0;
		w->longest_ns = 0;
		w->ended_ns = now_ns();
		do
			time_one(w);
		while (atomic_load_explicit(&keep_running, memory_order_relaxed));
		pthread_barrier_wait(&round_ends);
	}
	return NULL;
}

/* Each bit of `path` takes one of two calls: as many stacks as paths. */
static __attribute__((noinline)) void *allocate_by(unsigned path, int bits, size_t size)
{
	void *p;

	if (bits == 0)
		return malloc(size);
	/* The two differ, or the compiler would make one call of them. */
	if (path >> (bits - 1) & 1) {
		p = allocate_by(path, bits - 1, size);
		__asm__ volatile("# one way" : "+r"(p) : : "memory");
	} else {
		p = allocate_by(path, bits - 1, size);
		__asm__ volatile("# the other" : "+r"(p) : : "memory");
	}
	return p;
}

static void fill(void)
{
	uint64_t begun_ns = now_ns(), random = 88172645463325252ULL;

	for (long i = 0; i < block_count; i++) {
		uint64_t r = random_next(&random) >> 32;

		blocks[i] = allocate_by((unsigned)r & ((1u << PATH_BITS) - 1), PATH_BITS, 16 + r % 200);
		if (!blocks[i])
			die("an allocation failed");
	}
	say("blocks=%ld ns=%ld", block_count, (long)(now_ns() - begun_ns));
}

static void start_round(void)
{
	atomic_store(&keep_running, 1);
	pthread_barrier_wait(&round_begins);
}

static void end_round(void)
{
	uint64_t longest_ns = 0;
	long calls = 0;

	atomic_store(&keep_running, 0);
	pthread_barrier_wait(&round_ends);
	for (long i = 0; i < thread_count; i++) {
		calls += workers[i].calls;
		if (workers[i].longest_ns > longest_ns)
			longest_ns = workers[i].longest_ns;
	}
	say("calls=%ld longest_ns=%ld", calls, (long)longest_ns);
}

static void *sleep_on(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* What follows the options. */
static void load_objects(int argc, char **argv)
{
	for (int i = argc; i-- > 1 && *argv[i] == '/';) {
		if (!dlopen(argv[i], RTLD_NOW))
			die("%s", dlerror());
	}
}

static void prepare(void)
{
	blocks = mmap(NULL, ((size_t)block_count + 1) * sizeof(void *), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (blocks == MAP_FAILED)
		die("no room for the list of blocks");
	pthread_barrier_init(&round_begins, NULL, (unsigned)thread_count + 1);
	pthread_barrier_init(&round_ends, NULL, (unsigned)thread_count + 1);
	for (long i = 0; i < thread_count; i++)
		start_thread(work, &workers[i], STACK_BYTES);
	for (long i = 0; i < sleeper_count; i++)
		start_thread(sleep_on, NULL, STACK_BYTES);
}

int main(int argc, char **argv)
{
	int command;

	thread_count = option_number(argc, argv, "--threads", 1);
	sleeper_count = option_number(argc, argv, "--sleepers", 0);
	block_count = option_number(argc, argv, "--blocks", 0);
	if (thread_count < 1 || thread_count > MAX_THREADS)
		die("--threads takes 1 to %d", MAX_THREADS);
	load_objects(argc, argv);
	prepare();
	say("R");
	while ((command = next_command()) != 'q') {
		switch (command) {
		case 'f':
			fill();
			break;
		case 'r':
			start_round();
			break;
		case 's':
			end_round();
			break;
		default:
			die("unknown command '%c'", command);
		}
	}
	_exit(0);
}
