#include "symbol/perf_map.h"

#include "symbol/symbol.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER 65536
#define NUMBERS_MAX 64               /* characters before the name */

static bool take_number(const char **at, const char *end, uint64_t *ret)
{
	const char *from = *at;
	uint64_t value = 0;
	int digits = 0;

	if (end - from > 2 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X'))
		from += 2;
	for (; from < end; from++, digits++) {
		char c = *from;
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
				 c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 :
				 c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;

		if (digit == 16)
			break;
		value = value << 4 | digit;
	}
	if (digits == 0 || digits > 16 || from == end || *from != ' ')
		return false;
	*ret = value;
	*at = from + 1;
	return true;
}

/* line: its first bytes at least; len: of all of it, without its end; at: where it begins in the file. */
static int take_line(struct jit_table *table, const char *line, size_t have, size_t len, uint64_t at)
{
	struct jit_entry entry = { 0 };
	const char *from = line, *end = line + have;

	if (!take_number(&from, end, &entry.start) || !take_number(&from, end, &entry.size))
		return 0;
	len -= (size_t)(from - line);
	entry.name_at = at + (uint64_t)(from - line);
	entry.name_len = (uint32_t)(len < SYMBOL_NAME_MAX ? len : SYMBOL_NAME_MAX - 1);
	return jit_table_add(table, &entry);
}

/* A line that is longer than the buffer is known by its beginning. */
struct lines {
	struct jit_table *table;
	char head[NUMBERS_MAX];
	size_t head_len;
	uint64_t at, len;            /* of the line that has begun */
	bool passing;                /* its beginning is not known */
};

static int take_bytes(struct lines *lines, const char *bytes, size_t count)
{
	while (count > 0) {
		const char *newline = memchr(bytes, '\n', count);
		size_t part = newline ? (size_t)(newline - bytes) : count;
		size_t fits = sizeof(lines->head) - lines->head_len;

		fits = part < fits ? part : fits;
		memcpy(lines->head + lines->head_len, bytes, fits);
		lines->head_len += fits;
		lines->len += part;
		if (!newline)
			return 0;
		if (!lines->passing && take_line(lines->table, lines->head, lines->head_len, lines->len, lines->at) < 0)
			return -ENOMEM;
		lines->at += lines->len + 1;
		lines->len = lines->head_len = 0;
		lines->passing = false;
		bytes += part + 1;
		count -= part + 1;
	}
	return 0;
}

int perf_map_read(int fd, struct jit_table *table)
{
	struct lines lines = { .table = table };
	char *buffer = malloc(BUFFER);
	uint64_t at = 0, end;
	struct stat st;
	ssize_t n = 0;
	int r = 0;

	if (!buffer || fstat(fd, &st) < 0) {
		free(buffer);
		return -ENOMEM;
	}
	end = (uint64_t)st.st_size;          /* what is appended meanwhile is for the next time */
	if (end > PERF_MAP_BYTES_MAX) {
		at = end - PERF_MAP_BYTES_MAX;
		lines.passing = true;
	}
	lines.at = at;
	for (; at < end && r == 0; at += (uint64_t)n) {
		n = pread(fd, buffer, end - at < BUFFER ? end - at : BUFFER, (off_t)at);
		if (n <= 0)
			break;
		r = take_bytes(&lines, buffer, (size_t)n);
	}
	free(buffer);
	return n < 0 ? -errno : r;
}
