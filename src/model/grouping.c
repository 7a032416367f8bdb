#include "model/grouping.h"

#include "base/hash.h"
#include "model/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What compares equal: name and line, as in tracemalloc.  A function is nothing else of the same name; a definition has
 * both. */
struct line_item {
	uint32_t next, name, line;
	uint32_t function;                    /* 0: of no interest, or not known */
	uint32_t equal;                       /* what it counts as: itself, or another one, see grouping_join() */
	uint32_t frame;                       /* one more than the last frame of this line; 0: there is none yet */
};

static uint64_t line_item_hash(const void *item)
{
	const struct line_item *line = item;

	return hash_pair((uint64_t)line->name << 32 | line->line, line->function);
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
	id_table_init(&grouping->line_index, sizeof(struct line_item), line_item_hash);
	return 0;
}

void grouping_fini(struct grouping *grouping)
{
	for (size_t i = 0; i < grouping->groups.count; i++)
		free(grouping->groups.items[i].histogram);
	vec_fini(&grouping->frames);
	vec_fini(&grouping->lines);
	vec_fini(&grouping->sequences);
	vec_fini(&grouping->groups);
	free(grouping->slots);
	id_table_fini(&grouping->line_index);
}

/* --- frames --- */

static bool goes_by_function(enum statistics_key key)
{
	return key == KEY_FUNCTION || key == KEY_DEFINITION;
}

static int64_t find_line(struct grouping *grouping, const struct statistic_frame *frame)
{
	struct line_item wanted = { .name = frame->name, .line = frame->line,
				    .function = goes_by_function(grouping->query->key) ? frame->function : 0,
				    .equal = grouping->line_index.count };
	struct id_table *lines = &grouping->line_index;

	for (uint32_t id = id_table_first(lines, line_item_hash(&wanted)); id != ID_NONE; id = id_table_next(lines, id)) {
		const struct line_item *line = id_table_at(lines, id);

		if (line->name == wanted.name && line->line == wanted.line && line->function == wanted.function)
			return id;
	}
	return id_table_add(lines, &wanted);
}

static bool is_same(const struct statistic_frame *a, const struct statistic_frame *b)
{
	return a->name == b->name && a->line == b->line && a->function == b->function && a->object == b->object &&
	       a->offset == b->offset && a->inlined == b->inlined && a->has_line == b->has_line;
}

/* Snapshots of one process have the same frames. */
int64_t grouping_frame(struct grouping *grouping, const struct statistic_frame *frame)
{
	int64_t line = find_line(grouping, frame);
	struct line_item *item;

	if (line < 0)
		return line;
	item = id_table_at(&grouping->line_index, (uint32_t)line);
	if (item->frame && is_same(&grouping->frames.items[item->frame - 1], frame))
		return item->frame - 1;
	if (grouping->frames.count >= UINT32_MAX || vec_reserve(&grouping->frames, 1) < 0 ||
	    vec_reserve(&grouping->lines, 1) < 0)
		return -ENOMEM;
	grouping->frames.items[grouping->frames.count++] = *frame;
	grouping->lines.items[grouping->lines.count++] = item->equal;
	item->frame = (uint32_t)grouping->frames.count;
	return item->frame - 1;
}

/* --- groups --- */

static uint64_t key_hash(const struct grouping *grouping, const struct group_key *key)
{
	uint64_t hash = hash_pair(key->domain, key->thread);

	for (uint32_t i = 0; i < key->count; i++)
		hash = (hash ^ grouping->lines.items[key->frames[i]]) * 0x9e3779b97f4a7c15ULL + (hash >> 32);
	return hash_u64(hash);
}

static bool has_key(const struct grouping *grouping, const struct group *group, const struct group_key *key)
{
	const uint32_t *lines = grouping->lines.items;

	if (group->frame_count != key->count || group->domain != key->domain || group->thread != key->thread)
		return false;
	for (uint32_t i = 0; i < key->count; i++) {
		if (lines[grouping->sequences.items[group->sequence + i]] != lines[key->frames[i]])
			return false;
	}
	return true;
}

/* The place of a group, or a free one. */
static uint32_t *find_slot(const struct grouping *grouping, const struct group_key *key, uint64_t hash)
{
	size_t at = hash & (grouping->slot_count - 1);

	for (;; at = (at + 1) & (grouping->slot_count - 1)) {
		const struct group *group;

		if (!grouping->slots[at])
			return &grouping->slots[at];
		group = &grouping->groups.items[grouping->slots[at] - 1];
		if (group->hash == hash && has_key(grouping, group, key))
			return &grouping->slots[at];
	}
}

/* They are all free. */
static void fill_slots(struct grouping *grouping)
{
	for (size_t i = 0; i < grouping->groups.count; i++) {
		size_t at = grouping->groups.items[i].hash & (grouping->slot_count - 1);

		while (grouping->slots[at])
			at = (at + 1) & (grouping->slot_count - 1);
		grouping->slots[at] = (uint32_t)i + 1;
	}
}

static int grow_slots(struct grouping *grouping, size_t groups)
{
	size_t count = grouping->slot_count ? grouping->slot_count : 64;
	uint32_t *slots;

	while (count < groups * 2)
		count *= 2;
	if (count == grouping->slot_count)
		return 0;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(grouping->slots);
	grouping->slots = slots;
	grouping->slot_count = count;
	fill_slots(grouping);
	return 0;
}

static int64_t add_group(struct grouping *grouping, const struct group_key *key, uint64_t hash)
{
	struct group *group;

	if (grouping->groups.count >= UINT32_MAX - 1 || vec_reserve(&grouping->groups, 1) < 0 ||
	    vec_reserve(&grouping->sequences, key->count) < 0)
		return -ENOMEM;
	group = &grouping->groups.items[grouping->groups.count++];
	*group = (struct group){ .hash = hash, .sequence = grouping->sequences.count, .frame_count = key->count,
				 .first_round = grouping->round, .last_round = grouping->round, .domain = key->domain, .thread = key->thread };
	if (key->count > 0)
		memcpy(&grouping->sequences.items[group->sequence], key->frames, key->count * sizeof(*key->frames));
	grouping->sequences.count += key->count;
	return group - grouping->groups.items;
}

int64_t grouping_find(struct grouping *grouping, const struct group_key *key)
{
	uint64_t hash = key_hash(grouping, key);
	uint32_t *slot;
	int64_t id;

	if (grow_slots(grouping, grouping->groups.count + 1) < 0)
		return -ENOMEM;
	slot = find_slot(grouping, key, hash);
	if (*slot)
		return *slot - 1;
	id = add_group(grouping, key, hash);
	if (id >= 0)
		*slot = (uint32_t)id + 1;
	return id;
}

int64_t grouping_add_new(struct grouping *grouping, const struct statistic_frame *frame)
{
	uint32_t id = (uint32_t)grouping->frames.count;

	if (id == UINT32_MAX || vec_reserve(&grouping->frames, 1) < 0)
		return -ENOMEM;
	grouping->frames.items[grouping->frames.count++] = *frame;
	return add_group(grouping, &(struct group_key){ .frames = &id, .count = 1 }, 0);
}

int grouping_reserve(struct grouping *grouping, size_t groups, size_t frames)
{
	if (vec_reserve(&grouping->groups, groups) < 0 || vec_reserve(&grouping->sequences, groups * frames) < 0 ||
	    vec_reserve(&grouping->frames, groups) < 0)
		return -ENOMEM;
	return grouping->alone ? 0 : grow_slots(grouping, grouping->groups.count + groups);
}

/* --- groups that become one --- */

static uint32_t line_of(const struct grouping *grouping, uint32_t group)
{
	return grouping->lines.items[grouping->sequences.items[grouping->groups.items[group].sequence]];
}

/* What compared equal to one of them compares equal to all. */
static int join_lines(struct grouping *grouping, const uint32_t *into)
{
	uint32_t count = grouping->line_index.count;
	uint32_t *equal = malloc((count + (size_t)1) * sizeof(*equal));

	if (!equal)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		equal[i] = i;
	for (uint32_t i = 0; i < grouping->groups.count; i++)
		equal[line_of(grouping, i)] = line_of(grouping, into[i]);
	for (uint32_t i = 0; i < count; i++) {
		struct line_item *item = id_table_at(&grouping->line_index, i);

		item->equal = equal[item->equal];
	}
	for (size_t i = 0; i < grouping->lines.count; i++)
		grouping->lines.items[i] = equal[grouping->lines.items[i]];
	free(equal);
	return 0;
}

static void join_histograms(struct group *group, struct group *other)
{
	if (!group->histogram) {
		group->histogram = other->histogram;
		other->histogram = NULL;
		return;
	}
	for (size_t i = 0; other->histogram && i < HISTOGRAM_STEPS; i++)
		group->histogram[i] += other->histogram[i];
	free(other->histogram);
	other->histogram = NULL;
}

static void join_group(struct group *group, struct group *other)
{
	measure_add(&group->now, &other->now);
	measure_add(&group->old, &other->old);
	join_histograms(group, other);
	if (other->first_round < group->first_round)
		group->first_round = other->first_round;
	if (other->last_round > group->last_round)
		group->last_round = other->last_round;
}

static void show_frame(struct grouping *grouping, struct group *group, uint32_t from)
{
	grouping->sequences.items[group->sequence] = grouping->sequences.items[grouping->groups.items[from].sequence];
}

/* Closes the gaps. */
static void number_groups(struct grouping *grouping, uint32_t *into)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < grouping->groups.count; i++) {
		if (into[i] == i) {
			grouping->groups.items[count] = grouping->groups.items[i];
			into[i] = count++;
		} else {
			into[i] = into[into[i]];
		}
	}
	grouping->groups.count = count;
}

int grouping_join(struct grouping *grouping, uint32_t *into, const uint32_t *shown)
{
	struct group *groups = grouping->groups.items;

	if (join_lines(grouping, into) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < grouping->groups.count; i++) {
		if (shown[i])
			show_frame(grouping, &groups[i], shown[i] - 1);
		if (into[i] != i)
			join_group(&groups[into[i]], &groups[i]);
	}
	number_groups(grouping, into);
	for (size_t i = 0; i < grouping->groups.count; i++) {
		const struct group_key key = { .frames = &grouping->sequences.items[groups[i].sequence], .count = 1 };

		groups[i].hash = key_hash(grouping, &key);
	}
	memset(grouping->slots, 0, grouping->slot_count * sizeof(*grouping->slots));
	fill_slots(grouping);
	return 0;
}

/* --- rows --- */

/* A sum's, or a difference's: blocks that live in both snapshots do not differ, so it may be said too large, and never too
 * small. */
static uint64_t size_error(const struct measure *now, const struct measure *old)
{
	return (uint64_t)ceil(sample_error(now->size_variance + old->size_variance, now->samples + old->samples));
}

static uint64_t count_error(const struct measure *now, const struct measure *old)
{
	return (uint64_t)ceil(sample_error(now->count_variance + old->count_variance, now->samples + old->samples));
}

static void take_row(struct group *group, bool is_thread, bool with_diff, struct statistic *ret_row)
{
	*ret_row = (struct statistic){
		.size = group->now.size,
		.count = group->now.count,
		.size_error = size_error(&group->now, &group->old),
		.count_error = count_error(&group->now, &group->old),
		.samples = group->now.samples + group->old.samples,
		.made_size = (int64_t)(group->now.made_size - group->old.made_size),
		.made_count = (int64_t)(group->now.made_count - group->old.made_count),
		.freed_count = (int64_t)(group->now.freed_count - group->old.freed_count),
		.temporary_count = (int64_t)(group->now.temporary_count - group->old.temporary_count),
		.histogram = group->histogram,
		.youngest_ns = group->now.youngest_ns,
		.oldest_ns = group->now.oldest_ns,
		.domain = group->domain,
		.thread = group->thread,
		.is_thread = is_thread,
		.frame_count = group->frame_count,
		.total_frames = group->total_frames,
		.truncated = group->truncated,
	};
	group->histogram = NULL;
	if (!with_diff)
		return;
	ret_row->size_diff = (int64_t)(group->now.size - group->old.size);
	ret_row->count_diff = (int64_t)(group->now.count - group->old.count);
}

/* The oldest one first. */
static struct statistic_frame *take_frames(const struct grouping *grouping, const struct group *group,
					   struct statistic_frame *into)
{
	for (uint32_t i = group->frame_count; i-- > 0; into++) {
		uint32_t number = grouping->sequences.items[group->sequence + i];

		*into = grouping->frames.items[number];
		into->number = number;
	}
	return into;
}

static struct group *group_at(struct grouping *grouping, const uint32_t *order, size_t i)
{
	return &grouping->groups.items[order ? order[i] : i];
}

static void take_totals(const struct grouping *grouping, bool with_diff, struct statistics *into)
{
	struct measure all = { 0 };

	for (size_t i = 0; i < grouping->groups.count; i++)
		measure_add(&all, &(struct measure){ .size = grouping->groups.items[i].now.size });
	into->all_rows = grouping->groups.count;
	into->rows_size = all.size;
	into->total_size = grouping->now.size;
	into->total_count = grouping->now.count;
	into->total_size_error = size_error(&grouping->now, &grouping->old);
	into->total_count_error = count_error(&grouping->now, &grouping->old);
	if (with_diff) {
		into->total_size_diff = (int64_t)(grouping->now.size - grouping->old.size);
		into->total_count_diff = (int64_t)(grouping->now.count - grouping->old.count);
	}
}

/* order: groups, or NULL for their own. */
static int take(struct grouping *grouping, const uint32_t *order, size_t count, bool with_diff,
		struct statistics *into)
{
	struct statistic_frame *frames;
	size_t all_frames = 0;

	for (size_t i = 0; i < count; i++)
		all_frames += group_at(grouping, order, i)->frame_count;
	into->rows = malloc((count + 1) * sizeof(*into->rows));
	into->frames = frames = malloc((all_frames + 1) * sizeof(*frames));
	if (!into->rows || !into->frames)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct group *group = group_at(grouping, order, i);

		take_row(group, grouping->query->key == KEY_THREAD, with_diff, &into->rows[i]);
		into->rows[i].frames = frames;
		frames = take_frames(grouping, group, frames);
	}
	into->row_count = count;
	into->frame_numbers = (uint32_t)grouping->frames.count;
	into->has_churn = grouping->query->churn;
	into->sort = grouping->query->sort;
	into->has_ages = grouping->query->ages.given;
	into->has_histograms = grouping->query->histogram;
	take_totals(grouping, with_diff, into);
	return 0;
}

int grouping_take_all(struct grouping *grouping, struct statistics *into)
{
	return take(grouping, NULL, grouping->groups.count, false, into);
}

int grouping_take_first(struct grouping *grouping, bool with_diff, struct statistics *into)
{
	uint32_t *order;
	size_t count;
	int r = grouping_rank(grouping, with_diff, &order, &count);

	if (r < 0)
		return r;
	r = take(grouping, order, count, with_diff, into);
	free(order);
	return r;
}
