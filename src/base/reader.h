/* The one way this project reads somebody else's memory: "read len bytes at address".
 *
 * The unwinder and the loader's list are written against a reader, never against a PID, so that a
 * test hands them recorded bytes.  This header knows nothing about where the bytes come from. */
#ifndef ALLOCWATCH_BASE_READER_H
#define ALLOCWATCH_BASE_READER_H

#include <stddef.h>
#include <stdint.h>

/* A remote address.  Never a pointer: it means nothing in this process. */
typedef uint64_t raddr;

struct reader {
	/* Fills buf with exactly len bytes found at `at`.  0, -ESRCH (the memory is gone), -EAGAIN (what is there cannot be known by this
	 * reader, though another one may) or -EFAULT (not all of it could be read; buf is then undefined). */
	int (*read)(void *context, raddr at, void *buf, size_t len);
	void *context;
	/* The same for what is known to be asked for as instructions, where a copy holds the data only; NULL: `read` does it. */
	int (*read_code)(void *context, raddr at, void *buf, size_t len);
	/* What is in this process already: the bytes from `at` on and how many there are, or NULL: none.  They are good until the caller
	 * of who was given the reader goes on, and may change meanwhile: each is to be looked at once.  NULL: there are none at all. */
	const uint8_t *(*in_place)(void *context, raddr at, size_t *ret_len);
};

static inline int reader_read(const struct reader *reader, raddr at, void *buf, size_t len)
{
	return reader->read(reader->context, at, buf, len);
}

static inline int reader_code(const struct reader *reader, raddr at, void *buf, size_t len)
{
	return (reader->read_code ? reader->read_code : reader->read)(reader->context, at, buf, len);
}

static inline int reader_u64(const struct reader *reader, raddr at, uint64_t *ret_value)
{
	return reader->read(reader->context, at, ret_value, sizeof(*ret_value));
}

/* A string and its NUL, into space bytes; -ENAMETOOLONG: it does not end by then. */
int reader_string(const struct reader *reader, raddr at, char *text, size_t space);

#endif
