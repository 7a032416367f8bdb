/* The targets of fuzz_tracer: what a tracer reads of a process and of its files. */
#ifndef ALLOCWATCH_TESTS_FUZZ_TRACER_H
#define ALLOCWATCH_TESTS_FUZZ_TRACER_H

#include <stddef.h>
#include <stdint.h>

void fuzz_elf_run(const uint8_t *data, size_t len);
void fuzz_code_run(const uint8_t *data, size_t len);
void fuzz_cfi_run(const uint8_t *data, size_t len);
void fuzz_maps_run(const uint8_t *data, size_t len);
void fuzz_resident_run(const uint8_t *data, size_t len);
void fuzz_refuge_run(const uint8_t *data, size_t len);

#endif
