/* Handlers of timers that come in the midst of whatever watches its allocations.
 *
 *   interrupted [--threads N] [--hits N] [--sleep-ms N] [--altstack] [PROGRAM]
 *
 * Each thread but the first and the last allocates, and has a timer of 1 kHz; the last one allocates all the time and has no signal.  A
 * round lasts until N handlers (--hits) have found their thread in code that belongs to no object, which is nobody's but the tracer's,
 * and so outside of the allocator's.  What they do there:
 *   s   sleep
 *   a   allocate, keep that, and sleep
 *   n   allocate until a second signal comes in the midst of that in the same way, whose handler sleeps
 *   v   sleep for a moment of up to LINGER_NS and vfork; the child executes PROGRAM
 * And as long:
 *   g   nothing, wherever they come, but some microseconds of work
 * Tally: hits, nested (of the second signal), ticks; good (PROGRAM has said that it has rights, as tests/victims/privileged does);
 * blocks, bytes, allocations, frees; kept (by handlers, of 56 bytes). */
#define _GNU_SOURCE
#include "victim.h"

#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS_MAX 64
#define STACK_BYTES (256 * 1024)
#define TICK_NS 1000000
#define SLOTS 16
#define TEXTS_MAX 64
#define KEPT_BYTES 56
#define WORK_TURNS 2000                /* some microseconds */
#define LINGER_NS 4000000
#define RIGHTS 41

static struct text {
	uintptr_t start, end;
} texts[TEXTS_MAX];
static size_t text_count;

static char *program;
static atomic_long hits, nested, ticks, good, blocks, bytes, allocations, frees, kept;
static long thread_count, hits_a_round, sleep_ms;
static bool use_altstack;
static atomic_int mode;                /* a command; 0: rest */
static pthread_barrier_t begins, ends;
static _Thread_local bool in_handler;
static _Thread_local timer_t first_timer, second_timer;
static _Thread_local volatile bool is_nested;

static int note_text(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		if (text_count == TEXTS_MAX)
			die("too many objects");
		texts[text_count++] = (struct text){ info->dlpi_addr + phdr->p_vaddr,
						     info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz };
	}
	return 0;
}

static bool is_in_no_object(const void *context)
{
	const ucontext_t *at = context;
	uintptr_t pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];

	for (size_t i = 0; i < text_count; i++) {
		if (pc >= texts[i].start && pc < texts[i].end)
			return false;
	}
	return true;
}

static void *born(void *p, size_t size)
{
	if (!p)
		die("malloc failed");
	memset(p, 1, size);
	atomic_fetch_add(&allocations, 1);
	atomic_fetch_add(&blocks, 1);
	atomic_fetch_add(&bytes, (long)size);
	return p;
}

static void give_back(void *p, size_t size)
{
	if (!p)
		return;
	free(p);
	atomic_fetch_add(&frees, 1);
	atomic_fetch_add(&blocks, -1);
	atomic_fetch_add(&bytes, -(long)size);
}

static __attribute__((noinline)) void keep_one(void)
{
	born(malloc(KEPT_BYTES), KEPT_BYTES); /* kept by the handler */
	atomic_fetch_add(&kept, 1);
}

static void sleep_here(void)
{
	struct timespec left = { sleep_ms / 1000, sleep_ms % 1000 * 1000000 };

	while (nanosleep(&left, &left))
		;
}

static void work_a_little(void)
{
	for (volatile int i = 0; i < WORK_TURNS; i++)
		;
}

/* The child has this stack, and allocates nothing. */
static void run_program(void)
{
	const struct timespec moment = { 0, atomic_load(&ticks) * 7919 % 1000 * (LINGER_NS / 1000) };
	char *const arguments[] = { program, NULL };
	int status;
	pid_t pid;

	nanosleep(&moment, NULL);
	pid = vfork();
	if (pid == 0) {
		execv(program, arguments);
		_exit(127);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == RIGHTS)
		atomic_fetch_add(&good, 1);
}

static void set_timer(timer_t timer, long ns)
{
	struct itimerspec spec = { .it_interval.tv_nsec = ns, .it_value.tv_nsec = ns };

	if (timer_settime(timer, 0, &spec, NULL))
		die("timer_settime failed");
}

static void allocate_until_nested(void)
{
	is_nested = false;
	set_timer(second_timer, TICK_NS);
	while (!is_nested && atomic_load(&mode) == 'n')
		give_back(born(malloc(72), 72), 72);
	set_timer(second_timer, 0);
}

static void on_second(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	if (is_nested || !is_in_no_object(context))
		return;
	is_nested = true;
	atomic_fetch_add(&nested, 1);
	sleep_here();
}

static void on_tick(int sig, siginfo_t *info, void *context)
{
	int what = atomic_load(&mode);

	(void)sig, (void)info;
	atomic_fetch_add(&ticks, 1);
	if (what == 'g')
		work_a_little();
	if (what == 0 || what == 'g' || in_handler || !is_in_no_object(context))
		return;
	in_handler = true;
	if (what == 'a')
		keep_one();
	if (what == 'v')
		run_program();
	else if (what == 'n')
		allocate_until_nested();
	else
		sleep_here();
	atomic_fetch_add(&hits, 1);
	in_handler = false;
}

static timer_t make_timer(int sig)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		die("timer_create failed");
	return timer;
}

static void allocate_for_a_round(void)
{
	struct {
		void *p;
		size_t size;
	} slot[SLOTS] = { { 0 } };
	size_t number = 0;

	for (int is = 1; is; is = atomic_load(&mode)) {
		size_t at = number++ % SLOTS, size = 24 + number * 37 % 700;

		give_back(slot[at].p, slot[at].size);
		slot[at].p = born(malloc(size), size);
		slot[at].size = size;
	}
	/* The first one stays. */
	for (size_t i = 1; i < SLOTS; i++)
		give_back(slot[i].p, slot[i].size);
}

static void have_stack_of_its_own(void)
{
	stack_t stack = { .ss_size = STACK_BYTES };

	stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL))
		die("no stack for handlers");
}

static void *work(void *timed)
{
	if (timed && use_altstack)
		have_stack_of_its_own();
	if (timed) {
		first_timer = make_timer(SIGALRM);
		second_timer = make_timer(SIGUSR1);
	}
	for (;;) {
		pthread_barrier_wait(&begins);
		if (timed)
			set_timer(first_timer, TICK_NS);
		allocate_for_a_round();
		if (timed)
			set_timer(first_timer, 0);
		pthread_barrier_wait(&ends);
	}
	return NULL;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | (use_altstack ? SA_ONSTACK : 0) };

	sigemptyset(&action.sa_mask);
	if (sigaction(sig, &action, NULL))
		die("sigaction failed");
}

static void go(int command)
{
	atomic_long *counted = command == 'g' ? &ticks : &hits;
	long until = atomic_load(counted) + hits_a_round;
	const struct timespec pause = { 0, 1000000 };

	atomic_store(&mode, command);
	pthread_barrier_wait(&begins);
	while (atomic_load(counted) < until)
		nanosleep(&pause, NULL);
	atomic_store(&mode, 0);
	pthread_barrier_wait(&ends);
	say("hits=%ld nested=%ld ticks=%ld good=%ld blocks=%ld bytes=%ld allocations=%ld frees=%ld kept=%ld", atomic_load(&hits),
	    atomic_load(&nested), atomic_load(&ticks), atomic_load(&good), atomic_load(&blocks), atomic_load(&bytes), atomic_load(&allocations),
	    atomic_load(&frees), atomic_load(&kept));
}

int main(int argc, char **argv)
{
	sigset_t both;
	int command;

	thread_count = option_number(argc, argv, "--threads", 1);
	hits_a_round = option_number(argc, argv, "--hits", 4);
	sleep_ms = option_number(argc, argv, "--sleep-ms", 400);
	use_altstack = option_given(argc, argv, "--altstack");
	program = argv[argc - 1];
	if (thread_count > THREADS_MAX)
		die("too many threads");
	dl_iterate_phdr(note_text, NULL);
	handle(SIGALRM, on_tick);
	handle(SIGUSR1, on_second);
	pthread_barrier_init(&begins, NULL, (unsigned)thread_count + 2);
	pthread_barrier_init(&ends, NULL, (unsigned)thread_count + 2);
	for (long i = 0; i < thread_count; i++)
		start_thread(work, &hits, STACK_BYTES);
	sigemptyset(&both);
	sigaddset(&both, SIGALRM);
	sigaddset(&both, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &both, NULL);
	start_thread(work, NULL, STACK_BYTES);
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED)
		go(command);
	return 0;
}
