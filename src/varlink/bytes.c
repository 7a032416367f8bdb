/* Bytes that are not UTF-8 and JSON strings, there and back. */
#include "varlink/codec.h"
#include "varlink/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7), 0 when there is none.
 * The text ends in NUL, which is no continuation byte. */
static size_t utf8_length(const unsigned char *p)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++) {
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	}
	return len;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that "\xNN" at p stands for, -1 for anything else.  Only bytes above 0x7f are written so, and
 * the backslash of a text that would read as one of these: "\x2d" is somebody's file name. */
static int escaped_byte(const char *p)
{
	int high, low;

	if (p[0] != '\\' || p[1] != 'x')
		return -1;
	high = hex_digit(p[2]);
	low = high < 0 ? -1 : hex_digit(p[3]);
	if (low < 0)
		return -1;
	return high >= 8 || (high == 5 && low == 0xc) ? high * 16 + low : -1;
}

/* Returns the escaped text, to be freed. */
static char *escape(const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	const char *in = text, *end = in + len;
	char *escaped = malloc(len * 4 + 1), *out = escaped;

	if (!escaped)
		return NULL;
	while (in < end) {
		size_t n = utf8_length((const unsigned char *)in);

		if (n > 0 && n <= (size_t)(end - in) && escaped_byte(in) < 0) {
			memcpy(out, in, n);
			out += n;
			in += n;
		} else {
			out += sprintf(out, "\\x%02x", (unsigned char)*in++);
		}
	}
	*out = '\0';
	return escaped;
}

json_t *codec_bytes_max(const char *text, size_t max)
{
	char *escaped = escape(text ? text : "", max);
	json_t *json;

	if (!escaped)
		return NULL;
	json = json_string(escaped);
	free(escaped);
	return json;
}

json_t *codec_bytes(const char *text)
{
	return codec_bytes_max(text, CODEC_TEXT_MAX);
}

char *codec_text(const char *json_text)
{
	char *text = malloc(strlen(json_text) + 1), *out = text;

	if (!text)
		return NULL;
	for (const char *in = json_text; *in;) {
		int byte = escaped_byte(in);

		*out++ = byte < 0 ? *in : (char)byte;
		in += byte < 0 ? 1 : 4;
	}
	*out = '\0';
	return text;
}
