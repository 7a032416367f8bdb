#define _GNU_SOURCE              /* memfd_create */
#include "fuzz.h"

#include "base/clock.h"
#include "base/hash.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct fuzz_target *target;
static unsigned long input_count, reached_count[FUZZ_STAGES_MAX], stuck_count;
static unsigned reached_now;
static uint64_t state = 1;
static int report_fd = STDOUT_FILENO;

/* --- what targets use --- */

void fuzz_reached(unsigned stage)
{
	MUST(stage < FUZZ_STAGES_MAX && target->stages[stage]);
	reached_count[stage] += !(reached_now >> stage & 1);
	reached_now |= 1u << stage;
}

/* xorshift64*: the same on every machine */
unsigned fuzz_pick(unsigned below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

int fuzz_file(const uint8_t *data, size_t len)
{
	int fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0);
	MUST(write(fd, data, len) == (ssize_t)len);
	return fd;
}

const uint8_t *fuzz_take(struct fuzz_bytes *bytes, size_t want, size_t *ret_len)
{
	const uint8_t *at = bytes->at;

	*ret_len = want < bytes->left ? want : bytes->left;
	bytes->at += *ret_len;
	bytes->left -= *ret_len;
	return at;
}

uint64_t fuzz_take_number(struct fuzz_bytes *bytes, size_t len)
{
	uint64_t value = 0;
	const uint8_t *at = fuzz_take(bytes, len, &len);

	if (len > 0)
		memcpy(&value, at, len);
	return value;
}

/* --- what both drivers use --- */

static void choose(const char *name)
{
	for (target = fuzz_targets; target->name; target++) {
		if (!name || strcmp(target->name, name) == 0)
			return;
	}
	fprintf(stderr, "there is no target %s here; there are:", name);
	for (target = fuzz_targets; target->name; target++)
		fprintf(stderr, " %s", target->name);
	fputc('\n', stderr);
	exit(2);
}

static void run_one(const uint8_t *data, size_t len)
{
	uint64_t kept = state, begun_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);

	state = hash_bytes(data, len) | 1;
	reached_now = 0;
	target->run(data, len);
	MUST((clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - begun_ns) / NSEC_PER_SEC < FUZZ_SECONDS_MAX);
	input_count++;
	stuck_count += !(reached_now & 1);
	state = kept;
}

static void report(void)
{
	dprintf(report_fd, "%s: %lu inputs, %lu refused at once", target->name, input_count, stuck_count);
	for (unsigned i = 0; target->stages[i]; i++)
		dprintf(report_fd, ", %s %lu", target->stages[i], reached_count[i]);
	dprintf(report_fd, "\n");
}

#ifdef FUZZ_WITH_LIBFUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t space, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t space);

/* FUZZ_TARGET: which one; the first. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	choose(getenv("FUZZ_TARGET"));
	report_fd = dup(STDERR_FILENO);
	atexit(report);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len <= FUZZ_INPUT_MAX)
		run_one(data, len);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t space, unsigned seed)
{
	size_t changed_len;
	uint8_t *changed;

	state = seed * 2ULL + 1;
	if (!target->restructure || len == 0 || fuzz_pick(2) == 0)
		return LLVMFuzzerMutate(data, len, space);
	changed = target->restructure(data, len, &changed_len);
	if (changed_len <= space)
		memcpy(data, changed, len = changed_len);
	free(changed);
	return len;
}

#else

/* FUZZ_LAST: where the input at hand is kept, so that one that crashes is not lost. */
static void run(const uint8_t *data, size_t len)
{
	const char *last = getenv("FUZZ_LAST");
	FILE *f = last ? fopen(last, "w") : NULL;

	if (f) {
		fwrite(data, 1, len, f);
		fclose(f);
	}
	run_one(data, len);
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

/* --- changing bytes --- */

static void change_byte(uint8_t *data, size_t len)
{
	static const uint8_t interesting[] = { 0, 1, 0x7f, 0x80, 0xff, 0x0d, 0x05 };

	data[fuzz_pick((unsigned)len)] = fuzz_pick(2) ? interesting[fuzz_pick(sizeof(interesting))] :
							(uint8_t)fuzz_pick(256);
}

/* A number of 2, 4 or 8 bytes at a place where such a one may stand. */
static void change_number(uint8_t *data, size_t len)
{
	size_t size = 2u << fuzz_pick(3), places = len / size, at;
	uint64_t value = 0;

	if (places == 0)
		return;
	/* heads of files, and of pages, are what matters most */
	at = fuzz_pick(3) ? fuzz_pick((unsigned)places) * size :
			    fuzz_pick((unsigned)len / 4096 + 1) * 4096 + fuzz_pick(32) * size;
	if (at + size > len)
		return;
	memcpy(&value, data + at, size);
	switch (fuzz_pick(5)) {
	case 0: value++; break;
	case 1: value--; break;
	case 2: value <<= fuzz_pick(64); break;
	case 3: value = ~0ULL >> fuzz_pick(64); break;
	default: value = fuzz_pick((unsigned)len + 1); break;
	}
	memcpy(data + at, &value, size);
}

static void move_piece(uint8_t *data, size_t len)
{
	size_t size = 1 + fuzz_pick((unsigned)(len < 4096 ? len : 4096));

	memmove(data + fuzz_pick((unsigned)(len - size + 1)), data + fuzz_pick((unsigned)(len - size + 1)), size);
}

/* Space for one piece more. */
static size_t double_piece(uint8_t *data, size_t len, size_t size)
{
	size_t at = fuzz_pick((unsigned)(len - size + 1));

	memmove(data + at + size, data + at, len - at);
	return len + size;
}

static size_t drop_piece(uint8_t *data, size_t len, size_t size)
{
	size_t at = fuzz_pick((unsigned)(len - size + 1));

	memmove(data + at, data + at + size, len - at - size);
	return len - size;
}

static uint8_t *scramble(const uint8_t *data, size_t len, size_t *ret_len)
{
	size_t piece = len ? 1 + fuzz_pick((unsigned)(len < 64 ? len : 64)) : 0;
	uint8_t *copy = malloc(len + piece + 1);

	if (!copy)
		exit(2);
	memcpy(copy, data, len);
	for (unsigned i = 1 + fuzz_pick(6); len > 0 && i > 0; i--) {
		if (fuzz_pick(2))
			change_byte(copy, len);
		else
			change_number(copy, len);
	}
	if (len > 256 && fuzz_pick(10) == 0)
		len = fuzz_pick((unsigned)len);
	else if (len > 0 && fuzz_pick(8) == 0)
		move_piece(copy, len);
	else if (len > 0 && fuzz_pick(8) == 0)
		len = double_piece(copy, len, piece);
	else if (len > piece && fuzz_pick(8) == 0)
		len = drop_piece(copy, len, piece);
	*ret_len = len;
	return copy;
}

static void run_changed(const uint8_t *data, size_t len)
{
	size_t changed_len;
	uint8_t *changed = target->restructure && fuzz_pick(4) ? target->restructure(data, len, &changed_len) :
								  scramble(data, len, &changed_len);

	run(changed, changed_len);
	free(changed);
}

/* Each stage was come to, and not by all to the last one. */
static bool compared_something(void)
{
	unsigned long least = ULONG_MAX;

	for (unsigned i = 0; target->stages[i]; i++)
		least = reached_count[i] < least ? reached_count[i] : least;
	return least > 0 && least < input_count;
}

/* "500": so many; "60s": for so long. */
static unsigned long take_runs(const char *text, uint64_t *ret_until_ns)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*ret_until_ns = *end == 's' ? clock_monotonic_ns() + number * NSEC_PER_SEC : UINT64_MAX;
	return *end == 's' ? ULONG_MAX : number;
}

/* fuzz_x TARGET RUNS SEED FILE... */
int main(int argc, char **argv)
{
	uint64_t until_ns = 0;
	unsigned long runs = argc > 4 ? take_runs(argv[2], &until_ns) : 0;
	size_t count = argc > 4 ? (size_t)argc - 4 : 0;
	uint8_t **inputs = calloc(count + 1, sizeof(*inputs));
	size_t *lens = calloc(count + 1, sizeof(*lens));

	if (count == 0 || !inputs || !lens) {
		fprintf(stderr, "usage: %s TARGET RUNS SEED FILE...\n", argv[0]);
		return 2;
	}
	choose(argv[1]);
	report_fd = dup(STDOUT_FILENO);
	state = strtoull(argv[3], NULL, 10) * 2 + 1;
	for (size_t i = 0; i < count; i++) {
		inputs[i] = read_input(argv[4 + i], &lens[i]);
		run(inputs[i], lens[i]);
	}
	for (unsigned long i = 0; i < runs && !clock_passed(until_ns); i++) {
		size_t which = fuzz_pick((unsigned)count);

		run_changed(inputs[which], lens[which]);
	}
	for (size_t i = 0; i < count; i++)
		free(inputs[i]);
	free(inputs);
	free(lens);
	report();
	return runs == 0 || compared_something() ? 0 : 1;
}

#endif
