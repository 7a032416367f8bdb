/* Makes a thread that takes as long to be made as others like: the kernel waits for a page that it writes the new one's descriptor to,
 * before anybody can know of that one.
 *
 *   unborn [--process]     another process with the same memory instead
 *
 *   b   begins to make it; the answer is "uffd=N page=ADDRESS": the page is missing in that userfaultfd
 *   g   it keeps 20 blocks    t   nothing
 *
 * Tally: born (its number), failed (errno), blocks, bytes. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define STACK_BYTES (64 * 1024)
#define ROUND_BLOCKS 20
#define KEPT_BYTES 72

static atomic_long asked, done, born, failed;
static char stack[STACK_BYTES] __attribute__((aligned(16)));
static char *page;
static void *volatile last;
static int flags;

static __attribute__((noinline)) void keep_one(void)
{
	last = malloc(KEPT_BYTES); /* kept by the new one */
}

/* It has the thread data of its maker, which waits for ever. */
static _Noreturn int live(void *nothing)
{
	(void)nothing;
	atomic_store(&born, gettid());
	for (;;) {
		while (atomic_load(&asked) == atomic_load(&done))
			sched_yield();
		keep_one();
		atomic_fetch_add(&done, 1);
	}
}

static void *make(void *nothing)
{
	if (clone(live, stack + STACK_BYTES, flags, NULL, page) < 0)
		atomic_store(&failed, errno);
	for (;;)
		pause();
	return nothing;
}

static int prepare_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { .len = PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)page;
	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &range) < 0)
		return -1;
	return fd;
}

static void tell(void)
{
	say("born=%ld failed=%ld blocks=%ld bytes=%ld", atomic_load(&born), atomic_load(&failed), atomic_load(&done),
	    atomic_load(&done) * KEPT_BYTES);
}

static void allocate(void)
{
	atomic_fetch_add(&asked, ROUND_BLOCKS);
	while (atomic_load(&born) && atomic_load(&asked) != atomic_load(&done))
		sched_yield();
	tell();
}

int main(int argc, char **argv)
{
	int command, fd = prepare_page();

	flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_PIDFD;
	flags |= option_given(argc, argv, "--process") ? SIGCHLD : CLONE_THREAD | CLONE_SYSVSEM;
	free(malloc(24));
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'b') {
			start_thread(make, NULL, STACK_BYTES);
			say("uffd=%d page=%ld", fd, (long)page);
		} else if (command == 'g') {
			allocate();
		} else {
			tell();
		}
	}
	return 0;
}
