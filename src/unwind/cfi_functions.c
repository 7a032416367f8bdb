#include "unwind/cfi_functions.h"

#include <errno.h>
#include <stdlib.h>

static void fill(struct cfi_functions *f)
{
	uint32_t bucket = 0;

	for (uint32_t i = 0; i < f->count; i++)
		while (bucket <= (f->starts[i].start - f->first) >> f->shift)
			f->before[bucket++] = i;
	while (bucket <= f->buckets)
		f->before[bucket++] = f->count;
}

int cfi_functions_init(struct cfi_functions *functions, const struct cfi_start *starts, uint32_t count)
{
	struct cfi_functions f = { .starts = starts, .count = count };
	uint64_t span;

	if (count > 0) {
		f.first = starts[0].start;
		span = starts[count - 1].start - f.first;
		while (span >> f.shift >= count)
			f.shift++;
		f.buckets = (uint32_t)(span >> f.shift) + 1;
	}
	f.before = malloc((f.buckets + (size_t)1) * sizeof(*f.before));
	if (!f.before)
		return -ENOMEM;
	fill(&f);
	*functions = f;
	return 0;
}

void cfi_functions_fini(struct cfi_functions *functions)
{
	free(functions->before);
	functions->before = NULL;
}

const struct cfi_start *cfi_functions_find(const struct cfi_functions *functions, uint64_t address)
{
	uint64_t bucket = (address - functions->first) >> functions->shift;
	uint32_t low, high;

	if (functions->count == 0 || address < functions->first)
		return NULL;
	if (bucket >= functions->buckets)
		bucket = functions->buckets - 1;
	low = functions->before[bucket];
	high = functions->before[bucket + 1];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (functions->starts[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Of the function before the bucket when none in it starts early enough. */
	return low > 0 ? &functions->starts[low - 1] : NULL;
}

size_t cfi_functions_memory(const struct cfi_functions *functions)
{
	return (functions->buckets + (size_t)1) * sizeof(*functions->before);
}
