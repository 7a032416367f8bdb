/* Becomes another program image again and again.
 *
 * 'g' execs itself, which then says "R" again, 't' does so from another thread; 'a' keeps one block of 208 bytes,
 * 'm' one by posix_memalign, whose address is stored on the heap, and 'o' 100 such, each of whose addresses is overwritten at once by that of
 * the next one or of nothing.  Tally (of these): execs, blocks and bytes of this image.
 *
 *   execer [--threads N] [--stay] [--to PROGRAM [--raw]]     with N threads that allocate all the time; 'g' and 't' exec
 *                                                             PROGRAM, with --raw by no function of libc's for it; with
 *                                                             --stay it says "failed" when that fails, and goes on */
#include "victim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT_BYTES 208
#define STACK_BYTES (64 * 1024)

static long execs, blocks, threads;
static const char *to;
static bool raw, stays;

extern char **environ;

static void exec_self(void)
{
	char count[32], many[32];

	snprintf(count, sizeof(count), "%ld", execs + 1);
	snprintf(many, sizeof(many), "%ld", threads);
	if (to && raw)
		syscall(SYS_execve, to, (char *[]){ (char *)to, (char *)"an argument", NULL }, environ);
	else if (to)
		execl(to, to, (char *)NULL);
	else
		execl("/proc/self/exe", "execer", "--execs", count, "--threads", many, (char *)NULL);
	if (!stays)
		die("exec: %s", strerror(errno));
	say("failed");
}

static void *exec_in_thread(void *argument)
{
	exec_self();
	return argument;
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(64));
	return argument;
}

static void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	say("execs=%ld blocks=%ld bytes=%ld", execs, blocks, blocks * KEPT_BYTES);
}

/* Whose address is stored on the heap, too. */
static void keep_one_aligned(void)
{
	static struct { void *block; } *keeper;

	if (!keeper)
		keeper = malloc(sizeof(*keeper));
	if (!keeper || posix_memalign(&keeper->block, 64, KEPT_BYTES)) /* aligned */
		die("posix_memalign failed");
	blocks++;
	say("execs=%ld blocks=%ld bytes=%ld", execs, blocks, blocks * KEPT_BYTES);
}

/* They are known by a list that is no block. */
static void keep_overwritten(void)
{
	static void *kept[100];
	static struct { void *block; } *keeper;

	if (!keeper)
		keeper = malloc(sizeof(*keeper));
	for (int i = 0; i < 100; i++) {
		if (!keeper || posix_memalign(&keeper->block, 64, KEPT_BYTES)) /* overwritten */
			die("posix_memalign failed");
		kept[i] = keeper->block;
		keeper->block = &kept[i];
		keeper->block = NULL;
		blocks++;
	}
	say("execs=%ld blocks=%ld bytes=%ld", execs, blocks, blocks * KEPT_BYTES);
}

int main(int argc, char **argv)
{
	int command;

	execs = option_number(argc, argv, "--execs", 0);
	threads = option_number(argc, argv, "--threads", 0);
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--to") == 0)
			to = argv[i + 1];
		raw |= strcmp(argv[i + 1], "--raw") == 0;
	}
	stays = option_given(argc, argv, "--stay");
	for (long i = 0; i < threads; i++)
		start_thread(churn, NULL, STACK_BYTES);
	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'g')
			exec_self();
		else if (command == 't')
			start_thread(exec_in_thread, NULL, STACK_BYTES);
		else if (command == 'm')
			keep_one_aligned();
		else if (command == 'o')
			keep_overwritten();
		else
			keep_one();
	}
	return 0;
}
