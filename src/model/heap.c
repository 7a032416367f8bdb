#include "model/heap.h"

#include "base/hash.h"
#include "model/heap_private.h"
#include "model/sampling.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_MAX_BLOCKS (1ULL << 31)
#define DEFAULT_MAX_SEEN_BYTES (1ULL << 30)
#define DEFAULT_MAX_PARKED 65536    /* as many threads inside a resize at once */

static uint64_t trace_hash(const void *item)
{
	const struct trace_item *trace = item;

	return hash_pair(trace->stack, trace->domain);
}

struct heap *heap_new(const struct heap_limits *limits, bool from_start, uint64_t now_ns)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	if (limits)
		heap->limits = *limits;
	if (!heap->limits.max_blocks)
		heap->limits.max_blocks = DEFAULT_MAX_BLOCKS;
	if (heap->limits.max_blocks > UINT32_MAX)
		heap->limits.max_blocks = UINT32_MAX;
	if (!heap->limits.max_parked)
		heap->limits.max_parked = DEFAULT_MAX_PARKED;
	if (!heap->limits.max_seen_bytes)
		heap->limits.max_seen_bytes = DEFAULT_MAX_SEEN_BYTES;
	heap->from_start = from_start;
	heap->start_ns = now_ns;
	id_table_init(&heap->traces, sizeof(struct trace_item), trace_hash);
	ranges_init(&heap->mappings);
	thread_table_init(&heap->threads);
	seen_init(&heap->seen, heap->limits.max_seen_bytes);
	if (block_table_init(&heap->blocks, hash_pair(now_ns, (uintptr_t)heap)) < 0) {
		free(heap);
		return NULL;
	}
	return heap;
}

void heap_set_sampling(struct heap *heap, uint64_t sample_bytes)
{
	heap->sample_bytes = sample_bytes;
}

uint64_t heap_sampling(const struct heap *heap)
{
	return heap->sample_bytes;
}

void heap_set_left(struct heap *heap, void (*left)(void *context, raddr address), void *context)
{
	heap->left = left;
	heap->left_context = context;
}

void heap_free(struct heap *heap)
{
	if (!heap)
		return;
	block_table_fini(&heap->blocks);
	seen_fini(&heap->seen);
	id_table_fini(&heap->traces);
	vec_fini(&heap->errors);
	thread_table_fini(&heap->threads);
	for (size_t i = 0; i < heap->dying.count; i++)
		steps_free_segment(heap->dying.items[i].segment);
	vec_fini(&heap->dying);
	vec_fini(&heap->parkings);
	ranges_fini(&heap->mappings);
	vec_fini(&heap->unmappings);
	free(heap);
}

bool heap_forgotten(const struct heap *heap, const struct block_entry *block)
{
	return block->trace < heap->trace_base;
}

struct trace_item *heap_trace_of(const struct heap *heap, const struct block_entry *block)
{
	return id_table_at(&heap->traces, block->trace - heap->trace_base);
}

uint32_t heap_find_trace(const struct heap *heap, uint32_t stack, uint32_t domain)
{
	for (uint32_t id = id_table_first(&heap->traces, hash_pair(stack, domain)); id != ID_NONE;
	     id = id_table_next(&heap->traces, id)) {
		const struct trace_item *trace = id_table_at(&heap->traces, id);

		if (trace->stack == stack && trace->domain == domain)
			return id;
	}
	return ID_NONE;
}

/* Of the trace that comes next; one that did not come is there already. */
static bool add_error(struct heap *heap)
{
	if (vec_reserve(&heap->errors, 1) < 0)
		return false;
	heap->errors.items[heap->traces.count] = (struct trace_error){ 0 };
	heap->errors.count = heap->traces.count + 1;
	return true;
}

static int64_t intern_trace(struct heap *heap, uint32_t stack, uint32_t domain)
{
	struct trace_item new = { .stack = stack, .domain = domain };
	uint32_t id = heap_find_trace(heap, stack, domain);

	if (id != ID_NONE)
		return id;
	if (heap->trace_base + (uint64_t)heap->traces.count >= UINT32_MAX)
		return -ENOSPC;
	if (heap->sample_bytes && !add_error(heap))
		return -ENOMEM;
	return id_table_add(&heap->traces, &new);
}

static uint64_t time_units(const struct heap *heap, uint64_t time_ns)
{
	return time_ns > heap->start_ns ? (time_ns - heap->start_ns) / BORN_UNIT_NS : 0;
}

static void set_born(const struct heap *heap, struct block_entry *block, uint64_t time_ns)
{
	uint64_t units = time_units(heap, time_ns);

	if (units < heap->born_least)
		units = heap->born_least;
	block->born = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

uint64_t heap_cut(struct heap *heap, uint64_t now_ns)
{
	uint64_t units = time_units(heap, now_ns), cut_ns;

	if (units < heap->born_least)
		units = heap->born_least;
	heap->born_least = units + 1;
	cut_ns = heap->start_ns + units * BORN_UNIT_NS;
	return cut_ns > now_ns ? cut_ns : now_ns;
}

uint64_t heap_ahead_ns(const struct heap *heap, uint64_t now_ns)
{
	uint64_t least_ns = heap->start_ns + heap->born_least * BORN_UNIT_NS;

	return least_ns > now_ns ? least_ns - now_ns : 0;
}

/* What lived at the last peak is kept by a trace when it first changes after that; so a new peak
 * costs nothing but the next number, however many traces there are. */
static void keep_peak(const struct heap *heap, struct trace_item *trace)
{
	if (trace->peak_epoch == heap->peak_epoch)
		return;
	trace->peak_epoch = heap->peak_epoch;
	trace->peak_blocks = trace->live_blocks;
	trace->peak_bytes = trace->live_bytes;
}

static void set_peak(struct heap *heap, uint64_t time_ns)
{
	heap->peak_epoch++;
	heap->counters.peak_bytes = heap->counters.live_bytes;
	heap->counters.peak_blocks = heap->counters.live_blocks;
	heap->counters.peak_ns = time_ns;
}

static struct sample_weight weight_of(const struct heap *heap, const struct block_entry *block)
{
	return heap->sample_bytes ? sample_weight(heap->sample_bytes, block->address, block->size) :
				    (struct sample_weight){ .bytes = block->size, .blocks = 1 };
}

static void add_to_error(struct heap *heap, const struct block_entry *block, const struct sample_weight *weight)
{
	struct trace_error *error = &heap->errors.items[block->trace - heap->trace_base];

	error->samples++;
	error->bytes_variance += weight->bytes_variance;
	error->blocks_variance += weight->blocks_variance;
}

static void take_from_error(struct heap *heap, const struct block_entry *block, const struct sample_weight *weight)
{
	struct trace_error *error = &heap->errors.items[block->trace - heap->trace_base];

	error->bytes_variance -= weight->bytes_variance;
	error->blocks_variance -= weight->blocks_variance;
	/* Nothing of what was rounded stays for ever. */
	if (--error->samples == 0)
		*error = (struct trace_error){ 0 };
}

static void leave_trace(struct heap *heap, const struct block_entry *block, bool at_once)
{
	struct sample_weight weight;
	struct trace_item *trace;

	if (heap->left)
		heap->left(heap->left_context, block->address);
	if (heap_forgotten(heap, block))
		return;
	weight = weight_of(heap, block);
	trace = heap_trace_of(heap, block);
	keep_peak(heap, trace);
	/* What a thread has made between two samples nobody knows. */
	trace->temporary_blocks += at_once && !heap->sample_bytes;
	trace->live_blocks -= (uint32_t)weight.blocks;
	trace->live_bytes -= weight.bytes;
	heap->counters.live_blocks -= weight.blocks;
	heap->counters.live_bytes -= weight.bytes;
	if (heap->sample_bytes)
		take_from_error(heap, block, &weight);
}

void heap_drop_live(struct heap *heap, const struct block_entry *block)
{
	leave_trace(heap, block, thread_table_leave(&heap->threads, block));
}

void heap_account_leave(struct heap *heap, const struct block_entry *block)
{
	if (heap_forgotten(heap, block))
		heap->counters.after_clear_frees++;
	else
		heap->counters.frees += weight_of(heap, block).blocks;
	heap_drop_live(heap, block);
	/* Nothing is wrong with unmapping what is not mapped. */
	if (!heap->from_start && block->domain != DOMAIN_MMAP)
		seen_mark(&heap->seen, block->address, domain_family(block->domain));
}

bool heap_is_unknown_free(const struct heap *heap, raddr address, uint32_t domain)
{
	return heap->from_start || seen_has(&heap->seen, address, domain_family(domain));
}

void heap_account_unmatched(struct heap *heap, raddr address, uint32_t domain)
{
	uint32_t family = domain_family(domain);

	/* Of a block that was no sample. */
	if (heap->sample_bytes)
		return;
	if (heap_is_unknown_free(heap, address, domain)) {
		heap->counters.unknown_frees++;
		return;
	}
	heap->counters.before_attach_frees++;
	seen_mark(&heap->seen, address, family);
}

static void account_birth(struct heap *heap, const struct block_entry *block, uint64_t time_ns)
{
	struct trace_item *trace = heap_trace_of(heap, block);
	struct heap_counters *counters = &heap->counters;
	struct sample_weight weight = weight_of(heap, block);

	keep_peak(heap, trace);
	trace->live_blocks += (uint32_t)weight.blocks;
	trace->live_bytes += weight.bytes;
	trace->total_blocks += weight.blocks;
	trace->total_bytes += weight.bytes;
	counters->live_blocks += weight.blocks;
	counters->live_bytes += weight.bytes;
	counters->allocations += weight.blocks;
	if (heap->sample_bytes)
		add_to_error(heap, block, &weight);
	if (counters->live_bytes > counters->peak_bytes)
		set_peak(heap, time_ns);
	thread_table_born(&heap->threads, block);
}

void heap_account_piece(struct heap *heap, const struct block_entry *block)
{
	struct trace_item *trace;

	thread_table_piece(&heap->threads, block);
	if (heap_forgotten(heap, block))
		return;
	trace = heap_trace_of(heap, block);
	keep_peak(heap, trace);
	trace->live_blocks++;
	trace->live_bytes += block->size;
	trace->total_blocks++;
	heap->counters.live_blocks++;
	heap->counters.live_bytes += block->size;
	heap->counters.allocations++;
}

void heap_account_shrink(struct heap *heap, const struct block_entry *block, uint64_t bytes)
{
	struct trace_item *trace;

	if (heap_forgotten(heap, block))
		return;
	trace = heap_trace_of(heap, block);
	keep_peak(heap, trace);
	trace->live_bytes -= bytes;
	heap->counters.live_bytes -= bytes;
}

/* Makes an entry free for a birth at an address that is taken. */
static void displace(struct heap *heap, const struct block_entry *block)
{
	if (block->parked && heap_parking_vacate(heap, block))
		return;
	heap->counters.lost_events++;
	heap_drop_live(heap, block);
}

int heap_born(struct heap *heap, const struct alloc_event *event)
{
	struct block_entry block = {
		.address = event->address,
		.size = event->size < BLOCK_SIZE_MAX ? event->size : BLOCK_SIZE_MAX,
		.domain = event->domain & DOMAIN_MAX,
	};
	struct block_place place;
	int64_t trace;
	int r;

	if (event->address == 0)
		return 0;
	if (event->address > BLOCK_ADDRESS_MAX)
		return -ERANGE;
	set_born(heap, &block, event->time_ns);
	/* In a large heap each of the tables is out of the cache: let them be fetched together. */
	block_table_seek(&heap->blocks, event->address, event->domain, &place);
	trace = event->domain <= DOMAIN_MAX ?
			intern_trace(heap, event->stack, event->domain) : -ENOSPC;
	if (trace < 0)
		return (int)trace;
	block.trace = heap->trace_base + (uint32_t)trace;
	block.thread = thread_table_number(&heap->threads, event->tid);
	if (block_table_found(&place, block.address, block.domain)) {
		displace(heap, place.entry);
		*place.entry = block;
	} else {
		if (heap->blocks.count >= heap->limits.max_blocks)
			return -ENOSPC;
		r = block_table_put(&heap->blocks, &place, &block);
		if (r < 0)
			return r;
	}
	account_birth(heap, &block, event->time_ns);
	return 0;
}

static int unborn(struct heap *heap, const struct alloc_event *event)
{
	struct sample_weight weight;
	struct block_place place;
	struct trace_item *trace;

	if (!block_table_find(&heap->blocks, event->address, event->domain, &place))
		return 0;
	if (event->domain == DOMAIN_MMAP)
		heap_unmap_unborn(heap, event->address);
	weight = weight_of(heap, place.entry);
	if (!heap_forgotten(heap, place.entry)) {
		trace = heap_trace_of(heap, place.entry);
		trace->total_blocks -= weight.blocks;
		trace->total_bytes -= weight.bytes;
	}
	thread_table_leave(&heap->threads, place.entry);
	leave_trace(heap, place.entry, false);     /* it was never there: nobody freed it at once */
	heap->counters.allocations -= weight.blocks;
	block_table_remove(&heap->blocks, &place);
	return 0;
}

bool heap_is_live(const struct heap *heap, raddr address, uint32_t domain)
{
	struct block_place place;

	return block_table_find(&heap->blocks, address, domain, &place);
}

static int freed(struct heap *heap, const struct alloc_event *event)
{
	struct block_place place;

	if (event->old_address == 0)
		return 0;
	if (!heap->from_start)
		seen_prefetch(&heap->seen, event->old_address, domain_family(event->domain));
	block_table_seek(&heap->blocks, event->old_address, event->domain, &place);
	if (!heap->from_start)
		seen_prefetch_page(&heap->seen, event->old_address, domain_family(event->domain));
	if (!block_table_found(&place, event->old_address, event->domain)) {
		heap_account_unmatched(heap, event->old_address, event->domain);
		return 0;
	}
	if (place.entry->parked)
		heap_parking_forget(heap, place.entry);
	heap_account_leave(heap, place.entry);
	block_table_remove(&heap->blocks, &place);
	return 0;
}

static int dispatch_mapping(struct heap *heap, const struct alloc_event *event)
{
	switch (event->kind) {
	case ALLOC_BORN:
		return heap_map(heap, event);
	case ALLOC_UNBORN:
		return unborn(heap, event);
	case ALLOC_RESIZE_BEGIN:
		return heap_unmap_begin(heap, event);
	case ALLOC_RESIZE_END:
		return heap_unmap_end(heap, event);
	case ALLOC_FREED:
	case ALLOC_GIVEN:
		break;
	}
	return -EINVAL;
}

static int dispatch(struct heap *heap, const struct alloc_event *event)
{
	if (event->domain == DOMAIN_MMAP)
		return dispatch_mapping(heap, event);
	switch (event->kind) {
	case ALLOC_BORN:
		return heap_born(heap, event);
	case ALLOC_UNBORN:
		return unborn(heap, event);
	case ALLOC_FREED:
		return freed(heap, event);
	case ALLOC_RESIZE_BEGIN:
		return heap_resize_begin(heap, event);
	case ALLOC_RESIZE_END:
		return heap_resize_end(heap, event);
	case ALLOC_GIVEN:
		seen_forget(&heap->seen, event->address, domain_family(event->domain));
		return 0;
	}
	return -EINVAL;
}

static void free_dying(struct heap *heap)
{
	const struct dying *last = &heap->dying.items[--heap->dying.count];

	heap->dying_bytes -= last->bytes;
	steps_free_segment(last->segment);
}

int heap_apply(struct heap *heap, const struct alloc_event *event)
{
	int r = dispatch(heap, event);

	if (r < 0)
		heap->counters.lost_events++;
	if (heap->dying.count > 0)
		free_dying(heap);
	return r;
}

static void bury(struct heap *heap, struct steps *steps)
{
	size_t bytes = steps_segment_bytes(steps);

	if (vec_reserve(&heap->dying, steps->segments.count) == 0) {
		for (size_t i = 0; i < steps->segments.count; i++) {
			struct dying dying = { steps->segments.items[i], bytes };

			heap->dying.items[heap->dying.count++] = dying;
			heap->dying_bytes += bytes;
		}
		steps->segments.count = 0;
	}
	steps_fini(steps);
}

/* What was lost before may yet be freed: such a block is like one from before the attach. */
static void forget_losses(struct heap *heap)
{
	if (heap->counters.lost_events == 0 && heap->counters.unknown_frees == 0)
		return;
	heap->counters.lost_events = heap->counters.unknown_frees = 0;
	heap->from_start = false;
	seen_fini(&heap->seen);
	seen_init(&heap->seen, heap->limits.max_seen_bytes);
}

/* Takes no time: the blocks stay in the table until they are freed and are told from the others by
 * their traces' numbers. */
void heap_clear(struct heap *heap)
{
	forget_losses(heap);
	heap->trace_base += heap->traces.count;
	bury(heap, &heap->traces.items);
	bury(heap, &heap->traces.heads);
	id_table_init(&heap->traces, sizeof(struct trace_item), trace_hash);
	heap->errors.count = 0;
	heap->counters.live_blocks = 0;
	heap->counters.live_bytes = 0;
	set_peak(heap, 0);
}

void heap_reset_peak(struct heap *heap, uint64_t now_ns)
{
	set_peak(heap, now_ns);
}

void heap_count_lost(struct heap *heap, uint64_t events)
{
	heap->counters.lost_events += events;
}

struct heap_counters heap_counters(const struct heap *heap)
{
	return heap->counters;
}

size_t heap_block_memory(const struct heap *heap)
{
	return block_table_memory(&heap->blocks);
}

size_t heap_memory(const struct heap *heap)
{
	return sizeof(*heap) + heap_block_memory(heap) + seen_memory(&heap->seen) +
	       id_table_memory(&heap->traces) + thread_table_memory(&heap->threads) +
	       heap->parkings.space * sizeof(*heap->parkings.items) +
	       ranges_memory(&heap->mappings) + vec_memory(&heap->unmappings) +
	       heap->errors.space * sizeof(*heap->errors.items) +
	       heap->dying.space * sizeof(*heap->dying.items) +
	       heap->dying_bytes;
}
