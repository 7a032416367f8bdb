/* Byte strings as Python sees file names: UTF-8, in which a byte that is none stands for itself
 * ("surrogateescape").  Order and patterns are those of code points. */
#ifndef ALLOCWATCH_MODEL_UTF8_H
#define ALLOCWATCH_MODEL_UTF8_H

#include <stdint.h>

/* The code point at *text, which is moved behind it; 0 at the end of the string, where it stays.
 * A byte that belongs to no character gives 0xdc00 + byte. */
uint32_t utf8_next(const char **text);
/* Python's order of two strings: negative, 0, positive. */
int utf8_compare(const char *a, const char *b);

#endif
