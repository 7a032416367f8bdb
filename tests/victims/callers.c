/* Leaves calls of a malloc that wraps another (wrapper.so, preloaded) in every way but their return, and lets things
 * happen within them.  Each command is one way, a number of times (--rounds):
 *
 *   k  nothing of the kind: keeps and frees blocks, of every function
 *   j  siglongjmp out of the handler of a signal within malloc       J  longjmp out of malloc itself
 *   R  longjmp out of realloc
 *   e  pthread_exit within malloc                                     E  the same out of a signal's handler
 *   c  asynchronous cancellation within malloc
 *   f  fork within malloc                                             F  the same out of a signal's handler
 *   G  fork within malloc, once: parent and child return from it; the child answers first (with its pid as child=) and
 *      stays until it is killed
 *   T  a thread ends within malloc, the next one has its number (wants a PID namespace of its own)
 *   n  the hook allocates, keeps and frees                            r  and resizes what it has kept
 *   x  a coroutine is switched within malloc, and goes on later       X  and is never gone on with
 *   h  a handler allocates within malloc                              H  the same on a stack of its own
 *   d  a handler allocates and frees within operator delete
 *   a  SIGALRM at 1 kHz: its handler allocates, and every third leaves by siglongjmp, out of malloc, too
 *   w  sigwait and signalfd between allocations
 *
 * Tally: ways (how often), reused (numbers of threads), blocks and bytes (live, to the block: by this program, its hooks and the wrapper). */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)
#define KEPT_MAX (1 << 20)
#define COROUTINES 4
#define RECORD_BYTES 48

static void (**wrap_hook)(int asked);
static atomic_long *wrap_records;

static long rounds = 10, reused;
static atomic_long ways, blocks, bytes;
static int with_header;

/* --- the tally --- */

static struct kept {
	void *block;
	size_t size;
} kept[KEPT_MAX];
static long kept_count;

static void count(long more, long size)
{
	atomic_fetch_add(&blocks, more);
	atomic_fetch_add(&bytes, size);
}

static void keep(void *block, size_t size)
{
	if (!block || kept_count == KEPT_MAX)
		die("no block, or no room for it");
	memset(block, 1, size);
	kept[kept_count++] = (struct kept){ block, size };
	count(1, (long)size);
}

static void drop_last(void)
{
	struct kept *last = &kept[--kept_count];

	free(last->block);
	count(-1, -(long)last->size);
}

/* What a call has taken that did not return: the wrapper has it, and nobody frees it. */
static void count_taken(size_t size)
{
	count(1, (long)size + (with_header ? 16 : 0));
}

static void answer(void)
{
	long records = atomic_load(wrap_records);

	say("ways=%ld reused=%ld child=%d blocks=%ld bytes=%ld", atomic_load(&ways), reused, (int)getpid(),
	    atomic_load(&blocks) + records, atomic_load(&bytes) + records * RECORD_BYTES);
}

/* Allocations of all kinds, deeper in the stack than what was left, and at its place. */
static __attribute__((noinline)) void go_on(int depth)
{
	volatile char room[200];
	void *p;

	room[0] = 1;
	keep(malloc(40), 40);
	free(malloc(60));
	keep(calloc(3, 20), 60);
	p = realloc(malloc(10), 300);
	keep(p, 300);
	free(realloc(malloc(2000), 20));
	keep(aligned_alloc(64, 128), 128);
	if (posix_memalign(&p, 32, 96))
		die("posix_memalign failed");
	keep(p, 96);
	free(memalign(128, 70));
	drop_last();
	if (depth > 0)
		go_on(depth - 1);
	if (room[0] != 1)
		die("the stack was written to");
}

/* --- jumps --- */

static sigjmp_buf way_out;
static size_t asked_size;

/* The hook acts once, in the call that is asked for. */
static _Thread_local void (*act)(void);
static _Thread_local int act_when;

static void on_hook(int asked)
{
	void (*now)(void) = act;

	if (!now || asked != act_when)
		return;
	act = NULL;
	now();
}

static __attribute__((noinline)) void *call_malloc(size_t size, void (*action)(void), int when)
{
	void *p;

	asked_size = size;
	act_when = when;
	act = action;
	p = malloc(size);
	return p;
}

static void raise_it(void)
{
	raise(SIGUSR1);
}

static void set_handler(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	if (sigaction(SIGUSR1, &action, NULL))
		die("sigaction: %s", strerror(errno));
}

static void jump(int sig)
{
	(void)sig;
	siglongjmp(way_out, 1);
}

static void jump_plainly(void)
{
	siglongjmp(way_out, 1);
}

static void jump_with(void (*action)(void), long i)
{
	if (sigsetjmp(way_out, 1) == 0)
		die("malloc came back: %p", call_malloc(72, action, i % 2));
	if (i % 2)
		count_taken(72);
	go_on(i % 4);
}

static void way_j(long i)
{
	set_handler(jump, 0);
	jump_with(raise_it, i);
}

static void way_J(long i)
{
	jump_with(jump_plainly, i);
}

/* Out of a resize: the old block stays. */
static void way_R(long i)
{
	void *p = malloc(500);

	keep(p, 500);
	if (sigsetjmp(way_out, 1) == 0) {
		act_when = 0;
		act = jump_plainly;
		die("realloc came back: %p", realloc(p, 5000));
	}
	go_on(i % 4);
}

/* --- threads that end --- */

static void leave_thread(void)
{
	pthread_exit(NULL);
}

static void leave_thread_from_handler(int sig)
{
	(void)sig;
	pthread_exit(NULL);
}

static atomic_int is_in;
static int thread_when;
static pid_t last_tid;

static void wait_for_cancel(void)
{
	atomic_store(&is_in, 1);
	for (;;)
		;
}

static void *run_action(void *argument)
{
	void (*action)(void) = argument;

	last_tid = gettid();
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	free(call_malloc(80, NULL, 0));
	call_malloc(88, action, thread_when);
	die("malloc came back");
	return NULL;
}

/* The stack is ours, and the block of the loader's for it is made before the tally begins: see make_room(). */
static char *thread_stack;

static void join(pthread_t thread)
{
	pthread_join(thread, NULL);
	/* Joined is not gone: the kernel still counts it for a moment. */
	while (tgkill(getpid(), last_tid, 0) == 0)
		sched_yield();
	if (thread_when)
		count_taken(88);
}

static pthread_t begin_thread(void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, thread_stack, STACK_BYTES);
	r = pthread_create(&thread, &attributes, run, argument);
	if (r)
		die("starting a thread: %s", strerror(r));
	pthread_attr_destroy(&attributes);
	return thread;
}

static void way_e(long i)
{
	pthread_t thread;

	thread_when = (int)(i % 2);
	thread = begin_thread(run_action, (void *)leave_thread);
	join(thread);
	go_on(i % 4);
}

static void way_E(long i)
{
	pthread_t thread;

	set_handler(leave_thread_from_handler, 0);
	thread_when = (int)(i % 2);
	thread = begin_thread(run_action, (void *)raise_it);
	join(thread);
	go_on(i % 4);
}

static void way_c(long i)
{
	pthread_t thread;

	atomic_store(&is_in, 0);
	thread_when = (int)(i % 2);
	thread = begin_thread(run_action, (void *)wait_for_cancel);
	while (!atomic_load(&is_in))
		sched_yield();
	pthread_cancel(thread);
	join(thread);
	go_on(i % 4);
}

static void *run_plainly(void *argument)
{
	reused += last_tid == gettid();
	go_on(2);
	return argument;
}

static void set_next_tid(pid_t tid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dprintf(fd, "%d", (int)tid - 1) < 0)
		die("ns_last_pid: %s", strerror(errno));
	close(fd);
}

static void way_T(long i)
{
	pthread_t thread;

	way_e(i);
	set_next_tid(last_tid);
	thread = begin_thread(run_plainly, NULL);
	pthread_join(thread, NULL);
}

/* --- forks --- */

static void fork_here(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		free(malloc(100));
		_exit(7);
	}
	while (waitpid(child, &status, 0) < 0)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		die("the child ended by %#x", status);
}

static void fork_in_handler(int sig)
{
	(void)sig;
	fork_here();
}

static atomic_int *child_answered;
static pid_t forked = -1;

static void fork_and_return(void)
{
	forked = fork();
	if (forked < 0)
		die("fork: %s", strerror(errno));
}

/* Once, however many rounds. */
static void way_G(long i)
{
	if (i > 0)
		return;
	keep(call_malloc(64, fork_and_return, 0), 64);
	go_on(2);
	if (forked > 0) {
		while (!atomic_load(child_answered))
			sched_yield();
		return;
	}
	answer();
	atomic_store(child_answered, 1);
	for (;;)
		pause();
}

static void *at_fork;

static void before_fork(void)
{
	at_fork = malloc(33);
}

static void after_fork(void)
{
	free(at_fork);
	at_fork = NULL;
	keep(malloc(17), 17);
}

static void way_f(long i)
{
	keep(call_malloc(64, fork_here, i % 2), 64);
	go_on(i % 4);
}

static void way_F(long i)
{
	set_handler(fork_in_handler, 0);
	keep(call_malloc(64, raise_it, i % 2), 64);
	go_on(i % 4);
}

/* --- hooks and handlers that allocate --- */

static void *hooks_own;
static size_t hooks_size;

static void allocate_here(void)
{
	keep(malloc(24), 24);
	free(malloc(asked_size));
	keep(malloc(asked_size), asked_size);
	keep(calloc(2, 30), 60);
	drop_last();
}

static void resize_here(void)
{
	size_t size = hooks_size % 4000 + 100;
	void *resized = realloc(hooks_own, size);

	if (!resized)
		die("realloc failed");
	count(!hooks_own, (long)size - (long)hooks_size);
	hooks_own = resized;
	hooks_size = size;
}

static void allocate_in_handler(int sig)
{
	(void)sig;
	allocate_here();
}

static void way_n(long i)
{
	void *p;

	keep(call_malloc(64, allocate_here, i % 2), 64);
	act_when = i % 2;
	act = allocate_here;
	asked_size = 700;
	p = realloc(kept[kept_count - 1].block, 700);
	/* The hook has kept two more since. */
	for (long k = kept_count; k-- > 0;) {
		if (kept[k].size == 64) {
			kept[k] = (struct kept){ p, 700 };
			count(0, 700 - 64);
			break;
		}
	}
	act_when = 1;
	act = allocate_here;
	asked_size = 256;
	keep(aligned_alloc(256, 256), 256);
	go_on(i % 4);
}

static void way_r(long i)
{
	keep(call_malloc(64, resize_here, i % 2), 64);
	go_on(i % 4);
}

static void way_h(long i)
{
	set_handler(allocate_in_handler, 0);
	keep(call_malloc(64, raise_it, i % 2), 64);
	go_on(i % 4);
}

static void way_H(long i)
{
	set_handler(allocate_in_handler, SA_ONSTACK);
	keep(call_malloc(64, raise_it, i % 2), 64);
	go_on(i % 4);
}

static void (*operator_delete)(void *);

static void way_d(long i)
{
	set_handler(allocate_in_handler, i % 4 < 2 ? 0 : SA_ONSTACK);
	act_when = i % 2;
	act = raise_it;
	asked_size = 48;
	operator_delete(malloc(200));
	go_on(i % 4);
}

/* --- coroutines --- */

static ucontext_t main_context, coroutine[COROUTINES];
static char *coroutine_stack;
static int running;

static void go_to_main(void)
{
	swapcontext(&coroutine[running], &main_context);
}

static void run_coroutine(void)
{
	keep(call_malloc(120, go_to_main, 1), 120);
	keep(call_malloc(130, go_to_main, 0), 130);
	go_on(1);
}

static void switch_to(int number)
{
	running = number;
	swapcontext(&main_context, &coroutine[number]);
}

static void start_coroutines(void)
{
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = coroutine_stack + (size_t)i * STACK_BYTES;
		coroutine[i].uc_stack.ss_size = STACK_BYTES;
		coroutine[i].uc_link = &main_context;
		makecontext(&coroutine[i], run_coroutine, 0);
	}
}

static void way_x(long i)
{
	start_coroutines();
	for (int turn = 0; turn < 3; turn++) {
		for (int k = 0; k < COROUTINES; k++) {
			switch_to((k * 3 + turn) % COROUTINES);
			go_on(1);
		}
	}
	go_on(i % 4);
}

/* One that is left for ever in its second call. */
static void way_X(long i)
{
	start_coroutines();
	switch_to(1);
	go_on(1);
	switch_to(1);
	go_on(1);
	start_coroutines();
	switch_to(1);
	switch_to(1);
	switch_to(1);
	go_on(i % 4);
}

/* --- signals --- */

static volatile sig_atomic_t may_jump;
static volatile long ticks, jumps;

static void tick(int sig)
{
	(void)sig;
	ticks++;
	free(malloc(30));
	if (ticks % 5 == 0)
		keep(malloc(22), 22);
	if (may_jump && ticks % 3 == 0) {
		may_jump = 0;
		jumps++;
		siglongjmp(way_out, 1);
	}
}

static void wait_for_jump(void)
{
	long until = ticks + 2;

	may_jump = 1;
	while (ticks < until)
		;
	may_jump = 0;
}

static void set_timer(long usec)
{
	struct itimerval timer = { .it_interval.tv_usec = usec, .it_value.tv_usec = usec };

	if (setitimer(ITIMER_REAL, &timer, NULL))
		die("setitimer failed");
}

static void set_alarm_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(how, &set, NULL);
}

/* The handler never comes into a call of the next malloc, which it would find locked: the signal is let in by the
 * hook, and between calls. */
static void let_in(void)
{
	set_alarm_mask(SIG_UNBLOCK);
	wait_for_jump();
	set_alarm_mask(SIG_BLOCK);
}

static void way_a(long i)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = i % 2 ? SA_ONSTACK : 0 };
	void *volatile p = NULL;

	sigaction(SIGALRM, &action, NULL);
	set_timer(1000);
	for (volatile int turn = 0; turn < 8; turn++) {
		volatile long seen = jumps;

		set_alarm_mask(SIG_BLOCK);
		if (sigsetjmp(way_out, 1) == 0) {
			if (turn % 3 == 2)
				let_in();
			else
				p = call_malloc(72, let_in, turn % 3);
		}
		if (jumps == seen && turn % 3 != 2)
			keep(p, 72);
		else if (jumps != seen && turn % 3 == 1)
			count_taken(72);
		go_on(turn % 4);
	}
	set_timer(0);
	set_alarm_mask(SIG_UNBLOCK);
}

static void way_w(long i)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd, sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR2);
	go_on(1);
	if (sigwait(&set, &sig) || sig != SIGUSR2)
		die("sigwait gave %d", sig);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	kill(getpid(), SIGUSR2);
	go_on(i % 4);
	if (read(fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo != SIGUSR2)
		die("signalfd gave something else");
	close(fd);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void way_k(long i)
{
	go_on(i % 4);
}

/* --- */

static const struct way {
	char command;
	void (*go)(long round);
} all_ways[] = {
	{ 'k', way_k }, { 'j', way_j }, { 'J', way_J }, { 'R', way_R }, { 'e', way_e }, { 'E', way_E },
	{ 'c', way_c }, { 'T', way_T }, { 'G', way_G }, { 'f', way_f }, { 'F', way_F }, { 'n', way_n }, { 'r', way_r }, { 'x', way_x },
	{ 'X', way_X }, { 'h', way_h }, { 'H', way_H }, { 'd', way_d }, { 'a', way_a }, { 'w', way_w },
};

static void go_ways(char command)
{
	for (size_t i = 0; i < sizeof(all_ways) / sizeof(all_ways[0]); i++) {
		if (all_ways[i].command != command)
			continue;
		for (long k = 0; k < rounds; k++) {
			all_ways[i].go(k);
			atomic_fetch_add(&ways, 1);
		}
		return;
	}
	die("unknown command '%c'", command);
}

static void *find(const char *name)
{
	void *at = dlsym(RTLD_DEFAULT, name);

	if (!at)
		die("%s: is wrapper.so preloaded?", name);
	return at;
}

static void *nothing(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* All that is needed for long, before anybody counts: the alternate stack, and what glibc keeps for threads,
 * cancellation and exits. */
static void make_room(void)
{
	stack_t stack = { .ss_size = STACK_BYTES };
	pthread_t thread;
	char *room = mmap(NULL, (COROUTINES + 2) * STACK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		die("no room");
	child_answered = mmap(NULL, sizeof(*child_answered), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child_answered == MAP_FAILED)
		die("no room");
	coroutine_stack = room;
	thread_stack = room + COROUTINES * STACK_BYTES;
	stack.ss_sp = room + (COROUTINES + 1) * STACK_BYTES;
	if (sigaltstack(&stack, NULL))
		die("sigaltstack: %s", strerror(errno));
	thread = begin_thread(nothing, NULL);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	set_handler(jump, 0);
	signal(SIGALRM, tick);
}

int main(int argc, char **argv)
{
	int command;

	rounds = option_number(argc, argv, "--rounds", rounds);
	with_header = option_given(argc, argv, "--header");
	wrap_hook = find("wrap_hook");
	wrap_records = find("wrap_records");
	*(void **)&operator_delete = find("_ZdlPv");
	*(int *)find("wrap_header") = with_header;
	*(int *)find("wrap_log") = option_given(argc, argv, "--log");
	make_room();
	pthread_atfork(before_fork, after_fork, after_fork);
	atomic_store(wrap_records, 0);
	blocks = bytes = 0;
	kept_count = 0;
	*wrap_hook = on_hook;
	say("R");
	while ((command = next_command()) != 'q') {
		go_ways((char)command);
		answer();
	}
	return 0;
}
