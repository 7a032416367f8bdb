/* Mappings: blocks that are made, cut and moved by addresses.
 *
 * What is unmapped may be a part of a mapping, or of several: what is left of each stays, with the stack that mapped it.
 * A mapping that is cut in two is two blocks from then on.
 *
 * An unmapping has a beginning and an end, since it may fail, and since at its end others may have been given the
 * addresses already: it takes only what was mapped before it began. */
#include "model/heap_private.h"

#include <errno.h>

static struct unmapping *find_unmapping(struct heap *heap, int32_t tid)
{
	for (size_t i = 0; i < heap->unmappings.count; i++) {
		if (heap->unmappings.items[i].tid == tid)
			return &heap->unmappings.items[i];
	}
	return NULL;
}

/* Whether somebody is about to unmap something of this range, which is another's now. */
static bool overtake(struct heap *heap, raddr start, raddr end)
{
	bool is_awaited = false;

	for (size_t i = 0; i < heap->unmappings.count; i++) {
		struct unmapping *unmapping = &heap->unmappings.items[i];
		bool overlaps = unmapping->start < end && start < unmapping->end;

		unmapping->overtaken |= overlaps;
		is_awaited |= overlaps;
	}
	return is_awaited;
}

/* --- one block, and what is cut off it --- */

static int add_piece(struct heap *heap, const struct block_entry *block, const struct range *range)
{
	struct block_place place;
	int r;

	if (heap->blocks.count >= heap->limits.max_blocks)
		return -ENOSPC;
	if (block_table_find(&heap->blocks, block->address, DOMAIN_MMAP, &place))
		return -EEXIST;
	r = block_table_put(&heap->blocks, &place, block);
	if (r < 0)
		return r;
	heap_account_piece(heap, block);
	ranges_add(&heap->mappings, range);
	return 0;
}

static void remove_whole(struct heap *heap, struct block_place *place)
{
	ranges_remove(&heap->mappings, place->entry->address);
	heap_account_leave(heap, place->entry);
	block_table_remove(&heap->blocks, place);
}

/* It begins at `start` from now on. */
static int cut_front(struct heap *heap, struct block_place *place, struct range *range, raddr start)
{
	struct block_entry block = *place->entry;
	struct block_place new_place;
	int r;

	heap_account_shrink(heap, place->entry, start - range->start);
	block.address = start;
	block.size = range->end - start;
	thread_table_moved(&heap->threads, place->entry, start);
	block_table_remove(&heap->blocks, place);
	range->start = start;
	block_table_seek(&heap->blocks, start, DOMAIN_MMAP, &new_place);
	r = block_table_put(&heap->blocks, &new_place, &block);
	if (r < 0) {
		ranges_remove(&heap->mappings, start);
		heap_drop_live(heap, &block);
	}
	return r;
}

static void cut_back(struct heap *heap, struct block_entry *entry, struct range *range, raddr end)
{
	heap_account_shrink(heap, entry, range->end - end);
	entry->size = end - range->start;
	range->end = end;
}

/* Into what lies before `start` and what lies behind `end`. */
static int cut_out(struct heap *heap, struct block_entry *entry, struct range *range, raddr start, raddr end)
{
	struct range upper = { end, range->end, range->birth };
	struct block_entry block = *entry;
	int r = ranges_reserve(&heap->mappings);

	cut_back(heap, entry, range, start);
	block.address = upper.start;
	block.size = upper.end - upper.start;
	block.parked = 0;
	return r < 0 ? r : add_piece(heap, &block, &upper);
}

static int cut_block(struct heap *heap, struct range *range, raddr start, raddr end)
{
	struct block_place place;

	if (!block_table_find(&heap->blocks, range->start, DOMAIN_MMAP, &place)) {
		ranges_remove(&heap->mappings, range->start);
		return -EIO;
	}
	if (start <= range->start && range->end <= end)
		remove_whole(heap, &place);
	else if (start <= range->start)
		return cut_front(heap, &place, range, end);
	else if (range->end <= end)
		cut_back(heap, place.entry, range, start);
	else
		return cut_out(heap, place.entry, range, start, end);
	return 0;
}

/* Takes [start, end) out of all mappings that are not younger than `youngest`.  How many it was in; *ret_error: of the
 * last one of which a part could not be kept. */
static uint64_t cut(struct heap *heap, raddr start, raddr end, uint64_t youngest, int *ret_error)
{
	struct range *range;
	uint64_t touched = 0;
	raddr at = start;
	int r;

	while (at < end && (range = ranges_at_or_above(&heap->mappings, at)) && range->start < end) {
		at = range->end;
		if (range->birth > youngest)
			continue;
		r = cut_block(heap, range, start, end);
		if (r < 0)
			*ret_error = r;
		touched++;
	}
	return touched;
}

/* --- events --- */

static bool is_range(raddr start, uint64_t size)
{
	return size > 0 && start <= BLOCK_ADDRESS_MAX && size <= BLOCK_ADDRESS_MAX - start;
}

int heap_map(struct heap *heap, const struct alloc_event *event)
{
	struct range range = { event->address, event->address + event->size, ++heap->map_births };
	int r = 0;

	if (!is_range(event->address, event->size))
		return -ERANGE;
	if (cut(heap, range.start, range.end, UINT64_MAX, &r) > 0 && !overtake(heap, range.start, range.end) &&
	    !event->replaces)
		heap->counters.lost_events++;
	if (event->internal)
		return r;
	if (r == 0)
		r = ranges_reserve(&heap->mappings);
	if (r == 0)
		r = heap_born(heap, event);
	if (r == 0)
		ranges_add(&heap->mappings, &range);
	return r;
}

/* What was in no mapping that is known is from before the attach. */
static int unmapped(struct heap *heap, const struct alloc_event *event, const struct unmapping *begun)
{
	uint64_t youngest = begun ? begun->youngest : UINT64_MAX;
	bool is_silent = event->internal || heap->from_start || (begun && begun->overtaken);
	raddr start = event->old_address;
	int r = 0;

	if (!is_range(start, event->old_size))
		return 0;
	if (cut(heap, start, start + event->old_size, youngest, &r) == 0 && !is_silent)
		heap->counters.before_attach_frees++;
	return r;
}

int heap_unmap_begin(struct heap *heap, const struct alloc_event *event)
{
	struct unmapping *unmapping = find_unmapping(heap, event->tid);

	/* The same thread again: its earlier call was left without a return. */
	if (!unmapping && heap->unmappings.count < heap->limits.max_parked)
		unmapping = vec_push(&heap->unmappings);
	if (!unmapping)
		return -ENOSPC;
	*unmapping = (struct unmapping){ .tid = event->tid, .start = event->old_address,
					 .end = event->old_address + event->old_size, .youngest = heap->map_births };
	return 0;
}

void heap_unmap_forget(struct heap *heap, int32_t tid)
{
	struct unmapping *unmapping = find_unmapping(heap, tid);

	if (unmapping)
		vec_remove_unordered(&heap->unmappings, (size_t)(unmapping - heap->unmappings.items));
}

int heap_unmap_end(struct heap *heap, const struct alloc_event *event)
{
	bool failed = event->address == 0 && event->size > 0;
	int r = 0, mapped = 0;

	if (!failed)
		r = unmapped(heap, event, find_unmapping(heap, event->tid));
	if (event->address != 0)
		mapped = heap_map(heap, event);
	heap_unmap_forget(heap, event->tid);
	return r < 0 ? r : mapped;
}

void heap_unmap_unborn(struct heap *heap, raddr address)
{
	const struct range *range = ranges_at_or_above(&heap->mappings, address);

	if (range && range->start == address)
		ranges_remove(&heap->mappings, address);
}
