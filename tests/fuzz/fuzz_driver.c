#include "fuzz_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long taken_count, refused_count;
static uint64_t state = 1;

void fuzz_count(int taken)
{
	taken_count += taken != 0;
	refused_count += taken == 0;
}

/* xorshift64*: the same on every machine */
unsigned fuzz_pick(unsigned below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

#ifndef FUZZ_WITH_LIBFUZZER

/* FUZZ_LAST: where the input at hand is kept, so that one that crashes is not lost. */
static void run(const uint8_t *data, size_t len)
{
	const char *last = getenv("FUZZ_LAST");
	FILE *f = last ? fopen(last, "w") : NULL;

	if (f) {
		fwrite(data, 1, len, f);
		fclose(f);
	}
	LLVMFuzzerTestOneInput(data, len);
}

static uint8_t *read_input(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	uint8_t *data = malloc(FUZZ_INPUT_MAX);

	if (!f || !data) {
		perror(path);
		exit(2);
	}
	*ret_len = fread(data, 1, FUZZ_INPUT_MAX, f);
	fclose(f);
	return data;
}

/* Bytes changed, a piece put elsewhere, the end cut off. */
static uint8_t *scramble(const uint8_t *data, size_t len, size_t *ret_len)
{
	static const uint8_t interesting[] = { 0, 1, 0x7f, 0x80, 0xff, 0x0d, 0x05 };
	uint8_t *copy = malloc(len + 1);

	if (!copy)
		exit(2);
	memcpy(copy, data, len);
	if (len > 256 && fuzz_pick(8) == 0)
		len = fuzz_pick((unsigned)len);
	for (unsigned i = 1 + fuzz_pick(6); len > 0 && i > 0; i--) {
		/* headers of pages are what matters most */
		size_t at = fuzz_pick(2) ? fuzz_pick((unsigned)len) : fuzz_pick((unsigned)len / 4096 + 1) * 4096 + fuzz_pick(40);

		if (at < len)
			copy[at] = fuzz_pick(2) ? interesting[fuzz_pick(sizeof(interesting))] : (uint8_t)fuzz_pick(256);
	}
	if (len > 8192 && fuzz_pick(10) == 0)
		memmove(copy + fuzz_pick((unsigned)len / 4096) * 4096, copy + fuzz_pick((unsigned)len / 4096) * 4096, 4096);
	*ret_len = len;
	return copy;
}

static void run_changed(const uint8_t *data, size_t len)
{
	size_t changed_len;
	uint8_t *changed = fuzz_pick(4) ? fuzz_restructure(data, len, &changed_len) :
					  scramble(data, len, &changed_len);

	run(changed, changed_len);
	free(changed);
}

/* fuzz_x RUNS SEED FILE... */
int main(int argc, char **argv)
{
	unsigned long runs = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
	size_t count = argc > 3 ? (size_t)argc - 3 : 0;
	uint8_t **inputs = calloc(count + 1, sizeof(*inputs));
	size_t *lens = calloc(count + 1, sizeof(*lens));

	if (count == 0 || !inputs || !lens) {
		fprintf(stderr, "usage: %s RUNS SEED FILE...\n", argv[0]);
		return 2;
	}
	state = strtoull(argv[2], NULL, 10) * 2 + 1;
	for (size_t i = 0; i < count; i++) {
		inputs[i] = read_input(argv[3 + i], &lens[i]);
		run(inputs[i], lens[i]);
	}
	for (unsigned long i = 0; i < runs; i++) {
		size_t which = fuzz_pick((unsigned)count);

		run_changed(inputs[which], lens[which]);
	}
	for (size_t i = 0; i < count; i++)
		free(inputs[i]);
	free(inputs);
	free(lens);
	printf("%lu inputs: %lu taken, %lu refused, none did harm\n", taken_count + refused_count, taken_count,
	       refused_count);
	return taken_count > 0 && refused_count > 0 ? 0 : 1;
}

#endif
