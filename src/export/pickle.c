#include "export/pickle.h"

#include "model/utf8.h"

#include <string.h>

enum {
	PROTOCOL = 0x80,
	BYTE = 'K', SHORT = 'M', INT = 'J', LONG = 0x8a,
	SHORT_TEXT = 0x8c, TEXT = 'X', LONG_TEXT = 0x8d,
	GET = 'h', LONG_GET = 'j',
};

static void put_byte(struct pickle *pickle, unsigned char byte)
{
	putc_unlocked(byte, pickle->out);
}

/* Little-endian. */
static void put_bytes(struct pickle *pickle, uint64_t value, int count)
{
	for (int i = 0; i < count; i++)
		put_byte(pickle, (unsigned char)(value >> 8 * i));
}

void pickle_begin(struct pickle *pickle, FILE *out)
{
	*pickle = (struct pickle){ .out = out };
	put_byte(pickle, PROTOCOL);
	put_byte(pickle, 4);
}

void pickle_code(struct pickle *pickle, enum pickle_code code)
{
	put_byte(pickle, (unsigned char)code);
}

void pickle_number(struct pickle *pickle, uint64_t value)
{
	if (value <= UINT8_MAX) {
		put_byte(pickle, BYTE);
		put_bytes(pickle, value, 1);
	} else if (value <= UINT16_MAX) {
		put_byte(pickle, SHORT);
		put_bytes(pickle, value, 2);
	} else if (value <= INT32_MAX) {
		put_byte(pickle, INT);
		put_bytes(pickle, value, 4);
	} else {
		/* two's complement: the ninth byte keeps it positive */
		put_byte(pickle, LONG);
		put_byte(pickle, 9);
		put_bytes(pickle, value, 8);
		put_byte(pickle, 0);
	}
}

/* --- text --- */

/* One character, or the surrogate of a byte that belongs to none: utf8_next() gives both. */
static size_t encode(uint32_t code, char bytes[4])
{
	if (code < 0x80) {
		bytes[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		bytes[0] = (char)(0xc0 | code >> 6);
		bytes[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | code >> 18);
	bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
	bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
	bytes[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static size_t encoded_length(const char *text)
{
	size_t len = 0;
	char bytes[4];

	while (*text)
		len += encode(utf8_next(&text), bytes);
	return len;
}

void pickle_text(struct pickle *pickle, const char *text)
{
	size_t len = encoded_length(text);
	char bytes[4];

	if (len <= UINT8_MAX) {
		put_byte(pickle, SHORT_TEXT);
		put_bytes(pickle, len, 1);
	} else if (len <= UINT32_MAX) {
		put_byte(pickle, TEXT);
		put_bytes(pickle, len, 4);
	} else {
		put_byte(pickle, LONG_TEXT);
		put_bytes(pickle, len, 8);
	}
	while (*text) {
		size_t count = encode(utf8_next(&text), bytes);

		for (size_t i = 0; i < count; i++)
			put_byte(pickle, (unsigned char)bytes[i]);
	}
}

/* --- objects --- */

void pickle_object(struct pickle *pickle, const char *module, const char *class_name)
{
	pickle_text(pickle, module);
	pickle_text(pickle, class_name);
	pickle_code(pickle, PICKLE_GLOBAL);
	pickle_code(pickle, PICKLE_EMPTY_TUPLE);
	pickle_code(pickle, PICKLE_NEW_OBJECT);
}

uint32_t pickle_remember(struct pickle *pickle)
{
	pickle_code(pickle, PICKLE_REMEMBER);
	return pickle->remembered++;
}

void pickle_again(struct pickle *pickle, uint32_t number)
{
	put_byte(pickle, number <= UINT8_MAX ? GET : LONG_GET);
	put_bytes(pickle, number, number <= UINT8_MAX ? 1 : 4);
}
