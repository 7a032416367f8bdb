/* The messages between the daemon and the symbolizer, over a private SOCK_SEQPACKET socketpair.
 *
 * The daemon opens a module (its ELF file travels beside the message as its one descriptor), asks
 * for addresses in it, closes it.  Requests are answered in their order; an answer carries the
 * request's serial.  The answers to one RESOLVE come in one or more ANSWERS messages, sent as they
 * become known, so that silence means that a single address hangs.
 *
 * Each side treats the other's bytes as hostile: symbol_wire_check() before anything else.  The
 * symbolizer above all parses files made by anybody, and what it says is not to be trusted beyond
 * being well-formed. */
#ifndef ALLOCWATCH_SYMBOL_WIRE_H
#define ALLOCWATCH_SYMBOL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Another number for each change of these messages: after an upgrade a running daemon finds the new program. */
#define SYMBOL_WIRE_VERSION 1

#define SYMBOL_WIRE_MESSAGE_MAX 65536
#define SYMBOL_WIRE_QUERIES_MAX 1024       /* addresses in one request */
#define SYMBOL_WIRE_LOCATIONS_MAX 64       /* of one address */
#define SYMBOL_WIRE_MODULES_MAX 64         /* open at a time */
#define SYMBOL_WIRE_PATH_MAX 4096          /* its NUL included */
#define SYMBOL_WIRE_BUILD_ID_MAX 64

enum symbol_wire_type {
	/* daemon -> symbolizer */
	SYMBOL_WIRE_OPEN = 1,      /* head; descriptor: the ELF file.  Answer: OPENED */
	SYMBOL_WIRE_RESOLVE,       /* symbol_wire_resolve.  Answer: ANSWERS, once or more */
	SYMBOL_WIRE_CLOSE,         /* head.  No answer */
	SYMBOL_WIRE_OPEN_NAMES,    /* head; descriptor: a perf map or jitdump, whose addresses are those of a process.
				    * Answer: OPENED */
	SYMBOL_WIRE_FILE,          /* symbol_wire_file; descriptor: the file, when there is one.  The answer to a NEED */
	/* symbolizer -> daemon */
	SYMBOL_WIRE_READY = 32,    /* head, whose serial is SYMBOL_WIRE_VERSION, unasked and first: it has given up its
				    * privileges */
	SYMBOL_WIRE_OPENED,        /* symbol_wire_opened */
	SYMBOL_WIRE_ANSWERS,       /* symbol_wire_answers */
	SYMBOL_WIRE_NEED,          /* symbol_wire_need, in the middle of a request, whose serial it has; it goes on with
				    * the FILE */
	SYMBOL_WIRE_NEED_DEBUG,    /* symbol_wire_need_debug; likewise: debug information of the module that is being opened,
				    * from wherever the daemon has it.  -EINPROGRESS: it may come later */
};

struct symbol_wire_head {
	uint32_t type;
	uint32_t serial;
	uint32_t module;           /* number of an open module, below SYMBOL_WIRE_MODULES_MAX */
	uint32_t length;           /* of the whole message, head included */
};

struct symbol_wire_query {
	uint64_t address;          /* ELF virtual address; of what is named by OPEN_NAMES that at run time */
	uint32_t is_call;          /* 1: a return address; 0: the instruction itself */
	uint32_t pad;
};

struct symbol_wire_resolve {
	struct symbol_wire_head head;
	uint32_t count, pad;
	struct symbol_wire_query queries[];
};

struct symbol_wire_opened {
	struct symbol_wire_head head;
	int32_t result;            /* 0 or negative errno: then the module is not open.  -EINPROGRESS: to be tried
				    * again when its debug information has come */
	uint32_t sources;          /* SYMBOL_FROM_* bits, for the log */
};

/* Another file that belongs to the module: its debug file, say. */
struct symbol_wire_need {
	struct symbol_wire_head head;
	char path[];               /* absolute; NUL-terminated */
};

struct symbol_wire_need_debug {
	struct symbol_wire_head head;
	uint32_t build_id_len;     /* 0: the module's own, whose build-id the daemon knows; else what dwz has moved out of it */
	uint32_t pad;
	uint8_t build_id[SYMBOL_WIRE_BUILD_ID_MAX];
};

struct symbol_wire_file {
	struct symbol_wire_head head;
	int32_t result;            /* 0 or negative errno: there is no descriptor */
	uint32_t pad;
};

struct symbol_wire_location {
	uint32_t function, file;   /* offsets in the message's text; 0: unknown */
	uint32_t line;
	uint32_t function_offset;
	uint32_t inlined;
};

/* Followed by: uint32_t location_counts[count]; struct symbol_wire_location
 * locations[location_count]; char text[text_length], whose first and last bytes are NUL. */
struct symbol_wire_answers {
	struct symbol_wire_head head;
	uint32_t first, count;     /* which of the request's queries */
	uint32_t location_count;   /* the sum of location_counts */
	uint32_t text_length;
	uint32_t incomplete;       /* 1: files that belong to the module were missing, so that there may be better answers later */
	uint32_t pad;
};

/* The parts of an ANSWERS message that symbol_wire_check() has accepted. */
const uint32_t *symbol_wire_counts(const struct symbol_wire_answers *answers);
const struct symbol_wire_location *symbol_wire_locations(const struct symbol_wire_answers *answers);
const char *symbol_wire_text(const struct symbol_wire_answers *answers);

/* 0 when data (aligned for uint64_t) is one whole message of a type that this direction may carry,
 * every count agrees with the length and every text offset is inside the text; else -EBADMSG. */
int symbol_wire_check(const void *data, size_t len, bool from_symbolizer);

#endif
