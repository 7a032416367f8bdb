/* A snapshot comes from a process that may lie or from a file that may be damaged.  What passes
 * here can be walked without another look. */
#include "model/sampling.h"
#include "model/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *check_modules(const struct snapshot *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct snapshot_module *module = &s->modules.items[i];

		if (module->path >= strtab_count(s->strings))
			return "a module's path is no string of the snapshot";
		if (module->build_id_len > BUILD_ID_MAX)
			return "a module's build-id is too long";
	}
	return NULL;
}

static const char *check_frame(const struct snapshot *s, const struct snapshot_frame *frame)
{
	const struct frame *f = &frame->frame;

	if (f->kind < FRAME_CALL || f->kind > FRAME_PYTHON)
		return "a frame is of an unknown kind";
	if (f->kind == FRAME_TRUNCATED && (f->offset == TRUNCATED_NONE || f->offset >= TRUNCATED_COUNT))
		return "a truncated stack gives no known reason";
	if (f->kind != FRAME_PYTHON && f->module != MODULE_NONE && f->module >= s->modules.count)
		return "a frame is in no module of the snapshot";
	if ((uint64_t)frame->first_location + frame->location_count > s->locations.count)
		return "a frame's source locations are not in the snapshot";
	return NULL;
}

static const char *check_frames(const struct snapshot *s)
{
	if (s->frames.count == 0 || s->frames.items[FRAME_NONE].frame.kind != 0 ||
	    s->frames.items[FRAME_NONE].location_count != 0)
		return "the first frame is not the empty one";
	for (size_t i = 1; i < s->frames.count; i++) {
		const char *wrong = check_frame(s, &s->frames.items[i]);

		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *check_locations(const struct snapshot *s)
{
	uint32_t strings = strtab_count(s->strings);

	for (size_t i = 0; i < s->locations.count; i++) {
		if (s->locations.items[i].function >= strings || s->locations.items[i].file >= strings)
			return "a source location's name is no string of the snapshot";
	}
	return NULL;
}

static const char *check_depths(const struct snapshot *s, uint32_t *depths)
{
	for (size_t i = 1; i < s->nodes.count; i++) {
		depths[i] = depths[s->nodes.items[i].parent] + 1;
		if (depths[i] > SNAPSHOT_DEPTH_MAX)
			return "a stack is too deep";
	}
	return NULL;
}

static const char *check_nodes(const struct snapshot *s)
{
	const char *wrong;
	uint32_t *depths;

	if (s->nodes.count == 0 || s->nodes.items[STACK_ROOT].parent != STACK_ROOT ||
	    s->nodes.items[STACK_ROOT].frame != FRAME_NONE)
		return "the first node is not the root of all stacks";
	for (size_t i = 1; i < s->nodes.count; i++) {
		if (s->nodes.items[i].parent >= i)
			return "a stack's node comes before its parent";
		if (s->nodes.items[i].frame >= s->frames.count)
			return "a stack's frame is not in the snapshot";
	}
	depths = calloc(s->nodes.count, sizeof(*depths));
	if (!depths)
		return "there is no memory to check it";
	wrong = check_depths(s, depths);
	free(depths);
	return wrong;
}

/* Differences are signed, so no sum may leave the signed range either. */
static bool adds_up(uint64_t *sum, uint64_t value)
{
	return !__builtin_add_overflow(*sum, value, sum) && *sum <= INT64_MAX;
}

/* What an error is computed of. */
static bool errors_add_up(const struct snapshot *s)
{
	uint64_t samples = 0, blocks = 0, bytes = 0;

	for (size_t i = 0; i < s->traces.count; i++) {
		const struct snapshot_trace *trace = &s->traces.items[i];

		if (!adds_up(&samples, trace->samples) || !adds_up(&blocks, trace->blocks_deviation) ||
		    !adds_up(&bytes, trace->bytes_deviation) || samples > INT64_MAX / 4 || blocks > INT64_MAX / 4 ||
		    bytes > INT64_MAX / 4)
			return false;
	}
	return true;
}

static const char *check_sampling(const struct snapshot *s)
{
	if (s->sample_bytes > SAMPLE_BYTES_MAX)
		return "its samples are too few";
	if (s->sample_bytes == 0) {
		for (size_t i = 0; i < s->traces.count; i++)
			if (s->traces.items[i].samples > 0)
				return "there are samples in a snapshot that has none";
	}
	return errors_add_up(s) ? NULL : "the errors' sums overflow";
}

static const char *check_traces(const struct snapshot *s)
{
	uint64_t live_blocks = 0, live_bytes = 0, total_blocks = 0, total_bytes = 0;
	uint64_t peak_blocks = 0, peak_bytes = 0;

	for (size_t i = 0; i < s->traces.count; i++) {
		const struct snapshot_trace *trace = &s->traces.items[i];

		if (trace->stack >= s->nodes.count)
			return "a trace's stack is not in the snapshot";
		if (trace->live_blocks == 0 && trace->live_bytes > 0)
			return "a trace without blocks has bytes";
		if (trace->peak_blocks == 0 && trace->peak_bytes > 0)
			return "a trace without blocks at the peak has bytes there";
		if (trace->temporary_blocks > trace->total_blocks)
			return "a trace has more blocks gone at once than it ever had";
		if (!adds_up(&live_blocks, trace->live_blocks) || !adds_up(&live_bytes, trace->live_bytes) ||
		    !adds_up(&total_blocks, trace->total_blocks) ||
		    !adds_up(&total_bytes, trace->total_bytes) ||
		    !adds_up(&peak_blocks, trace->peak_blocks) || !adds_up(&peak_bytes, trace->peak_bytes))
			return "the traces' sums overflow";
	}
	return NULL;
}

static const char *check_blocks(const struct snapshot *s)
{
	uint64_t bytes = 0;

	if (!s->has_blocks && s->blocks.count > 0)
		return "there are blocks in a snapshot without them";
	for (size_t i = 0; i < s->blocks.count; i++) {
		if (s->blocks.items[i].trace >= s->traces.count)
			return "a block's trace is not in the snapshot";
		if (!adds_up(&bytes, s->blocks.items[i].size))
			return "the blocks' sizes overflow";
	}
	return NULL;
}

int snapshot_check(const struct snapshot *snapshot, const char **ret_reason)
{
	static const char *(*const checks[])(const struct snapshot *) = {
		check_modules, check_frames, check_locations, check_nodes, check_traces, check_sampling,
		check_blocks,
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		const char *wrong = checks[i](snapshot);

		if (wrong) {
			*ret_reason = wrong;
			return -EBADMSG;
		}
	}
	return 0;
}
