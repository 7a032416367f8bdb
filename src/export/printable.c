#include "export/printable.h"

#include "model/utf8.h"

/* What stands for a byte that belongs to no character. */
#define STRAY_FIRST 0xdc80
#define STRAY_LAST 0xdcff

size_t printable_decode(const char *text, uint32_t *ret_code)
{
	const char *end = text;
	uint32_t code = utf8_next(&end);

	if (code == 0 || (code >= STRAY_FIRST && code <= STRAY_LAST))
		return 0;
	*ret_code = code;
	return (size_t)(end - text);
}

bool printable_is_space(uint32_t code)
{
	return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
	       code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
	       code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
	       code == 0x3000;
}

size_t printable_length(const char *text)
{
	uint32_t code;
	size_t n = printable_decode(text, &code);

	return n > 0 ? n : 1;
}

bool printable_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

void printable_write(FILE *out, const char *text, size_t len, bool keep_tabs)
{
	const char *end = text + len;

	while (text < end) {
		uint32_t code = 0;
		size_t n = printable_decode(text, &code);

		if (n > (size_t)(end - text))
			n = 0;
		if (n > 0 && (!printable_is_control(code) || (keep_tabs && code == '\t'))) {
			fwrite(text, 1, n, out);
			text += n;
			continue;
		}
		for (size_t i = 0; i < (n > 0 ? n : 1); i++)
			fprintf(out, "\\x%02x", (unsigned char)text[i]);
		text += n > 0 ? n : 1;
	}
}
