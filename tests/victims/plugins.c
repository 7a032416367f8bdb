/* Loads plugins while it runs.
 *
 *   plugins FOLDER [--threads N]
 *       where plugin.so, otherplugin.so, ownmalloc.so and idle.so are; beside N threads that allocate and free all the time
 *
 * Commands: 'o' dlopens plugin.so, 'g' keeps one block from it, 'c' dlcloses it (its blocks stay);
 * 'O' dlopens ownmalloc.so, a library with a malloc of its own, 'G' keeps one block from that, 'F'
 * frees one of them, 'J' leaves the library's malloc by siglongjmp out of a signal handler and keeps
 * one block afterwards, deeper in the stack; 'M' dlopens ownmalloc.so in a namespace of its own, 'H' in the handler of a
 * signal; 't' has plugin.so and otherplugin.so in turn, TURNS times, each keeping a block; 'S' has plugin.so come and go in STORM
 * threads at once, which keep STORM_ROUNDS blocks each; 'C' dlcloses it; 'I' dlopens idle.so, which
 * is as large as that and no allocator; 'A' has ownmalloc.so come and go, OWN_TURNS times, with a block each time; 'V' has a
 * thread wait in vfork until 'v'; 'L' has a thread that ends then keep a block of ownmalloc.so, in the midst of whose malloc it loads
 * idle.so; 'f' forks a child, which ends; 'X' has a thread that executes this program anew at SIGUSR1.  Tally: plugin_blocks,
 * other_blocks, own_blocks, escapes; same_place: turns, and idle.so, at the address of the last one. */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLUGIN_BYTES 333
#define OWN_BYTES 444
#define MAX_OWN 1000
#define PAGE 4096
#define STACK_BYTES (256 * 1024)
#define TURNS 40
#define OWN_TURNS 10
#define STORM 8
#define STORM_ROUNDS 25

static const char *folder;
static void *plugin, *own;
static void *(*plugin_allocate)(void);
static void *(*own_malloc)(size_t);
static void (*own_free)(void *);
static int (*own_holds)(const void *);
static void *own_block[MAX_OWN];
static void (**own_hook)(void);
static sigjmp_buf way_out;
static int gate[2];
static long plugin_blocks, other_blocks, own_blocks, escapes, same_place;

static void *load_into(Lmid_t namespace, const char *name)
{
	char path[4096];
	void *handle;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		die("the folder's name is too long");
	handle = dlmopen(namespace, path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		die("dlopen: %s", dlerror());
	return handle;
}

static void *load(const char *name)
{
	return load_into(LM_ID_BASE, name);
}

/* POSIX's way from an object pointer to a function pointer. */
static void look_up(void *handle, const char *name, void *function)
{
	void *address = dlsym(handle, name);

	if (!address)
		die("dlsym: %s", dlerror());
	memcpy(function, &address, sizeof(address));
}

static void open_plugin(void)
{
	plugin = load("plugin.so");
	look_up(plugin, "plugin_allocate", &plugin_allocate);
}

static void open_own_in(Lmid_t namespace)
{
	own = load_into(namespace, "ownmalloc.so");
	look_up(own, "malloc", &own_malloc);
	look_up(own, "free", &own_free);
	look_up(own, "own_holds", &own_holds);
	look_up(own, "own_hook", &own_hook);
}

static void open_own(void)
{
	open_own_in(LM_ID_BASE);
}

static void open_in_handler(int sig)
{
	(void)sig;
	open_own();
}

static void open_own_in_handler(void)
{
	signal(SIGUSR2, open_in_handler);
	raise(SIGUSR2);
}

static void use_plugin(void)
{
	if (!plugin_allocate())
		die("malloc failed");
	plugin_blocks++;
}

static __attribute__((noinline)) void use_own(void)
{
	void *p = own_malloc(OWN_BYTES); /* own block */

	if (!p || !own_holds(p) || own_blocks == MAX_OWN)
		die("this was not the library's own malloc");
	own_block[own_blocks++] = p;
}

static void jump_out(int sig)
{
	(void)sig;
	siglongjmp(way_out, 1);
}

static void raise_in_malloc(void)
{
	raise(SIGUSR1);
}

static __attribute__((noinline)) void keep_deeper(int depth)
{
	volatile char room[256];

	room[depth] = 1;
	if (depth > 0)
		keep_deeper(depth - 1);
	else
		use_own();
	if (room[depth] != 1)
		die("the stack was written to");
}

static void escape_from_own(void)
{
	signal(SIGUSR1, jump_out);
	*own_hook = raise_in_malloc;
	if (sigsetjmp(way_out, 1) == 0)
		die("malloc came back: %p", own_malloc(OWN_BYTES));
	*own_hook = NULL;
	escapes++;
	keep_deeper(4);
}

static uintptr_t use_once(const char *name)
{
	void *handle = load(name), *(*allocate)(void);

	look_up(handle, "plugin_allocate", &allocate);
	if (!allocate())
		die("malloc failed");
	dlclose(handle);
	return (uintptr_t)allocate;
}

static void take_turns(void)
{
	uintptr_t last = 0;

	for (int i = 0; i < TURNS; i++) {
		uintptr_t at = use_once(i % 2 ? "otherplugin.so" : "plugin.so");

		same_place += at == last;
		last = at;
	}
	plugin_blocks += TURNS / 2;
	other_blocks += TURNS / 2;
}

static void have_own_come_and_go(void)
{
	for (int i = 0; i < OWN_TURNS; i++) {
		open_own();
		own_free(own_malloc(OWN_BYTES));
		dlclose(own);
	}
}

static void open_idle(void)
{
	int (*holds)(const void *);

	look_up(load("idle.so"), "own_holds", &holds);
	same_place += (uintptr_t)holds / PAGE == (uintptr_t)own_holds / PAGE;
}

static void *come_and_go(void *left)
{
	for (int i = 0; i < STORM_ROUNDS; i++)
		use_once("plugin.so");
	__atomic_fetch_sub((int *)left, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void storm(void)
{
	int left = STORM;

	for (int i = 0; i < STORM; i++)
		start_thread(come_and_go, &left, STACK_BYTES);
	while (__atomic_load_n(&left, __ATOMIC_SEQ_CST) > 0)
		sched_yield();
	plugin_blocks += STORM * STORM_ROUNDS;
}

/* Its child has the memory, and waits. */
static void *wait_in_vfork(void *unused)
{
	pid_t child = vfork();
	char byte;

	if (child == 0)
		_exit(read(gate[0], &byte, 1) == 1 ? 0 : 1);
	waitpid(child, NULL, 0);
	return unused;
}

static void begin_vfork(void)
{
	if (pipe(gate) < 0)
		die("no pipe");
	start_thread(wait_in_vfork, NULL, STACK_BYTES);
}

static void end_vfork(void)
{
	if (write(gate[1], "x", 1) != 1)
		die("the child has ended");
}

static void load_another(void)
{
	*own_hook = NULL;
	load("idle.so");
}

static void *load_in_malloc(void *unused)
{
	*own_hook = load_another;
	use_own();
	return unused;
}

static void load_in_a_threads_malloc(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, load_in_malloc, NULL) != 0 || pthread_join(thread, NULL) != 0)
		die("no thread");
}

static void fork_one(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		die("no child");
}

static char **arguments;

static void *execute_at_signal(void *unused)
{
	sigset_t usr1;
	int sig;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigwait(&usr1, &sig);
	execv("/proc/self/exe", arguments);
	die("exec failed");
	return unused;
}

static void begin_to_execute(void)
{
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	start_thread(execute_at_signal, NULL, STACK_BYTES);
}

static void free_own(void)
{
	own_free(own_block[--own_blocks]);
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(64));
	return argument;
}

int main(int argc, char **argv)
{
	int command;

	arguments = argv;
	folder = argc > 1 ? argv[1] : ".";
	for (long i = option_number(argc, argv, "--threads", 0); i > 0; i--)
		start_thread(churn, NULL, STACK_BYTES);
	say("R");
	while ((command = next_command()) != 'q') {
		switch (command) {
		case 'o': open_plugin(); break;
		case 'g': use_plugin(); break;
		case 'c': dlclose(plugin); break;
		case 'O': open_own(); break;
		case 'G': use_own(); break;
		case 'F': free_own(); break;
		case 'J': escape_from_own(); break;
		case 'M': open_own_in(LM_ID_NEWLM); break;
		case 'H': open_own_in_handler(); break;
		case 't': take_turns(); break;
		case 'S': storm(); break;
		case 'C': dlclose(own); break;
		case 'I': open_idle(); break;
		case 'A': have_own_come_and_go(); break;
		case 'V': begin_vfork(); break;
		case 'v': end_vfork(); break;
		case 'L': load_in_a_threads_malloc(); break;
		case 'f': fork_one(); break;
		case 'X': begin_to_execute(); break;
		default: die("unknown command '%c'", command);
		}
		say("plugin_blocks=%ld plugin_bytes=%ld own_blocks=%ld own_bytes=%ld escapes=%ld other_blocks=%ld same_place=%ld",
		    plugin_blocks, plugin_blocks * PLUGIN_BYTES, own_blocks, own_blocks * OWN_BYTES, escapes, other_blocks, same_place);
	}
	return 0;
}
