/* What a fuzz target and what drives it know of each other.
 *
 * A program has several targets, one of which a run is about.  It is driven by driver.c: on the files it is given, and
 * on changes of them that are the same each time; or, with -DFUZZ_WITH_LIBFUZZER, by libFuzzer, guided by coverage. */
#ifndef ALLOCWATCH_TESTS_FUZZ_FUZZ_H
#define ALLOCWATCH_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_INPUT_MAX (1u << 20)
#define FUZZ_STAGES_MAX 6
#define FUZZ_SECONDS_MAX 5              /* of CPU time: an input that takes more is a finding, on a busy machine too */

struct fuzz_target {
	const char *name;
	void (*run)(const uint8_t *data, size_t len);
	/* Its own way to change an input, to be freed; NULL: bytes are changed. */
	uint8_t *(*restructure)(const uint8_t *data, size_t len, size_t *ret_len);
	/* How far an input may come, past one check after the other: a run that never came to one of these has compared
	 * nothing there, and fails. */
	const char *stages[FUZZ_STAGES_MAX + 1];
};

/* The program's; the last one has no name. */
extern const struct fuzz_target fuzz_targets[];

/* The input at hand has come to this stage; counted once. */
void fuzz_reached(unsigned stage);
/* A number in [0, below): in a target it depends on the input alone, in restructure() on the seed. */
unsigned fuzz_pick(unsigned below);
/* The input as the one file of that memfd, to be closed. */
int fuzz_file(const uint8_t *data, size_t len);

#define MUST(claim) \
	do { \
		if (!(claim)) { \
			fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #claim); \
			abort(); \
		} \
	} while (0)

/* --- taking an input apart --- */

struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

/* The next ones, as many as there are. */
const uint8_t *fuzz_take(struct fuzz_bytes *bytes, size_t want, size_t *ret_len);
/* The next ones as a number; what is missing is 0. */
uint64_t fuzz_take_number(struct fuzz_bytes *bytes, size_t len);

#endif
