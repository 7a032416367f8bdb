#include "model/grouping.h"

#include "base/hash.h"
#include "model/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct group_item {
	uint32_t next, pad;
	uint64_t hash;
};

#define PLACE_NONE UINT32_MAX

/* A group's key: frames compare by name and line, as in tracemalloc. */
struct key {
	const struct statistic_frame *frames;      /* most recent first */
	uint32_t count;
	uint32_t domain;
	uint32_t thread;
};

static uint64_t item_hash(const void *item)
{
	return ((const struct group_item *)item)->hash;
}

int grouping_init(struct grouping *grouping, const struct statistics_query *query,
		  struct strtab *strings, const char **ret_reason)
{
	if (query->cumulative && query->key == KEY_TRACEBACK) {
		*ret_reason = "a cumulative statistic counts single frames; it cannot be by traceback";
		return -EINVAL;
	}
	if (query->cumulative && query->key == KEY_THREAD) {
		*ret_reason = "a cumulative statistic counts single frames; it cannot be by thread";
		return -EINVAL;
	}
	if (query->cumulative && query->key == KEY_DOMAIN) {
		*ret_reason = "a cumulative statistic counts single frames; it cannot be by domain";
		return -EINVAL;
	}
	*grouping = (struct grouping){ .query = query, .strings = strings };
	id_table_init(&grouping->index, sizeof(struct group_item), item_hash);
	return 0;
}

void grouping_fini(struct grouping *grouping)
{
	for (size_t i = 0; i < grouping->groups.count; i++) {
		free(grouping->groups.items[i].row.frames);
		free(grouping->groups.items[i].row.histogram);
	}
	vec_fini(&grouping->groups);
	vec_fini(&grouping->frames);
	vec_fini(&grouping->places);
	id_table_fini(&grouping->index);
}

/* --- finding a group --- */

static uint64_t key_hash(const struct key *key)
{
	uint64_t hash = hash_pair(key->domain, key->thread);

	for (uint32_t i = 0; i < key->count; i++)
		hash = hash_pair(hash, (uint64_t)key->frames[i].name << 32 | key->frames[i].line);
	return hash_u64(hash);
}

static bool has_key(const struct statistic *row, const struct key *key)
{
	if (row->frame_count != key->count || row->domain != key->domain ||
	    row->thread != key->thread)
		return false;
	for (uint32_t i = 0; i < key->count; i++) {
		const struct statistic_frame *have = &row->frames[key->count - 1 - i];

		if (have->name != key->frames[i].name || have->line != key->frames[i].line)
			return false;
	}
	return true;
}

static struct group *find_group(struct grouping *grouping, const struct key *key, uint64_t hash)
{
	for (uint32_t id = id_table_first(&grouping->index, hash); id != ID_NONE;
	     id = id_table_next(&grouping->index, id)) {
		const struct group_item *item = id_table_at(&grouping->index, id);

		if (item->hash == hash && has_key(&grouping->groups.items[id].row, key))
			return &grouping->groups.items[id];
	}
	return NULL;
}

static struct group *add_group(struct grouping *grouping, const struct key *key, uint64_t hash)
{
	struct group_item item = { .hash = hash };
	struct statistic_frame *frames = NULL;
	struct group *group;

	if (vec_reserve(&grouping->groups, 1) < 0)
		return NULL;
	if (key->count > 0) {
		frames = malloc(key->count * sizeof(*frames));
		if (!frames)
			return NULL;
	}
	if (id_table_add(&grouping->index, &item) < 0) {
		free(frames);
		return NULL;
	}
	for (uint32_t i = 0; i < key->count; i++)
		frames[key->count - 1 - i] = key->frames[i];
	group = vec_push(&grouping->groups);
	group->row.frames = frames;
	group->row.frame_count = key->count;
	group->row.domain = key->domain;
	group->row.thread = key->thread;
	group->row.is_thread = grouping->query->key == KEY_THREAD;
	return group;
}

static struct group *count_in(struct grouping *grouping, const struct key *key,
			      const struct measure *measure, bool older)
{
	uint64_t hash = key_hash(key);
	struct group *group = find_group(grouping, key, hash);

	if (!group)
		group = add_group(grouping, key, hash);
	if (!group)
		return NULL;
	measure_add(older ? &group->old : &group->now, measure);
	grouping->latest = (uint32_t)(group - grouping->groups.items);
	return group;
}

/* --- a snapshot that is being added --- */

struct addition {
	struct grouping *grouping;
	const struct snapshot *snapshot;
	struct names names;
	uint32_t limit;                       /* of frames */
	bool first_only;                      /* no other frame than the most recent one matters */
	bool quick;                           /* and nothing of it but its group */
	bool older;
	uint32_t *group_of;                   /* by place, when groups are of single frames: one more than the number
					       * of its group; 0: not known yet */
	struct measure *by_blocks;            /* by trace, or NULL: as the trace says */
	uint32_t *taken;                      /* by trace: one more than the number of the last group it is in; 0: it
					       * did not pass, or there is nothing of it */
};

static bool groups_single_frames(const struct statistics_query *query)
{
	return query->key != KEY_TRACEBACK && query->key != KEY_DOMAIN && query->key != KEY_THREAD;
}

static bool first_frame_suffices(const struct statistics_query *query)
{
	bool suffices = query->key != KEY_TRACEBACK && !query->cumulative;

	for (size_t i = 0; i < query->filter_count; i++)
		suffices &= !query->filters[i].all_frames;
	return suffices;
}

static void addition_fini(struct addition *addition)
{
	free(addition->taken);
	free(addition->by_blocks);
	free(addition->group_of);
	names_fini(&addition->names);
}

/* Whatever it returns, addition_fini() follows. */
static int addition_init(struct addition *addition, struct grouping *grouping, const struct snapshot *snapshot,
			 uint32_t limit, bool older)
{
	const struct statistics_query *query = grouping->query;
	struct traceback_options options = query->traceback;

	options.limit = limit;
	*addition = (struct addition){
		.grouping = grouping, .snapshot = snapshot, .older = older,
		.limit = traceback_limit(snapshot, &options),
		.first_only = first_frame_suffices(query),
		.quick = first_frame_suffices(query) && groups_single_frames(query) && query->filter_count == 0,
		.taken = calloc(snapshot->traces.count + 1, sizeof(*addition->taken)),
	};
	if (!addition->taken || names_init(&addition->names, snapshot, grouping->strings) < 0)
		return -ENOMEM;
	if (groups_single_frames(query)) {
		addition->group_of = calloc(addition->names.place_count, sizeof(*addition->group_of));
		if (!addition->group_of)
			return -ENOMEM;
	}
	if (query->ages.given) {
		addition->by_blocks = measure_by_blocks(snapshot, query);
		if (!addition->by_blocks)
			return -ENOMEM;
	}
	return 0;
}

/* --- keys of a trace --- */

/* What a frame is grouped by, as a frame of its own. */
static int key_frame(const struct grouping *grouping, const struct statistic_frame *frame,
		     struct statistic_frame *ret_frame)
{
	struct statistic_frame key = { .name = frame->name, .has_line = frame->has_line };
	int64_t unknown;

	switch (grouping->query->key) {
	case KEY_FILENAME:
		if (!frame->has_line)
			key = *frame;    /* named by its function, in a group of its own */
		break;
	case KEY_FUNCTION:
		if (!frame->function) {
			key.offset = frame->has_line ? 0 : frame->offset;
		} else {
			key.name = key.function = frame->function;
			key.has_line = false;
		}
		key.object = frame->object;
		break;
	case KEY_OBJECT:
		key.has_line = false;
		unknown = strtab_add(grouping->strings, TRACEBACK_NO_OBJECT);
		if (unknown < 0)
			return (int)unknown;
		key.name = frame->object ? frame->object : (uint32_t)unknown;
		key.object = frame->object;
		break;
	default:
		key = *frame;
	}
	*ret_frame = key;
	return 0;
}

static int count_key_frame(struct addition *addition, const struct statistic_frame *frame,
			   const struct measure *measure)
{
	struct statistic_frame of;
	struct key key = { &of, 1, 0, 0 };
	int r = key_frame(addition->grouping, frame, &of);

	if (r < 0)
		return r;
	return count_in(addition->grouping, &key, measure, addition->older) ? 0 : -ENOMEM;
}

/* The group of a place is looked for once. */
static int count_frame(struct addition *addition, size_t at, const struct measure *measure)
{
	struct grouping *grouping = addition->grouping;
	uint32_t place = grouping->places.items[at];
	struct group *group;
	int r;

	if (place != PLACE_NONE && addition->group_of[place]) {
		grouping->latest = addition->group_of[place] - 1;
		group = &grouping->groups.items[grouping->latest];
		measure_add(addition->older ? &group->old : &group->now, measure);
		return 0;
	}
	r = count_key_frame(addition, &grouping->frames.items[at], measure);
	if (r == 0 && place != PLACE_NONE)
		addition->group_of[place] = grouping->latest + 1;
	return r;
}

/* rest: behind the frames that were taken. */
static void note_extent(struct statistic *row, uint32_t taken, struct walk rest)
{
	struct place place;

	row->total_frames = taken;
	while (walk_step(&rest, &place))
		row->total_frames++;
	row->truncated = row->total_frames > taken ? TRUNCATED_LIMIT : rest.truncated;
}

static int count_traceback(struct addition *addition, const struct walk *rest, const struct measure *measure)
{
	struct grouping *grouping = addition->grouping;
	struct key key = { grouping->frames.items, (uint32_t)grouping->frames.count, 0, 0 };
	struct group *group = count_in(grouping, &key, measure, addition->older);

	if (!group)
		return -ENOMEM;
	if (group->row.total_frames == 0)
		note_extent(&group->row, grouping->places.items[0] == PLACE_NONE ? 0 : key.count, *rest);
	return 0;
}

static int count_domain(struct addition *addition, uint32_t domain, const struct measure *measure)
{
	struct key key = { NULL, 0, domain, 0 };

	return count_in(addition->grouping, &key, measure, addition->older) ? 0 : -ENOMEM;
}

static int count_trace(struct addition *addition, const struct walk *rest, uint32_t domain,
		       const struct measure *measure)
{
	const struct grouping *grouping = addition->grouping;
	size_t count = grouping->query->cumulative ? grouping->frames.count : 1;
	int r = 0;

	if (grouping->query->key == KEY_TRACEBACK)
		return count_traceback(addition, rest, measure);
	if (grouping->query->key == KEY_DOMAIN)
		return count_domain(addition, domain, measure);
	if (grouping->query->key == KEY_THREAD)
		return 0;               /* by its blocks, see count_threads() */
	for (size_t i = 0; r == 0 && i < count; i++)
		r = count_frame(addition, i, measure);
	return r;
}

/* --- the frames of a trace --- */

static int take_frame(struct grouping *grouping, const struct statistic_frame *frame, uint32_t number)
{
	struct statistic_frame *taken = vec_push(&grouping->frames);
	uint32_t *place = vec_push(&grouping->places);

	if (!frame || !taken || !place)
		return -ENOMEM;
	*taken = *frame;
	*place = number;
	return 0;
}

static int take_no_frame(struct grouping *grouping)
{
	struct statistic_frame frame = { .has_line = true };
	int64_t name = strtab_add(grouping->strings, TRACEBACK_NO_FRAME);

	if (name < 0)
		return -ENOMEM;
	frame.name = (uint32_t)name;
	return take_frame(grouping, &frame, PLACE_NONE);
}

/* Takes as many as matter; the walk ends behind them. */
static int take_frames(struct addition *addition, struct walk *walk)
{
	struct grouping *grouping = addition->grouping;
	uint32_t limit = addition->first_only ? 1 : addition->limit;
	struct place place;

	grouping->frames.count = grouping->places.count = 0;
	while (grouping->frames.count < limit && walk_step(walk, &place)) {
		if (take_frame(grouping, names_get(&addition->names, place), names_place(&addition->names, place)) < 0)
			return -ENOMEM;
	}
	return grouping->frames.count > 0 ? 0 : take_no_frame(grouping);
}

/* Most traces, when there are no filters and one frame is looked at: the number of the group, known by its place,
 * plus one.  0: it takes more than that. */
static uint32_t find_quickly(const struct addition *addition, struct walk walk)
{
	struct place place;

	if (!addition->quick || !walk_step(&walk, &place))
		return 0;
	return addition->group_of[names_place(&addition->names, place)];
}

/* Whether the trace was taken, or negative errno. */
static int add_trace(struct addition *addition, const struct snapshot_trace *trace, struct walk walk,
		     const struct measure *measure)
{
	struct grouping *grouping = addition->grouping;
	const struct statistics_query *query = grouping->query;
	int r = take_frames(addition, &walk);

	if (r < 0)
		return r;
	if (!filters_pass(query->filters, query->filter_count, grouping->strings,
			  grouping->frames.items, (uint32_t)grouping->frames.count, trace->domain))
		return 0;
	measure_add(addition->older ? &grouping->old : &grouping->now, measure);
	r = count_trace(addition, &walk, trace->domain, measure);
	return r < 0 ? r : 1;
}

/* --- snapshots --- */

/* Which thread allocated them is known of single blocks only. */
static int count_threads(struct addition *addition)
{
	const struct snapshot *snapshot = addition->snapshot;

	for (size_t i = 0; i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];
		struct key key = { NULL, 0, 0, block->thread };
		struct measure measure;

		if (addition->taken[block->trace] &&
		    measure_block(block, addition->grouping->query, &measure) &&
		    !count_in(addition->grouping, &key, &measure, addition->older))
			return -ENOMEM;
	}
	return 0;
}

/* Each trace that was taken is in one group. */
static int count_sizes(struct addition *addition)
{
	const struct snapshot *snapshot = addition->snapshot;

	for (size_t i = 0; i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];
		uint32_t taken = addition->taken[block->trace];
		struct measure measure;
		struct statistic *row;

		if (!taken || !measure_block(block, addition->grouping->query, &measure))
			continue;
		row = &addition->grouping->groups.items[taken - 1].row;
		if (!row->histogram)
			row->histogram = calloc(HISTOGRAM_STEPS, sizeof(*row->histogram));
		if (!row->histogram)
			return -ENOMEM;
		row->histogram[histogram_step(block->size)]++;
	}
	return 0;
}

/* What lies anywhere in memory is asked for so many traces ahead. */
#define AHEAD 16

static struct measure measure_of(const struct addition *addition, size_t trace)
{
	return addition->by_blocks ? addition->by_blocks[trace] :
	       measure_trace(&addition->snapshot->traces.items[trace], addition->grouping->query);
}

static void prefetch_stack(const struct snapshot *snapshot, size_t trace)
{
	if (trace < snapshot->traces.count)
		__builtin_prefetch(&snapshot->nodes.items[snapshot->traces.items[trace].stack]);
}

/* Those whose group is known are only noted, in `later`. */
static int add_traces(struct addition *addition, uint32_t *later)
{
	const struct snapshot *snapshot = addition->snapshot;
	bool show_runtime = addition->grouping->query->traceback.show_runtime;

	for (size_t i = 0; i < snapshot->traces.count; i++) {
		const struct snapshot_trace *trace = &snapshot->traces.items[i];
		struct measure measure = measure_of(addition, i);
		struct walk walk;
		int r;

		prefetch_stack(snapshot, i + AHEAD);
		/* tracemalloc knows live traces only; made_count is of queries about churn. */
		if (measure.count == 0 && measure.made_count == 0)
			continue;
		walk = names_walk(&addition->names, trace->stack, show_runtime);
		later[i] = find_quickly(addition, walk);
		if (later[i])
			continue;
		r = add_trace(addition, trace, walk, &measure);
		if (r < 0)
			return r;
		if (r > 0)
			addition->taken[i] = addition->grouping->latest + 1;
	}
	return 0;
}

static struct measure *sum_of(const struct addition *addition, uint32_t number)
{
	struct group *group = &addition->grouping->groups.items[number - 1];

	return addition->older ? &group->old : &group->now;
}

static void prefetch_sum(const struct addition *addition, const uint32_t *later, size_t trace)
{
	const char *sum;

	if (trace >= addition->snapshot->traces.count || !later[trace])
		return;
	sum = (const char *)sum_of(addition, later[trace]);
	__builtin_prefetch(sum);
	__builtin_prefetch(sum + sizeof(struct measure) - 1);
}

static void add_noted(struct addition *addition, const uint32_t *later)
{
	struct grouping *grouping = addition->grouping;

	for (size_t i = 0; i < addition->snapshot->traces.count; i++) {
		struct measure measure;

		prefetch_sum(addition, later, i + AHEAD);
		if (!later[i])
			continue;
		measure = measure_of(addition, i);
		measure_add(addition->older ? &grouping->old : &grouping->now, &measure);
		measure_add(sum_of(addition, later[i]), &measure);
		addition->taken[i] = later[i];
	}
}

static int add_all(struct addition *addition)
{
	uint32_t *later = calloc(addition->snapshot->traces.count + 1, sizeof(*later));
	int r;

	if (!later)
		return -ENOMEM;
	r = add_traces(addition, later);
	if (r == 0)
		add_noted(addition, later);
	free(later);
	return r;
}

int grouping_add(struct grouping *grouping, const struct snapshot *snapshot, uint32_t limit, bool older,
		 const char **ret_reason)
{
	struct addition addition;
	int r = measure_check(snapshot, grouping->query, ret_reason);

	if (r < 0)
		return r;
	r = addition_init(&addition, grouping, snapshot, limit, older);
	if (r == 0)
		r = add_all(&addition);
	if (r == 0 && grouping->query->key == KEY_THREAD)
		r = count_threads(&addition);
	if (r == 0 && grouping->query->histogram && !older)
		r = count_sizes(&addition);
	addition_fini(&addition);
	return r;
}

static void take_row(const struct group *group, bool with_diff, struct statistic *ret_row)
{
	*ret_row = group->row;
	ret_row->size = group->now.size;
	ret_row->count = group->now.count;
	ret_row->made_size = (int64_t)(group->now.made_size - group->old.made_size);
	ret_row->made_count = (int64_t)(group->now.made_count - group->old.made_count);
	ret_row->freed_count = (int64_t)(group->now.freed_count - group->old.freed_count);
	ret_row->temporary_count = (int64_t)(group->now.temporary_count - group->old.temporary_count);
	ret_row->youngest_ns = group->now.youngest_ns;
	ret_row->oldest_ns = group->now.oldest_ns;
	if (!with_diff)
		return;
	ret_row->size_diff = (int64_t)(group->now.size - group->old.size);
	ret_row->count_diff = (int64_t)(group->now.count - group->old.count);
}

int grouping_take(struct grouping *grouping, bool with_diff, struct statistics *into)
{
	size_t count = grouping->groups.count;
	struct statistic *rows = calloc(count ? count : 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		take_row(&grouping->groups.items[i], with_diff, &rows[i]);
	grouping->groups.count = 0;
	into->rows = rows;
	into->row_count = count;
	into->has_churn = grouping->query->churn;
	into->sort = grouping->query->sort;
	into->has_ages = grouping->query->ages.given;
	into->total_size = grouping->now.size;
	into->total_count = grouping->now.count;
	if (with_diff) {
		into->total_size_diff = (int64_t)(grouping->now.size - grouping->old.size);
		into->total_count_diff = (int64_t)(grouping->now.count - grouping->old.count);
	}
	return 0;
}
