#include "symbol/jitdump.h"

#include "symbol/symbol.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x4a695444u            /* "JiTD" */

enum { CODE_LOAD = 0, CODE_MOVE = 1, CODE_DEBUG_INFO = 2, CODE_CLOSE = 3 };

struct header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};

struct record {
	uint32_t id, size;
	uint64_t time;
};

/* Each behind a record. */
struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};                                   /* name, NUL, code */

struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

struct debug_info {
	uint64_t address, count;
};                                   /* count times: struct line, name, NUL */

struct line {
	uint64_t address;
	uint32_t line, discriminator;
};

/* "\xff": the same file as the line before. */
static const char same_file[] = "\xff";

static bool take(int fd, uint64_t at, void *into, size_t len)
{
	return pread(fd, into, len, (off_t)at) == (ssize_t)len;
}

static bool take_header(int fd, struct header *header)
{
	return take(fd, 0, header, sizeof(*header)) && header->magic == MAGIC && header->size >= sizeof(*header);
}

bool jitdump_is(int fd)
{
	struct header header;

	return take_header(fd, &header);
}

/* Bytes before the NUL, which is before `end`; 0 when there is none within reach. */
static uint32_t text_length(int fd, uint64_t at, uint64_t end)
{
	char text[SYMBOL_NAME_MAX];
	ssize_t n = pread(fd, text, end - at < sizeof(text) ? end - at : sizeof(text), (off_t)at);

	return n <= 0 ? 0 : (uint32_t)strnlen(text, (size_t)n - 1);
}

struct dump {
	int fd;
	struct jit_table *table;
	uint64_t lines_at, lines_of;     /* the DEBUG_INFO that waits for the code at this address */
	uint32_t steps;
};

static int take_load(struct dump *dump, uint64_t at, uint64_t end)
{
	struct jit_entry entry = { 0 };
	struct load load;

	if (at + sizeof(load) > end || !take(dump->fd, at, &load, sizeof(load)))
		return -EBADMSG;
	entry.start = load.address;
	entry.size = load.size;
	entry.name_at = at + sizeof(load);
	entry.name_len = text_length(dump->fd, entry.name_at, end);
	if (dump->lines_at != 0 && dump->lines_of == load.address)
		entry.lines_at = dump->lines_at;
	dump->lines_at = 0;
	return jit_table_add(dump->table, &entry);
}

static int take_move(struct dump *dump, uint64_t at, uint64_t end)
{
	struct move move;

	if (at + sizeof(move) > end || !take(dump->fd, at, &move, sizeof(move)))
		return -EBADMSG;
	for (size_t i = 0; i < jit_table_count(dump->table) && dump->steps < JITDUMP_STEPS_MAX; i++, dump->steps++) {
		struct jit_entry moved = *jit_table_newest(dump->table, i);

		if (moved.start != move.from)
			continue;
		moved.start = move.to;
		moved.lines_at = 0;          /* they have the old addresses */
		return jit_table_add(dump->table, &moved);
	}
	return 0;
}

static int take_record(struct dump *dump, const struct record *record, uint64_t at)
{
	uint64_t body = at + sizeof(*record), end = at + record->size;
	struct debug_info info;

	switch (record->id) {
	case CODE_LOAD:
		return take_load(dump, body, end);
	case CODE_MOVE:
		return take_move(dump, body, end);
	case CODE_DEBUG_INFO:
		if (body + sizeof(info) > end || !take(dump->fd, body, &info, sizeof(info)))
			return -EBADMSG;
		dump->lines_at = at;
		dump->lines_of = info.address;
		return 0;
	default:
		return 0;
	}
}

int jitdump_read(int fd, struct jit_table *table)
{
	struct dump dump = { .fd = fd, .table = table };
	struct header header;
	struct record record;
	uint64_t at;
	int r = 0;

	if (!take_header(fd, &header))
		return -ENOEXEC;
	at = header.size;
	for (uint32_t i = 0; i < JITDUMP_RECORDS_MAX && r == 0; i++, at += record.size) {
		if (!take(fd, at, &record, sizeof(record)) || record.size < sizeof(record) || record.id == CODE_CLOSE)
			break;
		r = take_record(&dump, &record, at);
	}
	return r == -ENOMEM ? r : 0;
}

/* Lines come in the order of their addresses: the last one that is not beyond. */
int jitdump_line(int fd, const struct jit_entry *entry, uint64_t pc, char *file, size_t space, uint32_t *ret_line)
{
	uint64_t at = entry->lines_at, end, name_at = 0, last_name_at = 0;
	struct debug_info info;
	struct record record;
	struct line line;
	uint32_t number = 0;
	ssize_t n;

	if (at == 0 || !take(fd, at, &record, sizeof(record)) || !take(fd, at + sizeof(record), &info, sizeof(info)))
		return -ENOENT;
	end = at + record.size;
	at += sizeof(record) + sizeof(info);
	for (uint64_t i = 0; i < info.count && i < JITDUMP_LINES_MAX && at + sizeof(line) < end; i++) {
		char mark[sizeof(same_file)];

		if (!take(fd, at, &line, sizeof(line)) || line.address > pc)
			break;
		at += sizeof(line);
		if (!take(fd, at, mark, sizeof(mark)) || memcmp(mark, same_file, sizeof(mark)) != 0)
			last_name_at = at;
		name_at = last_name_at;
		number = line.line;
		at += text_length(fd, at, end) + 1;
	}
	if (name_at == 0 || number == 0)
		return -ENOENT;
	n = pread(fd, file, end - name_at < space - 1 ? end - name_at : space - 1, (off_t)name_at);
	if (n <= 0 || file[0] == '\0')
		return -ENOENT;
	file[n] = '\0';
	*ret_line = number;
	return 0;
}
