/* A resize has a beginning and an end, and inside it the old block is freed at a moment nobody
 * sees.  Thread A's realloc frees P and, before it returns, thread B's malloc returns P: B's birth
 * comes first.  So a block whose resize has begun is parked: it counts as live until it ends, or until a
 * birth at its address shows that it is gone, which is no error then. */
#include "model/heap_private.h"

#include <errno.h>

static struct parking *find_parking(const struct heap *heap, const struct alloc_event *event)
{
	for (size_t i = 0; i < heap->parkings.count; i++) {
		struct parking *parking = &heap->parkings.items[i];

		if (parking->tid == event->tid && parking->address == event->old_address &&
		    domain_family(parking->domain) == domain_family(event->domain))
			return parking;
	}
	return NULL;
}

static struct parking *find_parked_block(const struct heap *heap, const struct block_entry *block)
{
	for (size_t i = 0; i < heap->parkings.count; i++) {
		struct parking *parking = &heap->parkings.items[i];

		if (parking->state == PARK_BLOCK && parking->address == block->address &&
		    domain_family(parking->domain) == domain_family(block->domain))
			return parking;
	}
	return NULL;
}

static void remove_parking(struct heap *heap, const struct parking *parking)
{
	vec_remove_unordered(&heap->parkings, (size_t)(parking - heap->parkings.items));
}

static enum park_state state_without_block(const struct heap *heap, const struct alloc_event *event)
{
	if (heap->from_start ||
	    seen_has(&heap->seen, event->old_address, domain_family(event->domain)))
		return PARK_UNKNOWN;
	return PARK_BEFORE_ATTACH;
}

/* The block in the table was freed inside the call. */
static void leave_in_table(struct heap *heap, const struct alloc_event *event)
{
	struct block_place place;

	if (block_table_find(&heap->blocks, event->old_address, event->domain, &place)) {
		heap_account_leave(heap, place.entry);
		block_table_remove(&heap->blocks, &place);
	} else {
		heap_account_unmatched(heap, event->old_address, event->domain);
	}
}

static void unpark_in_table(struct heap *heap, raddr address, uint32_t domain)
{
	struct block_place place;

	if (block_table_find(&heap->blocks, address, domain, &place))
		place.entry->parked = 0;
}

static void settle_freed(struct heap *heap, const struct parking *parking,
			 const struct alloc_event *event)
{
	switch (parking->state) {
	case PARK_BLOCK:
		leave_in_table(heap, event);
		break;
	case PARK_VACATED:
		break;
	case PARK_BEFORE_ATTACH:
		heap->counters.before_attach_frees++;
		seen_mark(&heap->seen, parking->address, domain_family(parking->domain));
		break;
	case PARK_UNKNOWN:
		heap->counters.unknown_frees++;
		break;
	}
}

/* The block was not freed after all. */
static void settle_kept(struct heap *heap, const struct parking *parking)
{
	if (parking->state == PARK_BLOCK)
		unpark_in_table(heap, parking->address, parking->domain);
	/* Its address has another owner, so freed it was: an event is missing. */
	if (parking->state == PARK_VACATED)
		heap->counters.lost_events++;
}

/* A place for a new parking; NULL at the limit or without memory. */
static struct parking *take_parking(struct heap *heap, const struct alloc_event *event)
{
	struct parking *parking = find_parking(heap, event);

	/* The same thread again: its earlier call was left without a return. */
	if (parking)
		settle_kept(heap, parking);
	else if (heap->parkings.count < heap->limits.max_parked)
		parking = vec_push(&heap->parkings);
	return parking;
}

int heap_resize_begin(struct heap *heap, const struct alloc_event *event)
{
	struct parking *parking;
	struct block_place place;

	if (event->old_address == 0)
		return 0;
	parking = take_parking(heap, event);
	if (!parking)
		return -ENOSPC;
	*parking = (struct parking){ .tid = event->tid, .address = event->old_address,
				     .domain = event->domain };
	if (block_table_find(&heap->blocks, event->old_address, event->domain, &place)) {
		place.entry->parked = 1;
		parking->state = PARK_BLOCK;
	} else {
		parking->state = state_without_block(heap, event);
	}
	return 0;
}

int heap_resize_end(struct heap *heap, const struct alloc_event *event)
{
	bool failed = event->address == 0 && event->size > 0;
	struct parking *found, parking;

	if (event->old_address == 0)
		return heap_born(heap, event);
	found = find_parking(heap, event);
	if (found) {
		parking = *found;
		remove_parking(heap, found);
		if (failed)
			settle_kept(heap, &parking);
		else
			settle_freed(heap, &parking, event);
	} else if (!failed) {
		leave_in_table(heap, event);
	}
	return failed ? 0 : heap_born(heap, event);
}

bool heap_parking_vacate(struct heap *heap, const struct block_entry *block)
{
	struct parking *parking = find_parked_block(heap, block);

	if (!parking)
		return false;
	parking->state = PARK_VACATED;
	heap_account_leave(heap, block);
	return true;
}

void heap_parking_forget(struct heap *heap, const struct block_entry *block)
{
	struct parking *parking = find_parked_block(heap, block);

	if (parking)
		parking->state = PARK_UNKNOWN;
}

void heap_thread_gone(struct heap *heap, int32_t tid)
{
	size_t i = 0;

	thread_table_forget(&heap->threads, tid);
	heap_unmap_forget(heap, tid);
	while (i < heap->parkings.count) {
		struct parking *parking = &heap->parkings.items[i];

		if (parking->tid != tid) {
			i++;
			continue;
		}
		settle_kept(heap, parking);
		remove_parking(heap, parking);
	}
}
