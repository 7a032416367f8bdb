/* N threads that allocate and free 64 bytes at stack depth 20, without frame pointers.
 *
 *   pairs [--threads N] [--pairs N] [--live N]
 *
 * --pairs: per thread and round.  --live: each thread holds so many blocks all the time, and a pair frees
 * one of them at random and allocates another.
 * Commands besides q: 'g' a round of pairs; 'b' a round of bare stops, three int3 of its own in the place
 * of each pair, which only a tracer lets it survive.  The answer is "pairs=N ns=T cpu=T": from the first
 * thread's first pair to the last one's last, by this process's own clock, and what all threads had of processors. */
#include "../victims/victim.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 256
#define STACK_BYTES (64 * 1024)
#define DEPTH 20               /* functions between the thread's first one and the allocator, both left out */

struct worker {
	void **live;
	uint64_t random;
	uint64_t begun_ns, ended_ns, cpu_ns;
} __attribute__((aligned(128)));

static struct worker workers[MAX_THREADS];
static long thread_count, pairs_per_round, live_blocks;
static int bare;
static pthread_barrier_t round_begins, round_ends;

static __attribute__((noinline)) void allocate_and_free(void)
{
	for (long i = 0; i < pairs_per_round; i++) {
		void *p = malloc(64);

		/* The compiler must not see that nobody uses it. */
		__asm__ volatile("" : "+r"(p) : : "memory");
		free(p);
	}
}

static __attribute__((noinline)) void replace(struct worker *w)
{
	for (long i = 0; i < pairs_per_round; i++) {
		uint64_t at = (random_next(&w->random) >> 32) % (uint64_t)live_blocks;

		free(w->live[at]);
		w->live[at] = malloc(64);
	}
}

static __attribute__((noinline)) void stop_barely(void)
{
	for (long i = 0; i < pairs_per_round; i++)
		__asm__ volatile("int3\n\tint3\n\tint3" : : : "memory");
}

static __attribute__((noinline)) void descend(int depth, struct worker *w)
{
	if (depth > 1)
		descend(depth - 1, w);
	else if (bare)
		stop_barely();
	else if (live_blocks > 0)
		replace(w);
	else
		allocate_and_free();
	/* Something after the call: no jump may take its place. */
	__asm__ volatile("" : : : "memory");
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *argument)
{
	struct worker *w = argument;
	uint64_t cpu_ns;

	for (;;) {
		pthread_barrier_wait(&round_begins);
		cpu_ns = own_cpu_ns();
		w->begun_ns = now_ns();
		descend(DEPTH - 1, w);        /* and the function with the loop */
		w->ended_ns = now_ns();
		w->cpu_ns = own_cpu_ns() - cpu_ns;
		pthread_barrier_wait(&round_ends);
	}
	return NULL;
}

static void prepare(struct worker *w, long index)
{
	w->random = 0x9e3779b97f4a7c15ULL * (uint64_t)(index + 1);
	w->live = mmap(NULL, ((size_t)live_blocks + 1) * sizeof(void *), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->live == MAP_FAILED)
		die("no room for the list of blocks");
}

static void play_round(void)
{
	uint64_t begun_ns = UINT64_MAX, ended_ns = 0, cpu_ns = 0;

	pthread_barrier_wait(&round_begins);
	pthread_barrier_wait(&round_ends);
	for (long i = 0; i < thread_count; i++) {
		if (workers[i].begun_ns < begun_ns)
			begun_ns = workers[i].begun_ns;
		if (workers[i].ended_ns > ended_ns)
			ended_ns = workers[i].ended_ns;
		cpu_ns += workers[i].cpu_ns;
	}
	say("pairs=%ld ns=%ld cpu=%ld", thread_count * pairs_per_round, (long)(ended_ns - begun_ns), (long)cpu_ns);
}

int main(int argc, char **argv)
{
	int command;

	thread_count = option_number(argc, argv, "--threads", 1);
	pairs_per_round = option_number(argc, argv, "--pairs", 1000);
	live_blocks = option_number(argc, argv, "--live", 0);
	if (thread_count < 1 || thread_count > MAX_THREADS)
		die("--threads takes 1 to %d", MAX_THREADS);
	pthread_barrier_init(&round_begins, NULL, (unsigned)thread_count + 1);
	pthread_barrier_init(&round_ends, NULL, (unsigned)thread_count + 1);
	for (long i = 0; i < thread_count; i++) {
		prepare(&workers[i], i);
		start_thread(work, &workers[i], STACK_BYTES);
	}
	say("R");
	while ((command = next_command()) != 'q') {
		if (command != 'g' && command != 'b')
			die("unknown command '%c'", command);
		bare = command == 'b';
		play_round();
	}
	_exit(0);
}
