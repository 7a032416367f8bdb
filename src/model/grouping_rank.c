/* The orders of rows. */
#define _GNU_SOURCE             /* qsort_r */
#include "model/grouping.h"
#include "model/utf8.h"

#include <errno.h>
#include <stdlib.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

struct order {
	const struct grouping *grouping;
	bool with_diff;
	enum diff_sort sort;
};

static int compare_frames(const struct grouping *grouping, const struct statistic_frame *a,
			  const struct statistic_frame *b)
{
	if (a->name != b->name)
		return utf8_compare(strtab_get(grouping->strings, a->name), strtab_get(grouping->strings, b->name));
	return COMPARE(a->line, b->line);
}

static const struct statistic_frame *frame_at(const struct grouping *grouping, const struct group *group, uint32_t i)
{
	return &grouping->frames.items[grouping->sequences.items[group->sequence + group->frame_count - 1 - i]];
}

static int compare_functions(const struct grouping *grouping, const struct statistic_frame *a,
			     const struct statistic_frame *b)
{
	if (a->function == b->function)
		return 0;
	return utf8_compare(strtab_get(grouping->strings, a->function), strtab_get(grouping->strings, b->function));
}

/* Tuples of frames, the oldest first. */
static int compare_tracebacks(const struct grouping *grouping, const struct group *a, const struct group *b)
{
	for (uint32_t i = 0; i < a->frame_count && i < b->frame_count; i++) {
		int order = compare_frames(grouping, frame_at(grouping, a, i), frame_at(grouping, b, i));

		if (order != 0)
			return order;
	}
	if (a->frame_count != b->frame_count)
		return COMPARE(a->frame_count, b->frame_count);
	if (a->domain != b->domain)
		return COMPARE(a->domain, b->domain);
	if (a->thread != b->thread)
		return COMPARE(a->thread, b->thread);
	/* A function and a file of one name, or functions of one file. */
	return a->frame_count == 0 ? 0 : compare_functions(grouping, frame_at(grouping, a, 0), frame_at(grouping, b, 0));
}

static uint64_t difference(uint64_t now, uint64_t old)
{
	int64_t by = (int64_t)(now - old);

	return by < 0 ? 0 - (uint64_t)by : (uint64_t)by;
}

/* Statistic: size, count, traceback.  StatisticDiff: abs(size_diff), size, abs(count_diff), count,
 * traceback. */
static int compare_plain(const struct order *order, const struct group *a, const struct group *b)
{
	int r = 0;

	if (order->with_diff)
		r = COMPARE(difference(a->now.size, a->old.size), difference(b->now.size, b->old.size));
	if (r == 0)
		r = COMPARE(a->now.size, b->now.size);
	if (r == 0 && order->with_diff)
		r = COMPARE(difference(a->now.count, a->old.count), difference(b->now.count, b->old.count));
	if (r == 0)
		r = COMPARE(a->now.count, b->now.count);
	return r != 0 ? r : compare_tracebacks(order->grouping, a, b);
}

#define SIGN (1ULL << 63)

static uint64_t change(uint64_t now, uint64_t old)
{
	return (now - old) ^ SIGN;
}

/* What decides between most rows, as a number: the comparison begins with it. */
static uint64_t first_criterion(const struct order *order, const struct group *group)
{
	if (order->with_diff && order->sort == SORT_GROWTH)
		return change(group->now.size, group->old.size);
	if (order->with_diff && order->sort == SORT_SHRINK)
		return ~change(group->now.size, group->old.size);
	if (order->sort == SORT_CHURN)
		return change(group->now.made_count, group->old.made_count);
	return order->with_diff ? difference(group->now.size, group->old.size) : group->now.size;
}

/* And what decides between most others. */
static uint64_t second_criterion(const struct order *order, const struct group *group)
{
	if (order->sort == SORT_CHURN)
		return change(group->now.made_size, group->old.made_size);
	return order->with_diff ? group->now.size : group->now.count;
}

/* Groups are large and lie anywhere: most comparisons do without them. */
struct ranked {
	uint64_t criteria[2];
	uint32_t group;
};

/* Less than 0: a comes first. */
static int compare_ranked(const void *left, const void *right, void *context)
{
	const struct ranked *a = left, *b = right;
	const struct order *order = context;
	const struct group *groups = order->grouping->groups.items;

	for (int i = 0; i < 2; i++) {
		if (a->criteria[i] != b->criteria[i])
			return COMPARE(b->criteria[i], a->criteria[i]);
	}
	return -compare_plain(order, &groups[a->group], &groups[b->group]);
}

/* --- only the first ones are wanted: a heap of these, the last of them on top --- */

static void sift_down(struct ranked *heap, size_t count, size_t at, struct order *order)
{
	for (;;) {
		size_t child = 2 * at + 1;
		struct ranked kept = heap[at];

		if (child >= count)
			return;
		if (child + 1 < count && compare_ranked(&heap[child], &heap[child + 1], order) < 0)
			child++;
		if (compare_ranked(&heap[child], &kept, order) <= 0)
			return;
		heap[at] = heap[child];
		heap[child] = kept;
		at = child;
	}
}

/* Moves the `wanted` first ones to the front, in no order. */
static void select_first(struct ranked *ranked, size_t count, size_t wanted, struct order *order)
{
	for (size_t i = wanted / 2; i-- > 0;)
		sift_down(ranked, wanted, i, order);
	for (size_t i = wanted; i < count; i++) {
		if (compare_ranked(&ranked[i], &ranked[0], order) >= 0)
			continue;
		ranked[0] = ranked[i];
		sift_down(ranked, wanted, 0, order);
	}
}

/* --- all are --- */

#define DIGITS 256

static size_t digit_of(const struct ranked *ranked, int criterion, unsigned shift)
{
	return ranked->criteria[criterion] >> shift & (DIGITS - 1);
}

/* One pass by one byte, the largest first. */
static void sort_by_byte(const struct ranked *from, struct ranked *into, size_t count, int criterion, unsigned shift)
{
	size_t starts[DIGITS] = { 0 }, at = 0;

	for (size_t i = 0; i < count; i++)
		starts[digit_of(&from[i], criterion, shift)]++;
	for (size_t digit = DIGITS; digit-- > 0;) {
		size_t of_digit = starts[digit];

		starts[digit] = at;
		at += of_digit;
	}
	for (size_t i = 0; i < count; i++)
		into[starts[digit_of(&from[i], criterion, shift)]++] = from[i];
}

/* Byte by byte, where bytes differ. */
static void sort_by(struct ranked **ranked, struct ranked **spare, size_t count, int criterion)
{
	uint64_t differing = 0;

	for (size_t i = 1; i < count; i++)
		differing |= (*ranked)[i].criteria[criterion] ^ (*ranked)[0].criteria[criterion];
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct ranked *kept = *ranked;

		if (!(differing >> shift & (DIGITS - 1)))
			continue;
		sort_by_byte(kept, *spare, count, criterion, shift);
		*ranked = *spare;
		*spare = kept;
	}
}

static bool ties(const struct ranked *a, const struct ranked *b)
{
	return a->criteria[0] == b->criteria[0] && a->criteria[1] == b->criteria[1];
}

static void sort_ties(struct ranked *ranked, size_t count, struct order *order)
{
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && ties(&ranked[end], &ranked[i]);)
			end++;
		if (end - i > 1)
			qsort_r(&ranked[i], end - i, sizeof(*ranked), compare_ranked, order);
	}
}

/* By the criteria as numbers, the less important one first; then what is left. */
static int sort_all(struct ranked **ranked, size_t count, struct order *order)
{
	struct ranked *spare = malloc((count + 1) * sizeof(*spare));

	if (!spare)
		return -ENOMEM;
	sort_by(ranked, &spare, count, 1);
	sort_by(ranked, &spare, count, 0);
	sort_ties(*ranked, count, order);
	free(spare);
	return 0;
}

/* --- either --- */

static struct ranked *list_groups(const struct order *order)
{
	size_t count = order->grouping->groups.count;
	struct ranked *ranked = malloc((count + 1) * sizeof(*ranked));

	for (size_t i = 0; ranked && i < count; i++) {
		const struct group *group = &order->grouping->groups.items[i];

		ranked[i] = (struct ranked){ { first_criterion(order, group), second_criterion(order, group) }, (uint32_t)i };
	}
	return ranked;
}

int grouping_rank(const struct grouping *grouping, bool with_diff, uint32_t **ret_order, size_t *ret_count)
{
	struct order order = { grouping, with_diff, grouping->query->sort };
	size_t count = grouping->groups.count, wanted = grouping->query->limit;
	struct ranked *ranked = list_groups(&order);
	uint32_t *numbers;
	int r = 0;

	if (wanted == 0 || wanted > count)
		wanted = count;
	numbers = malloc((wanted + 1) * sizeof(*numbers));
	if (!ranked || !numbers)
		r = -ENOMEM;
	if (r == 0 && wanted < count)
		select_first(ranked, count, wanted, &order);
	if (r == 0)
		r = sort_all(&ranked, wanted, &order);
	for (size_t i = 0; r == 0 && i < wanted; i++)
		numbers[i] = ranked[i].group;
	free(ranked);
	if (r < 0) {
		free(numbers);
		return r;
	}
	*ret_order = numbers;
	*ret_count = wanted;
	return 0;
}

int grouping_order(const struct grouping *grouping, uint32_t a, uint32_t b)
{
	struct order order = { grouping, false, SORT_ABS };

	return -compare_plain(&order, &grouping->groups.items[a], &grouping->groups.items[b]);
}
