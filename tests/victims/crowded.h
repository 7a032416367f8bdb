/* Included into a program's source: before it begins it takes what is 834 to 814 MiB below itself. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <sys/mman.h>

__attribute__((constructor)) static void take_what_is_below(void)
{
	uintptr_t here = (uintptr_t)take_what_is_below & ~(uintptr_t)0xffff;

	mmap((void *)(here - (834UL << 20)), 20 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
	     -1, 0);
}
