/* Allocates on stacks that come and go, while what is next to them comes and goes as well: a copy of such a stack that goes past its
 * end, or that takes for mapped what was so a moment ago, faults.
 *
 *   c  on stacks of coroutines          s  in handlers on alternate stacks          t  in threads on stacks of their own
 *   n  all the time on stacks that stay, next to what comes and goes
 *
 * Each command does that --rounds times in each of --workers threads; each stack is mapped where the last one was, used once and
 * unmapped.  Meanwhile another thread maps and unmaps what is above the stacks of all of them, without end.
 * Options: --rounds, --workers, --raw (by system calls of its own, past the C library).
 * Tally: blocks, bytes (live), stacks (mapped, used and unmapped), neighbours (mapped and unmapped), rate (both, a second). */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096UL
#define STACK_PAGES 16UL
#define STACK_BYTES (STACK_PAGES * PAGE)
#define OWN_STACK_BYTES (256 * 1024UL)
#define WORKERS_MAX 8
#define KEPT_EVERY 16                  /* of the rounds, one keeps what it has allocated */
#define COMMANDS "cstn"

struct worker {
	_Atomic(char *) stack;
	ucontext_t back, in;
	unsigned long round;
	int ask[2];
};

static struct worker workers[WORKERS_MAX];
static long worker_count, rounds;
static int raw, told[2];
static atomic_long blocks, bytes, stacks, neighbours;
static _Thread_local struct worker *own;

/* --- mappings --- */

/* False: something else has been mapped there meanwhile. */
static int map(char *start, size_t length)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, protection = PROT_READ | PROT_WRITE;
	long r = raw ? syscall(SYS_mmap, start, length, protection, flags, -1, 0L) :
		       (long)mmap(start, length, protection, flags, -1, 0);

	if (r == -1 && errno != EEXIST)
		die("mmap: %s", strerror(errno));
	return r != -1;
}

static void unmap(char *start, size_t length)
{
	if (raw ? syscall(SYS_munmap, start, length) : munmap(start, length))
		die("munmap: %s", strerror(errno));
}

/* A place with room below and above it. */
static char *find_place(size_t length)
{
	char *start = mmap(NULL, length + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		die("no room: %s", strerror(errno));
	unmap(start, length + 2 * PAGE);
	return start + PAGE;
}

/* --- allocations --- */

static void count(void *block, long size)
{
	if (!block)
		die("no memory");
	memset(block, 1, (size_t)size);
	atomic_fetch_add(&blocks, 1);
	atomic_fetch_add(&bytes, size);
}

/* What is kept stays as many bytes whatever the stack. */
static __attribute__((noinline)) void allocate(int depth, int keeps)
{
	volatile char room[200];

	room[0] = 1;
	if (depth > 0) {
		allocate(depth - 1, keeps);
	} else {
		void *block = malloc(120), *other = realloc(calloc(3, 20), 300);

		if (keeps) {
			count(block, 120);
			count(other, 300);
		} else {
			free(block);
			free(other);
		}
	}
	room[1] = room[0];
}

static void allocate_in_round(const struct worker *worker)
{
	allocate((int)(worker->round % 8), worker->round % KEPT_EVERY == 0);
}

/* --- the stacks --- */

static void run_coroutine(unsigned low, unsigned high)
{
	struct worker *worker = (struct worker *)((uintptr_t)high << 32 | low);

	for (;;) {
		allocate_in_round(worker);
		swapcontext(&worker->in, &worker->back);
	}
}

static void make_coroutine(struct worker *worker)
{
	getcontext(&worker->in);
	worker->in.uc_stack.ss_sp = worker->stack;
	worker->in.uc_stack.ss_size = STACK_BYTES;
	worker->in.uc_link = NULL;
	makecontext(&worker->in, (void (*)(void))run_coroutine, 2, (unsigned)(uintptr_t)worker,
		    (unsigned)((uintptr_t)worker >> 32));
}

static void use_coroutine(struct worker *worker)
{
	make_coroutine(worker);
	swapcontext(&worker->back, &worker->in);
}

static void handle(int sig)
{
	(void)sig;
	allocate_in_round(own);
}

static void use_handler(struct worker *worker)
{
	const stack_t stack = { .ss_sp = worker->stack, .ss_size = STACK_BYTES }, none = { .ss_flags = SS_DISABLE };

	if (sigaltstack(&stack, NULL) || pthread_kill(pthread_self(), SIGUSR1) || sigaltstack(&none, NULL))
		die("the alternate stack: %s", strerror(errno));
}

static void *run_thread(void *worker)
{
	allocate_in_round(worker);
	return NULL;
}

static void use_thread(struct worker *worker)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, worker->stack, STACK_BYTES) ||
	    pthread_create(&thread, &attributes, run_thread, worker))
		die("no thread");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void use(struct worker *worker, char command)
{
	switch (command) {
	case 'c':
		use_coroutine(worker);
		break;
	case 's':
		use_handler(worker);
		break;
	default:
		use_thread(worker);
	}
}

/* --- the workers --- */

/* Where the last one was, but where that is taken. */
static void map_stack(struct worker *worker)
{
	while (!map(worker->stack, STACK_BYTES))
		worker->stack = find_place(STACK_BYTES);
}

static void stay(struct worker *worker)
{
	map_stack(worker);
	make_coroutine(worker);
	for (long i = 0; i < rounds; i++, worker->round++)
		swapcontext(&worker->back, &worker->in);
	unmap(worker->stack, STACK_BYTES);
}

static void come_and_go(struct worker *worker, char command)
{
	for (long i = 0; i < rounds; i++, worker->round++) {
		map_stack(worker);
		use(worker, command);
		unmap(worker->stack, STACK_BYTES);
		atomic_fetch_add(&stacks, 1);
	}
}

static void *work(void *worker)
{
	char command;

	own = worker;
	while (read(own->ask[0], &command, 1) == 1) {
		if (command == 'n')
			stay(own);
		else
			come_and_go(own, command);
		if (write(told[1], &command, 1) != 1)
			die("write: %s", strerror(errno));
	}
	return NULL;
}

/* Above each of them: there it is when a copy looks, and is not any more when it goes on. */
static void *have_neighbours(void *unused)
{
	for (;;) {
		for (long i = 0; i < worker_count; i++) {
			char *above = workers[i].stack + STACK_BYTES;

			if (!map(above, PAGE))
				continue;
			unmap(above, PAGE);
			atomic_fetch_add(&neighbours, 1);
		}
	}
	return unused;
}

static void have_all(char command)
{
	char c;

	for (long i = 0; i < worker_count; i++)
		if (write(workers[i].ask[1], &command, 1) != 1)
			die("write: %s", strerror(errno));
	for (long i = 0; i < worker_count; i++)
		if (read(told[0], &c, 1) != 1)
			die("read: %s", strerror(errno));
}

static void obey_one(char command)
{
	long before = atomic_load(&stacks) + atomic_load(&neighbours);
	uint64_t began_ns = now_ns(), ns;

	if (!strchr(COMMANDS, command))
		die("unknown command '%c'", command);
	have_all(command);
	ns = now_ns() - began_ns;
	say("blocks=%ld bytes=%ld stacks=%ld neighbours=%ld rate=%ld", atomic_load(&blocks), atomic_load(&bytes),
	    atomic_load(&stacks), atomic_load(&neighbours),
	    (long)((double)(atomic_load(&stacks) + atomic_load(&neighbours) - before) * 1e9 / (double)(ns + 1)));
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	int command;

	rounds = option_number(argc, argv, "--rounds", 1000);
	worker_count = option_number(argc, argv, "--workers", 2);
	raw = option_given(argc, argv, "--raw");
	if (worker_count < 1 || worker_count > WORKERS_MAX)
		die("--workers: 1 to %d", WORKERS_MAX);
	if (sigaction(SIGUSR1, &action, NULL) || pipe(told))
		die("%s", strerror(errno));
	for (long i = 0; i < worker_count; i++) {
		workers[i].stack = find_place(STACK_BYTES);
		if (pipe(workers[i].ask))
			die("pipe: %s", strerror(errno));
		start_thread(work, &workers[i], OWN_STACK_BYTES);
	}
	start_thread(have_neighbours, NULL, OWN_STACK_BYTES);
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED)
		obey_one((char)command);
	return 0;
}
