#include "model/utf8.h"

#include <stddef.h>

#define ESCAPED 0xdc00

struct lead {
	uint32_t continuations, bits, least;
};

/* What a first byte announces; no continuations: it is no first byte.  RFC 3629. */
static struct lead lead_of(unsigned char byte)
{
	if (byte >= 0xc2 && byte <= 0xdf)
		return (struct lead){ 1, byte & 0x1f, 0x80 };
	if (byte >= 0xe0 && byte <= 0xef)
		return (struct lead){ 2, byte & 0x0f, 0x800 };
	if (byte >= 0xf0 && byte <= 0xf4)
		return (struct lead){ 3, byte & 0x07, 0x10000 };
	return (struct lead){ 0 };
}

uint32_t utf8_next(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	struct lead lead;
	uint32_t code;

	if (*at < 0x80) {
		*text += *at != 0;
		return *at;
	}
	lead = lead_of(*at);
	code = lead.bits;
	for (uint32_t i = 1; i <= lead.continuations; i++) {
		if ((at[i] & 0xc0) != 0x80) {
			lead.continuations = 0;
			break;
		}
		code = code << 6 | (at[i] & 0x3f);
	}
	if (lead.continuations == 0 || code < lead.least || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff)) {
		*text += 1;
		return ESCAPED + *at;
	}
	*text += 1 + lead.continuations;
	return code;
}

int utf8_compare(const char *a, const char *b)
{
	for (;;) {
		uint32_t left = utf8_next(&a), right = utf8_next(&b);

		if (left != right)
			return left < right ? -1 : 1;
		if (left == 0)
			return 0;
	}
}
