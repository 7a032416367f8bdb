/* Allocates from code that it makes at run time, and tells its name when asked to: 'm' in /tmp/perf-PID.map, 'n' another
 * name for the same place, 'd' in FOLDER/jit-PID.dump, with a line.  'g': a block more; 'w': tells where its code is.
 *
 * usage: jitted [FOLDER] */
#define _GNU_SOURCE
#include "victim.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define KEPT_MAX 1000

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3 };
typedef void *(*made)(void *(*allocate)(size_t), size_t size);

static void *kept[KEPT_MAX];
static uint8_t *page;
static int count;

static void make(void)
{
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		die("no page");
	memcpy(page, code, sizeof(code));
	if (mprotect(page, PAGE, PROT_READ | PROT_EXEC))
		die("no code");
}

static void tell(const char *name)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	file = fopen(path, "a");
	if (!file)
		die("no map");
	fprintf(file, "%lx %zx %s\n", (unsigned long)page, sizeof(code), name);
	fclose(file);
}

static void write_dump(FILE *file)
{
	static const uint32_t head[] = { 0x4a695444, 1, 40, 62, 0, 0, 0, 0, 0, 0 };
	static const char name[] = "dumped_code", source[] = "/made/up.src";
	const struct { uint32_t id, size; uint64_t time, address, count, at; uint32_t line, pad; } lines = {
		2, 48 + sizeof(source), 0, (uintptr_t)page, 1, (uintptr_t)page, 42, 0 };
	const struct { uint32_t id, size; uint64_t time, pids, vma, address, size_of_code, index; } load = {
		0, 56 + sizeof(name) + sizeof(code), 0, 0, (uintptr_t)page, (uintptr_t)page, sizeof(code), 1 };

	fwrite(head, sizeof(head), 1, file);
	fwrite(&lines, sizeof(lines), 1, file);
	fwrite(source, sizeof(source), 1, file);
	fwrite(&load, sizeof(load), 1, file);
	fwrite(name, sizeof(name), 1, file);
	fwrite(code, sizeof(code), 1, file);
}

/* That it is mapped as code tells who looks on where it is. */
static void dump(const char *folder)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	file = fopen(path, "w+");
	if (!file)
		die("no dump");
	write_dump(file);
	fflush(file);
	if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED)
		die("no mapping");
}

int main(int argc, char **argv)
{
	int command;

	make();
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'g' && count < KEPT_MAX)
			kept[count++] = ((made)(uintptr_t)page)(malloc, 104);
		else if (command == 'm')
			tell("made_code");
		else if (command == 'n')
			tell("newer code");
		else if (command == 'd' && argc > 1)
			dump(argv[1]);
		say("code=%ld kept=%d", (long)(uintptr_t)page, count);
	}
	return 0;
}
