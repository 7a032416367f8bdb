#include "unwind/cfi_ranges.h"

#include <errno.h>
#include <stdlib.h>

int cfi_ranges_init(struct cfi_ranges *ranges, const struct cfi_start *functions, uint32_t count)
{
	uint32_t *first = calloc(count ? count : 1, sizeof(*first));

	if (!first)
		return -ENOMEM;
	*ranges = (struct cfi_ranges){ .functions = functions, .function_count = count, .first = first };
	return 0;
}

void cfi_ranges_fini(struct cfi_ranges *ranges)
{
	free(ranges->first);
	ranges->first = NULL;
	vec_fini(&ranges->ranges);
}

/* The last function that starts at or before an address, as a place in `first`; NULL before all. */
static uint32_t *find_function(const struct cfi_ranges *ranges, uint64_t address)
{
	uint32_t low = 0, high = ranges->function_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ranges->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &ranges->first[low - 1] : NULL;
}

const struct cfi_row *cfi_ranges_find(const struct cfi_ranges *ranges, uint64_t address)
{
	const uint32_t *first = find_function(ranges, address);

	for (uint32_t link = first ? *first : 0; link != 0;) {
		const struct cfi_range *range = &ranges->ranges.items[link - 1];

		if (address >= range->start && address < range->end)
			return &range->row;
		link = range->next;
	}
	return NULL;
}

/* The range of a function that ends there: there is one row only that does. */
static struct cfi_range *find_end(const struct cfi_ranges *ranges, uint32_t link, uint64_t end)
{
	while (link != 0 && ranges->ranges.items[link - 1].end != end)
		link = ranges->ranges.items[link - 1].next;
	return link != 0 ? &ranges->ranges.items[link - 1] : NULL;
}

void cfi_ranges_add(struct cfi_ranges *ranges, uint64_t address, uint64_t end, const struct cfi_row *row)
{
	uint32_t *first = find_function(ranges, address);
	struct cfi_range *range;

	if (!first)
		return;
	range = find_end(ranges, *first, end);
	if (range) {
		range->start = address < range->start ? address : range->start;
		return;
	}
	if (ranges->ranges.count >= CFI_RANGES_MAX)
		return;
	range = vec_push(&ranges->ranges);
	if (!range)
		return;
	*range = (struct cfi_range){ .start = address, .end = end, .row = *row, .next = *first };
	*first = (uint32_t)ranges->ranges.count;
}

size_t cfi_ranges_memory(const struct cfi_ranges *ranges)
{
	return ranges->function_count * sizeof(*ranges->first) +
	       ranges->ranges.space * sizeof(*ranges->ranges.items);
}
