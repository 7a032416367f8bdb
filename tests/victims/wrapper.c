/* A malloc family to be preloaded, which asks the next one; what may go wrong between is up to the program.
 *
 *   wrap_hook      called in each allocating function before (0) and after (1) it has asked, and in operator delete
 *   wrap_header    each block is preceded by 16 bytes or more of our own
 *   wrap_log       each block has a record of 48 bytes, made by the next malloc
 *
 * wrap_raw is what the next function gave last to this thread, wrap_records how many records are live. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEADER 16
#define RECORD_BYTES 48
#define BOOT_BYTES 4096
#define BUCKETS 1024

struct header {
	void *raw;
	size_t size;
};

struct record {
	struct record *next;
	void *block;
	char room[RECORD_BYTES - 2 * sizeof(void *)];
};

extern void (*wrap_hook)(int asked);
extern int wrap_header, wrap_log;
extern __thread void *wrap_raw;
extern atomic_long wrap_records;
void (*wrap_hook)(int asked);
int wrap_header, wrap_log;
__thread void *wrap_raw;
atomic_long wrap_records;

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void (*free)(void *);
} next;
static char boot[BOOT_BYTES] __attribute__((aligned(16)));
static size_t boot_used;
static struct record *records[BUCKETS];
static atomic_flag records_lock = ATOMIC_FLAG_INIT;

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **ret, size_t alignment, size_t size);
void free(void *block);
void _ZdlPv(void *block);

/* dlsym may ask calloc. */
static void find_next(void)
{
	static int finding;

	if (next.free || finding)
		return;
	finding = 1;
	*(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
	*(void **)&next.free = dlsym(RTLD_NEXT, "free");
}

static int is_boot(const void *block)
{
	return (uintptr_t)block - (uintptr_t)boot < BOOT_BYTES;
}

static void *boot_take(size_t size)
{
	void *block = boot + boot_used;

	boot_used += (size + 15) & ~(size_t)15;
	return boot_used <= BOOT_BYTES ? block : NULL;
}

static void hook(int asked)
{
	if (wrap_hook)
		wrap_hook(asked);
}

static void lock_records(void)
{
	while (atomic_flag_test_and_set(&records_lock))
		;
}

static void add_record(void *block)
{
	struct record *record = next.malloc(sizeof(*record)), **bucket = &records[((uintptr_t)block >> 4) % BUCKETS];

	if (!record)
		return;
	record->block = block;
	lock_records();
	record->next = *bucket;
	*bucket = record;
	atomic_flag_clear(&records_lock);
	atomic_fetch_add(&wrap_records, 1);
}

static void remove_record(const void *block)
{
	struct record **link = &records[((uintptr_t)block >> 4) % BUCKETS], *record;

	lock_records();
	while (*link && (*link)->block != block)
		link = &(*link)->next;
	record = *link;
	if (record)
		*link = record->next;
	atomic_flag_clear(&records_lock);
	if (record)
		atomic_fetch_sub(&wrap_records, 1);
	next.free(record);
}

/* distance: of the block from what the next function gave. */
static void *finish(void *raw, size_t distance, size_t size)
{
	char *block = raw;

	wrap_raw = raw;
	hook(1);
	if (!raw)
		return NULL;
	if (wrap_header) {
		block += distance;
		((struct header *)(void *)block)[-1] = (struct header){ raw, size };
	}
	if (wrap_log)
		add_record(block);
	return block;
}

__attribute__((noinline)) void *malloc(size_t size)
{
	find_next();
	if (!next.malloc)
		return boot_take(size);
	hook(0);
	return finish(next.malloc(size + (wrap_header ? HEADER : 0)), HEADER, size);
}

__attribute__((noinline)) void *calloc(size_t count, size_t size)
{
	size_t bytes = count * size;

	find_next();
	if (!next.calloc)
		return boot_take(bytes);
	hook(0);
	return finish(next.calloc(1, bytes + (wrap_header ? HEADER : 0)), HEADER, bytes);
}

__attribute__((noinline)) void *realloc(void *block, size_t size)
{
	void *raw = block;

	find_next();
	hook(0);
	if (block && wrap_log)
		remove_record(block);
	if (block && wrap_header)
		raw = ((struct header *)block)[-1].raw;
	return finish(next.realloc(raw, size + (wrap_header ? HEADER : 0)), HEADER, size);
}

static __attribute__((noinline)) void *take_aligned(size_t alignment, size_t size)
{
	size_t distance = alignment > HEADER ? alignment : HEADER;

	find_next();
	hook(0);
	return finish(next.memalign(alignment, size + (wrap_header ? distance : 0)), distance, size);
}

__attribute__((noinline)) void *memalign(size_t alignment, size_t size)
{
	void *block = take_aligned(alignment, size);

	return block ? block : NULL;
}

__attribute__((noinline)) void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = take_aligned(alignment, size);

	return block ? block : NULL;
}

__attribute__((noinline)) int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *block = take_aligned(alignment, size);

	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

__attribute__((noinline)) void free(void *block)
{
	if (!block || is_boot(block))
		return;
	if (wrap_log)
		remove_record(block);
	next.free(wrap_header ? ((struct header *)block)[-1].raw : block);
}

/* operator delete(void *) */
__attribute__((noinline)) void _ZdlPv(void *block)
{
	hook(0);
	free(block);
	hook(1);
}
