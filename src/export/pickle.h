/* Writes values as Python's pickle, protocol 4 (Python 3.4 and later).
 *
 * What was written last can be remembered and written again by its number, which is how equal objects
 * become one. */
#ifndef ALLOCWATCH_EXPORT_PICKLE_H
#define ALLOCWATCH_EXPORT_PICKLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PICKLE_NONE UINT32_MAX

struct pickle {
	FILE *out;
	uint32_t remembered;
};

/* The single bytes of the protocol. */
enum pickle_code {
	PICKLE_MARK = '(',
	PICKLE_STOP = '.',
	PICKLE_POP = '0',
	PICKLE_EMPTY_TUPLE = ')',
	PICKLE_TUPLE = 't',                 /* of all from the last mark on */
	PICKLE_TUPLE2 = 0x86,
	PICKLE_TUPLE3 = 0x87,
	PICKLE_EMPTY_LIST = ']',
	PICKLE_APPENDS = 'e',
	PICKLE_EMPTY_DICT = '}',
	PICKLE_SETITEM = 's',
	PICKLE_NEW_OBJECT = 0x81,
	PICKLE_BUILD = 'b',
	PICKLE_GLOBAL = 0x93,
	PICKLE_REMEMBER = 0x94,
};

void pickle_begin(struct pickle *pickle, FILE *out);
void pickle_code(struct pickle *pickle, enum pickle_code code);
void pickle_number(struct pickle *pickle, uint64_t value);
/* What is not UTF-8 becomes lone surrogates, as Python's surrogateescape makes them. */
void pickle_text(struct pickle *pickle, const char *text);
/* A new object of a class, without calling its constructor. */
void pickle_object(struct pickle *pickle, const char *module, const char *class_name);
/* Remembers what was written last; its number. */
uint32_t pickle_remember(struct pickle *pickle);
void pickle_again(struct pickle *pickle, uint32_t number);

#endif
