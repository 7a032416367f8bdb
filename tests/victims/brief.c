/* Lives for a few milliseconds: what it keeps and frees is known to the block, and it says how long it took.
 *
 *   brief [EXIT-STATUS]      the answer, one line on stdout: us=N, from its first instruction to its last */
#include "victim.h"

#include <stdlib.h>

#ifdef PADDING
__asm__(".text\n.space 2048");          /* where the text ends in its last page decides what fits behind it */
#endif

#define EARLY_BLOCKS 7
#define EARLY_BYTES 64
#define BLOCKS 300
#define BYTES 48

static uint64_t started_ns;
static void *volatile kept[BLOCKS], *volatile early[EARLY_BLOCKS];

static void __attribute__((constructor)) before_main(void)
{
	started_ns = now_ns();
	for (int i = 0; i < EARLY_BLOCKS; i++)
		early[i] = malloc(EARLY_BYTES); /* early */
}

int main(int argc, char **argv)
{
	for (int i = 0; i < BLOCKS; i++)
		kept[i] = malloc(BYTES); /* kept */
	for (int i = 0; i < BLOCKS; i += 3)
		free(kept[i]);
	say("us=%ld", (long)((now_ns() - started_ns) / 1000));
	return argc > 1 ? atoi(argv[1]) : 0;
}
