/* Inlining over three files, a call written over several lines, recursion, a loop, cold code. */
#include "sub/middle.h"

#include <stdlib.h>

volatile unsigned long sink;

__attribute__((noinline)) void *take(unsigned long size)
{
	sink += size;
	return malloc(size);
}

__attribute__((noinline)) void *three_levels(unsigned long size)
{
	sink++;
	return middle(size + 3);
}

__attribute__((noinline)) int add(int a, int b, int c)
{
	sink += (unsigned long)(a + b + c);
	return a + b * c;
}

__attribute__((noinline)) int several_lines(int x)
{
	sink++;
	int r = add(x + 1,
		    x * 2,
		    x - 3);
	sink++;
	return r;
}

static int even(unsigned n);

__attribute__((noinline)) static int odd(unsigned n)
{
	sink++;
	return n == 0 ? 0 : even(n - 1) + 1;
}

__attribute__((noinline)) static int even(unsigned n)
{
	sink++;
	return n == 0 ? 1 : odd(n - 1) + 2;
}

__attribute__((noinline, noreturn, cold)) static void fatal(int code)
{
	sink += (unsigned long)code;
	abort();
}

__attribute__((noinline)) int sometimes_fatal(int x)
{
	for (int i = 0; i < x; i++) {
		sink += (unsigned long)i;
		if (__builtin_expect(sink == 12345678, 0))
			fatal(i);
	}
	return x;
}

int main(int argc, char **argv)
{
	(void)argv;
	free(three_levels((unsigned long)argc));
	return several_lines(argc) + even((unsigned)argc) + sometimes_fatal(argc);
}
