/* Snapshot files: round trips, sharing, damage, interruption, and what others see in them. */
#include "store/store.h"
#include "random.h"
#include "share.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint32_t below(uint64_t limit)
{
	return (uint32_t)(random_u64() % limit);
}

/* --- a folder for each test --- */

static char folder[64], file[128];

static void make_folder(void)
{
	strcpy(folder, "check_store.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/snapshots", folder);
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

/* --- random snapshots --- */

struct shape {
	uint32_t modules, frames, nodes, traces, blocks;
};

static uint32_t random_text(struct snapshot *snapshot)
{
	static const char *const odd[] = {
		"", "main", "operator new(unsigned long)", "/usr/lib/x86_64-linux-gnu/libc.so.6",
		"std::vector<int, std::allocator<int> >::push_back", "na\xc3\xafve.c", "\xff\xfe broken",
		"it's \"quoted\"", "\xc0\xaf", "\xed\xa0\x80",
	};
	char text[64];
	int64_t id;

	if (below(2))
		snprintf(text, sizeof(text), "%s", odd[below(sizeof(odd) / sizeof(*odd))]);
	else
		snprintf(text, sizeof(text), "/src/dir%u/file%u.c", below(20), below(200));
	id = strtab_add(snapshot->strings, text);
	ck_assert_int_ge(id, 0);
	return (uint32_t)id;
}

#define PUSH(vec)                                                                                    \
	({                                                                                           \
		__typeof__((vec)->items) pushed = vec_push(vec);                                     \
		ck_assert_ptr_nonnull(pushed);                                                       \
		pushed;                                                                              \
	})

static void fill_modules(struct snapshot *snapshot, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_module *module = PUSH(&snapshot->modules);

		module->path = random_text(snapshot);
		module->build_id_len = below(3) ? 20 : below(BUILD_ID_MAX + 1);
		for (uint32_t j = 0; j < module->build_id_len; j++)
			module->build_id[j] = (uint8_t)random_u64();
	}
}

static void fill_frames(struct snapshot *snapshot, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_frame *frame = PUSH(&snapshot->frames);

		frame->frame.module = below(8) && snapshot->modules.count ?
			below(snapshot->modules.count) : MODULE_NONE;
		frame->frame.kind = (uint16_t)(below(4) ? FRAME_CALL : FRAME_EXACT);
		frame->frame.offset = below(4) ? below(1 << 24) : random_u64();
		if (below(20) == 0) {
			frame->frame.kind = FRAME_PYTHON;
			frame->frame.module = below(2) ? below(100) : (uint32_t)random_u64();
		} else if (below(20) == 0) {
			frame->frame.kind = FRAME_TRUNCATED;
			frame->frame.offset = 1 + below(TRUNCATED_COUNT - 1);
		}
		frame->first_location = (uint32_t)snapshot->locations.count;
		frame->location_count = below(4);
		for (uint32_t j = 0; j < frame->location_count; j++) {
			struct snapshot_location *location = PUSH(&snapshot->locations);

			location->function = random_text(snapshot);
			location->file = random_text(snapshot);
			location->line = (uint32_t)random_u64();
			location->function_offset = below(5000);
			location->inlined = j + 1 < frame->location_count;
		}
	}
}

static void fill_nodes(struct snapshot *snapshot, uint32_t count)
{
	for (uint32_t i = 0; i < count && snapshot->frames.count > 1; i++) {
		uint32_t parent = below(snapshot->nodes.count);
		struct stack_node *node = PUSH(&snapshot->nodes);

		node->parent = parent;
		node->frame = 1 + below(snapshot->frames.count - 1);
	}
}

static void fill_traces(struct snapshot *snapshot, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_trace *trace = PUSH(&snapshot->traces);

		trace->stack = below(snapshot->nodes.count);
		trace->domain = below(3) ? below(4) : 100 + below(10);
		trace->live_blocks = below(10000);
		trace->live_bytes = trace->live_blocks ? random_u64() >> 24 : 0;
		trace->total_blocks = trace->live_blocks + below(10000);
		trace->total_bytes = trace->live_bytes + (random_u64() >> 24);
		trace->temporary_blocks = below((uint32_t)trace->total_blocks + 1);
		trace->peak_blocks = below(20000);
		trace->peak_bytes = trace->peak_blocks ? random_u64() >> 24 : 0;
		snapshot->counters.live_blocks += trace->live_blocks;
		snapshot->counters.live_bytes += trace->live_bytes;
	}
}

static void fill_blocks(struct snapshot *snapshot, uint32_t count)
{
	snapshot->has_blocks = count > 0 && snapshot->traces.count > 0;
	for (uint32_t i = 0; i < count && snapshot->traces.count > 0; i++) {
		struct snapshot_block *block = PUSH(&snapshot->blocks);

		block->address = random_u64();
		block->size = random_u64() >> 40;
		block->trace = below(snapshot->traces.count);
		block->age_ns = random_u64() >> 8;
		block->thread = below(1u << 22);
	}
}

static char *copy_text(const char *text)
{
	char *copy = strdup(text);

	ck_assert_ptr_nonnull(copy);
	return copy;
}

static void set_text(char **to, const char *text)
{
	free(*to);
	*to = text ? copy_text(text) : NULL;
}

static void fill_identity(struct snapshot *snapshot)
{
	set_text(&snapshot->id, below(2) ? "s17" : NULL);
	set_text(&snapshot->name, below(2) ? "before" : "");
	set_text(&snapshot->command, "server --verbose \xff");
	set_text(&snapshot->exe, "/usr/bin/server");
	snapshot->pid = 4242;
	snapshot->start_time = 123456789;
	snapshot->taken_ns = 1700000000000000000ULL + random_u64() % 1000000000;
	snapshot->attached_ns = 1700000000000000000ULL;
	snapshot->frames_limit = 25;
	snapshot->exact = below(2);
	snapshot->symbolized = below(2);
	snapshot->counters.peak_bytes = random_u64();
	snapshot->counters.peak_blocks = random_u64();
	snapshot->counters.peak_ns = random_u64();
	snapshot->clock_ns = random_u64();
	snapshot->counters.allocations = random_u64();
	snapshot->counters.frees = random_u64();
	snapshot->counters.before_attach_frees = below(100);
	snapshot->counters.after_clear_frees = below(100);
	snapshot->counters.unknown_frees = below(100);
	snapshot->counters.lost_events = below(100);
	snapshot->unknown.unknown_frees = below(100);
	snapshot->unknown.before_attach_frees = below(100);
	snapshot->unknown.after_clear_frees = below(100);
	snapshot->unknown.lost_events = below(100);
	snapshot->unknown.truncated_stacks = below(100);
	snapshot->unknown.probe_gaps = below(100);
}

static struct snapshot *random_snapshot(const struct shape *shape)
{
	struct snapshot *snapshot = snapshot_new();
	const char *reason = "";

	ck_assert_ptr_nonnull(snapshot);
	fill_identity(snapshot);
	fill_modules(snapshot, shape->modules);
	fill_frames(snapshot, shape->frames);
	fill_nodes(snapshot, shape->nodes);
	fill_traces(snapshot, shape->traces);
	fill_blocks(snapshot, shape->blocks);
	ck_assert_msg(snapshot_check(snapshot, &reason) == 0, "%s", reason);
	return snapshot;
}

static const struct shape small = {5, 60, 200, 150, 50};

/* --- equality, whatever the numbers of strings, modules, frames and nodes --- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_string(const struct snapshot *a, uint32_t a_id, const struct snapshot *b, uint32_t b_id)
{
	return strcmp(strtab_get(a->strings, a_id), strtab_get(b->strings, b_id)) == 0;
}

static bool same_module(const struct snapshot *a, uint32_t a_id, const struct snapshot *b, uint32_t b_id)
{
	const struct snapshot_module *x, *y;

	if (a_id == MODULE_NONE || b_id == MODULE_NONE)
		return a_id == b_id;
	x = &a->modules.items[a_id];
	y = &b->modules.items[b_id];
	return same_string(a, x->path, b, y->path) && x->build_id_len == y->build_id_len &&
	       memcmp(x->build_id, y->build_id, x->build_id_len) == 0;
}

static bool same_frame(const struct snapshot *a, uint32_t a_id, const struct snapshot *b, uint32_t b_id)
{
	const struct snapshot_frame *x = &a->frames.items[a_id], *y = &b->frames.items[b_id];

	if (x->frame.kind != y->frame.kind)
		return false;
	if (x->frame.kind == FRAME_PYTHON ? x->frame.module != y->frame.module :
					    !same_module(a, x->frame.module, b, y->frame.module))
		return false;
	if (x->frame.offset != y->frame.offset || x->location_count != y->location_count)
		return false;
	for (uint32_t i = 0; i < x->location_count; i++) {
		const struct snapshot_location *p = &a->locations.items[x->first_location + i];
		const struct snapshot_location *q = &b->locations.items[y->first_location + i];

		if (!same_string(a, p->function, b, q->function) || !same_string(a, p->file, b, q->file) ||
		    p->line != q->line || p->function_offset != q->function_offset || p->inlined != q->inlined)
			return false;
	}
	return true;
}

static bool same_stack(const struct snapshot *a, uint32_t a_node, const struct snapshot *b, uint32_t b_node)
{
	while (a_node && b_node) {
		const struct stack_node *x = &a->nodes.items[a_node], *y = &b->nodes.items[b_node];

		if (!same_frame(a, x->frame, b, y->frame))
			return false;
		a_node = x->parent;
		b_node = y->parent;
	}
	return a_node == b_node;
}

static bool same_traces(const struct snapshot *a, const struct snapshot *b)
{
	if (a->traces.count != b->traces.count || a->blocks.count != b->blocks.count)
		return false;
	for (size_t i = 0; i < a->traces.count; i++) {
		const struct snapshot_trace *x = &a->traces.items[i], *y = &b->traces.items[i];

		if (x->domain != y->domain || x->live_blocks != y->live_blocks ||
		    x->live_bytes != y->live_bytes || x->total_blocks != y->total_blocks ||
		    x->total_bytes != y->total_bytes || x->temporary_blocks != y->temporary_blocks ||
		    x->peak_blocks != y->peak_blocks || x->peak_bytes != y->peak_bytes || !same_stack(a, x->stack, b, y->stack))
			return false;
	}
	for (size_t i = 0; i < a->blocks.count; i++) {
		const struct snapshot_block *x = &a->blocks.items[i], *y = &b->blocks.items[i];

		if (x->address != y->address || x->size != y->size || x->trace != y->trace ||
		    x->age_ns != y->age_ns || x->thread != y->thread)
			return false;
	}
	return true;
}

static bool same_snapshot(const struct snapshot *a, const struct snapshot *b)
{
	return same_text(a->id, b->id) && same_text(a->name, b->name) && same_text(a->command, b->command) &&
	       same_text(a->exe, b->exe) && a->pid == b->pid && a->start_time == b->start_time &&
	       a->taken_ns == b->taken_ns && a->clock_ns == b->clock_ns && a->attached_ns == b->attached_ns &&
	       a->frames_limit == b->frames_limit && a->exact == b->exact &&
	       a->symbolized == b->symbolized && a->has_blocks == b->has_blocks &&
	       memcmp(&a->counters, &b->counters, sizeof(a->counters)) == 0 &&
	       memcmp(&a->unknown, &b->unknown, sizeof(a->unknown)) == 0 && same_traces(a, b);
}

/* --- the calls, with their reasons --- */

static void must_save(const char *path, const struct snapshot *snapshot)
{
	char *reason = NULL;
	int r = store_save(path, snapshot, &reason);

	ck_assert_msg(r == 0 && !reason, "%d %s", r, reason);
}

static void must_append(const char *path, const struct snapshot *snapshot)
{
	char *reason = NULL;
	int r = store_append(path, snapshot, &reason);

	ck_assert_msg(r == 0 && !reason, "%d %s", r, reason);
}

static struct snapshot *must_load(const char *path, unsigned which)
{
	struct snapshot *snapshot = NULL;
	char *reason = NULL;
	int r = store_load(path, which, &snapshot, &reason);

	ck_assert_msg(r == 0 && !reason, "%d %s", r, reason);
	return snapshot;
}

static unsigned must_count(const char *path)
{
	unsigned count = 0;
	char *reason = NULL;
	int r = store_count(path, &count, &reason);

	ck_assert_msg(r == 0 && !reason, "%d %s", r, reason);
	return count;
}

static void expect_failure(const char *path, unsigned which, int error, const char *because)
{
	struct snapshot *snapshot = (struct snapshot *)1;
	char *reason = NULL;

	ck_assert_int_eq(store_load(path, which, &snapshot, &reason), error);
	ck_assert_ptr_eq(snapshot, (struct snapshot *)1);
	ck_assert_ptr_nonnull(reason);
	ck_assert_msg(strstr(reason, because) != NULL, "\"%s\" does not say \"%s\"", reason, because);
	ck_assert_msg(strstr(reason, path) != NULL, "\"%s\" does not name the file", reason);
	free(reason);
}

static size_t count_files(void)
{
	char command[128], line[64];
	size_t count;
	FILE *out;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", folder);
	out = popen(command, "re");
	ck_assert_ptr_nonnull(out);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), out));
	count = strtoul(line, NULL, 10);
	pclose(out);
	return count;
}

/* --- round trips --- */

START_TEST(what_is_loaded_is_what_was_saved)
{
	for (int i = 0; i < 60; i++) {
		const struct shape shape = {below(10), below(200), below(400), below(300), below(3) * below(200)};
		struct snapshot *saved = random_snapshot(&shape), *loaded;

		must_save(file, saved);
		loaded = must_load(file, 0);
		ck_assert(same_snapshot(saved, loaded));
		ck_assert_uint_eq(must_count(file), 1);
		snapshot_put(saved);
		snapshot_put(loaded);
	}
	ck_assert_uint_eq(count_files(), 1);
}
END_TEST

START_TEST(a_description_is_the_snapshot_without_its_tables)
{
	struct snapshot *saved = random_snapshot(&small), *described = NULL;
	char *reason = NULL;

	must_save(file, saved);
	ck_assert_int_eq(store_describe(file, 0, &described, &reason), 0);
	ck_assert_str_eq(described->name, saved->name);
	ck_assert_str_eq(described->command, saved->command);
	ck_assert_int_eq(described->pid, saved->pid);
	ck_assert_uint_eq(described->start_time, saved->start_time);
	ck_assert_uint_eq(described->taken_ns, saved->taken_ns);
	ck_assert_mem_eq(&described->counters, &saved->counters, sizeof(saved->counters));
	ck_assert_uint_gt(saved->traces.count, 0);
	ck_assert_uint_eq(described->traces.count, 0);
	snapshot_put(described);
	snapshot_put(saved);
	ck_assert_int_eq(store_describe(file, 2, &described, &reason), -ENOENT);
	free(reason);
}
END_TEST

START_TEST(empty_snapshot_makes_the_round_trip)
{
	const struct shape none = {0, 0, 0, 0, 0};
	struct snapshot *saved = random_snapshot(&none), *loaded;

	must_save(file, saved);
	loaded = must_load(file, 1);
	ck_assert(same_snapshot(saved, loaded));
	snapshot_put(saved);
	snapshot_put(loaded);
}
END_TEST

START_TEST(over_long_text_is_cut)
{
	struct snapshot *saved = random_snapshot(&small), *loaded;
	size_t len = 3 << 20;
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	text[len] = '\0';
	set_text(&saved->command, text);
	saved->locations.items[0].function = (uint32_t)strtab_add(saved->strings, text);
	must_save(file, saved);
	loaded = must_load(file, 1);
	ck_assert_uint_gt(strlen(loaded->command), 1000);
	ck_assert_uint_lt(strlen(loaded->command), len);
	free(text);
	snapshot_put(saved);
	snapshot_put(loaded);
}
END_TEST

#define APPENDED 12

START_TEST(appended_snapshots_are_all_there)
{
	struct snapshot *saved[APPENDED], *loaded;

	for (unsigned i = 0; i < APPENDED; i++) {
		saved[i] = random_snapshot(&small);
		must_append(file, saved[i]);
		ck_assert_uint_eq(must_count(file), i + 1);
		ck_assert_uint_eq(count_files(), 1);
	}
	for (unsigned i = 0; i < APPENDED; i++) {
		loaded = must_load(file, i + 1);
		ck_assert(same_snapshot(saved[i], loaded));
		snapshot_put(loaded);
	}
	loaded = must_load(file, 0);
	ck_assert(same_snapshot(saved[APPENDED - 1], loaded));
	snapshot_put(loaded);
	expect_failure(file, APPENDED + 1, -ENOENT, "no snapshot 13, the last one is 12");
	for (unsigned i = 0; i < APPENDED; i++)
		snapshot_put(saved[i]);
}
END_TEST

static off_t file_size(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_size;
}

START_TEST(snapshots_of_one_file_share_their_stacks)
{
	const struct shape deep = {10, 3000, 20000, 400, 0};
	struct snapshot *snapshot = random_snapshot(&deep);
	off_t one, ten;

	must_append(file, snapshot);
	one = file_size(file);
	for (int i = 1; i < 10; i++) {
		snapshot->traces.items[below(400)].live_blocks++;
		must_append(file, snapshot);
	}
	ten = file_size(file);
	printf("store: one snapshot %lld bytes, ten %lld\n", (long long)one, (long long)ten);
	ck_assert_int_lt(ten, 3 * one);
	snapshot_put(snapshot);
}
END_TEST

START_TEST(snapshot_of_another_process_is_not_appended)
{
	struct snapshot *first = random_snapshot(&small), *other = random_snapshot(&small);
	char *reason = NULL;

	must_append(file, first);
	other->start_time++;
	ck_assert_int_eq(store_append(file, other, &reason), -EINVAL);
	ck_assert_msg(strstr(reason, "another process") != NULL, "%s", reason);
	free(reason);
	other->start_time--;
	set_text(&other->exe, "/usr/bin/other");
	ck_assert_int_eq(store_append(file, other, &reason), -EINVAL);
	free(reason);
	ck_assert_uint_eq(must_count(file), 1);
	snapshot_put(first);
	snapshot_put(other);
}
END_TEST

/* --- places --- */

START_TEST(failed_save_leaves_what_was_there)
{
	struct snapshot *snapshot = random_snapshot(&small);
	char path[256], *reason = NULL;

	must_save(file, snapshot);
	snprintf(path, sizeof(path), "%s/none/snapshots", folder);
	ck_assert_int_eq(store_save(path, snapshot, &reason), -ENOENT);
	ck_assert_ptr_nonnull(strstr(reason, path));
	free(reason);
	ck_assert_int_eq(store_save(folder, snapshot, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "regular file"));
	free(reason);
	ck_assert_int_eq(store_save("/dev/null", snapshot, &reason), -EINVAL);
	free(reason);
	snapshot->traces.items[0].stack = (uint32_t)snapshot->nodes.count;
	ck_assert_int_eq(store_save(file, snapshot, &reason), -EINVAL);
	free(reason);
	ck_assert_uint_eq(must_count(file), 1);
	ck_assert_uint_eq(count_files(), 1);
	snapshot_put(snapshot);
}
END_TEST

/* What is left of the old file's interrupted write must not be applied to the new one. */
START_TEST(journal_of_the_replaced_file_goes_with_it)
{
	struct snapshot *snapshot = random_snapshot(&small), *loaded;
	char journal[256];
	FILE *stale;

	must_save(file, snapshot);
	snprintf(journal, sizeof(journal), "%s-journal", file);
	stale = fopen(journal, "we");
	ck_assert_ptr_nonnull(stale);
	fputs("something", stale);
	fclose(stale);
	must_save(file, snapshot);
	ck_assert_int_eq(access(journal, F_OK), -1);
	loaded = must_load(file, 0);
	ck_assert(same_snapshot(snapshot, loaded));
	snapshot_put(snapshot);
	snapshot_put(loaded);
}
END_TEST

START_TEST(names_that_sqlite_would_interpret_are_plain_files)
{
	struct snapshot *snapshot = random_snapshot(&small);
	static const char *const names[] = {":memory:", "file:x?mode=memory", "a b'c\"d"};

	ck_assert_int_eq(chdir(folder), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		must_save(names[i], snapshot);
		ck_assert_int_eq(access(names[i], F_OK), 0);
		ck_assert_uint_eq(must_count(names[i]), 1);
	}
	ck_assert_int_eq(chdir(".."), 0);
	snapshot_put(snapshot);
}
END_TEST

/* --- foreign, newer and damaged files --- */

static uint8_t *read_file(const char *path, size_t *ret_len)
{
	size_t len = (size_t)file_size(path);
	uint8_t *bytes = malloc(len);
	FILE *in = fopen(path, "re");

	ck_assert_ptr_nonnull(in);
	ck_assert_uint_eq(fread(bytes, 1, len, in), len);
	fclose(in);
	*ret_len = len;
	return bytes;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
	FILE *out = fopen(path, "we");

	ck_assert_ptr_nonnull(out);
	ck_assert_uint_eq(fwrite(bytes, 1, len, out), len);
	ck_assert_int_eq(fclose(out), 0);
}

static void run_sqlite(const char *path, const char *sql)
{
	char command[1024];

	snprintf(command, sizeof(command), "sqlite3 '%s' \"%s\" >/dev/null", path, sql);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(foreign_and_newer_files_are_told_apart)
{
	struct snapshot *snapshot = random_snapshot(&small);
	char other[256], *reason = NULL;

	expect_failure(file, 0, -ENOENT, "No such file");
	snprintf(other, sizeof(other), "%s/other", folder);
	write_file(other, "", 0);
	expect_failure(other, 0, -EMEDIUMTYPE, "empty");
	write_file(other, "#!/bin/sh\n", 10);
	expect_failure(other, 0, -EMEDIUMTYPE, "no snapshot file");
	ck_assert_int_eq(unlink(other), 0);
	run_sqlite(other, "CREATE TABLE t(x)");
	expect_failure(other, 0, -EMEDIUMTYPE, "an SQLite database, but");
	ck_assert_int_eq(store_append(other, snapshot, &reason), -EMEDIUMTYPE);
	free(reason);
	expect_failure(folder, 0, -EMEDIUMTYPE, "regular file");
	ck_assert_int_eq(unlink(other), 0);
	ck_assert_int_eq(mkfifo(other, 0600), 0);
	expect_failure(other, 0, -EMEDIUMTYPE, "regular file");
	must_save(file, snapshot);
	run_sqlite(file, "PRAGMA user_version = 4");
	expect_failure(file, 0, -EPROTONOSUPPORT, "version 4");
	snapshot_put(snapshot);
}
END_TEST

static void make_version(unsigned version)
{
	const char *source = getenv("srcdir");
	char command[1024];

	snprintf(command, sizeof(command), "sqlite3 '%s' <'%s/tests/unit/snapshot_version_%u.sql'", file,
		 source ? source : ".", version);
	ck_assert_int_eq(system(command), 0);
}

/* What it does not know of peaks, threads and blocks gone at once reads zero. */
START_TEST(files_of_version_1_are_read)
{
	struct snapshot *snapshot = NULL;
	char *reason = NULL;

	make_version(1);
	ck_assert_msg(store_load(file, 0, &snapshot, &reason) == 0, "%s", reason);
	ck_assert_str_eq(snapshot->name, "before");
	ck_assert_uint_eq(snapshot->counters.live_bytes, 330);
	ck_assert_uint_eq(snapshot->counters.peak_blocks, 0);
	ck_assert_uint_eq(snapshot->clock_ns, 0);
	ck_assert_uint_eq(snapshot->traces.count, 2);
	ck_assert_uint_eq(snapshot->traces.items[0].total_bytes, 1000);
	ck_assert_uint_eq(snapshot->traces.items[0].temporary_blocks, 0);
	ck_assert_uint_eq(snapshot->blocks.count, 3);
	ck_assert_uint_eq(snapshot->blocks.items[2].age_ns, 3000000000);
	ck_assert_uint_eq(snapshot->blocks.items[2].thread, 0);
	ck_assert_int_eq(store_append(file, snapshot, &reason), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(reason, "version 1"));
	free(reason);
	snapshot_put(snapshot);
	run_sqlite(file, "UPDATE trace SET total_bytes = 1001 WHERE domain = 0");
	expect_failure(file, 0, -EBADMSG, "checksum");
}
END_TEST

/* Nothing was sampled then. */
START_TEST(files_of_version_2_are_read)
{
	struct snapshot *snapshot = NULL;
	char *reason = NULL;

	make_version(2);
	ck_assert_msg(store_load(file, 0, &snapshot, &reason) == 0, "%s", reason);
	ck_assert_uint_eq(snapshot->counters.live_bytes, 330);
	ck_assert_uint_eq(snapshot->sample_bytes, 0);
	ck_assert_uint_eq(snapshot->traces.count, 2);
	ck_assert_uint_eq(snapshot->traces.items[0].samples, 0);
	ck_assert_int_eq(store_append(file, snapshot, &reason), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(reason, "version 2"));
	free(reason);
	snapshot_put(snapshot);
	run_sqlite(file, "UPDATE trace SET peak_bytes = peak_bytes + 1 WHERE domain = 0");
	expect_failure(file, 0, -EBADMSG, "checksum");
}
END_TEST

START_TEST(the_rate_and_the_samples_are_kept)
{
	struct snapshot *snapshot = random_snapshot(&small), *loaded = NULL;
	char *reason = NULL;

	snapshot->sample_bytes = 4096;
	snapshot->traces.items[0].samples = 12;
	snapshot->traces.items[0].blocks_deviation = 34;
	snapshot->traces.items[0].bytes_deviation = 5678;
	must_save(file, snapshot);
	ck_assert_msg(store_load(file, 0, &loaded, &reason) == 0, "%s", reason);
	ck_assert_uint_eq(loaded->sample_bytes, 4096);
	ck_assert_uint_eq(loaded->traces.items[0].samples, 12);
	ck_assert_uint_eq(loaded->traces.items[0].blocks_deviation, 34);
	ck_assert_uint_eq(loaded->traces.items[0].bytes_deviation, 5678);
	snapshot_put(loaded);
	snapshot_put(snapshot);
}
END_TEST

START_TEST(a_file_of_one_version_does_not_pass_as_another)
{
	for (unsigned version = 1; version <= 2; version++) {
		char pragma[64];

		make_version(version);
		snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %u", version + 1);
		run_sqlite(file, pragma);
		expect_failure(file, 0, -EBADMSG, "none of its tables");
		ck_assert_int_eq(unlink(file), 0);
	}
}
END_TEST

/* Tables that answer something else, or for ever, are not asked. */
START_TEST(file_with_other_definitions_is_refused)
{
	static const char *const changes[] = {
		"CREATE TABLE extra(x)",
		"CREATE INDEX i ON trace(stack)",
		"CREATE TRIGGER t AFTER INSERT ON trace BEGIN DELETE FROM trace; END",
		"ALTER TABLE trace ADD COLUMN more",
		"DROP TABLE block",
		("DROP TABLE node; CREATE VIEW node AS WITH RECURSIVE c(id, parent, frame) AS "
		 "(SELECT 1, 0, 1 UNION ALL SELECT id + 1, 0, 1 FROM c) SELECT * FROM c"),
		"PRAGMA journal_mode = wal",
	};
	struct snapshot *snapshot = random_snapshot(&small);

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		must_save(file, snapshot);
		run_sqlite(file, changes[i]);
		expect_failure(file, 0, -EBADMSG, "damaged");
		ck_assert_uint_eq(count_files(), 1);
	}
	snapshot_put(snapshot);
}
END_TEST

/* Each value in turn replaced by one of another kind or out of range. */
START_TEST(changed_values_are_noticed)
{
	static const char *const changes[] = {
		"UPDATE node SET parent = id", "UPDATE node SET parent = 'x' WHERE id = 3",
		"UPDATE node SET parent = -1 WHERE id = 2", "UPDATE node SET frame = 1000000 WHERE id = 1",
		"UPDATE node SET frame = NULL", "UPDATE node SET id = 1000000000000 WHERE id = 5",
		"DELETE FROM node WHERE id = 2", "DELETE FROM node",
		"UPDATE frame SET module = 99", "UPDATE frame SET kind = 70000", "UPDATE frame SET offset = 1.5",
		"DELETE FROM frame WHERE id = 1", "UPDATE frame SET kind = 0 WHERE id = 2",
		"UPDATE location SET function = 100000", "UPDATE location SET inlined = 2",
		"UPDATE location SET line = -1", "DELETE FROM location WHERE position = 0",
		"INSERT INTO location VALUES(100000, 0, NULL, NULL, 0, 0, 0)",
		"UPDATE string SET text = NULL WHERE id = 1", "UPDATE string SET text = 5 WHERE id = 2",
		"UPDATE string SET text = 'x' || char(0) || 'y' WHERE id = 3", "UPDATE string SET text = 'same'",
		"UPDATE string SET text = text || 'x' WHERE id = 4",
		"UPDATE module SET build_id = zeroblob(65)", "UPDATE module SET path = NULL",
		"UPDATE trace SET stack = 1000000", "UPDATE trace SET stack = -1", "UPDATE trace SET domain = -1",
		"UPDATE trace SET live_bytes = live_bytes + 1 WHERE id & 0xffffffff = 7",
		"UPDATE trace SET live_blocks = 'many'", "DELETE FROM trace WHERE id & 0xffffffff = 0",
		"DELETE FROM trace WHERE id & 0xffffffff > 100", "UPDATE trace SET snapshot = 2 WHERE id & 0xffffffff = 5",
		"UPDATE block SET trace = 100000", "UPDATE block SET size = NULL", "DELETE FROM block",
		"UPDATE snapshot SET frames_limit = -1", "UPDATE snapshot SET exact = 2",
		"UPDATE snapshot SET number = 2", "DELETE FROM snapshot", "UPDATE snapshot SET name = 'x'",
		"UPDATE snapshot SET checksum = checksum + 1", "UPDATE snapshot SET probe_gaps = probe_gaps + 1",
		"UPDATE process SET pid = 1", "DELETE FROM process", "UPDATE process SET snapshots = 0",
		"UPDATE process SET snapshots = -1", "UPDATE process SET snapshots = 2",
		"UPDATE process SET exe = zeroblob(600000)", "PRAGMA user_version = 0",
	};
	struct snapshot *snapshot = random_snapshot(&small);
	size_t count = sizeof(changes) / sizeof(*changes);

	for (size_t i = 0; i < count; i++) {
		must_save(file, snapshot);
		run_sqlite(file, changes[i]);
		expect_failure(file, 0, -EBADMSG, "damaged");
	}
	printf("store: %zu changed values noticed\n", count);
	snapshot_put(snapshot);
}
END_TEST

START_TEST(truncated_file_is_recognised_at_every_length)
{
	struct snapshot *snapshot = random_snapshot(&small);
	size_t len, tried = 0;
	uint8_t *bytes;
	char cut[256];

	must_save(file, snapshot);
	bytes = read_file(file, &len);
	snprintf(cut, sizeof(cut), "%s/cut", folder);
	for (size_t n = len - 1; n > 0; n -= n > 600 ? 251 : 1) {
		struct snapshot *loaded = NULL;
		char *reason = NULL;
		int r;

		write_file(cut, bytes, n);
		r = store_load(cut, 0, &loaded, &reason);
		ck_assert_msg(r == -EBADMSG || (r == -EMEDIUMTYPE && n < 100), "%zu bytes: %d %s", n, r, reason);
		ck_assert_ptr_nonnull(reason);
		if (n > 100)
			ck_assert_msg(strstr(reason, "end is missing") != NULL, "%s", reason);
		free(reason);
		tried++;
	}
	printf("store: %zu truncations of %zu bytes refused\n", tried, len);
	free(bytes);
	snapshot_put(snapshot);
}
END_TEST

#define FLIPS 6000

/* A flipped bit is noticed, or it lies where nothing is stored. */
START_TEST(flipped_bits_never_change_a_snapshot)
{
	struct snapshot *snapshot = random_snapshot(&small);
	size_t len, refused = 0, harmless = 0;
	uint8_t *bytes;
	char *reason;

	must_save(file, snapshot);
	bytes = read_file(file, &len);
	for (int i = 0; i < (int)share_of(FLIPS); i++) {
		size_t at = i < (int)share_of(800) ? (size_t)i : below(len);
		uint8_t bit = (uint8_t)(1 << below(8));
		struct snapshot *loaded = NULL;
		int fd = open(file, O_WRONLY | O_CLOEXEC);

		bytes[at] ^= bit;
		ck_assert_int_eq(pwrite(fd, bytes + at, 1, (off_t)at), 1);
		if (store_load(file, 0, &loaded, &reason) == 0) {
			ck_assert_msg(same_snapshot(snapshot, loaded), "byte %zu bit %x", at, bit);
			snapshot_put(loaded);
			harmless++;
		} else {
			ck_assert_ptr_nonnull(reason);
			free(reason);
			refused++;
		}
		bytes[at] ^= bit;
		ck_assert_int_eq(pwrite(fd, bytes + at, 1, (off_t)at), 1);
		close(fd);
	}
	printf("store: %zu flipped bits refused, %zu without effect\n", refused, harmless);
	ck_assert_uint_gt(refused, share_of(FLIPS) / 4);
	free(bytes);
	snapshot_put(snapshot);
}
END_TEST

/* Many wild bytes at once: never a crash, and never another snapshot. */
START_TEST(wild_pages_are_refused)
{
	struct snapshot *snapshot = random_snapshot(&small);
	size_t len, refused = 0;
	uint8_t *bytes, *wild;

	must_save(file, snapshot);
	bytes = read_file(file, &len);
	wild = malloc(len);
	for (int i = 0; i < (int)share_of(1500); i++) {
		struct snapshot *loaded = NULL;
		char *reason = NULL;
		size_t from = below(len), count = 1 + below(below(2) ? 64 : 4096);

		memcpy(wild, bytes, len);
		for (size_t j = from; j < len && j < from + count; j++)
			wild[j] = (uint8_t)random_u64();
		write_file(file, wild, len);
		if (store_load(file, 0, &loaded, &reason) == 0) {
			ck_assert(same_snapshot(snapshot, loaded));
			snapshot_put(loaded);
		} else {
			refused++;
		}
		free(reason);
	}
	printf("store: %zu of %u wild stretches refused\n", refused, share_of(1500));
	ck_assert_uint_gt(refused, share_of(500));
	free(bytes);
	free(wild);
	snapshot_put(snapshot);
}
END_TEST

/* --- at the same time, and in the middle --- */

static pid_t start_appender(unsigned count)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child > 0)
		return child;
	for (unsigned i = 0; i < count; i++) {
		struct snapshot *snapshot = random_snapshot(&small);
		char *reason;

		if (store_append(file, snapshot, &reason) < 0)
			_exit(1);
		snapshot_put(snapshot);
	}
	_exit(0);
}

START_TEST(reader_sees_whole_snapshots_while_others_are_added)
{
	struct snapshot *first = random_snapshot(&small), *loaded;
	unsigned loads = 0;
	pid_t child;
	int status;

	must_append(file, first);
	child = start_appender(40);
	while (waitpid(child, &status, WNOHANG) == 0) {
		loaded = must_load(file, 1);
		ck_assert(same_snapshot(first, loaded));
		snapshot_put(loaded);
		loaded = must_load(file, 0);
		snapshot_put(loaded);
		loads++;
	}
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert_uint_eq(must_count(file), 41);
	ck_assert_uint_gt(loads, 1);
	snapshot_put(first);
}
END_TEST

/* Returns some moment after a write has begun, or after the child has gone. */
static void await_journal(unsigned more)
{
	time_t deadline = time(NULL) + 60;
	char journal[256];

	snprintf(journal, sizeof(journal), "%s-journal", file);
	while (access(journal, F_OK) < 0)
		ck_assert_int_lt(time(NULL), deadline);
	while (more-- > 0)
		access(journal, F_OK);
}

/* A file with half a write is refused, with advice, or the write had not got that far. */
static bool is_refused_as_interrupted(void)
{
	char *reason = NULL;
	unsigned count;
	int r = store_count(file, &count, &reason);
	bool refused = r == -EBUSY;

	ck_assert_msg(r == 0 || r == -EBUSY, "%d %s", r, reason);
	if (refused)
		ck_assert_ptr_nonnull(strstr(reason, "interrupted"));
	free(reason);
	return refused;
}

static void must_repair(void)
{
	char *reason = NULL;
	int r = store_repair(file, &reason);

	ck_assert_msg(r == 0 && !reason, "%d %s", r, reason);
}

/* Killed at any moment: what was there stays, and more can be added. */
START_TEST(interrupted_append_loses_nothing)
{
	struct snapshot *first = random_snapshot(&small), *loaded;
	unsigned before, interrupted = 0;
	int status;

	must_append(file, first);
	for (int i = 0; i < 60; i++) {
		pid_t child;

		before = must_count(file);
		child = start_appender(1000);
		await_journal(below(8000));
		kill(child, SIGKILL);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		if (count_files() > 1)
			interrupted += is_refused_as_interrupted();
		if (below(2)) {
			must_repair();
			ck_assert_uint_ge(must_count(file), before);
		}
		must_append(file, first);
		ck_assert_uint_gt(must_count(file), before);
		ck_assert_uint_eq(count_files(), 1);
		loaded = must_load(file, 1);
		ck_assert(same_snapshot(first, loaded));
		snapshot_put(loaded);
		for (unsigned n = before; n <= must_count(file); n++)
			snapshot_put(must_load(file, n));
		if (must_count(file) > 60)
			unlink(file), must_append(file, first);
	}
	printf("store: %u of 60 appends were interrupted in the middle\n", interrupted);
	ck_assert_uint_gt(interrupted, 0);
	snapshot_put(first);
}
END_TEST

/* --- what a foreign reader sees --- */

static void ask_sqlite(const char *sql, char *answer, size_t space)
{
	char command[2048];
	size_t len;
	FILE *out;

	snprintf(command, sizeof(command), "sqlite3 -readonly '%s' \"%s\"", file, sql);
	out = popen(command, "re");
	ck_assert_ptr_nonnull(out);
	len = fread(answer, 1, space - 1, out);
	answer[len] = '\0';
	answer[strcspn(answer, "\n")] = '\0';
	ck_assert_int_eq(pclose(out), 0);
}

static void expect_number(const char *sql, uint64_t expected)
{
	char answer[256];

	ask_sqlite(sql, answer, sizeof(answer));
	ck_assert_msg(strtoull(answer, NULL, 10) == expected, "%s: %s instead of %llu", sql, answer,
		      (unsigned long long)expected);
}

START_TEST(sqlite_agrees_on_integrity_and_sums)
{
	struct snapshot *snapshot = random_snapshot(&small);
	char answer[256];

	must_append(file, snapshot);
	must_append(file, snapshot);
	ask_sqlite("PRAGMA integrity_check", answer, sizeof(answer));
	ck_assert_str_eq(answer, "ok");
	ask_sqlite("PRAGMA application_id", answer, sizeof(answer));
	ck_assert_int_eq(atoi(answer), STORE_APPLICATION_ID);
	expect_number("SELECT count(*) FROM snapshot", 2);
	expect_number("SELECT sum(live_bytes) FROM trace WHERE snapshot = 2", snapshot->counters.live_bytes);
	expect_number("SELECT sum(live_blocks) FROM trace WHERE snapshot = 1", snapshot->counters.live_blocks);
	expect_number("SELECT live_bytes FROM snapshot WHERE number = 2", snapshot->counters.live_bytes);
	expect_number("SELECT count(*) FROM block WHERE snapshot = 1", snapshot->blocks.count);
	expect_number("SELECT count(*) FROM node LEFT JOIN frame ON frame.id = node.frame WHERE frame.id IS NULL", 0);
	snapshot_put(snapshot);
}
END_TEST

/* The query in allocwatch-snapshot(5): a stack, most recent frame first. */
START_TEST(sqlite_finds_the_frames_of_a_stack)
{
	struct snapshot *snapshot = random_snapshot(&small);
	uint32_t depth = 0, node = snapshot->traces.items[3].stack;

	must_save(file, snapshot);
	for (; node; node = snapshot->nodes.items[node].parent)
		depth++;
	expect_number("WITH RECURSIVE stack(depth, node) AS ("
		      "SELECT 0, stack FROM trace WHERE snapshot = 1 AND id & 0xffffffff = 3 UNION ALL "
		      "SELECT depth + 1, parent FROM stack JOIN node ON id = stack.node) "
		      "SELECT count(*) FROM stack WHERE node > 0", depth);
	snapshot_put(snapshot);
}
END_TEST

/* Every displayed example of the page is a query. */
static unsigned run_examples(FILE *page)
{
	bool is_example = false;
	char line[256], query[2048] = "", answer[256];
	unsigned count = 0;

	while (fgets(line, sizeof(line), page)) {
		if (strncmp(line, ".Ed", 3) == 0 && is_example) {
			ask_sqlite(query, answer, sizeof(answer));
			ck_assert_msg(answer[0] != '\0', "no answer to %s", query);
			query[0] = '\0';
			is_example = false;
			count++;
		} else if (is_example) {
			ck_assert_uint_lt(strlen(query) + strlen(line), sizeof(query));
			strcat(query, line);
		} else if (strncmp(line, ".Bd -literal", 12) == 0) {
			is_example = true;
		}
	}
	return count;
}

START_TEST(examples_of_the_manual_page_have_answers)
{
	const char *source = getenv("srcdir");
	struct snapshot *snapshot = random_snapshot(&small);
	char path[512];
	unsigned count;
	FILE *page;

	snprintf(path, sizeof(path), "%s/doc/allocwatch-snapshot.5", source ? source : ".");
	page = fopen(path, "re");
	ck_assert_msg(page != NULL, "%s is missing", path);
	for (size_t i = 0; i < snapshot->traces.count; i++)
		snapshot->traces.items[i].stack = (uint32_t)snapshot->nodes.count - 1;
	must_save(file, snapshot);
	count = run_examples(page);
	fclose(page);
	printf("store: %u examples of the manual page run\n", count);
	ck_assert_uint_eq(count, 3);
	snapshot_put(snapshot);
}
END_TEST

static void add_case(Suite *suite, const char *name, const TTest *const *tests, size_t count)
{
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
}

int main(void)
{
	const TTest *const tests[] = {
		what_is_loaded_is_what_was_saved,
		a_description_is_the_snapshot_without_its_tables,
		empty_snapshot_makes_the_round_trip,
		over_long_text_is_cut,
		appended_snapshots_are_all_there,
		snapshots_of_one_file_share_their_stacks,
		snapshot_of_another_process_is_not_appended,
		failed_save_leaves_what_was_there,
		journal_of_the_replaced_file_goes_with_it,
		names_that_sqlite_would_interpret_are_plain_files,
		foreign_and_newer_files_are_told_apart,
		files_of_version_1_are_read,
		files_of_version_2_are_read,
		the_rate_and_the_samples_are_kept,
		a_file_of_one_version_does_not_pass_as_another,
		file_with_other_definitions_is_refused,
		changed_values_are_noticed,
		truncated_file_is_recognised_at_every_length,
		flipped_bits_never_change_a_snapshot,
		wild_pages_are_refused,
		reader_sees_whole_snapshots_while_others_are_added,
		interrupted_append_loses_nothing,
		sqlite_agrees_on_integrity_and_sums,
		sqlite_finds_the_frames_of_a_stack,
		examples_of_the_manual_page_have_answers,
	};
	Suite *suite = suite_create("store");
	SRunner *runner;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	add_case(suite, "store", tests, sizeof(tests) / sizeof(*tests));
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
