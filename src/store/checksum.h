/* The checksum of a snapshot in a file: SQLite notices when the structure of a file is damaged, this
 * notices when a number or a letter is.  No protection against intent.  Private to store/.
 *
 * It is the sum, modulo 2^64, of a hash of every record the snapshot consists of, with the numbers
 * the record has in the file, so the order does not matter and shared records count for each
 * snapshot that uses them.  Part of the format: it never changes without STORE_VERSION. */
#ifndef ALLOCWATCH_STORE_CHECKSUM_H
#define ALLOCWATCH_STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

enum checksum_record {
	CHECKSUM_SNAPSHOT = 1,
	CHECKSUM_STRING,
	CHECKSUM_MODULE,
	CHECKSUM_FRAME,
	CHECKSUM_LOCATION,
	CHECKSUM_NODE,
	CHECKSUM_TRACE,
	CHECKSUM_BLOCK,
};

void checksum_add(uint64_t *sum, enum checksum_record record, const uint64_t *values, size_t count);
/* A text or other bytes as one of the values. */
uint64_t checksum_bytes(const void *data, size_t len);

#endif
