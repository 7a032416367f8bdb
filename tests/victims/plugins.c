/* Loads plugins while it runs.
 *
 *   plugins FOLDER [--threads N]
 *       where plugin.so and ownmalloc.so are; beside N threads that allocate and free all the time
 *
 * Commands: 'o' dlopens plugin.so, 'g' keeps one block from it, 'c' dlcloses it (its blocks stay);
 * 'O' dlopens ownmalloc.so, a library with a malloc of its own, 'G' keeps one block from that, 'F'
 * frees one of them, 'J' leaves the library's malloc by siglongjmp out of a signal handler and keeps
 * one block afterwards, deeper in the stack.  Tally: plugin_blocks, own_blocks, escapes. */
#include "victim.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN_BYTES 333
#define OWN_BYTES 444
#define MAX_OWN 1000
#define STACK_BYTES (256 * 1024)

static const char *folder;
static void *plugin, *own;
static void *(*plugin_allocate)(void);
static void *(*own_malloc)(size_t);
static void (*own_free)(void *);
static int (*own_holds)(const void *);
static void *own_block[MAX_OWN];
static void (**own_hook)(void);
static sigjmp_buf way_out;
static long plugin_blocks, own_blocks, escapes;

static void *load(const char *name)
{
	char path[4096];
	void *handle;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		die("the folder's name is too long");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		die("dlopen: %s", dlerror());
	return handle;
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

static void open_own(void)
{
	own = load("ownmalloc.so");
	look_up(own, "malloc", &own_malloc);
	look_up(own, "free", &own_free);
	look_up(own, "own_holds", &own_holds);
	look_up(own, "own_hook", &own_hook);
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
		default: die("unknown command '%c'", command);
		}
		say("plugin_blocks=%ld plugin_bytes=%ld own_blocks=%ld own_bytes=%ld escapes=%ld",
		    plugin_blocks, plugin_blocks * PLUGIN_BYTES, own_blocks, own_blocks * OWN_BYTES, escapes);
	}
	return 0;
}
