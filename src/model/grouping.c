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

static int count_frame(struct grouping *grouping, const struct statistic_frame *frame,
		       const struct measure *measure, bool older)
{
	struct statistic_frame of;
	struct key key = { &of, 1, 0, 0 };
	int r = key_frame(grouping, frame, &of);

	if (r < 0)
		return r;
	return count_in(grouping, &key, measure, older) ? 0 : -ENOMEM;
}

static int count_traceback(struct grouping *grouping, const struct traceback *traceback,
			   const struct measure *measure, bool older)
{
	struct key key = { grouping->frames.items, (uint32_t)grouping->frames.count, 0, 0 };
	struct group *group = count_in(grouping, &key, measure, older);

	if (!group)
		return -ENOMEM;
	if (group->row.total_frames == 0) {
		group->row.total_frames = traceback->total_frames;
		group->row.truncated = traceback->truncated;
	}
	return 0;
}

static int count_domain(struct grouping *grouping, uint32_t domain, const struct measure *measure, bool older)
{
	struct key key = { NULL, 0, domain, 0 };

	return count_in(grouping, &key, measure, older) ? 0 : -ENOMEM;
}

static int count_trace(struct grouping *grouping, const struct traceback *traceback, uint32_t domain,
		       const struct measure *measure, bool older)
{
	size_t count = grouping->query->cumulative ? grouping->frames.count : 1;
	int r = 0;

	if (grouping->query->key == KEY_TRACEBACK)
		return count_traceback(grouping, traceback, measure, older);
	if (grouping->query->key == KEY_DOMAIN)
		return count_domain(grouping, domain, measure, older);
	if (grouping->query->key == KEY_THREAD)
		return 0;               /* by its blocks, see count_threads() */
	for (size_t i = 0; r == 0 && i < count; i++)
		r = count_frame(grouping, &grouping->frames.items[i], measure, older);
	return r;
}

/* --- snapshots --- */

static int take_frames(struct grouping *grouping, struct names *names, const struct traceback *traceback)
{
	struct statistic_frame *frame;
	int64_t name;

	grouping->frames.count = 0;
	for (uint32_t i = 0; i < traceback->count; i++) {
		frame = vec_push(&grouping->frames);
		if (!frame || names_get(names, &traceback->frames[i], frame) < 0)
			return -ENOMEM;
	}
	if (grouping->frames.count > 0)
		return 0;
	frame = vec_push(&grouping->frames);
	name = strtab_add(grouping->strings, TRACEBACK_NO_FRAME);
	if (!frame || name < 0)
		return -ENOMEM;
	*frame = (struct statistic_frame){ .name = (uint32_t)name, .has_line = true };
	return 0;
}

/* Whether the trace was taken, or negative errno. */
static int add_trace(struct grouping *grouping, struct names *names, const struct traceback *traceback,
		     uint32_t domain, const struct measure *measure, bool older)
{
	const struct statistics_query *query = grouping->query;
	int r = take_frames(grouping, names, traceback);

	if (r < 0)
		return r;
	if (!filters_pass(query->filters, query->filter_count, grouping->strings,
			  grouping->frames.items, (uint32_t)grouping->frames.count, domain))
		return 0;
	measure_add(older ? &grouping->old : &grouping->now, measure);
	r = count_trace(grouping, traceback, domain, measure, older);
	return r < 0 ? r : 1;
}

/* Which thread allocated them is known of single blocks only. */
static int count_threads(struct grouping *grouping, const struct snapshot *snapshot, const uint32_t *taken,
			 bool older)
{
	for (size_t i = 0; i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];
		struct key key = { NULL, 0, 0, block->thread };
		struct measure measure;

		if (taken[block->trace] && measure_block(block, grouping->query, &measure) &&
		    !count_in(grouping, &key, &measure, older))
			return -ENOMEM;
	}
	return 0;
}

/* Each trace that was taken is in one group. */
static int count_sizes(struct grouping *grouping, const struct snapshot *snapshot, const uint32_t *taken)
{
	for (size_t i = 0; i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];
		struct measure measure;
		struct statistic *row;

		if (!taken[block->trace] || !measure_block(block, grouping->query, &measure))
			continue;
		row = &grouping->groups.items[taken[block->trace] - 1].row;
		if (!row->histogram)
			row->histogram = calloc(HISTOGRAM_STEPS, sizeof(*row->histogram));
		if (!row->histogram)
			return -ENOMEM;
		row->histogram[histogram_step(block->size)]++;
	}
	return 0;
}

/* `taken` says of each trace whether it passed: then one more than the number of the last group it is in. */
static int add_traces(struct grouping *grouping, const struct snapshot *snapshot,
		      const struct traceback_options *options, const struct measure *measures, uint32_t *taken,
		      bool older)
{
	struct names names;
	int r = names_init(&names, snapshot, grouping->strings);

	for (size_t i = 0; r >= 0 && i < snapshot->traces.count; i++) {
		const struct snapshot_trace *trace = &snapshot->traces.items[i];
		struct traceback traceback;

		/* tracemalloc knows live traces only; made_count is of queries about churn. */
		if (measures[i].count == 0 && measures[i].made_count == 0)
			continue;
		r = traceback_make(snapshot, trace->stack, options, &traceback);
		if (r < 0)
			break;
		r = add_trace(grouping, &names, &traceback, trace->domain, &measures[i], older);
		if (r > 0)
			taken[i] = grouping->latest + 1;
		traceback_fini(&traceback);
	}
	names_fini(&names);
	return r < 0 ? r : 0;
}

int grouping_add(struct grouping *grouping, const struct snapshot *snapshot, uint32_t limit, bool older,
		 const char **ret_reason)
{
	struct traceback_options options = grouping->query->traceback;
	struct measure *measures;
	uint32_t *taken;
	int r = measure_check(snapshot, grouping->query, ret_reason);

	if (r < 0)
		return r;
	measures = measure_traces(snapshot, grouping->query);
	taken = calloc(snapshot->traces.count + 1, sizeof(*taken));
	options.limit = limit;
	r = measures && taken ? add_traces(grouping, snapshot, &options, measures, taken, older) : -ENOMEM;
	if (r == 0 && grouping->query->key == KEY_THREAD)
		r = count_threads(grouping, snapshot, taken, older);
	if (r == 0 && grouping->query->histogram && !older)
		r = count_sizes(grouping, snapshot, taken);
	free(measures);
	free(taken);
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
