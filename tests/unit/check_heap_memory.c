/* The tracer says how much memory its tables take, and the daemon charges snapshots with theirs.  Here every allocation is
 * counted, and the sum must be that figure, to the byte. */
#include "require.h"
#include "share.h"

#include "model/heap.h"
#include "model/module.h"
#include "model/snapshot.h"
#include "model/stack.h"

#include <check.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Linked with --wrap: what the tables ask for comes through here, with its size in front and where it begins.  What others
 * do, while not `counting`, passes through. */
void *__real_malloc(size_t size);
void *__real_realloc(void *at, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *at);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);

#define HEAD 16

struct head {
	size_t size, offset;            /* what was asked for, and how far behind the allocation's beginning it is */
};

_Static_assert(sizeof(struct head) == HEAD, "what is behind it stays aligned");

static size_t held, calls;
static bool counting;

#define COUNTED(call) do { counting = true; (call); counting = false; } while (0)

static void *count(char *begin, size_t offset, size_t size)
{
	struct head head = { size, offset };

	if (!begin)
		return NULL;
	memcpy(begin + offset - HEAD, &head, sizeof(head));
	held += size;
	calls++;
	return begin + offset;
}

void *__wrap_malloc(size_t size)
{
	return counting ? count(__real_malloc(size + HEAD), HEAD, size) : __real_malloc(size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return counting ? count(__real_aligned_alloc(alignment, size + alignment), alignment, size) :
			  __real_aligned_alloc(alignment, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *at = __wrap_malloc(count * size);

	return at ? memset(at, 0, count * size) : NULL;
}

void __wrap_free(void *at)
{
	struct head head;

	if (!at || !counting) {
		__real_free(at);
		return;
	}
	memcpy(&head, (char *)at - HEAD, sizeof(head));
	held -= head.size;
	__real_free((char *)at - head.offset);
}

void *__wrap_realloc(void *at, size_t size)
{
	size_t old = 0;
	void *moved;

	if (!counting)
		return __real_realloc(at, size);
	moved = __wrap_malloc(size);

	if (!moved || !at)
		return moved;
	memcpy(&old, (char *)at - HEAD, sizeof(old));   /* `size` comes first */
	memcpy(moved, at, old < size ? old : size);
	__wrap_free(at);
	return moved;
}

char *__wrap_strndup(const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *copy = __wrap_malloc(len + 1);

	if (copy) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, strlen(text));
}

static uint64_t comparisons;

static void compare(const struct heap *heap, const struct stack_table *stacks)
{
	size_t sum = heap_memory(heap) + stack_table_memory(stacks);

	ck_assert_msg(sum == held, "the tables say %zu bytes and hold %zu", sum, held);
	comparisons++;
}

static uint32_t some_stack(struct stack_table *stacks)
{
	int64_t node = STACK_ROOT;

	for (int depth = 0; depth < 6; depth++) {
		struct frame frame = { .kind = FRAME_CALL, .offset = (uint64_t)(rand() % 12) + (uint64_t)depth * 100 };
		int64_t id;

		COUNTED(id = stack_table_frame(stacks, &frame));
		COUNTED(node = stack_table_push(stacks, (uint32_t)node, (uint32_t)id));
		REQUIRE(node >= 0);
	}
	return (uint32_t)node;
}

static void event(struct heap *heap, struct stack_table *stacks, uint64_t i)
{
	raddr address = 0x100000 + (raddr)(rand() % 100000) * 48;
	struct alloc_event event = { .tid = 1 + rand() % 3000, .time_ns = i, .domain = DOMAIN_MALLOC };

	switch (rand() % 5) {
	case 0:
	case 1:
		event.kind = ALLOC_BORN;
		event.address = address;
		event.size = 40;
		event.stack = some_stack(stacks);
		break;
	case 2:
		event.kind = ALLOC_FREED;
		event.old_address = address;
		break;
	case 3:
		event.kind = ALLOC_RESIZE_BEGIN;
		event.old_address = address;
		break;
	default:
		COUNTED(heap_thread_gone(heap, event.tid));
		return;
	}
	COUNTED(heap_apply(heap, &event));
}

START_TEST(the_figure_of_the_tables_is_the_sum_of_their_allocations)
{
	struct stack_table *stacks;
	struct heap *heap;

	COUNTED(stacks = stack_table_new(1u << 24));
	COUNTED(heap = heap_new(NULL, _i % 2 == 0, 0));
	srand((unsigned)_i + 7);
	for (uint64_t i = 0; i < share_of(200000); i++) {
		event(heap, stacks, i);
		if (i % 997 == 0)
			compare(heap, stacks);
		if (i % 60000 == 59999)
			COUNTED(heap_clear(heap));
	}
	compare(heap, stacks);
	ck_assert_uint_gt(held, share_of(1 << 20));
	ck_assert_uint_ge(comparisons, share_of(200));
	COUNTED(heap_free(heap));
	COUNTED(stack_table_free(stacks));
	ck_assert_uint_eq(held, 0);
	printf("heap memory: %" PRIu64 " comparisons, %zu allocations counted\n", comparisons, calls);
}
END_TEST

struct image {
	char *bytes;
	size_t len;
};

static int keep_bytes(void *context, const void *data, size_t len)
{
	struct image *image = context;

	image->bytes = realloc(image->bytes, image->len + len);
	ck_assert_ptr_nonnull(image->bytes);
	memcpy(image->bytes + image->len, data, len);
	image->len += len;
	return 0;
}

static void name_some(struct snapshot *snapshot)
{
	char text[32];

	for (int i = 0; i < 5000; i++) {
		struct snapshot_location *location = vec_push(&snapshot->locations);

		ck_assert_ptr_nonnull(location);
		snprintf(text, sizeof(text), "function %d", i);
		location->function = (uint32_t)strtab_add(snapshot->strings, text);
	}
}

START_TEST(a_snapshot_is_charged_with_the_sum_of_its_allocations)
{
	struct stack_table *stacks = stack_table_new(1u << 24);
	struct heap *heap = heap_new(NULL, true, 0);
	struct module_map modules;
	struct snapshot_source source = { .heap = heap, .stacks = stacks, .modules = &modules, .command = "a command",
					  .exe = "/bin/command", .pid = 1, .with_blocks = _i % 2 };
	struct snapshot *snapshot = NULL;
	struct image image = { 0 };
	uint64_t account = 7;
	const char *reason;
	int r;

	module_map_init(&modules);
	for (uint64_t i = 0; i < 100 + 20000 * (uint64_t)_i; i++) {
		struct frame frame = { .kind = FRAME_CALL, .offset = i % 1000, .module = MODULE_NONE };
		int64_t node = stack_table_push(stacks, (uint32_t)(i % 50), (uint32_t)stack_table_frame(stacks, &frame));
		struct alloc_event born = { .kind = ALLOC_BORN, .tid = 1, .stack = (uint32_t)node, .time_ns = i,
					    .address = 0x1000 + i * 64, .size = i % 100, .domain = DOMAIN_MALLOC };

		ck_assert_int_eq(heap_apply(heap, &born), 0);
	}
	ck_assert_int_eq(snapshot_image_write(&source, keep_bytes, &image), 0);
	COUNTED(r = snapshot_image_read(image.bytes, image.len, &snapshot, &reason));
	ck_assert_int_eq(r, 0);
	snapshot_charge(snapshot, &account);
	ck_assert_uint_eq(account - 7, held);
	COUNTED(name_some(snapshot));
	snapshot_charge(snapshot, &account);
	ck_assert_uint_eq(account - 7, held);
	printf("a snapshot of %zu blocks: %zu bytes charged, %zu in its image\n", snapshot->blocks.count, held, image.len);
	snapshot_ref(snapshot);
	snapshot_put(snapshot);
	ck_assert_uint_eq(account - 7, held);
	COUNTED(snapshot_put(snapshot));
	ck_assert_uint_eq(held, 0);
	ck_assert_uint_eq(account, 7);
	free(image.bytes);
	module_map_fini(&modules);
	heap_free(heap);
	stack_table_free(stacks);
}
END_TEST

/* Once all sizes have been seen, an event asks for no memory. */
START_TEST(steady_events_allocate_nothing)
{
	struct heap *heap;
	size_t asked = 0;

	COUNTED(heap = heap_new(NULL, true, 0));
	for (uint64_t i = 0; i < share_of(300000); i++) {
		struct alloc_event born = { .kind = ALLOC_BORN, .tid = 1 + (int32_t)(i % 7), .stack = (uint32_t)(i % 50),
					    .address = 0x1000 + i % 200 * 64, .size = i % 100, .time_ns = i };
		struct alloc_event freed = { .kind = ALLOC_FREED, .tid = 1, .old_address = born.address };

		if (i == 1000)
			asked = calls;
		COUNTED(heap_apply(heap, &born));
		COUNTED(heap_apply(heap, &freed));
	}
	ck_assert_uint_gt(asked, 0);
	ck_assert_uint_eq(calls, asked);
	ck_assert_uint_eq(heap_counters(heap).frees, share_of(300000));
	COUNTED(heap_free(heap));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap memory");
	TCase *tcase = tcase_create("memory");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, the_figure_of_the_tables_is_the_sum_of_their_allocations, 0, 4);
	tcase_add_loop_test(tcase, a_snapshot_is_charged_with_the_sum_of_its_allocations, 0, 4);
	tcase_add_test(tcase, steady_events_allocate_nothing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
