/* The image of a snapshot, from a tracer that has been taken over: reading it, and all that is asked of it then. */
#include "files.h"
#include "fuzz.h"
#include "use_snapshot.h"

#include "model/snapshot_image.h"
#include "model/statistics.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Each path in it is a piece of it: what is refused for its contents was taken apart wholly. */
static bool is_whole(const char *reason)
{
	return !reason || (!strstr(reason, "image") && !strstr(reason, "build-id"));
}

/* What is asked of two images: that they are of two processes, or versions, does not matter to the sums. */
static void compare(struct snapshot *snapshot)
{
	const struct statistics_query query = { .key = KEY_TRACEBACK };
	struct snapshot *empty = snapshot_new();
	struct statistics *statistics;
	const char *reason;

	MUST(empty);
	/* Of another rate it would be refused. */
	empty->sample_bytes = snapshot->sample_bytes;
	MUST(statistics_compare(empty, snapshot, &query, &statistics, &reason) == 0);
	for (size_t i = 0; i < statistics->row_count; i++)
		MUST(statistics->rows[i].size_diff == (int64_t)statistics->rows[i].size);
	statistics_free(statistics);
	MUST(statistics_compare(snapshot, empty, &query, &statistics, &reason) == 0);
	MUST(statistics->total_size == 0 && statistics->total_size_diff <= 0);
	statistics_free(statistics);
	snapshot_put(empty);
}

void fuzz_image_run(const uint8_t *data, size_t len)
{
	struct snapshot *snapshot = NULL;
	const char *reason = NULL;
	int r = snapshot_image_read(data, len, &snapshot, &reason);

	MUST(r == 0 || (r == -EBADMSG && reason && *reason && !snapshot));
	if (is_whole(reason))
		fuzz_reached(0);
	if (r < 0)
		return;
	fuzz_reached(1);
	fuzz_use_snapshot(snapshot);
	compare(snapshot);
	snapshot_put(snapshot);
}

/* --- changes that leave its parts where its head says that they are --- */

struct image_table {
	size_t at, item, count;        /* `count` items of `item` bytes */
};

/* Of the table that is asked for; count 0: there is none, or none can be found. */
static struct image_table find_table(const uint8_t *data, size_t len, unsigned which)
{
	struct image_head head;
	const size_t sizes[] = { sizeof(struct image_frame), sizeof(struct stack_node), sizeof(struct snapshot_trace),
				 sizeof(struct snapshot_block) };
	uint64_t counts[4];
	size_t at = sizeof(head);

	if (len < sizeof(head))
		return (struct image_table){ 0 };
	memcpy(&head, data, sizeof(head));
	at += (head.command_len + 7ull) / 8 * 8 + (head.exe_len + 7ull) / 8 * 8;
	for (uint64_t i = 0; i < head.modules && at + sizeof(struct image_module) <= len; i++) {
		struct image_module module;

		memcpy(&module, data + at, sizeof(module));
		at += sizeof(module) + (module.path_len + 7ull) / 8 * 8;
	}
	memcpy(counts, (uint64_t[]){ head.frames, head.nodes, head.traces, head.blocks }, sizeof(counts));
	for (unsigned i = 0; i < which; i++)
		at += counts[i] * sizes[i];
	if (at > len || counts[which] > (len - at) / sizes[which])
		return (struct image_table){ 0 };
	return (struct image_table){ at, sizes[which], counts[which] };
}

static void change_number(uint8_t *at, size_t size)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 127, 65535, INT32_MAX, UINT32_MAX, 1ull << 32, INT64_MAX,
					   1ull << 63, UINT64_MAX };
	uint64_t value = 0;

	memcpy(&value, at, size);
	switch (fuzz_pick(3)) {
	case 0: value += fuzz_pick(2) ? 1 : -1ull; break;
	case 1: value = values[fuzz_pick(sizeof(values) / sizeof(values[0]))]; break;
	default: value = fuzz_pick(64); break;
	}
	memcpy(at, &value, size);
}

uint8_t *fuzz_image_restructure(const uint8_t *data, size_t len, size_t *ret_len)
{
	uint8_t *copy = malloc(len + 1);

	MUST(copy);
	memcpy(copy, data, len);
	for (unsigned i = 1 + fuzz_pick(4); i > 0; i--) {
		struct image_table table = find_table(copy, len, fuzz_pick(4));
		size_t size = 4u << fuzz_pick(2), start = 0, span = len < sizeof(struct image_head) ? len :
										   sizeof(struct image_head);

		if (table.count > 0 && fuzz_pick(8)) {
			span = table.item;
			start = table.at + fuzz_pick((unsigned)table.count) * table.item;
		}
		if (span >= size)
			change_number(copy + start + fuzz_pick((unsigned)(span / size)) * size, size);
	}
	*ret_len = len;
	return copy;
}
