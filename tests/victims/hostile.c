/* Does to itself what a target must not be able to do to its tracer.
 *
 *   hostile MOST [FILE...]   files that it maps; 0, or the number of mappings that M stops at
 *
 * Commands besides g (keeps a block of 48 bytes) and q:
 *   m   maps the second page of each file, where code is, executable
 *   M   maps that of the first file, executable, as often as the kernel lets it, and once more across two of these
 *   u   unmaps all that again
 *   r   writes the text of malloc, free and realloc anew, as their file has it
 *   d   forges the loader's r_debug: a list that goes round, and a hook in the middle of an instruction of getenv()
 *   s   calls malloc with a stack that ends right behind the call
 *   f   calls forged_get(size) as threads that there are none of, with their numbers where the C library keeps its own
 *   t   bears and ends threads of its own making, a thousand at a time
 *   o   loads a library and unloads it, so that whoever follows the loader looks at the mappings
 *   l   unmaps the C library; it then obeys only q, which is answered by exit_group
 *
 * Tally: blocks, bytes, maps, births, hook (the address of d). */
#include "victim.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul
#define FILES_MAX 64
#define MAPS_MAX 131072
#define KEPT_BYTES 48
#define TEXT_BYTES 64
#define BIRTHS 1000
#define FORGERIES 50000
#define NUMBERS_FROM 10000000          /* beyond what the kernel gives to threads */
#define THREAD_DATA 2048
#define TINY_STACK 16384

static void *mapped[MAPS_MAX];
static size_t map_count, most;
static char **files;
static int file_count;
static long blocks, births;

static __attribute__((noinline)) void keep(void)
{
	if (!malloc(KEPT_BYTES)) /* kept block */
		die("malloc failed");
	blocks++;
}

/* --- mappings --- */

static bool map_one(int fd, void *at, size_t len, int flags)
{
	void *p = mmap(at, len, PROT_READ | PROT_EXEC, MAP_PRIVATE | flags, fd, PAGE);

	if (p == MAP_FAILED || map_count == MAPS_MAX)
		return false;
	mapped[map_count++] = p;
	return true;
}

static int open_file(int i)
{
	int fd = open(files[i], O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", files[i], strerror(errno));
	return fd;
}

static void map_files(void)
{
	for (int i = 0; i < file_count; i++) {
		int fd = open_file(i);

		if (!map_one(fd, NULL, PAGE, 0))
			die("mapping %s: %s", files[i], strerror(errno));
		close(fd);
	}
}

/* The kernel keeps some for the threads to come. */
static void map_many(void)
{
	int fd = open_file(0);

	while ((most == 0 || map_count < most) && map_one(fd, NULL, PAGE, 0))
		;
	if (most == 0 && (errno != ENOMEM || map_count < 1000))
		die("%zu mappings, then: %s", map_count, strerror(errno));
	while (most == 0 && map_count % 128 != 0)
		munmap(mapped[--map_count], PAGE);
	if (!map_one(fd, mapped[map_count / 2], 2 * PAGE, MAP_FIXED))
		die("mapping over others: %s", strerror(errno));
	close(fd);
}

static void unmap_all(void)
{
	while (map_count > 0)
		munmap(mapped[--map_count], PAGE);
}

/* --- text --- */

static void *const functions[] = { malloc, free, realloc };

/* Written by the kernel, since it may not be that malloc is called meanwhile; before there were traps in it. */
static unsigned char texts[3][TEXT_BYTES];

static void remember_text(void)
{
	for (size_t i = 0; i < 3; i++)
		memcpy(texts[i], functions[i], TEXT_BYTES);
}

static void rewrite_text(void)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < 3; i++) {
		if (pwrite(fd, texts[i], TEXT_BYTES, (off_t)(uintptr_t)functions[i]) != TEXT_BYTES)
			die("writing text: %s", strerror(errno));
	}
	close(fd);
}

/* --- the loader's words --- */

static struct link_map round_about[2];

static void forge(void)
{
	struct r_debug *debug = NULL;

	for (ElfW(Dyn) *dyn = _DYNAMIC; dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_DEBUG)
			debug = (struct r_debug *)dyn->d_un.d_ptr;
	}
	if (!debug)
		die("there is no r_debug");
	for (int i = 0; i < 2; i++)
		round_about[i] = (struct link_map){ .l_addr = ~0ul, .l_name = (char *)8, .l_ld = (void *)~7ul,
						    .l_next = &round_about[!i], .l_prev = &round_about[!i] };
	debug->r_map = round_about;
	debug->r_brk = (ElfW(Addr))(uintptr_t)getenv + 1;
}

static void load_one(void)
{
	void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		die("%s", dlerror());
	dlclose(library);
}

/* --- stacks --- */

/* Behind it is nothing, and malloc is called by no function. */
static void call_with_little_stack(void)
{
	char *stack = mmap(NULL, TINY_STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *result, *top = stack + TINY_STACK, *function = functions[0];
	size_t size = KEPT_BYTES;

	if (stack == MAP_FAILED || munmap(stack + TINY_STACK, PAGE))
		die("mapping a stack: %s", strerror(errno));
	/* What is kept over the call is where malloc() must leave it. */
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
			 "mov %%rbp, %%r12\n\t"
			 "mov %%rsi, %%rsp\n\t"
			 "mov %%rsi, %%rbp\n\t"
			 "call *%%rdx\n\t"
			 "mov %%r12, %%rbp\n\t"
			 "mov %%rbx, %%rsp"
			 : "=a"(result), "+D"(size), "+S"(top), "+d"(function)
			 :
			 : "rbx", "r12", "rcx", "r8", "r9", "r10", "r11", "memory");
	if (!result)
		die("malloc failed");
	blocks++;
}

/* --- threads --- */

static int live_and_end(void *nothing)
{
	(void)nothing;
	syscall(SYS_exit, 0);
	return 0;
}

/* Without the C library's knowledge: it would look after each. */
static void bear_threads(void)
{
	static char stacks[16][TINY_STACK] __attribute__((aligned(16)));
	static int ended[16];

	for (int i = 0; i < BIRTHS; i++) {
		int *end = &ended[i % 16];

		while (__atomic_load_n(end, __ATOMIC_ACQUIRE) != 0)
			sched_yield();
		__atomic_store_n(end, 1, __ATOMIC_RELEASE);
		if (clone(live_and_end, stacks[i % 16] + TINY_STACK,
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_CHILD_CLEARTID, NULL, NULL, NULL, end) < 0)
			die("clone: %s", strerror(errno));
		births++;
	}
	for (int i = 0; i < 16; i++) {
		while (__atomic_load_n(&ended[i], __ATOMIC_ACQUIRE) != 0)
			sched_yield();
	}
}

/* --- the numbers of threads --- */

static volatile pid_t *own_number(void)
{
	uintptr_t at = (uintptr_t)pthread_self(), end = at + THREAD_DATA;

	while (at < end && *(volatile pid_t *)at != gettid())
		at += sizeof(pid_t);
	if (at == end)
		die("where is the thread's number?");
	return (volatile pid_t *)at;
}

static volatile pid_t *thread_number;
static pid_t forged = NUMBERS_FROM;

/* Entered by one thread, it is left by another. */
void *forged_get(size_t size);
__attribute__((noinline, used)) void *forged_get(size_t size)
{
	static char blocks_of_nobody[FORGERIES];

	*thread_number = forged++;
	return &blocks_of_nobody[(size_t)forged % FORGERIES + size - size];
}

static void forge_threads(void)
{
	pid_t true_number;

	thread_number = own_number();
	true_number = *thread_number;
	for (unsigned i = 0; i < FORGERIES; i++) {
		*thread_number = forged++;
		forged_get(1);
	}
	*thread_number = true_number;
}

/* --- without a C library --- */

static inline __attribute__((always_inline)) long raw(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static uintptr_t libc_start, libc_end;

static void find_libc(void)
{
	static char maps[65536];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(maps) - 1 && (n = read(fd, maps + len, sizeof(maps) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strstr(line, "/libc.so.6") && !strstr(line, "/libc-2"))
			continue;
		if (!libc_start)
			libc_start = strtoul(line, NULL, 16);
		libc_end = strtoul(strchr(line, '-') + 1, NULL, 16);
	}
	if (!libc_start)
		die("there is no C library");
}

static __attribute__((noreturn, no_stack_protector)) void lose_libc(void)
{
	char answer[2] = { 'L', '\n' }, command = 0;

	raw(SYS_munmap, (long)libc_start, (long)(libc_end - libc_start), 0);
	raw(SYS_write, 1, (long)answer, 2);
	while (raw(SYS_read, 0, (long)&command, 1) == 1 && command != 'q')
		raw(SYS_write, 1, (long)answer, 2);
	for (;;)
		raw(SYS_exit_group, 0, 0, 0);
}

int main(int argc, char **argv)
{
	int command;

	if (argc < 2)
		die("usage: hostile MOST [FILE...]");
	most = strtoul(argv[1], NULL, 10);
	files = argv + 2;
	file_count = argc - 2;
	remember_text();
	find_libc();
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		switch (command) {
		case 'g': keep(); break;
		case 'm': map_files(); break;
		case 'M': map_many(); break;
		case 'u': unmap_all(); break;
		case 'r': rewrite_text(); break;
		case 'd': forge(); break;
		case 's': call_with_little_stack(); break;
		case 'f': forge_threads(); break;
		case 't': bear_threads(); break;
		case 'o': load_one(); break;
		case 'l': lose_libc();
		default: die("unknown command '%c'", command);
		}
		say("blocks=%ld bytes=%ld maps=%zu births=%ld hook=%lu", blocks, blocks * KEPT_BYTES, map_count, births,
		    (unsigned long)(uintptr_t)getenv + 1);
	}
	return 0;
}
