#include "require.h"

#include "model/snapshot.h"
#include "model/snapshot_image.h"

#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct image {
	VEC_OF(char) bytes;
	size_t limit;
};

static int append(void *context, const void *data, size_t len)
{
	struct image *image = context;

	if (image->limit && image->bytes.count + len > image->limit)
		return -EFBIG;
	REQUIRE(vec_reserve(&image->bytes, len) == 0);
	memcpy(image->bytes.items + image->bytes.count, data, len);
	image->bytes.count += len;
	return 0;
}

/* --- what a tracer has: three modules, the middle one unused; a stack that is not used --- */

static struct heap *heap;
static struct stack_table *stacks;
static struct module_map modules;
static struct snapshot_source source;

static uint32_t push(uint32_t parent, uint32_t module, uint16_t kind, uint64_t offset)
{
	struct frame frame = { .module = module, .kind = kind, .offset = offset };

	return (uint32_t)stack_table_push(stacks, parent, (uint32_t)stack_table_frame(stacks, &frame));
}

static void born(raddr address, uint64_t size, uint32_t stack, uint32_t domain)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .address = address, .size = size, .stack = stack,
				     .domain = domain, .time_ns = 1000000000 };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void freed(raddr address)
{
	struct alloc_event event = { .kind = ALLOC_FREED, .old_address = address };

	REQUIRE(heap_apply(heap, &event) == 0);
}

static void setup(void)
{
	struct module module = { .build_id = { 0xab, 0xcd }, .build_id_len = 2 };
	uint32_t main_node, wild, unused;

	heap = heap_new(NULL, false, 0);
	stacks = stack_table_new(100000);
	module_map_init(&modules);
	module.path = (char *)"/bin/target";
	module_map_add(&modules, &module);
	module.path = (char *)"/lib/unused.so";
	module_map_add(&modules, &module);
	module.path = (char *)"/lib/libc.so.6";
	module.build_id_len = 0;
	module_map_add(&modules, &module);
	main_node = push(STACK_ROOT, 0, FRAME_CALL, 0x100);
	unused = push(main_node, 1, FRAME_CALL, 0x999);
	ck_assert_uint_gt(unused, main_node);
	born(0x1000, 10, push(main_node, 2, FRAME_EXACT, 0x200), DOMAIN_MALLOC);
	born(0x2000, 20, push(main_node, 0, FRAME_CALL, 0x300), DOMAIN_NEW);
	wild = push(STACK_ROOT, MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_NO_MODULE);
	born(0x3000, 30, push(wild, MODULE_NONE, FRAME_CALL, 0xdeadbeef), DOMAIN_MALLOC);
	born(0x4000, 40, main_node, DOMAIN_MALLOC);
	freed(0x4000);
	freed(0x5000);
	source = (struct snapshot_source){
		.heap = heap, .stacks = stacks, .modules = &modules, .command = "target --fast",
		.exe = "/bin/target", .pid = 4242, .start_time = 7, .taken_ns = 8, .attached_ns = 9,
		.clock_ns = 3000000000, .frames_limit = 25, .exact = true, .with_blocks = true,
		.truncated_stacks = 1, .probe_gaps = 2,
	};
}

static void teardown(void)
{
	heap_free(heap);
	stack_table_free(stacks);
	module_map_fini(&modules);
}

static struct snapshot *read_image(const struct image *image)
{
	struct snapshot *snapshot = NULL;
	const char *reason = "";
	int r = snapshot_image_read(image->bytes.items, image->bytes.count, &snapshot, &reason);

	ck_assert_msg(r == 0, "%d: %s", r, reason);
	return snapshot;
}

static struct snapshot *through_image(void)
{
	struct image image = { 0 };
	struct snapshot *snapshot;

	ck_assert_int_eq(snapshot_image_write(&source, append, &image), 0);
	snapshot = read_image(&image);
	vec_fini(&image.bytes);
	return snapshot;
}

START_TEST(an_image_keeps_who_and_when)
{
	struct snapshot *s = through_image();

	ck_assert_str_eq(s->command, "target --fast");
	ck_assert_str_eq(s->exe, "/bin/target");
	ck_assert_str_eq(s->name, "");
	ck_assert_ptr_null(s->id);
	ck_assert_int_eq(s->pid, 4242);
	ck_assert_uint_eq(s->start_time, 7);
	ck_assert_uint_eq(s->taken_ns, 8);
	ck_assert_uint_eq(s->attached_ns, 9);
	ck_assert_uint_eq(s->frames_limit, 25);
	ck_assert(s->exact && s->has_blocks && !s->symbolized);
	ck_assert_uint_eq(s->counters.live_bytes, 60);
	ck_assert_uint_eq(s->unknown.before_attach_frees, 1);
	ck_assert_uint_eq(s->unknown.truncated_stacks, 1);
	ck_assert_uint_eq(s->unknown.probe_gaps, 2);
	snapshot_put(s);
}
END_TEST

START_TEST(an_image_holds_only_what_its_traces_use)
{
	struct snapshot *s = through_image();

	ck_assert_uint_eq(s->nodes.count, 1 + 5);
	ck_assert_uint_eq(s->frames.count, 1 + 5);
	for (size_t i = 1; i < s->frames.count; i++)
		ck_assert_uint_ne(s->frames.items[i].frame.offset, 0x999);
	snapshot_put(s);
}
END_TEST

START_TEST(modules_keep_their_ids_and_unused_ones_are_empty)
{
	struct snapshot *s = through_image();

	ck_assert_uint_eq(s->modules.count, 3);
	ck_assert_str_eq(strtab_get(s->strings, s->modules.items[0].path), "/bin/target");
	ck_assert_uint_eq(s->modules.items[0].build_id_len, 2);
	ck_assert_uint_eq(s->modules.items[0].build_id[1], 0xcd);
	ck_assert_uint_eq(s->modules.items[1].path, 0);
	ck_assert_str_eq(strtab_get(s->strings, s->modules.items[2].path), "/lib/libc.so.6");
	ck_assert_uint_eq(s->modules.items[2].build_id_len, 0);
	snapshot_put(s);
}
END_TEST

START_TEST(every_trace_leads_to_the_frames_it_was_born_with)
{
	struct snapshot *s = through_image();
	uint64_t live = 0;

	ck_assert_uint_eq(s->traces.count, 4);
	for (size_t i = 0; i < s->traces.count; i++) {
		const struct snapshot_trace *trace = &s->traces.items[i];
		struct stack_node node = s->nodes.items[trace->stack];
		struct frame inner = s->frames.items[node.frame].frame;
		struct frame outer = s->frames.items[s->nodes.items[node.parent].frame].frame;

		live += trace->live_bytes;
		switch (trace->total_bytes) {
		case 10:
			ck_assert_uint_eq(inner.offset, 0x200);
			ck_assert_uint_eq(inner.kind, FRAME_EXACT);
			ck_assert_uint_eq(inner.module, 2);
			ck_assert_uint_eq(outer.offset, 0x100);
			break;
		case 20:
			ck_assert_uint_eq(trace->domain, DOMAIN_NEW);
			ck_assert_uint_eq(inner.offset, 0x300);
			break;
		case 30:
			ck_assert_uint_eq(inner.module, MODULE_NONE);
			ck_assert_uint_eq(outer.kind, FRAME_TRUNCATED);
			ck_assert_uint_eq(outer.offset, TRUNCATED_NO_MODULE);
			break;
		default:
			ck_assert_uint_eq(trace->live_blocks, 0);
			ck_assert_uint_eq(trace->total_bytes, 40);
			ck_assert_uint_eq(node.parent, STACK_ROOT);
		}
	}
	ck_assert_uint_eq(live, 60);
	snapshot_put(s);
}
END_TEST

START_TEST(every_block_leads_to_its_trace)
{
	struct snapshot *s = through_image();

	ck_assert_uint_eq(s->blocks.count, 3);
	for (size_t i = 0; i < s->blocks.count; i++) {
		const struct snapshot_block *block = &s->blocks.items[i];

		ck_assert_uint_eq(block->size * 0x100, block->address / 0x1000 * 10 * 0x100);
		ck_assert_uint_eq(s->traces.items[block->trace].live_bytes, block->size);
		ck_assert_uint_eq(block->age_ns, 2000000000);
	}
	snapshot_put(s);
	source.with_blocks = false;
	s = through_image();
	ck_assert_uint_eq(s->blocks.count, 0);
	ck_assert(!s->has_blocks);
	snapshot_put(s);
}
END_TEST

START_TEST(a_failed_write_is_reported)
{
	struct image image = { .limit = 64 };

	ck_assert_int_eq(snapshot_image_write(&source, append, &image), -EFBIG);
	vec_fini(&image.bytes);
}
END_TEST

START_TEST(a_large_image_comes_through_whole)
{
	struct image image = { 0 };
	struct snapshot *s;

	for (uint32_t i = 0; i < 50000; i++)
		born(0x100000 + i * 64, i % 100, push(push(STACK_ROOT, 0, FRAME_CALL, i % 300), 2, FRAME_CALL, i),
		     DOMAIN_MALLOC);
	ck_assert_int_eq(snapshot_image_write(&source, append, &image), 0);
	s = read_image(&image);
	ck_assert_uint_eq(s->blocks.count, 50003);
	ck_assert_uint_eq(s->traces.count, 50004);
	ck_assert_uint_gt(snapshot_memory(s), 50000 * (sizeof(*s->traces.items) + sizeof(*s->blocks.items)));
	snapshot_put(s);
	vec_fini(&image.bytes);
}
END_TEST

START_TEST(a_shortened_image_is_refused_at_every_length)
{
	struct image image = { 0 };
	size_t refused = 0;

	ck_assert_int_eq(snapshot_image_write(&source, append, &image), 0);
	for (size_t len = 0; len < image.bytes.count; len++, refused++) {
		struct snapshot *s = NULL;
		const char *reason = NULL;
		char *copy = malloc(len ? len : 1);          /* so that ASan sees its end */

		memcpy(copy, image.bytes.items, len);
		ck_assert_int_eq(snapshot_image_read(copy, len, &s, &reason), -EBADMSG);
		ck_assert_ptr_null(s);
		ck_assert_ptr_nonnull(reason);
		free(copy);
	}
	ck_assert_uint_gt(refused, 500);
	vec_fini(&image.bytes);
}
END_TEST

START_TEST(a_lengthened_image_is_refused)
{
	struct image image = { 0 };
	struct snapshot *s = NULL;
	const char *reason = NULL;

	ck_assert_int_eq(snapshot_image_write(&source, append, &image), 0);
	append(&image, "\0\0\0\0\0\0\0", 8);
	ck_assert_int_eq(snapshot_image_read(image.bytes.items, image.bytes.count, &s, &reason), -EBADMSG);
	vec_fini(&image.bytes);
}
END_TEST

START_TEST(a_false_count_is_found_before_memory_is_asked_for)
{
	static const size_t counts[] = {
		offsetof(struct image_head, modules), offsetof(struct image_head, frames),
		offsetof(struct image_head, nodes), offsetof(struct image_head, traces),
		offsetof(struct image_head, blocks),
	};
	uint64_t huge = UINT64_MAX / 64;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct image image = { 0 };
		struct snapshot *s = NULL;
		const char *reason = NULL;

		ck_assert_int_eq(snapshot_image_write(&source, append, &image), 0);
		memcpy(image.bytes.items + counts[i], &huge, sizeof(huge));
		ck_assert_int_eq(snapshot_image_read(image.bytes.items, image.bytes.count, &s, &reason), -EBADMSG);
		vec_fini(&image.bytes);
	}
}
END_TEST

/* What passes can be walked: every index is followed. */
static uint64_t walk(const struct snapshot *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->traces.count; i++) {
		for (uint32_t n = s->traces.items[i].stack; n; n = s->nodes.items[n].parent) {
			const struct frame *frame = &s->frames.items[s->nodes.items[n].frame].frame;

			sum += frame->offset;
			if (frame->kind != FRAME_PYTHON && frame->module != MODULE_NONE)
				sum += strlen(strtab_get(s->strings, s->modules.items[frame->module].path));
		}
	}
	for (size_t i = 0; i < s->blocks.count; i++)
		sum += s->traces.items[s->blocks.items[i].trace].domain;
	return sum;
}

START_TEST(damaged_images_are_refused_or_safe)
{
	struct image image = { 0 };
	unsigned passed = 0, refused = 0;

	srand((unsigned)_i + 7);
	ck_assert_int_eq(snapshot_image_write(&source, append, &image), 0);
	for (int round = 0; round < 20000; round++) {
		struct snapshot *s = NULL;
		const char *reason = NULL;
		char *copy = malloc(image.bytes.count);
		int flips = 1 + rand() % 4, r;

		memcpy(copy, image.bytes.items, image.bytes.count);
		while (flips-- > 0) {
			size_t at = (size_t)rand() % image.bytes.count;

			copy[at] = (char)(rand() % 2 ? rand() : copy[at] ^ 1 << rand() % 8);
		}
		r = snapshot_image_read(copy, image.bytes.count, &s, &reason);
		if (r == 0) {
			walk(s);
			snapshot_put(s);
			passed++;
		} else {
			REQUIRE(r == -EBADMSG || r == -ENOMEM);
			REQUIRE(s == NULL);
			refused++;
		}
		free(copy);
	}
	ck_assert_uint_gt(passed, 100);
	ck_assert_uint_gt(refused, 100);
	vec_fini(&image.bytes);
}
END_TEST

/* --- the check itself: one damage each --- */

typedef void (*damage)(struct snapshot *s);

static void damage_path(struct snapshot *s) { s->modules.items[0].path = 1000; }
static void damage_build_id(struct snapshot *s) { s->modules.items[0].build_id_len = BUILD_ID_MAX + 1; }
static void damage_frame_module(struct snapshot *s) { s->frames.items[1].frame.module = 3; }
static void damage_frame_kind(struct snapshot *s) { s->frames.items[1].frame.kind = 9; }
static void damage_frame_0(struct snapshot *s) { s->frames.items[0].frame.kind = FRAME_CALL; }
static void damage_locations(struct snapshot *s)
{
	s->frames.items[1].first_location = UINT32_MAX;
	s->frames.items[1].location_count = 1;
}
static void damage_parent(struct snapshot *s) { s->nodes.items[2].parent = 2; }
static void damage_root(struct snapshot *s) { s->nodes.items[0].parent = 1; }
static void damage_node_frame(struct snapshot *s) { s->nodes.items[1].frame = 1000; }
static void damage_stack(struct snapshot *s) { s->traces.items[0].stack = 1000; }
static void damage_sum(struct snapshot *s)
{
	s->traces.items[0].live_bytes = s->traces.items[1].live_bytes = 1ULL << 62;
}
static void damage_total(struct snapshot *s) { s->traces.items[0].total_blocks = UINT64_MAX; }
static void damage_empty(struct snapshot *s) { s->traces.items[0].live_blocks = 0; }
static void damage_block(struct snapshot *s) { s->blocks.items[0].trace = 4; }
static void damage_sizes(struct snapshot *s) { s->blocks.items[0].size = UINT64_MAX; }
static void damage_has_blocks(struct snapshot *s) { s->has_blocks = false; }
static void damage_reason(struct snapshot *s)
{
	for (size_t i = 0; i < s->frames.count; i++) {
		if (s->frames.items[i].frame.kind == FRAME_TRUNCATED)
			s->frames.items[i].frame.offset = TRUNCATED_COUNT;
	}
}
static void damage_file(struct snapshot *s)
{
	struct snapshot_location *location = vec_push(&s->locations);

	location->file = 1000;
}
static void damage_depth(struct snapshot *s)
{
	for (uint32_t i = 0; i <= SNAPSHOT_DEPTH_MAX; i++) {
		struct stack_node *node = vec_push(&s->nodes);

		*node = (struct stack_node){ .parent = (uint32_t)s->nodes.count - 2, .frame = 1 };
	}
}

static const damage damages[] = {
	damage_path, damage_build_id, damage_frame_module, damage_frame_kind, damage_frame_0,
	damage_locations, damage_parent, damage_root, damage_node_frame, damage_stack, damage_sum,
	damage_total, damage_empty, damage_block, damage_sizes, damage_has_blocks, damage_reason,
	damage_file, damage_depth,
};
#define DAMAGES (int)(sizeof(damages) / sizeof(*damages))

START_TEST(a_damaged_table_does_not_pass_the_check)
{
	struct snapshot *s = through_image();
	const char *reason = NULL;

	ck_assert_int_eq(snapshot_check(s, &reason), 0);
	damages[_i](s);
	ck_assert_int_eq(snapshot_check(s, &reason), -EBADMSG);
	ck_assert_ptr_nonnull(reason);
	snapshot_put(s);
}
END_TEST

START_TEST(an_empty_snapshot_is_sound_and_counted)
{
	struct snapshot *s = snapshot_new();
	const char *reason;

	ck_assert_int_eq(snapshot_check(s, &reason), 0);
	ck_assert_ptr_eq(snapshot_ref(s), s);
	snapshot_put(s);
	ck_assert_str_eq(s->command, "");
	snapshot_put(s);
	snapshot_put(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("snapshot");
	TCase *tcase = tcase_create("snapshot");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, an_image_keeps_who_and_when);
	tcase_add_test(tcase, an_image_holds_only_what_its_traces_use);
	tcase_add_test(tcase, modules_keep_their_ids_and_unused_ones_are_empty);
	tcase_add_test(tcase, every_trace_leads_to_the_frames_it_was_born_with);
	tcase_add_test(tcase, every_block_leads_to_its_trace);
	tcase_add_test(tcase, a_failed_write_is_reported);
	tcase_add_test(tcase, a_large_image_comes_through_whole);
	tcase_add_test(tcase, a_shortened_image_is_refused_at_every_length);
	tcase_add_test(tcase, a_lengthened_image_is_refused);
	tcase_add_test(tcase, a_false_count_is_found_before_memory_is_asked_for);
	tcase_add_loop_test(tcase, damaged_images_are_refused_or_safe, 0, 3);
	tcase_add_loop_test(tcase, a_damaged_table_does_not_pass_the_check, 0, DAMAGES);
	tcase_add_test(tcase, an_empty_snapshot_is_sound_and_counted);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
