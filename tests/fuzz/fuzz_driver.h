/* Runs a fuzz target without a fuzzer: on the files it is given, and on changes of them that are the same
 * each time.  With -DFUZZ_WITH_LIBFUZZER the target's main() is libFuzzer's. */
#ifndef ALLOCWATCH_TESTS_FUZZ_DRIVER_H
#define ALLOCWATCH_TESTS_FUZZ_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_INPUT_MAX (1u << 20)

/* The target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
/* Its own way to change an input, to be freed. */
uint8_t *fuzz_restructure(const uint8_t *data, size_t len, size_t *ret_len);

/* What became of the input: 0 refused, 1 taken. */
void fuzz_count(int taken);
/* A number in [0, below), which depends on the seed alone. */
unsigned fuzz_pick(unsigned below);

#endif
