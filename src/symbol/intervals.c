#include "symbol/intervals.h"

#include <errno.h>
#include <stdlib.h>

struct sweep {
	VEC_OF(struct interval) open;      /* a stack: the innermost range is last */
	VEC_OF(struct interval) pieces;
	uint64_t done;                     /* all addresses below have their piece */
};

int intervals_add(struct intervals *intervals, uint64_t lo, uint64_t hi, uint32_t rank,
		  uint32_t value)
{
	struct interval *item;

	if (lo >= hi)
		return 0;
	item = vec_push(&intervals->items);
	if (!item)
		return -ENOMEM;
	*item = (struct interval){ lo, hi, rank, value };
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* An outer range comes before the ranges that it holds. */
static int compare_nesting(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	int order = compare(x->lo, y->lo);

	if (order == 0)
		order = compare(y->hi, x->hi);
	if (order == 0)
		order = compare(x->rank, y->rank);
	return order ? order : compare(x->value, y->value);
}

static int emit(struct sweep *sweep, const struct interval *from, uint64_t end)
{
	struct interval *last = NULL;

	if (sweep->done < from->lo)
		sweep->done = from->lo;
	if (end <= sweep->done)
		return 0;
	if (sweep->pieces.count > 0)
		last = &sweep->pieces.items[sweep->pieces.count - 1];
	if (last && last->hi == sweep->done && last->value == from->value) {
		last->hi = end;
	} else {
		last = vec_push(&sweep->pieces);
		if (!last)
			return -ENOMEM;
		*last = (struct interval){ sweep->done, end, from->rank, from->value };
	}
	sweep->done = end;
	return 0;
}

/* Closes what ends at or before `at`, then gives the addresses up to `at` to the range around. */
static int advance(struct sweep *sweep, uint64_t at)
{
	while (sweep->open.count > 0) {
		const struct interval *inner = &sweep->open.items[sweep->open.count - 1];

		if (inner->hi > at)
			return emit(sweep, inner, at);
		if (emit(sweep, inner, inner->hi) < 0)
			return -ENOMEM;
		sweep->open.count--;
	}
	return 0;
}

static int begin(struct sweep *sweep, const struct interval *next)
{
	if (advance(sweep, next->lo) < 0 || vec_reserve(&sweep->open, 1) < 0)
		return -ENOMEM;
	sweep->open.items[sweep->open.count++] = *next;
	return 0;
}

int intervals_flatten(struct intervals *intervals)
{
	struct sweep sweep = { 0 };
	int r = 0;

	if (intervals->items.count > 0)
		qsort(intervals->items.items, intervals->items.count, sizeof(struct interval),
		      compare_nesting);
	for (size_t i = 0; i < intervals->items.count && r == 0; i++)
		r = begin(&sweep, &intervals->items.items[i]);
	if (r == 0)
		r = advance(&sweep, UINT64_MAX);
	vec_fini(&sweep.open);
	if (r < 0) {
		vec_fini(&sweep.pieces);
		return r;
	}
	vec_fini(&intervals->items);
	intervals->items.items = sweep.pieces.items;
	intervals->items.count = sweep.pieces.count;
	intervals->items.space = sweep.pieces.space;
	return 0;
}

const struct interval *intervals_find(const struct intervals *intervals, uint64_t address)
{
	size_t lo = 0, hi = intervals->items.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		const struct interval *item = &intervals->items.items[middle];

		if (address < item->lo)
			hi = middle;
		else if (address >= item->hi)
			lo = middle + 1;
		else
			return item;
	}
	return NULL;
}

void intervals_fini(struct intervals *intervals)
{
	vec_fini(&intervals->items);
}
