/* Bytes that are meant to be UTF-8, and what of them may go to a terminal.
 *
 * Names of files, functions and processes are whatever somebody made them: control characters in
 * them must not steer the reader's terminal. */
#ifndef ALLOCWATCH_EXPORT_PRINTABLE_H
#define ALLOCWATCH_EXPORT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The code point at `text` (NUL-terminated) and how many bytes it takes; 0 when the bytes there are
 * not UTF-8 (overlong forms and surrogates are not) or text is at its end. */
size_t printable_decode(const char *text, uint32_t *ret_code);

/* The bytes of the character at `text`, or 1 for a byte that is none; text is not at its end. */
size_t printable_length(const char *text);

/* What Python's str.strip() takes away. */
bool printable_is_space(uint32_t code);

/* What would steer a terminal. */
bool printable_is_control(uint32_t code);

/* Writes text; control characters and what is not UTF-8 become \xNN, one for each byte.  Tabs pass
 * when keep_tabs is set. */
void printable_write(FILE *out, const char *text, size_t len, bool keep_tabs);

#endif
