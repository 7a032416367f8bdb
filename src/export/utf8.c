#include "export/utf8.h"

#include <string.h>

struct lead {
	unsigned char mask, value;
	uint32_t smallest;          /* below it the form is overlong */
};

static const struct lead leads[] = {
	{ 0x80, 0x00, 0 },
	{ 0xe0, 0xc0, 0x80 },
	{ 0xf0, 0xe0, 0x800 },
	{ 0xf8, 0xf0, 0x10000 },
};

size_t utf8_decode(const char *text, uint32_t *ret_code)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len;
	uint32_t code;

	for (len = 1; len <= 4; len++)
		if ((p[0] & leads[len - 1].mask) == leads[len - 1].value)
			break;
	if (p[0] == '\0' || len > 4)
		return 0;
	code = p[0] & (unsigned char)~leads[len - 1].mask;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)      /* the NUL at the end stops here, too */
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < leads[len - 1].smallest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return len;
}

bool utf8_is_space(uint32_t code)
{
	return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
	       code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
	       code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
	       code == 0x3000;
}

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

void utf8_print(FILE *out, const char *text, size_t len, bool keep_tabs)
{
	const char *end = text + len;

	while (text < end) {
		uint32_t code = 0;
		size_t n = utf8_decode(text, &code);

		if (n > (size_t)(end - text))
			n = 0;
		if (n > 0 && (!is_control(code) || (keep_tabs && code == '\t'))) {
			fwrite(text, 1, n, out);
			text += n;
			continue;
		}
		for (size_t i = 0; i < (n > 0 ? n : 1); i++)
			fprintf(out, "\\x%02x", (unsigned char)text[i]);
		text += n > 0 ? n : 1;
	}
}
