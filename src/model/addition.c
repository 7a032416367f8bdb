/* Adding a snapshot to groups. */
#include "model/definition.h"
#include "model/grouping.h"
#include "model/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct addition {
	struct grouping *grouping;
	const struct statistics_query *query;
	const struct snapshot *snapshot;
	const struct snapshot_index *index;
	struct snapshot_index *own;           /* when the snapshot keeps none */
	enum index_key key;                   /* INDEX_KEYS: groups are not of single frames */
	uint32_t limit;                       /* of frames */
	bool first_only;                      /* no other frame than the most recent one matters */
	bool quick;                           /* and the index knows all there is to know of it */
	bool older;
	uint32_t *texts;                      /* by string of the index: its id in grouping->strings; 0: not known yet */
	VEC_OF(uint32_t) places;              /* of the trace at hand, most recent first */
	VEC_OF(struct statistic_frame) frames;/* the same, for filters */
	struct measure *by_blocks;            /* by trace, or NULL: as the trace says */
	uint32_t *taken;                      /* by trace: one more than the number of the group it is in, of single frames the
					       * index's; 0: it did not pass, or there is nothing of it; NULL: of no interest */
	/* of groups of single frames, by the index's number */
	struct measure *sums;
	uint32_t *group_places;               /* one more than the first place that was counted; 0: none yet */
	uint32_t *group_ids;                  /* in the grouping */
	/* of tracebacks */
	uint32_t *place_frames;               /* by place: one more than its number in grouping->frames */
	VEC_OF(uint32_t) sequence;
};

static bool first_frame_suffices(const struct statistics_query *query)
{
	bool suffices = query->key != KEY_TRACEBACK && !query->cumulative;

	for (size_t i = 0; i < query->filter_count; i++)
		suffices &= !query->filters[i].all_frames;
	return suffices;
}

static void addition_fini(struct addition *addition)
{
	free(addition->texts);
	vec_fini(&addition->places);
	vec_fini(&addition->frames);
	free(addition->by_blocks);
	free(addition->taken);
	free(addition->sums);
	free(addition->group_places);
	free(addition->group_ids);
	free(addition->place_frames);
	vec_fini(&addition->sequence);
	snapshot_index_free(addition->own);
}

static int find_index(struct addition *addition)
{
	unsigned parts = addition->key < INDEX_KEYS ? 1u << addition->key : 0;
	int r;

	addition->index = snapshot_index_kept(addition->snapshot);
	if (addition->index)
		return 0;
	r = snapshot_index_make(addition->snapshot, addition->quick ? parts : parts | INDEX_STEPS, &addition->own);
	addition->index = addition->own;
	return r;
}

static int make_room(struct addition *addition)
{
	const struct statistics_query *query = addition->query;
	size_t places = (size_t)index_no_place(addition->index) + 1;
	bool done;

	addition->texts = calloc(strtab_count(addition->index->strings), sizeof(*addition->texts));
	done = addition->texts != NULL;
	if (query->key == KEY_THREAD || (query->histogram && !addition->older)) {
		addition->taken = calloc(addition->snapshot->traces.count + 1, sizeof(*addition->taken));
		done &= addition->taken != NULL;
	}
	if (query->ages.given) {
		addition->by_blocks = measure_by_blocks(addition->snapshot, query);
		done &= addition->by_blocks != NULL;
	}
	if (addition->key < INDEX_KEYS) {
		size_t groups = addition->index->group_count[addition->key];

		addition->sums = calloc(groups, sizeof(*addition->sums));
		addition->group_places = calloc(groups, sizeof(*addition->group_places));
		addition->group_ids = calloc(groups, sizeof(*addition->group_ids));
		done &= addition->sums && addition->group_places && addition->group_ids;
	}
	if (query->key == KEY_TRACEBACK) {
		addition->place_frames = calloc(places, sizeof(*addition->place_frames));
		done &= addition->place_frames != NULL;
	}
	return done ? 0 : -ENOMEM;
}

/* Whatever it returns, addition_fini() follows. */
static int addition_init(struct addition *addition, struct grouping *grouping, const struct snapshot *snapshot,
			 uint32_t limit, bool older)
{
	struct traceback_options options = grouping->query->traceback;
	int r;

	options.limit = limit;
	*addition = (struct addition){
		.grouping = grouping, .query = grouping->query, .snapshot = snapshot, .older = older,
		.key = index_key_of(grouping->query->key),
		.limit = traceback_limit(snapshot, &options),
		.first_only = first_frame_suffices(grouping->query),
	};
	addition->quick = addition->first_only && addition->key < INDEX_KEYS && grouping->query->filter_count == 0 &&
			  !grouping->query->traceback.show_runtime;
	r = find_index(addition);
	return r < 0 ? r : make_room(addition);
}

/* --- names --- */

static int64_t translate(struct addition *addition, uint32_t text)
{
	int64_t id;

	if (text == 0 || addition->texts[text])
		return addition->texts[text];
	id = strtab_add(addition->grouping->strings, strtab_get(addition->index->strings, text));
	if (id > 0)
		addition->texts[text] = (uint32_t)id;
	return id;
}

static int translate_frame(struct addition *addition, struct statistic_frame *frame)
{
	int64_t name = translate(addition, frame->name), function = translate(addition, frame->function);
	int64_t object = translate(addition, frame->object);

	if (name < 0 || function < 0 || object < 0)
		return -ENOMEM;
	frame->name = (uint32_t)name;
	frame->function = (uint32_t)function;
	frame->object = (uint32_t)object;
	return 0;
}

/* --- groups of single frames --- */

static inline void count_place(struct addition *addition, uint32_t place, const struct measure *measure)
{
	uint32_t group = addition->index->groups[addition->key][place];

	if (!addition->group_places[group])
		addition->group_places[group] = place + 1;
	measure_add(&addition->sums[group], measure);
}

/* Of functions that compilers have taken apart there are several in the index; an object may be called as what stands for
 * none, and is in its group then. */
static bool knows_groups(const struct addition *addition)
{
	return addition->key != INDEX_OBJECT && addition->key != INDEX_DEFINITION;
}

static int64_t group_of_frame(struct addition *addition, const struct statistic_frame *frame)
{
	struct grouping *grouping = addition->grouping;
	uint32_t number;
	int64_t id;

	if (grouping->alone && knows_groups(addition))
		return grouping_add_new(grouping, frame);
	id = grouping_frame(grouping, frame);
	if (id < 0)
		return id;
	number = (uint32_t)id;
	return grouping_find(grouping, &(struct group_key){ .frames = &number, .count = 1 });
}

static int name_whole_function(const struct addition *addition, struct statistic_frame *frame)
{
	struct strtab *strings = addition->grouping->strings;
	const char *name = strtab_get(strings, frame->function);
	int64_t id = strtab_add_len(strings, name, definition_function_length(name));

	if (id >= 0)
		frame->function = (uint32_t)id;
	return (int)(id < 0 ? id : 0);
}

static int settle_group(struct addition *addition, size_t number, uint32_t no_object)
{
	struct statistic_frame frame = *index_frame(addition->index, addition->group_places[number] - 1);
	struct group *group;
	int64_t id;

	if (translate_frame(addition, &frame) < 0)
		return -ENOMEM;
	frame = index_key_frame(addition->key, &frame, no_object);
	if (addition->key == INDEX_DEFINITION && name_whole_function(addition, &frame) < 0)
		return -ENOMEM;
	id = group_of_frame(addition, &frame);
	if (id < 0)
		return (int)id;
	group = &addition->grouping->groups.items[id];
	measure_add(addition->older ? &group->old : &group->now, &addition->sums[number]);
	group->last_round = addition->grouping->round;
	addition->group_ids[number] = (uint32_t)id;
	return 0;
}

/* Of each of the index's groups there is one number so far, which goes into the grouping's. */
static int settle_groups(struct addition *addition)
{
	size_t groups = addition->index->group_count[addition->key];
	int64_t no_object = strtab_add(addition->grouping->strings, TRACEBACK_NO_OBJECT);
	int r = no_object < 0 ? -ENOMEM : 0;

	if (r == 0 && addition->grouping->groups.count == 0)
		r = grouping_reserve(addition->grouping, groups, 1);
	for (size_t i = 0; r == 0 && i < groups; i++) {
		if (addition->group_places[i])
			r = settle_group(addition, i, (uint32_t)no_object);
	}
	return r;
}

/* --- tracebacks --- */

static int64_t frame_of(struct addition *addition, uint32_t place)
{
	struct statistic_frame frame;
	int64_t id;

	if (addition->place_frames[place])
		return addition->place_frames[place] - 1;
	frame = *index_frame(addition->index, place);
	if (translate_frame(addition, &frame) < 0)
		return -ENOMEM;
	id = grouping_frame(addition->grouping, &frame);
	if (id >= 0)
		addition->place_frames[place] = (uint32_t)id + 1;
	return id;
}

/* rest: behind the frames that were taken. */
static void note_extent(struct group *group, uint32_t taken, struct walk rest)
{
	struct place place;

	group->total_frames = taken;
	while (walk_step(&rest, &place))
		group->total_frames++;
	group->truncated = group->total_frames > taken ? TRUNCATED_LIMIT : rest.truncated;
}

static int64_t find_traceback(struct addition *addition, const struct walk *rest)
{
	size_t count = addition->places.count;
	struct group *group;
	int64_t id;

	addition->sequence.count = 0;
	if (vec_reserve(&addition->sequence, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		id = frame_of(addition, addition->places.items[i]);
		if (id < 0)
			return id;
		addition->sequence.items[i] = (uint32_t)id;
	}
	id = grouping_find(addition->grouping, &(struct group_key){ .frames = addition->sequence.items, .count = (uint32_t)count });
	if (id < 0)
		return id;
	group = &addition->grouping->groups.items[id];
	if (group->total_frames == 0)
		note_extent(group, addition->places.items[0] == index_no_place(addition->index) ? 0 : (uint32_t)count, *rest);
	return id;
}

/* --- traces --- */

static struct measure measure_of(const struct addition *addition, size_t trace)
{
	return addition->by_blocks ? addition->by_blocks[trace] :
	       measure_trace(&addition->snapshot->traces.items[trace], addition->query);
}

/* Takes as many as matter; the walk ends behind them. */
static int take_places(struct addition *addition, struct walk *walk)
{
	uint32_t limit = addition->first_only ? 1 : addition->limit;
	uint32_t place;

	addition->places.count = 0;
	while (addition->places.count < limit && index_step(addition->index, walk, &place)) {
		if (vec_reserve(&addition->places, 1) < 0)
			return -ENOMEM;
		addition->places.items[addition->places.count++] = place;
	}
	if (addition->places.count > 0)
		return 0;
	if (vec_reserve(&addition->places, 1) < 0)
		return -ENOMEM;
	addition->places.items[addition->places.count++] = index_no_place(addition->index);
	return 0;
}

/* 1: it does, 0: it does not, or -ENOMEM. */
static int passes(struct addition *addition, uint32_t domain)
{
	const struct statistics_query *query = addition->query;
	size_t count = addition->places.count;

	if (query->filter_count == 0)
		return 1;
	addition->frames.count = 0;
	if (vec_reserve(&addition->frames, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		addition->frames.items[i] = *index_frame(addition->index, addition->places.items[i]);
	return filters_pass(query->filters, query->filter_count, addition->index->strings, addition->frames.items,
			    (uint32_t)count, domain);
}

static int64_t count_places(struct addition *addition, const struct measure *measure)
{
	size_t count = addition->query->cumulative ? addition->places.count : 1;

	for (size_t i = 0; i < count; i++)
		count_place(addition, addition->places.items[i], measure);
	return addition->index->groups[addition->key][addition->places.items[0]];
}

static int64_t count_whole(struct addition *addition, const struct walk *rest, uint32_t domain,
			   const struct measure *measure)
{
	struct grouping *grouping = addition->grouping;
	struct group *group;
	int64_t id;

	if (addition->query->key == KEY_THREAD)
		return 0;               /* by its blocks, see count_threads() */
	id = addition->query->key == KEY_TRACEBACK ? find_traceback(addition, rest) :
	     grouping_find(grouping, &(struct group_key){ .domain = domain });
	if (id < 0)
		return id;
	group = &grouping->groups.items[id];
	measure_add(addition->older ? &group->old : &group->now, measure);
	return id;
}

static int add_trace(struct addition *addition, size_t trace, const struct measure *measure)
{
	struct grouping *grouping = addition->grouping;
	struct walk walk = index_walk(addition->index, trace, addition->query->traceback.show_runtime);
	uint32_t domain = addition->snapshot->traces.items[trace].domain;
	int r = take_places(addition, &walk);
	int64_t id;

	if (r == 0)
		r = passes(addition, domain);
	if (r <= 0)
		return r;
	measure_add(addition->older ? &grouping->old : &grouping->now, measure);
	id = addition->key < INDEX_KEYS ? count_places(addition, measure) : count_whole(addition, &walk, domain, measure);
	if (id < 0)
		return (int)id;
	if (addition->taken)
		addition->taken[trace] = (uint32_t)id + 1;
	return 0;
}

/* tracemalloc knows live traces only; made_count is of queries about churn. */
static bool is_nothing(const struct measure *measure)
{
	return measure->count == 0 && measure->made_count == 0;
}

static int add_traces(struct addition *addition)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < addition->snapshot->traces.count; i++) {
		struct measure measure = measure_of(addition, i);

		if (!is_nothing(&measure))
			r = add_trace(addition, i, &measure);
	}
	return r;
}

/* Most questions. */
static void add_first_places(struct addition *addition)
{
	struct grouping *grouping = addition->grouping;
	struct measure *total = addition->older ? &grouping->old : &grouping->now;

	for (size_t i = 0; i < addition->snapshot->traces.count; i++) {
		struct measure measure = measure_of(addition, i);
		uint32_t place = addition->index->first_places[i];

		if (is_nothing(&measure))
			continue;
		measure_add(total, &measure);
		count_place(addition, place, &measure);
		if (addition->taken)
			addition->taken[i] = addition->index->groups[addition->key][place] + 1;
	}
}

/* --- blocks --- */

/* Which thread allocated them is known of single blocks only. */
static int count_threads(struct addition *addition)
{
	struct grouping *grouping = addition->grouping;
	const struct snapshot *snapshot = addition->snapshot;

	for (size_t i = 0; i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];
		struct measure measure;
		int64_t id;

		if (!addition->taken[block->trace] || !measure_block(addition->snapshot, block, addition->query, &measure))
			continue;
		id = grouping_find(grouping, &(struct group_key){ .thread = block->thread });
		if (id < 0)
			return (int)id;
		measure_add(addition->older ? &grouping->groups.items[id].old : &grouping->groups.items[id].now, &measure);
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
		struct group *group;

		if (!taken || !measure_block(addition->snapshot, block, addition->query, &measure))
			continue;
		group = &addition->grouping->groups.items[addition->group_ids ? addition->group_ids[taken - 1] : taken - 1];
		if (!group->histogram)
			group->histogram = calloc(HISTOGRAM_STEPS, sizeof(*group->histogram));
		if (!group->histogram)
			return -ENOMEM;
		group->histogram[histogram_step(block->size)] += measure.count;
	}
	return 0;
}

/* --- all of it --- */

static int add_all(struct addition *addition)
{
	const struct statistics_query *query = addition->query;
	int r = 0;

	if (addition->quick)
		add_first_places(addition);
	else
		r = add_traces(addition);
	if (r == 0 && addition->key < INDEX_KEYS)
		r = settle_groups(addition);
	if (r == 0 && query->key == KEY_THREAD)
		r = count_threads(addition);
	if (r == 0 && query->histogram && !addition->older)
		r = count_sizes(addition);
	return r;
}

int grouping_add(struct grouping *grouping, const struct snapshot *snapshot, uint32_t limit, bool older,
		 const char **ret_reason)
{
	struct addition addition;
	int r = measure_check(snapshot, grouping->query, ret_reason);

	if (r < 0)
		return r;
	grouping->round++;
	r = addition_init(&addition, grouping, snapshot, limit, older);
	if (r == 0)
		r = add_all(&addition);
	addition_fini(&addition);
	return r;
}
