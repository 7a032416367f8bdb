#include "model/match.h"

#include "base/hash.h"
#include "model/definition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A group by what must be equal of those that are matched. */
struct candidate {
	uint64_t kind;
	uint32_t group;
};

struct match {
	struct grouping *grouping;
	const struct builds *builds;
	bool newest_first;
	uint32_t *into, *shown;               /* see grouping_join() */
	struct candidate *candidates;
	size_t count;
	bool found;
};

static const struct statistic_frame *frame_of(const struct match *match, uint32_t group)
{
	const struct grouping *grouping = match->grouping;

	return &grouping->frames.items[grouping->sequences.items[grouping->groups.items[group].sequence]];
}

static const char *text_of(const struct match *match, uint32_t text)
{
	return strtab_get(match->grouping->strings, text);
}

/* --- which snapshots have it --- */

enum side { SIDE_BOTH, SIDE_EARLIER, SIDE_LATEST };

static enum side side_of(const struct match *match, uint32_t group)
{
	const struct group *of = &match->grouping->groups.items[group];

	if (of->first_round == match->grouping->round)
		return SIDE_LATEST;
	return of->last_round < match->grouping->round ? SIDE_EARLIER : SIDE_BOTH;
}

/* The last one before the latest that has it. */
static size_t earlier_round(const struct match *match, uint32_t group)
{
	return match->grouping->groups.items[group].last_round;
}

static bool is_built_anew(const struct match *match, uint32_t earlier)
{
	return builds_differ(match->builds, text_of(match, frame_of(match, earlier)->object), earlier_round(match, earlier) - 1,
			     match->grouping->round - 1);
}

/* --- what must be equal --- */

static uint64_t hash_object(const struct match *match, const struct statistic_frame *frame)
{
	size_t len;
	const char *name = definition_object_name(text_of(match, frame->object), &len);

	return hash_bytes(name, len);
}

static bool has_same_object(const struct match *match, const struct statistic_frame *a, const struct statistic_frame *b)
{
	size_t a_len, b_len;
	const char *a_name = definition_object_name(text_of(match, a->object), &a_len);
	const char *b_name = definition_object_name(text_of(match, b->object), &b_len);

	return a_len == b_len && memcmp(a_name, b_name, a_len) == 0;
}

/* By what groups are candidates for each other; 0: not at all. */
typedef uint64_t kind_function(const struct match *match, const struct statistic_frame *frame);

static uint64_t kind_of_place(const struct match *match, const struct statistic_frame *frame)
{
	const char *file = frame->has_line ? definition_base_name(text_of(match, frame->name)) : "";

	if (!frame->object)
		return 0;
	return hash_pair(hash_pair(hash_object(match, frame), frame->function), hash_bytes(file, strlen(file))) | 1;
}

static uint64_t kind_of_function(const struct match *match, const struct statistic_frame *frame)
{
	return frame->object && frame->function ? hash_pair(hash_object(match, frame), frame->function) | 1 : 0;
}

static uint64_t kind_of_object(const struct match *match, const struct statistic_frame *frame)
{
	return frame->object ? hash_object(match, frame) | 1 : 0;
}

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->group > b->group) - (a->group < b->group);
}

/* Those that are still groups of their own. */
static void list_candidates(struct match *match, kind_function *kind_of)
{
	match->count = 0;
	for (uint32_t i = 0; i < match->grouping->groups.count; i++) {
		uint64_t kind = match->into[i] == i ? kind_of(match, frame_of(match, i)) : 0;

		if (kind)
			match->candidates[match->count++] = (struct candidate){ kind, i };
	}
	qsort(match->candidates, match->count, sizeof(*match->candidates), compare_candidates);
}

static void for_each_kind(struct match *match, kind_function *kind_of,
			  void (*look)(struct match *match, const struct candidate *candidates, size_t count))
{
	list_candidates(match, kind_of);
	for (size_t i = 0, end; i < match->count; i = end) {
		for (end = i + 1; end < match->count && match->candidates[end].kind == match->candidates[i].kind;)
			end++;
		if (end - i > 1)
			look(match, &match->candidates[i], end - i);
	}
}

/* --- becoming one --- */

static uint32_t root_of(const struct match *match, uint32_t group)
{
	while (match->into[group] != group)
		group = match->into[group];
	return group;
}

/* So that it counts as what both sides have. */
static void take_rounds(struct group *group, const struct group *other)
{
	if (other->first_round < group->first_round)
		group->first_round = other->first_round;
	if (other->last_round > group->last_round)
		group->last_round = other->last_round;
}

/* shown: one more than the group whose frame it is to have. */
static void join(struct match *match, uint32_t a, uint32_t b, uint32_t shown)
{
	uint32_t low = root_of(match, a), high = root_of(match, b);

	if (low > high) {
		low = high;
		high = root_of(match, a);
	}
	match->into[high] = low;
	take_rounds(&match->grouping->groups.items[low], &match->grouping->groups.items[high]);
	match->shown[high] = 0;
	match->shown[low] = shown;
	match->found = true;
}

/* --- files, and objects, that lie elsewhere --- */

struct pairing {
	struct match *match;
	uint32_t earlier[MATCH_MOST], latest[MATCH_MOST];
	size_t earlier_count, latest_count;
	unsigned likeness[MATCH_MOST][MATCH_MOST];      /* earlier, latest; 0: they are none, or one is done with */
};

static unsigned likeness_of(const struct match *match, uint32_t earlier, uint32_t latest)
{
	const struct statistic_frame *a = frame_of(match, earlier), *b = frame_of(match, latest);

	if (a->function != b->function || a->has_line != b->has_line || !has_same_object(match, a, b) ||
	    (a->has_line && strcmp(definition_base_name(text_of(match, a->name)),
				   definition_base_name(text_of(match, b->name))) != 0) ||
	    !is_built_anew(match, earlier))
		return 0;
	return 1 + definition_likeness(text_of(match, a->name), text_of(match, b->name));
}

static void compare_all(struct pairing *pairing)
{
	for (size_t i = 0; i < pairing->earlier_count; i++) {
		for (size_t j = 0; j < pairing->latest_count; j++)
			pairing->likeness[i][j] = likeness_of(pairing->match, pairing->earlier[i], pairing->latest[j]);
	}
}

/* 0: there is none left. */
static unsigned find_best(const struct pairing *pairing)
{
	unsigned best = 0;

	for (size_t i = 0; i < pairing->earlier_count; i++) {
		for (size_t j = 0; j < pairing->latest_count; j++) {
			if (pairing->likeness[i][j] > best)
				best = pairing->likeness[i][j];
		}
	}
	return best;
}

/* How many pairs of that likeness each of them is in. */
static void count_pairs(const struct pairing *pairing, unsigned likeness, unsigned *earlier, unsigned *latest)
{
	for (size_t i = 0; i < pairing->earlier_count; i++) {
		for (size_t j = 0; j < pairing->latest_count; j++) {
			if (pairing->likeness[i][j] != likeness)
				continue;
			earlier[i]++;
			latest[j]++;
		}
	}
}

/* Whoever is in such a pair is done with. */
static void forget(struct pairing *pairing, const unsigned *earlier, const unsigned *latest)
{
	for (size_t i = 0; i < pairing->earlier_count; i++) {
		for (size_t j = 0; j < pairing->latest_count; j++) {
			if (earlier[i] || latest[j])
				pairing->likeness[i][j] = 0;
		}
	}
}

/* Those that have no other as much like them are one. */
static void settle(struct pairing *pairing, unsigned likeness)
{
	struct match *match = pairing->match;
	unsigned earlier[MATCH_MOST] = { 0 }, latest[MATCH_MOST] = { 0 };

	count_pairs(pairing, likeness, earlier, latest);
	for (size_t i = 0; i < pairing->earlier_count; i++) {
		for (size_t j = 0; j < pairing->latest_count; j++) {
			uint32_t newest = match->newest_first ? pairing->earlier[i] : pairing->latest[j];

			if (pairing->likeness[i][j] == likeness && earlier[i] == 1 && latest[j] == 1)
				join(match, pairing->earlier[i], pairing->latest[j], newest + 1);
		}
	}
	forget(pairing, earlier, latest);
}

static void pair_off(struct pairing *pairing)
{
	unsigned best;

	while ((best = find_best(pairing)) > 0)
		settle(pairing, best);
}

static void match_places(struct match *match, const struct candidate *candidates, size_t count)
{
	struct pairing pairing = { .match = match };

	for (size_t i = 0; i < count; i++) {
		enum side side = side_of(match, candidates[i].group);
		uint32_t *list = side == SIDE_EARLIER ? pairing.earlier : pairing.latest;
		size_t *length = side == SIDE_EARLIER ? &pairing.earlier_count : &pairing.latest_count;

		if (side == SIDE_BOTH)
			continue;
		if (*length == MATCH_MOST)
			return;
		list[(*length)++] = candidates[i].group;
	}
	compare_all(&pairing);
	pair_off(&pairing);
}

/* --- one side knows less --- */

/* Joins all, when one side has nothing but that one group that knows less, and the other nothing but such as know more. */
static void join_unlike(struct match *match, const struct candidate *candidates, size_t count, uint32_t less)
{
	enum side side = side_of(match, less);

	for (size_t i = 0; i < count; i++) {
		enum side other = side_of(match, candidates[i].group);

		if (candidates[i].group != less && (other == SIDE_BOTH || other == side))
			return;
	}
	for (size_t i = 0; side != SIDE_BOTH && i < count; i++) {
		if (candidates[i].group != less)
			join(match, less, candidates[i].group, less + 1);
	}
}

static void match_functions(struct match *match, const struct candidate *candidates, size_t count)
{
	uint32_t less = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		if (frame_of(match, candidates[i].group)->has_line)
			continue;
		if (less != UINT32_MAX)
			return;
		less = candidates[i].group;
	}
	if (less != UINT32_MAX)
		join_unlike(match, candidates, count, less);
}

static void match_objects(struct match *match, const struct candidate *candidates, size_t count)
{
	uint32_t less = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct statistic_frame *frame = frame_of(match, candidates[i].group);

		if (side_of(match, candidates[i].group) == SIDE_EARLIER && !is_built_anew(match, candidates[i].group))
			return;
		if (frame->function || frame->has_line)
			continue;
		if (less != UINT32_MAX)
			return;
		less = candidates[i].group;
	}
	if (less != UINT32_MAX)
		join_unlike(match, candidates, count, less);
}

/* --- all of it --- */

static int match_init(struct match *match, struct grouping *grouping, const struct builds *builds, bool newest_first)
{
	size_t groups = grouping->groups.count;

	*match = (struct match){ .grouping = grouping, .builds = builds, .newest_first = newest_first };
	match->into = malloc((groups + 1) * sizeof(*match->into));
	match->shown = calloc(groups + 1, sizeof(*match->shown));
	match->candidates = malloc((groups + 1) * sizeof(*match->candidates));
	if (!match->into || !match->shown || !match->candidates)
		return -ENOMEM;
	for (uint32_t i = 0; i < groups; i++)
		match->into[i] = i;
	return 0;
}

static void match_fini(struct match *match)
{
	free(match->into);
	free(match->shown);
	free(match->candidates);
}

static int match_all(struct match *match)
{
	for_each_kind(match, kind_of_place, match_places);
	for_each_kind(match, kind_of_function, match_functions);
	for_each_kind(match, kind_of_object, match_objects);
	for (uint32_t i = 0; i < match->grouping->groups.count; i++)
		match->into[i] = root_of(match, i);
	return match->found ? grouping_join(match->grouping, match->into, match->shown) : 0;
}

/* Each match is of one at least. */
static bool has_latest(const struct grouping *grouping)
{
	for (size_t i = 0; i < grouping->groups.count; i++) {
		if (grouping->groups.items[i].first_round == grouping->round)
			return true;
	}
	return false;
}

int match_groups(struct grouping *grouping, const struct builds *builds, bool newest_first, uint32_t **ret_into)
{
	struct match match;
	int r;

	*ret_into = NULL;
	if (grouping->round == 1 || !has_latest(grouping))
		return 0;
	r = match_init(&match, grouping, builds, newest_first);
	if (r == 0)
		r = match_all(&match);
	if (r == 0) {
		*ret_into = match.found ? match.into : NULL;
		match.into = match.found ? NULL : match.into;
	}
	match_fini(&match);
	return r;
}
