/* The threads that allocate, numbered: a block remembers its thread in 16 bits.  And the youngest block of
 * each thread, if it still lives, which tells a block that is freed at once.
 *
 * A number is its thread's until the thread has ended and the last of its blocks is gone.  When all
 * numbers are taken, further threads have number 0 and are not told apart. */
#ifndef ALLOCWATCH_MODEL_THREAD_TABLE_H
#define ALLOCWATCH_MODEL_THREAD_TABLE_H

#include "model/block_table.h"

#define THREADS_MAX 65535u
#define THREADS_PER_PAGE 256
#define THREAD_PAGES ((THREADS_MAX + 1) / THREADS_PER_PAGE)
#define THREAD_CHAINS 4096

struct thread_item;

struct thread_table {
	struct thread_item *pages[THREAD_PAGES];   /* never given back; 2 MiB at most */
	uint16_t heads[THREAD_CHAINS];             /* of threads that have not ended, by their id */
	uint32_t count;                            /* numbers ever used, from 1 on */
	uint16_t first_free;                       /* of these, those that are free again */
	uint16_t last;                             /* the thread that allocated last: the next is often the same */
	int32_t last_tid;
};

void thread_table_init(struct thread_table *table);
void thread_table_fini(struct thread_table *table);

/* 0: too many, no memory, or a `tid` that is none. */
uint16_t thread_table_number(struct thread_table *table, int32_t tid);
/* 0: not known. */
int32_t thread_table_tid(const struct thread_table *table, uint16_t number);
/* A block came into the table of blocks. */
void thread_table_born(struct thread_table *table, const struct block_entry *block);
/* Another one did, which is a part of one that was there. */
void thread_table_piece(struct thread_table *table, const struct block_entry *block);
/* It has another address now. */
void thread_table_moved(struct thread_table *table, const struct block_entry *block, raddr address);
/* It is gone: whether it was the youngest of its thread, which then has none. */
bool thread_table_leave(struct thread_table *table, const struct block_entry *block);
/* The thread has ended; the next one with its id is another. */
void thread_table_forget(struct thread_table *table, int32_t tid);
size_t thread_table_memory(const struct thread_table *table);      /* beyond the struct itself */

#endif
