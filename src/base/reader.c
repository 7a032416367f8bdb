#include "base/reader.h"

#include <errno.h>
#include <string.h>

#define PIECE 256              /* a divisor of a page: what lies behind the string may not be mapped */

int reader_string(const struct reader *reader, raddr at, char *text, size_t space)
{
	size_t len = 0;

	while (len < space) {
		size_t piece = PIECE - (at + len) % PIECE;
		int r;

		if (piece > space - len)
			piece = space - len;
		r = reader_read(reader, at + len, text + len, piece);
		if (r < 0)
			return r;
		if (memchr(text + len, '\0', piece))
			return 0;
		len += piece;
	}
	return -ENAMETOOLONG;
}
