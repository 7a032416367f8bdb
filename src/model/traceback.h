/* What a person sees of a stack: names instead of addresses, inlined calls unfolded, the allocator's
 * and the runtimes' own frames hidden, cut to a number of frames.
 *
 * Leading frames, from the most recent one up to the first that is none of these, are hidden: the
 * allocator itself, operator new, libc, the languages' runtimes (std::, __gnu_cxx::, alloc::,
 * core::), inlined ones included.  Frames further out stay.  If all would be hidden, none is. */
#ifndef ALLOCWATCH_MODEL_TRACEBACK_H
#define ALLOCWATCH_MODEL_TRACEBACK_H

#include "model/walk.h"

struct traceback_frame {
	const char *file;             /* NULL: no line information */
	uint32_t line;                /* 0 without a file */
	const char *function;         /* NULL: no symbol */
	const char *object;           /* the module's path; "" when in none */
	uint64_t offset;              /* of the address in its function, else in the object */
	bool inlined;
	struct place place;           /* where in the snapshot it comes from */
};

/* Stands for the object of a frame that is in none. */
#define TRACEBACK_NO_OBJECT "[unknown]"
/* tracemalloc's name of the one frame, of line 0, of a stack that has none. */
#define TRACEBACK_NO_FRAME "<unknown>"

struct traceback_options {
	uint32_t limit;               /* most frames; 0, and all above it: the snapshot's own limit */
	bool show_runtime;            /* hide nothing */
};

struct traceback {
	struct traceback_frame *frames;   /* most recent FIRST; strings belong to the snapshot */
	uint32_t count;
	uint32_t total_frames;            /* before the cut, after hiding */
	enum truncation truncated;        /* TRUNCATED_NONE: complete */
};

/* Fills in *ret (free with traceback_fini); 0 or -ENOMEM. */
int traceback_make(const struct snapshot *snapshot, uint32_t stack,
		   const struct traceback_options *options, struct traceback *ret);
void traceback_fini(struct traceback *traceback);

/* What is known of one place; strings belong to the snapshot. */
void traceback_describe(const struct snapshot *snapshot, struct place place, struct traceback_frame *ret_frame);
/* How many frames a traceback has at most: the smaller one of the two limits. */
uint32_t traceback_limit(const struct snapshot *snapshot, const struct traceback_options *options);

/* tracemalloc's "filename" of a frame: the file, else OBJECT(FUNCTION+0xOFF), else OBJECT(+0xOFF).
 * Returns a string id in `strings`, or negative errno. */
int64_t traceback_frame_name(const struct traceback_frame *frame, struct strtab *strings);

#endif
