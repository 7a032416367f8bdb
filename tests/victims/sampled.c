/* Known numbers of blocks of known sizes, by sites that take turns.
 *
 *   --threads N   so many threads do each round at once, default 1
 *   --once        one round, without being asked
 *
 * 'g' makes and keeps: `even` and `odd`, 20000 blocks of 100 bytes each, strictly in turns; `chain`, 2000 blocks that realloc
 * has brought to 700 bytes in five steps; `aligned`, 2000 blocks of 400 bytes by posix_memalign, which stores its result on the
 * stack; `zeroed`, 20000 of calloc(2, 50), freed at once.  'f' frees all.  'c' forks: the child obeys from then on,
 * until 'e' ends it.
 * Tally: blocks and bytes of each, that live, and the process. */
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

struct kept {
	void *even[TURNS], *odd[TURNS], *chains[CHAINS], *aligned[ALIGNED];
};

static struct kept kept[THREADS_MAX];
static long threads, rounds;

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
	say("turns=%ld turn_bytes=%ld chains=%ld chain_bytes=%ld aligned=%ld aligned_bytes=%ld pid=%d", rounds * threads * TURNS,
	    rounds * threads * TURNS * SIZE, rounds * threads * CHAINS, rounds * threads * CHAINS * CHAIN_SIZE,
	    rounds * threads * ALIGNED, rounds * threads * ALIGNED * ALIGNED_SIZE, (int)getpid());
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
		} else if (command == 'c') {
			fork_and_wait();
		} else if (command == 'e') {
			_exit(0);
		}
		tell();
	}
	return 0;
}
