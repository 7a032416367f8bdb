#include "model/seen.h"

#include "base/hash.h"

#define PAGE_BITS 12
#define GRANULE_BITS 3
#define GRANULES (1u << (PAGE_BITS - GRANULE_BITS))

struct seen_page {
	uint32_t next;
	uint32_t family;
	uint64_t number;
	uint64_t bits[GRANULES / 64];
};

static uint64_t page_hash(const void *item)
{
	const struct seen_page *page = item;

	return hash_pair(page->number, page->family);
}

void seen_init(struct seen *seen, uint64_t max_bytes)
{
	id_table_init(&seen->pages, sizeof(struct seen_page), page_hash);
	seen->max_bytes = max_bytes;
}

void seen_fini(struct seen *seen)
{
	id_table_fini(&seen->pages);
}

static struct seen_page *find_page(const struct seen *seen, raddr address, uint32_t family)
{
	uint64_t number = address >> PAGE_BITS;

	for (uint32_t id = id_table_first(&seen->pages, hash_pair(number, family)); id != ID_NONE;
	     id = id_table_next(&seen->pages, id)) {
		struct seen_page *page = id_table_at(&seen->pages, id);

		if (page->number == number && page->family == family)
			return page;
	}
	return NULL;
}

static struct seen_page *add_page(struct seen *seen, raddr address, uint32_t family)
{
	struct seen_page new = { .number = address >> PAGE_BITS, .family = family };
	int64_t id;

	if (seen_memory(seen) >= seen->max_bytes)
		return NULL;
	id = id_table_add(&seen->pages, &new);
	return id < 0 ? NULL : id_table_at(&seen->pages, (uint32_t)id);
}

static unsigned granule(raddr address)
{
	return (unsigned)(address >> GRANULE_BITS) % GRANULES;
}

void seen_mark(struct seen *seen, raddr address, uint32_t family)
{
	struct seen_page *page = find_page(seen, address, family);

	if (!page)
		page = add_page(seen, address, family);
	if (page)
		page->bits[granule(address) / 64] |= 1ULL << (granule(address) % 64);
}

void seen_forget(struct seen *seen, raddr address, uint32_t family)
{
	struct seen_page *page = find_page(seen, address, family);

	if (page)
		page->bits[granule(address) / 64] &= ~(1ULL << (granule(address) % 64));
}

void seen_prefetch(const struct seen *seen, raddr address, uint32_t family)
{
	id_table_prefetch(&seen->pages, hash_pair(address >> PAGE_BITS, family));
}

void seen_prefetch_page(const struct seen *seen, raddr address, uint32_t family)
{
	id_table_prefetch_first(&seen->pages, hash_pair(address >> PAGE_BITS, family));
}

bool seen_has(const struct seen *seen, raddr address, uint32_t family)
{
	const struct seen_page *page = find_page(seen, address, family);

	return page && (page->bits[granule(address) / 64] >> (granule(address) % 64) & 1);
}

size_t seen_memory(const struct seen *seen)
{
	return id_table_memory(&seen->pages);
}
