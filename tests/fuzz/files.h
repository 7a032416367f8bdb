/* The targets of fuzz_files: what is read without a process being looked at. */
#ifndef ALLOCWATCH_TESTS_FUZZ_FILES_H
#define ALLOCWATCH_TESTS_FUZZ_FILES_H

#include <stddef.h>
#include <stdint.h>

void fuzz_store_run(const uint8_t *data, size_t len);
uint8_t *fuzz_store_restructure(const uint8_t *data, size_t len, size_t *ret_len);
void fuzz_image_run(const uint8_t *data, size_t len);
uint8_t *fuzz_image_restructure(const uint8_t *data, size_t len, size_t *ret_len);
void fuzz_filter_run(const uint8_t *data, size_t len);

#endif
