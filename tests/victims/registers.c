/* Checks every register across calls of a malloc and a free: at their entry and after their return.
 *
 *   registers FOLDER [--gs]       where registers_lib.so is; --gs: with a base of gs (wrgsbase) that no tracer may set
 *
 * A round makes 2000 calls with new values in all registers.  Commands besides g and q: 'r' goes on
 * until the next command.  Tally: calls, compared (registers), wrong, and first=NAME of the first
 * register that was not as it should be. */
#include "victim.h"

#include <asm/hwcap2.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define ROUND_CALLS 2000
#define BLOCK_BYTES 48
#define RDI 7
#define RSP 4
#define GENERAL 16
#define VECTORS 16
#define KERNELS_ADDRESS 0xffff888000001000UL
/* Carry, parity, adjust, zero, sign, direction, overflow: what a program may set. */
#define FLAGS_MASK 0xcd5UL
#define FLAGS_FIXED 0x202UL

struct registers {
	uint64_t general[GENERAL];
	uint64_t flags, unused;
	uint64_t vector[VECTORS][2];
};

static struct registers *set_before, *seen_at_entry, *seen_after;
static void (*call_checked)(void *function);
static void *own_malloc, *own_free;
static uint64_t randomness = 0x1234567;
static long calls, compared, wrong;
static char first_wrong[32] = "none";

static void *symbol(void *handle, const char *name)
{
	void *address = dlsym(handle, name);

	if (!address)
		die("dlsym: %s", dlerror());
	return address;
}

static void load(const char *folder)
{
	char path[4096];
	void *handle, *function;

	snprintf(path, sizeof(path), "%s/registers_lib.so", folder);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		die("dlopen: %s", dlerror());
	set_before = symbol(handle, "set_before");
	seen_at_entry = symbol(handle, "seen_at_entry");
	seen_after = symbol(handle, "seen_after");
	own_malloc = symbol(handle, "malloc");
	own_free = symbol(handle, "free");
	function = symbol(handle, "call_checked");
	memcpy(&call_checked, &function, sizeof(function));
}

static void compare(const char *when, const char *name, int number, uint64_t is, uint64_t should)
{
	compared++;
	if (is == should)
		return;
	if (wrong++ == 0)
		snprintf(first_wrong, sizeof(first_wrong), "%s%d-%s", name, number, when);
}

static void compare_all(const char *when, const struct registers *seen, int skipped, int with_flags)
{
	for (int i = 0; i < GENERAL; i++) {
		if (i != RSP && i != skipped)
			compare(when, "general", i, seen->general[i], set_before->general[i]);
	}
	for (int i = 0; i < VECTORS; i++) {
		compare(when, "xmm-low", i, seen->vector[i][0], set_before->vector[i][0]);
		compare(when, "xmm-high", i, seen->vector[i][1], set_before->vector[i][1]);
	}
	if (with_flags)
		compare(when, "flags", 0, seen->flags & FLAGS_MASK, set_before->flags & FLAGS_MASK);
}

static void new_values(uint64_t rdi)
{
	uint64_t *word = (uint64_t *)set_before;

	for (size_t i = 0; i < sizeof(*set_before) / sizeof(*word); i++)
		word[i] = random_next(&randomness);
	set_before->flags = (set_before->flags & FLAGS_MASK) | FLAGS_FIXED;
	set_before->general[RDI] = rdi;
}

/* malloc's result is in rax; malloc here touches no flag, free does. */
static void check_once(void)
{
	uint64_t block;

	new_values(BLOCK_BYTES);
	call_checked(own_malloc);
	compare_all("entry", seen_at_entry, -1, 1);
	compare_all("return", seen_after, 0, 1);
	block = seen_after->general[0];
	new_values(block);
	call_checked(own_free);
	compare_all("entry", seen_at_entry, -1, 0);
	compare_all("return", seen_after, -1, 0);
	calls += 2;
}

static int command_waits(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

static void check_round(void)
{
	for (int i = 0; i < ROUND_CALLS / 2; i++)
		check_once();
}

static void set_gs_base(void)
{
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		die("this processor or kernel has no wrgsbase");
	__asm__ volatile("wrgsbase %0" : : "r"(KERNELS_ADDRESS));
}

static unsigned long gs_base(void)
{
	unsigned long base;

	__asm__ volatile("rdgsbase %0" : "=r"(base));
	return base;
}

int main(int argc, char **argv)
{
	int gs = option_given(argc, argv, "--gs");
	int command;

	load(argc > 1 ? argv[1] : ".");
	if (gs)
		set_gs_base();
	say("R");
	while ((command = next_command()) != 'q') {
		do
			check_round();
		while (command == 'r' && !command_waits());
		if (gs && gs_base() != KERNELS_ADDRESS)
			wrong++;
		say("calls=%ld compared=%ld wrong=%ld first=%s", calls, compared, wrong, first_wrong);
	}
	return 0;
}
