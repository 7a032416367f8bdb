/* The reader's side of a ring (ring/layout.h): its memory, and the records in their order.
 *
 * One reader, one thread.  What it returns was checked, but for what only others can know: sites, threads, addresses. */
#ifndef ALLOCWATCH_RING_RING_H
#define ALLOCWATCH_RING_RING_H

#include "ring/layout.h"

#include <stdbool.h>
#include <stddef.h>

struct ring;

#define RING_SIZE_MAX ((uint64_t)1 << 30)

/* A ring of `size` bytes of data, a power of two from RING_SIZE_MIN to RING_SIZE_MAX, turned off.  0, -EINVAL, -ENOMEM or
 * what the kernel has against memfd_create and mmap. */
int ring_new(uint64_t size, struct ring **ret_ring);
/* The same in memory that is there: a sealed memfd of RING_CONTROL_SIZE + size bytes of zeros, which becomes the ring's, also when
 * this fails (-EINVAL: it is not such a one). */
int ring_open(int fd, uint64_t size, struct ring **ret_ring);
void ring_free(struct ring *ring);                /* accepts NULL */
/* The descriptor to be mapped by the program; it stays the ring's. */
int ring_fd(const struct ring *ring);
/* Bytes of the mapping: the control page and the data twice. */
size_t ring_mapping_size(const struct ring *ring);
struct ring_control *ring_control(struct ring *ring);

/* A record; its stack lies in the ring until ring_done.  What is not of its kind is not set. */
struct ring_record {
	uint64_t position;
	uint64_t thread, sp;
	uint32_t site;                            /* its number alone */
	bool is_return;
	bool stored;                              /* of a return: the result is what the call has stored, which has returned 0 */
	bool unsampled;                           /* a call that counts for its old block alone */
	bool nested;                              /* such a one within another call, whose return is not recorded */
	bool has_stack;                           /* of a return, and of a call within another one */
	uint64_t return_address, args[3];         /* of a call */
	uint64_t stack_start;                     /* of a call with a stack: its lowest address; UINT64_MAX: not known */
	uint64_t time, result;                    /* of a return */
	uint32_t length_key;                      /* likewise: of ring_set_stack_length */
	uint64_t thread_pointer;                  /* likewise, when the thread was on its own stack; else it is anything */
	uint64_t saved[6];
	/* What lies on the stack from sp on, and behind it what lies at other_start on another stack, which the handler of a signal, on a
	 * stack of its own, has interrupted; the program may still write to it. */
	const uint8_t *stack;
	uint32_t stack_length, other_length;      /* bytes of each */
	uint64_t other_start;
};

/* The oldest record that was not passed yet.  1; 0: there is none; -EAGAIN: it is not committed yet, and *ret_record has its
 * position, and thread and site when it says so, which else are 0; -EBADMSG: what stands there is no record, or head is nowhere that
 * writers could have moved it to, and *ret_record is undefined. */
int ring_next(struct ring *ring, struct ring_record *ret_record);
/* Of the next record; the control page's `head` is where the one behind the last reserved one begins. */
uint64_t ring_position(const struct ring *ring);
/* How far has been reserved, as the program says: at most so far as the ring holds from the next record on.  Who reads until there has an
 * end, whatever the program says. */
uint64_t ring_reserved(const struct ring *ring);
/* Passes the record that ring_next has returned last. */
void ring_done(struct ring *ring);
/* Passes what never will be committed: its thread is gone, or has left the code that writes.  The caller knows that of every thread that
 * may be writing before the next record.  One that says its length is passed alone; else it goes on at the next one's mark, or at head.
 * Returns how many bytes were passed. */
uint64_t ring_skip(struct ring *ring);
/* The first piece at or behind *position, which is that of a record or the end, that was reserved and is not committed; *position becomes
 * its own, *ret_thread whose it is (0: it does not say so).  False: there is none, or what stands there is no record. */
bool ring_find_unfinished(struct ring *ring, uint64_t *position, uint64_t *ret_thread);
/* Nobody will write it, which the caller knows as of ring_skip: it becomes no record, and is passed in its turn. */
void ring_make_void(struct ring *ring, uint64_t position);

/* An allocating call at this stack pointer is pending, and has returned, which its thread, stopped for it, did not note itself. */
void ring_note_pending(struct ring *ring, uint64_t thread, uint64_t sp);
void ring_note_returned(struct ring *ring, uint64_t thread, uint64_t sp);
/* Has nothing pending any more. */
void ring_forget_thread(struct ring *ring, uint64_t thread);

/* A call of the loader's hook that was recorded at this position, and all before it, are served: who waits there goes on. */
void ring_serve_hook(struct ring *ring, uint64_t position);

/* The stack that calls from the place with this key need, in bytes; it is rounded up, and cut to RING_STACK_MAX.  It becomes RING_GROWTH times as long at least as the longest that was noted to be too
 * short; the next one has RING_STACK_MAX. */
#define RING_GROWTH 4u
void ring_note_too_short(struct ring *ring, uint32_t key);
void ring_set_stack_length(struct ring *ring, uint32_t key, uint64_t bytes);
/* And of all places, until more is known of one. */
void ring_set_all_stack_lengths(struct ring *ring, uint64_t bytes);
uint64_t ring_stack_length(const struct ring *ring, uint32_t key);

/* From now on a sample for so many bytes is recorded, from 1 to RING_SAMPLE_MAX, before anything is. */
#define RING_SAMPLE_MAX ((uint64_t)1 << 30)
void ring_set_sampling(struct ring *ring, uint64_t bytes);
/* How many families there are, from 1 to RING_FAMILIES; 1 unless this is told, before anything is recorded. */
void ring_set_families(struct ring *ring, uint32_t families);
/* What the site of this number, below RING_SHAPES, asks for: before it is planted. */
void ring_set_shape(struct ring *ring, uint32_t number, const struct ring_shape *shape);
/* A call that allocates and that the program does not record itself, of a thread that is held: as its code would do it.  The site is
 * any number by which the function is known. */
struct ring_sampled_call {
	uint64_t thread;
	uint32_t family, site;
	uint64_t sp, return_address;
	uint64_t bytes;
};
enum ring_fate ring_sample(struct ring *ring, const struct ring_sampled_call *call);
/* That call is no sample, but resizes a block that is one: its return is recorded all the same. */
void ring_sample_old_alone(struct ring *ring, const struct ring_sampled_call *call);
/* The outermost call of the family that the thread has pending, or false: there is none. */
bool ring_sampled_outer(const struct ring *ring, uint64_t thread, uint32_t family, uint64_t *ret_sp,
			uint64_t *ret_return_address);
/* Whether that one is of this function. */
bool ring_is_sampled_site(const struct ring *ring, uint64_t thread, uint32_t family, uint32_t site);
/* Of all families. */
void ring_sample_returned(struct ring *ring, uint64_t thread, uint64_t sp);
/* What a thread has pending, and that a thread has that is its copy in another process: that one's draws are its own. */
struct ring_drawn {
	struct ring_draw of[RING_FAMILIES];
};
void ring_drawn(const struct ring *ring, uint64_t thread, struct ring_drawn *ret);
void ring_copy_drawn(struct ring *ring, uint64_t thread, const struct ring_drawn *drawn);
/* A block that was sampled has been made by a call that the program did not record itself, and is gone. */
void ring_filter_add(struct ring *ring, uint64_t address);
void ring_filter_remove(struct ring *ring, uint64_t address);
/* Whether it may be a sampled block's. */
bool ring_filter_has(const struct ring *ring, uint64_t address);

/* Calls that were given up since the last time this was asked. */
uint64_t ring_take_lost(struct ring *ring);
/* How many calls ever had to wait for room, as the program says it. */
uint64_t ring_waits(const struct ring *ring);

#endif
