#include "probe/catalog.h"

#include "model/event.h"

#include <string.h>

#define NONE ARG_NONE
#define ALLOCATOR(name, size, count, old, out) \
	{ name, size, count, old, out, false, DOMAIN_MALLOC, 0, FORM_MALLOC, MAPPING_NONE }
#define WITH_MALLOC(name, size, old) { name, size, NONE, old, NONE, true, DOMAIN_MALLOC, 0, FORM_MALLOC, MAPPING_NONE }
#define OPERATOR(name, size, old, form) { name, size, NONE, old, NONE, true, DOMAIN_MALLOC, 0, form, MAPPING_NONE }
#define MAPPING(name, call) { name, NONE, NONE, NONE, NONE, false, DOMAIN_MMAP, 0, FORM_NONE, call }

/* malloc(3), posix_memalign(3); C23 for the sized frees; jemalloc(3) for the x family; the Itanium C++
 * ABI's names of operator new and delete. */
static const struct catalog_entry entries[] = {
	ALLOCATOR("malloc", 0, NONE, NONE, NONE),
	ALLOCATOR("calloc", 1, 0, NONE, NONE),
	ALLOCATOR("realloc", 1, NONE, 0, NONE),
	ALLOCATOR("reallocarray", 2, 1, 0, NONE),
	ALLOCATOR("memalign", 1, NONE, NONE, NONE),
	ALLOCATOR("aligned_alloc", 1, NONE, NONE, NONE),
	ALLOCATOR("posix_memalign", 2, NONE, NONE, 0),
	ALLOCATOR("valloc", 0, NONE, NONE, NONE),
	ALLOCATOR("pvalloc", 0, NONE, NONE, NONE),
	ALLOCATOR("free", NONE, NONE, 0, NONE),
	ALLOCATOR("cfree", NONE, NONE, 0, NONE),
	ALLOCATOR("free_sized", NONE, NONE, 0, NONE),
	ALLOCATOR("free_aligned_sized", NONE, NONE, 0, NONE),

	WITH_MALLOC("mallocx", 0, NONE),
	WITH_MALLOC("rallocx", 1, 0),
	WITH_MALLOC("dallocx", NONE, 0),
	WITH_MALLOC("sdallocx", NONE, 0),

	OPERATOR("_Znwm", 0, NONE, FORM_NEW),
	OPERATOR("_Znam", 0, NONE, FORM_NEW_ARRAY),
	OPERATOR("_ZnwmRKSt9nothrow_t", 0, NONE, FORM_NEW),
	OPERATOR("_ZnamRKSt9nothrow_t", 0, NONE, FORM_NEW_ARRAY),
	OPERATOR("_ZnwmSt11align_val_t", 0, NONE, FORM_NEW),
	OPERATOR("_ZnamSt11align_val_t", 0, NONE, FORM_NEW_ARRAY),
	OPERATOR("_ZnwmSt11align_val_tRKSt9nothrow_t", 0, NONE, FORM_NEW),
	OPERATOR("_ZnamSt11align_val_tRKSt9nothrow_t", 0, NONE, FORM_NEW_ARRAY),
	OPERATOR("_ZdlPv", NONE, 0, FORM_NEW),
	OPERATOR("_ZdaPv", NONE, 0, FORM_NEW_ARRAY),
	OPERATOR("_ZdlPvm", NONE, 0, FORM_NEW),
	OPERATOR("_ZdaPvm", NONE, 0, FORM_NEW_ARRAY),
	OPERATOR("_ZdlPvRKSt9nothrow_t", NONE, 0, FORM_NEW),
	OPERATOR("_ZdaPvRKSt9nothrow_t", NONE, 0, FORM_NEW_ARRAY),
	OPERATOR("_ZdlPvSt11align_val_t", NONE, 0, FORM_NEW),
	OPERATOR("_ZdaPvSt11align_val_t", NONE, 0, FORM_NEW_ARRAY),
	OPERATOR("_ZdlPvSt11align_val_tRKSt9nothrow_t", NONE, 0, FORM_NEW),
	OPERATOR("_ZdaPvSt11align_val_tRKSt9nothrow_t", NONE, 0, FORM_NEW_ARRAY),
	OPERATOR("_ZdlPvmSt11align_val_t", NONE, 0, FORM_NEW),
	OPERATOR("_ZdaPvmSt11align_val_t", NONE, 0, FORM_NEW_ARRAY),

	/* sbrk calls brk. */
	MAPPING("mmap", MAPPING_MAP),
	MAPPING("mmap64", MAPPING_MAP),
	MAPPING("munmap", MAPPING_UNMAP),
	MAPPING("mremap", MAPPING_REMAP),
	MAPPING("brk", MAPPING_BREAK),
};

/* jemalloc's, also as Rust's crate builds it, tcmalloc's and mimalloc's own names, glibc's. */
static const char *const prefixes[CATALOG_PREFIXES] = { "je_", "_rjem_", "tc_", "mi_", "__libc_" };

const struct catalog_entry *catalog_find_prefixed(const char *symbol, unsigned *ret_prefix)
{
	const struct catalog_entry *entry;

	for (unsigned i = 0; i < CATALOG_PREFIXES; i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(symbol, prefixes[i], len) != 0 || symbol[len] == '_')
			continue;
		entry = catalog_find(symbol + len);
		*ret_prefix = i + 1;
		return entry && entry->mapping == MAPPING_NONE ? entry : NULL;
	}
	return NULL;
}

const struct catalog_entry *catalog_find(const char *symbol)
{
	/* Asked for every symbol of an object: most names are ruled out by their first letter. */
	if (!strchr("mcravpfdsb_", symbol[0]))
		return NULL;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (strcmp(entries[i].name, symbol) == 0)
			return &entries[i];
	}
	return NULL;
}
