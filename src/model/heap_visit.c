#include "model/heap_private.h"

#include <errno.h>
#include <math.h>

int64_t heap_trace_index(const struct heap *heap, uint32_t stack, uint32_t domain)
{
	uint32_t id = heap_find_trace(heap, stack, domain);

	return id == ID_NONE ? -ENOENT : (int64_t)id;
}

uint32_t heap_trace_count(const struct heap *heap)
{
	return heap->traces.count;
}

/* Rounded up: what is said of an error is never too little. */
static uint64_t deviation(double variance)
{
	return variance > 0 ? (uint64_t)ceil(sqrt(variance)) : 0;
}

int heap_each_trace(const struct heap *heap, int (*visit)(void *context, const struct heap_trace *),
		    void *context)
{
	for (uint32_t id = 0; id < heap->traces.count; id++) {
		const struct trace_item *item = id_table_at(&heap->traces, id);
		struct heap_trace trace = {
			.stack = item->stack,
			.domain = item->domain,
			.live_blocks = item->live_blocks,
			.live_bytes = item->live_bytes,
			.total_blocks = item->total_blocks,
			.total_bytes = item->total_bytes,
			.temporary_blocks = item->temporary_blocks,
			.peak_blocks = item->live_blocks,
			.peak_bytes = item->live_bytes,
		};
		int r;

		if (item->peak_epoch == heap->peak_epoch) {
			trace.peak_blocks = item->peak_blocks;
			trace.peak_bytes = item->peak_bytes;
		}
		if (id < heap->errors.count) {
			trace.samples = heap->errors.items[id].samples;
			trace.blocks_deviation = deviation(heap->errors.items[id].blocks_variance);
			trace.bytes_deviation = deviation(heap->errors.items[id].bytes_variance);
		}
		r = visit(context, &trace);
		if (r != 0)
			return r;
	}
	return 0;
}

struct block_visit {
	const struct heap *heap;
	int (*visit)(void *context, const struct heap_block *block);
	void *context;
};

/* Of one that is not forgotten. */
static struct heap_block block_of(const struct heap *heap, const struct block_entry *entry)
{
	return (struct heap_block){
		.address = entry->address,
		.size = entry->size,
		.domain = entry->domain,
		.stack = heap_trace_of(heap, entry)->stack,
		.thread = (uint32_t)thread_table_tid(&heap->threads, (uint16_t)entry->thread),
		.born_ns = heap->start_ns + entry->born * BORN_UNIT_NS,
	};
}

static int visit_block(void *context, const struct block_entry *entry)
{
	const struct block_visit *v = context;
	struct heap_block block;

	if (heap_forgotten(v->heap, entry))
		return 0;
	block = block_of(v->heap, entry);
	return v->visit(v->context, &block);
}

bool heap_block_at(const struct heap *heap, raddr address, uint32_t domain, struct heap_block *ret)
{
	struct block_place place;

	if (!block_table_find(&heap->blocks, address, domain, &place) || heap_forgotten(heap, place.entry))
		return false;
	*ret = block_of(heap, place.entry);
	return true;
}

int heap_each_block(const struct heap *heap, int (*visit)(void *context, const struct heap_block *),
		    void *context)
{
	struct block_visit v = { heap, visit, context };

	return block_table_each(&heap->blocks, visit_block, &v);
}

struct address_visit {
	void (*visit)(void *context, raddr address);
	void *context;
};

static int visit_address(void *context, const struct block_entry *entry)
{
	const struct address_visit *v = context;

	v->visit(v->context, entry->address);
	return 0;
}

void heap_each_address(const struct heap *heap, void (*visit)(void *context, raddr address), void *context)
{
	struct address_visit v = { visit, context };

	block_table_each(&heap->blocks, visit_address, &v);
}

struct search {
	raddr address;
	struct heap_block *found;
	size_t space, count;
};

static int match_block(void *context, const struct heap_block *block)
{
	struct search *search = context;
	uint64_t reach = block->size ? block->size : 1;
	size_t i;

	if (search->address < block->address || search->address - block->address >= reach)
		return 0;
	for (i = search->count; i > 0 && search->found[i - 1].size > block->size; i--) {
		if (i < search->space)
			search->found[i] = search->found[i - 1];
	}
	if (i < search->space)
		search->found[i] = *block;
	if (search->count < search->space)
		search->count++;
	return 0;
}

size_t heap_find(const struct heap *heap, raddr address, struct heap_block *found, size_t space)
{
	struct search search = { .address = address, .found = found, .space = space };

	heap_each_block(heap, match_block, &search);
	return search.count;
}
