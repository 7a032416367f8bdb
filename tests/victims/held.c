/* Threads that know by their own clocks how long others have kept them from running.
 *
 *   held [--threads N]
 *
 * Each, the main one as well, looks at the clock all the time and calls free() now and then.  What passes while it neither
 * runs (its processor time) nor waits for a processor (its schedstat), it was held: it makes no call that waits.  Commands
 * besides g and q: 'o' loads and unloads a plugin from the folder in the environment's HELD_PLUGIN; both answer, once each
 * thread has looked, with the tally since the last answer: longest_us (in one piece), total_us (of all threads), looks. */
#include "victim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 256
#define STACK_BYTES (64 * 1024)
#define NSEC 1000000000ULL
#define UNSURE_NS 50000            /* a look that took so long was interrupted: its numbers are of two moments */
#define LOOKS_PER_FREE 64

struct clocks {
	uint64_t wall, off;            /* off: of that, neither running nor waiting to */
};

struct worker {
	atomic_ulong longest_ns, total_ns, looks;
	atomic_ulong turns;            /* of its loop, ever: one that has made one more since knows what it was held */
	struct clocks last;
	void *volatile no_block;
	int fd;
} __attribute__((aligned(128)));

static struct worker workers[MAX_THREADS];
static long thread_count;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

/* The second number of /proc/thread-self/schedstat. */
static uint64_t waited_ns(int fd)
{
	uint64_t value = 0;
	char text[96];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *p;

	if (n <= 0)
		die("there is no schedstat");
	text[n] = '\0';
	p = strchr(text, ' ');
	for (p = p ? p + 1 : "x"; *p >= '0' && *p <= '9'; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	return value;
}

static int look(int fd, struct clocks *ret)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC), other = clock_ns(CLOCK_THREAD_CPUTIME_ID) + waited_ns(fd),
		 after = clock_ns(CLOCK_MONOTONIC);

	ret->wall = after;
	ret->off = after - other;
	return after - before < UNSURE_NS;
}

/* What was before does not count. */
static void begin_anew(struct worker *worker)
{
	while (!look(worker->fd, &worker->last))
		;
}

static void begin(struct worker *worker)
{
	worker->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	begin_anew(worker);
}

static int go_on(struct worker *worker)
{
	struct clocks now;

	if (!look(worker->fd, &now))
		return 0;
	atomic_fetch_add(&worker->turns, 1);
	if (now.off > worker->last.off) {
		unsigned long held = now.off - worker->last.off;

		atomic_fetch_add(&worker->total_ns, held);
		if (held > atomic_load(&worker->longest_ns))
			atomic_store(&worker->longest_ns, held);
	}
	worker->last = now;
	if (atomic_fetch_add(&worker->looks, 1) % LOOKS_PER_FREE != 0)
		return 1;
	/* One stop, where a malloc is two, between which nobody can look. */
	free(worker->no_block);
	return 1;
}

static void *work(void *argument)
{
	begin(argument);
	for (;;)
		go_on(argument);
	return NULL;
}

/* A thread that still waits for a processor has not seen yet that it was held before. */
static void wait_for_all(void)
{
	for (long i = 1; i < thread_count; i++) {
		unsigned long turns = atomic_load(&workers[i].turns);

		while (atomic_load(&workers[i].turns) < turns + 2)
			sched_yield();
	}
}

static void tell(void)
{
	unsigned long longest = 0, total = 0, looks = 0;

	for (long i = 0; i < thread_count; i++) {
		unsigned long ns = atomic_exchange(&workers[i].longest_ns, 0);

		longest = ns > longest ? ns : longest;
		total += atomic_exchange(&workers[i].total_ns, 0);
		looks += atomic_exchange(&workers[i].looks, 0);
	}
	say("longest_us=%lu total_us=%lu looks=%lu", longest / 1000, total / 1000, looks);
}

static void load_plugin(void)
{
	const char *path = getenv("HELD_PLUGIN");
	void *plugin = path ? dlopen(path, RTLD_NOW) : NULL;

	if (!plugin)
		die("no plugin");
	dlclose(plugin);
}

int main(int argc, char **argv)
{
	struct pollfd commands = { .fd = STDIN_FILENO, .events = POLLIN };
	int command;

	thread_count = option_number(argc, argv, "--threads", 4);
	if (thread_count < 1 || thread_count > MAX_THREADS)
		die("--threads takes 1 to %d", MAX_THREADS);
	for (long i = 1; i < thread_count; i++)
		start_thread(work, &workers[i], STACK_BYTES);
	say("R");
	begin(&workers[0]);
	for (;;) {
		go_on(&workers[0]);
		if (poll(&commands, 1, 0) <= 0)
			continue;
		while (!go_on(&workers[0]))
			;
		command = next_command();
		if (command == 'q')
			_exit(0);
		if (command == 'o')
			load_plugin();
		else if (command != 'g')
			die("unknown command '%c'", command);
		wait_for_all();
		begin_anew(&workers[0]);       /* it may have waited by itself */
		tell();
	}
}
