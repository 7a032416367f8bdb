/* Durations, sizes and numbers as people write them on a command line or in a file.  Strict: what is not
 * understood whole is refused, nothing is guessed. */
#ifndef ALLOCWATCH_BASE_UNITS_H
#define ALLOCWATCH_BASE_UNITS_H

#include <stdint.h>

/* "90s", "10min", "2h", "1h 30min", "1.5s", "250ms"; a number alone is seconds.  0, -EINVAL (not a
 * duration) or -ERANGE (over 100 years). */
int units_parse_duration(const char *text, uint64_t *ret_ns);

/* "4096", "64K", "1MiB", "1.5G": steps of 1024.  0, -EINVAL or -ERANGE.  "KB" is refused: it means
 * 1000 to some and 1024 to others. */
int units_parse_size(const char *text, uint64_t *ret_bytes);

/* A decimal number from `least` to `most`, without sign (but for a leading - when least is
 * negative) and without white space.  0, -EINVAL or -ERANGE. */
int units_parse_number(const char *text, int64_t least, int64_t most, int64_t *ret_value);

/* "3 s", "2 min 5 s", "4 h 10 min", "6 d 3 h". */
#define UNITS_TEXT_MAX 48
const char *units_duration_text(char text[UNITS_TEXT_MAX], uint64_t ns);

#endif
