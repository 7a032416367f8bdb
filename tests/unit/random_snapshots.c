/* Writes random snapshots as files, each without and with its blocks: FOLDER/N.aw and FOLDER/N-blocks.aw.
 *
 *	random_snapshots FOLDER COUNT SEED
 *
 * Some of their frames lie in FOLDER/src/0.c to 3.c, which somebody else makes. */
#include "snapshot_builder.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { TRACES_MAX = 60, DEPTH_MAX = 9, BLOCKS_MAX = 40, FRAMES = 24, SNAPSHOTS_APART = 40 };

#define AGE_STEP_NS 10000000ULL

static const char *folder;

static unsigned pick(unsigned below)
{
	return (unsigned)rand() % below;
}

/* Names of files: real ones, and all that a name can be. */
static const char *pick_file(char text[512])
{
	static const char *const odd[] = {
		"/src/a.c", "/src/b.c", "/src/z/a.c", "/src/\xc3\xa9.c", "/src/\xe9.c", "/src/\xed\x9f\xbf.c",
		"/src/\xee\x80\x80.c", "/src/\xf0\x9f\x98\x80.c", "/src/[x].c", "a", "/src/b:12", "/src/a@all",
		"/src/tab\there.c", "/src/\x1b[31m.c", "<frozen importlib._bootstrap>", "/src/quote\"d.c",
		"/", "x/", "/src/\xc2\x85.c",
	};

	if (pick(2))
		return odd[pick(COUNT(odd))];
	snprintf(text, 512, "%s/src/%u.c", folder, pick(4));
	return text;
}

static void add_location(struct snapshot *s, bool inlined)
{
	static const char *const functions[] = { "serve", "main", "Pool::get(int)", "f\xe9", "", "a::operator/" };
	static const char *const hidden[] = { "malloc", "operator new(unsigned long)", "std::string::grow()" };
	const char *function = pick(6) ? functions[pick(COUNT(functions))] : hidden[pick(COUNT(hidden))];
	char text[512];
	bool has_line = pick(5);

	build_location(s, function, 1 + pick(3), has_line ? pick_file(text) : NULL, has_line ? 1 + pick(6) : 0, inlined);
}

static void add_frames(struct snapshot *s)
{
	for (unsigned i = 0; i < FRAMES; i++) {
		uint32_t module = pick(8) ? pick(3) : MODULE_NONE;

		build_frame(s, module, FRAME_CALL, pick(4) * 16 + i);
		for (unsigned inlined = pick(4) ? 0 : pick(3); inlined > 0; inlined--)
			add_location(s, true);
		if (pick(8))
			add_location(s, false);
	}
	build_frame(s, MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_LIMIT);
}

/* Recursions are frequent: few frames, long stacks. */
static uint32_t add_stack(struct snapshot *s)
{
	uint32_t frames[DEPTH_MAX + 1];
	unsigned count = pick(30) ? 1 + pick(DEPTH_MAX) : 0, made = 0;

	if (count > 0 && pick(10) == 0)
		frames[made++] = FRAMES + 1;        /* cut short: outermost */
	while (count-- > 0)
		frames[made++] = 1 + pick(pick(3) ? FRAMES : 4);
	return build_stack(s, frames, made);
}

/* Few different sizes, so that many groups tie; of every magnitude. */
static uint64_t pick_size(void)
{
	static const uint64_t units[] = { 1, 8, 100, 1 << 10, 10 << 10, 1 << 20, 1ULL << 30, 1ULL << 40 };

	return pick(12) * units[pick(pick(2) ? 3 : COUNT(units))];
}

/* What was freed, and what lived at the peak. */
static void add_past(struct snapshot_trace *trace)
{
	unsigned freed = pick(2) ? pick(BLOCKS_MAX) : 0;

	trace->total_blocks += freed;
	trace->total_bytes += freed ? pick_size() : 0;
	trace->temporary_blocks = pick(freed + 1);
	trace->peak_blocks = pick(4) ? trace->live_blocks + pick(3) : pick(4);
	trace->peak_bytes = trace->peak_blocks ? trace->live_bytes + pick_size() : 0;
}

static void add_trace(struct snapshot *s)
{
	static const uint32_t domains[] = { 0, 0, 0, 1, 2, 100 };
	uint32_t stack = s->traces.count > 0 && !pick(5) ? s->traces.items[pick((unsigned)s->traces.count)].stack :
		add_stack(s);
	unsigned count = pick(8) ? 1 + pick(pick(4) ? 4 : BLOCKS_MAX) : 0;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		struct snapshot_block *block = vec_push(&s->blocks);

		if (!block)
			abort();
		*block = (struct snapshot_block){
			.address = 0x10000 + 16 * s->blocks.count, .size = pick_size(), .trace = (uint32_t)s->traces.count,
			.thread = pick(5) ? 100 + pick(3) : 0, .age_ns = pick(SNAPSHOTS_APART) * AGE_STEP_NS,
		};
		bytes += block->size;
	}
	build_trace(s, stack, domains[pick(COUNT(domains))], count, bytes);
	add_past(&s->traces.items[s->traces.count - 1]);
}

static void describe(struct snapshot *s, int number)
{
	char text[32];

	snprintf(text, sizeof(text), "s%d", number + 1);
	s->id = strdup(text);
	free(s->name);
	snprintf(text, sizeof(text), "name-%d", number);
	s->name = strdup(text);
	free(s->command);
	s->command = strdup("program --serve");
	s->taken_ns = 1700000000000000000ULL + (uint64_t)number * 1000000000;
	/* The next one or two back are within the ages of its blocks. */
	s->clock_ns = 5000000000000ULL + (uint64_t)number * (SNAPSHOTS_APART / 2) * AGE_STEP_NS + pick(3) * AGE_STEP_NS;
	for (size_t i = 0; i < s->traces.count; i++) {
		const struct snapshot_trace *trace = &s->traces.items[i];

		s->counters.live_bytes += trace->live_bytes;
		s->counters.live_blocks += trace->live_blocks;
		s->counters.peak_bytes += trace->peak_bytes;
		s->counters.peak_blocks += trace->peak_blocks;
		s->counters.allocations += trace->total_blocks;
		s->counters.frees += trace->total_blocks - trace->live_blocks;
	}
	s->counters.peak_ns = s->clock_ns - AGE_STEP_NS;
}

static struct snapshot *make_snapshot(int number)
{
	static const char *const modules[] = { "/bin/program", "/usr/lib/libx.so.1", "/opt/\xff/lib y.so" };
	struct snapshot *s = snapshot_new();

	if (!s)
		abort();
	s->pid = 4242;
	s->start_time = 1;
	s->frames_limit = pick(3) ? 25 : 1 + pick(DEPTH_MAX);
	s->exact = s->symbolized = s->has_blocks = true;
	for (size_t i = 0; i < COUNT(modules); i++)
		build_module(s, modules[i]);
	add_frames(s);
	for (unsigned i = pick(25) ? 1 + pick(TRACES_MAX) : 0; i > 0; i--)
		add_trace(s);
	/* blocks of different traces alternate */
	for (size_t i = s->blocks.count; i > 1; i--) {
		size_t other = pick((unsigned)i);
		struct snapshot_block block = s->blocks.items[i - 1];

		s->blocks.items[i - 1] = s->blocks.items[other];
		s->blocks.items[other] = block;
	}
	describe(s, number);
	return s;
}

static void save(const struct snapshot *s, int number, const char *suffix)
{
	char path[600], *reason;

	snprintf(path, sizeof(path), "%s/%d%s.aw", folder, number, suffix);
	if (store_save(path, s, &reason) == 0)
		return;
	fprintf(stderr, "%s\n", reason ? reason : path);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	folder = argv[1];
	srand((unsigned)atoi(argv[3]));
	for (int i = 0; i < atoi(argv[2]); i++) {
		struct snapshot *s = make_snapshot(i);

		save(s, i, "-blocks");
		s->has_blocks = false;
		s->blocks.count = 0;
		save(s, i, "");
		snapshot_put(s);
	}
	return 0;
}
