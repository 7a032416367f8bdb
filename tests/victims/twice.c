/* Calls code of its own where it has mapped that a second time, as V8 does with its built-in functions; keeps what is made
 * there.  Built by the test that watches it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

typedef void *make_fn(size_t size);
typedef void *call_fn(make_fn *make, size_t size);

/* On a page of its own.  It needs nothing of what is around it. */
__attribute__((noinline, section("apart"), aligned(PAGE))) static void *call(make_fn *make, size_t size)
{
	char *block = make(size); /* in the piece */

	block[0] = 1;
	return block;
}

static off_t offset_of(unsigned long page)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, offset;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && start <= page && page < end) {
			fclose(maps);
			return (off_t)(offset + page - start);
		}
	}
	exit(3);
}

static call_fn *call_in_piece(void)
{
	int self = open("/proc/self/exe", O_RDONLY);
	void *piece = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, offset_of((unsigned long)call));
	call_fn *there;

	if (piece == MAP_FAILED)
		exit(4);
	close(self);
	memcpy(&there, &piece, sizeof(there));
	return there;
}

int main(void)
{
	static void *kept[100];
	call_fn *there = call_in_piece();
	char command;

	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 1;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		for (int i = 0; i < 100; i++) {
			free(kept[i]);
			kept[i] = there(malloc, 500); /* calls it there */
		}
		if (write(STDOUT_FILENO, "done=1\n", 7) != 7)
			return 1;
	}
	return 0;
}
