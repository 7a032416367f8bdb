/* Puts something of its own where our code is.
 *
 *   places OBJECT
 *
 * Commands: 'o' dlopens OBJECT, 'g' has its slab_get make a block, 'c' dlcloses it; 'm' maps memory of its own over the lowest
 * mapping of code that is in no file, and fills it; 'p' does that with the first page alone, 'e' with the last one; 'h' is whether that is
 * still there.  Tally:
 * mapped (bytes). */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096
#define FILLING 0x5a

static const char *path;
static void *object;
static unsigned char *mapped;
static size_t mapped_bytes;

static void load(void)
{
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		die("dlopen: %s", dlerror());
}

static void use(void)
{
	void *address = dlsym(object, "slab_get"), *(*get)(int);

	if (!address)
		die("dlsym: %s", dlerror());
	memcpy(&get, &address, sizeof(address));
	if (!get(0))
		die("there is no block");
}

/* Before that is mapped over to which what allocates leads. */
static void find_code(unsigned long *ret_start, unsigned long *ret_end)
{
	static char text[1 << 16];
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long inode;
	char permissions[8];
	bool found = false;

	if (!maps)
		die("no /proc/self/maps");
	while (!found && fgets(text, sizeof(text), maps))
		found = sscanf(text, "%lx-%lx %7s %*s %*s %lu", ret_start, ret_end, permissions, &inode) == 4 &&
			strcmp(permissions, "r-xp") == 0 && inode == 0 && !strchr(text, '[');
	fclose(maps);
	if (!found)
		die("there is no such code");
}

static void map_over(size_t most, bool its_end)
{
	unsigned long start, end;

	find_code(&start, &end);
	mapped_bytes = end - start < most ? end - start : most;
	if (its_end)
		start = end - mapped_bytes;
	mapped = mmap((void *)start, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (mapped == MAP_FAILED)
		die("mmap failed");
	memset(mapped, FILLING, mapped_bytes);
}

static void require_held(void)
{
	for (size_t i = 0; i < mapped_bytes; i++) {
		if (mapped[i] != FILLING)
			die("byte %zu is %#x", i, mapped[i]);
	}
}

int main(int argc, char **argv)
{
	int command;

	path = argc > 1 ? argv[1] : "";
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		switch (command) {
		case 'o': load(); break;
		case 'g': use(); break;
		case 'c': dlclose(object); break;
		case 'm': map_over(SIZE_MAX, false); break;
		case 'p': map_over(PAGE, false); break;
		case 'e': map_over(PAGE, true); break;
		case 'h': require_held(); break;
		default: die("unknown command '%c'", command);
		}
		say("mapped=%zu", mapped_bytes);
	}
	return 0;
}
