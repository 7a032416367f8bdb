#include "model/thread_table.h"

#include "model/event.h"

#include <stdlib.h>

struct thread_item {
	int32_t tid;
	uint16_t next;                  /* in its chain, or of the free numbers */
	bool ended;
	uint64_t blocks;                /* that live, forgotten ones included */
	raddr youngest;                 /* 0: the thread has none */
	uint32_t family;                /* of the youngest */
};

void thread_table_init(struct thread_table *table)
{
	*table = (struct thread_table){ 0 };
}

void thread_table_fini(struct thread_table *table)
{
	for (uint32_t i = 0; i < THREAD_PAGES; i++)
		free(table->pages[i]);
	*table = (struct thread_table){ 0 };
}

static struct thread_item *item_at(const struct thread_table *table, uint16_t number)
{
	return &table->pages[number / THREADS_PER_PAGE][number % THREADS_PER_PAGE];
}

static uint16_t *chain_of(struct thread_table *table, int32_t tid)
{
	return &table->heads[(uint32_t)tid % THREAD_CHAINS];
}

static uint16_t take_new(struct thread_table *table)
{
	uint32_t number = table->count + 1;
	struct thread_item **page;

	if (number > THREADS_MAX)
		return 0;
	page = &table->pages[number / THREADS_PER_PAGE];
	if (!*page)
		*page = calloc(THREADS_PER_PAGE, sizeof(**page));
	if (!*page)
		return 0;
	table->count = number;
	return (uint16_t)number;
}

static uint16_t take_number(struct thread_table *table)
{
	uint16_t number = table->first_free;

	if (!number)
		return take_new(table);
	table->first_free = item_at(table, number)->next;
	return number;
}

static void give_back(struct thread_table *table, uint16_t number)
{
	struct thread_item *item = item_at(table, number);

	*item = (struct thread_item){ .next = table->first_free };
	table->first_free = number;
}

static uint16_t intern(struct thread_table *table, int32_t tid)
{
	uint16_t *head = chain_of(table, tid), number;

	for (number = *head; number; number = item_at(table, number)->next) {
		if (item_at(table, number)->tid == tid)
			return number;
	}
	number = take_number(table);
	if (!number)
		return 0;
	*item_at(table, number) = (struct thread_item){ .tid = tid, .next = *head };
	*head = number;
	return number;
}

uint16_t thread_table_number(struct thread_table *table, int32_t tid)
{
	if (tid == 0)
		return 0;
	if (table->last_tid == tid)
		return table->last;
	table->last = intern(table, tid);
	/* A thread that got no number may get one later. */
	table->last_tid = table->last ? tid : 0;
	return table->last;
}

int32_t thread_table_tid(const struct thread_table *table, uint16_t number)
{
	return number ? item_at(table, number)->tid : 0;
}

void thread_table_born(struct thread_table *table, const struct block_entry *block)
{
	struct thread_item *item;

	if (!block->thread)
		return;
	item = item_at(table, block->thread);
	item->blocks++;
	item->youngest = block->address;
	item->family = domain_family(block->domain);
}

void thread_table_piece(struct thread_table *table, const struct block_entry *block)
{
	if (block->thread)
		item_at(table, block->thread)->blocks++;
}

static bool is_youngest_of(const struct thread_item *item, const struct block_entry *block)
{
	return item->youngest == block->address && item->family == domain_family(block->domain);
}

void thread_table_moved(struct thread_table *table, const struct block_entry *block, raddr address)
{
	if (block->thread && is_youngest_of(item_at(table, block->thread), block))
		item_at(table, block->thread)->youngest = address;
}

bool thread_table_leave(struct thread_table *table, const struct block_entry *block)
{
	struct thread_item *item;
	bool is_youngest;

	if (!block->thread)
		return false;
	item = item_at(table, block->thread);
	is_youngest = is_youngest_of(item, block);
	if (is_youngest)
		item->youngest = 0;
	if (--item->blocks == 0 && item->ended)
		give_back(table, block->thread);
	return is_youngest;
}

void thread_table_forget(struct thread_table *table, int32_t tid)
{
	uint16_t *link = chain_of(table, tid), number;
	struct thread_item *item;

	while (*link && item_at(table, *link)->tid != tid)
		link = &item_at(table, *link)->next;
	if (!*link)
		return;
	number = *link;
	item = item_at(table, number);
	*link = item->next;
	item->ended = true;
	item->youngest = 0;
	if (item->blocks == 0)
		give_back(table, number);
	if (table->last_tid == tid)
		table->last_tid = 0;
}

size_t thread_table_memory(const struct thread_table *table)
{
	size_t pages = 0;

	for (uint32_t i = 0; i < THREAD_PAGES; i++)
		pages += table->pages[i] != NULL;
	return pages * THREADS_PER_PAGE * sizeof(struct thread_item);
}
