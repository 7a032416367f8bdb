/* What threads come back to: words on their stacks that lead into a stretch of code. */
#include "target/attach.h"
#include "target/jumps.h"

#include "target/jumps_private.h"

#include <errno.h>

struct look {
	struct target *target;
	struct jump_range all;                 /* from the first one of code_ranges to the last: most words are in none */
	bool failed;
};

static bool is_in(raddr word, const struct jump_range *range)
{
	return word > range->start && word < range->end;
}

static void note_word(struct look *look, raddr word)
{
	struct target *target = look->target;

	for (size_t i = 0; i < target->code_ranges.count; i++) {
		raddr *slot;

		if (!is_in(word, &target->code_ranges.items[i]))
			continue;
		slot = target->code_words.count < JUMP_WORDS_MAX ? vec_push(&target->code_words) : NULL;
		if (slot)
			*slot = word;
		else
			look->failed = true;
		return;
	}
}

static void look_at_words(struct look *look, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_in(words[i], &look->all))
			note_word(look, words[i]);
	}
}

/* Of a stack that ends before that. */
static void look_at_pages(struct look *look, const struct target_part *part)
{
	raddr at = part->at, end = part->at + part->len;
	uint64_t *words = part->buf;

	while (at < end) {
		uint64_t in_page = JUMPS_PAGE - at % JUMPS_PAGE, length = in_page < end - at ? in_page : end - at;

		if (target_read(look->target, at, words, length) < 0)
			return;
		look_at_words(look, words, length / 8);
		at += length;
	}
}

static bool is_new(const struct task *task)
{
	return !task->is_looked_at;
}

static void look_at_stack(void *context, struct task *task, const struct target_part *part)
{
	struct look *look = context;

	task->is_looked_at = task->regs_known;
	if (part->is_there)
		look_at_words(look, part->buf, part->len / 8);
	else
		look_at_pages(look, part);
}

/* --- what was seen, for as long as the threads stand --- */

static bool any_is_looked_at(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->is_looked_at)
			return true;
	}
	return false;
}

static void forget_seen(struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++)
		target->tasks.items[i]->is_looked_at = false;
	target->code_words.count = 0;
}

/* All code beside it: of that more may be asked in the same stop. */
static struct jump_range whole_code(const struct target *target, const struct jump_range *range)
{
	const struct module_range *module = module_map_find(&target->modules, range->start);

	return module && range->end <= module->end ? (struct jump_range){ module->start, module->end } : *range;
}

static bool is_covered(const struct target *target, const struct jump_range *range)
{
	for (size_t i = 0; i < target->code_ranges.count; i++) {
		const struct jump_range *seen = &target->code_ranges.items[i];

		if (range->start >= seen->start && range->end <= seen->end)
			return true;
	}
	return false;
}

static int cover(struct target *target, const struct jump_range *ranges, size_t count)
{
	if (!any_is_looked_at(target)) {
		target->code_ranges.count = 0;
		forget_seen(target);
	}
	for (size_t i = 0; i < count; i++) {
		struct jump_range *slot;

		if (is_covered(target, &ranges[i]))
			continue;
		slot = vec_push(&target->code_ranges);
		if (!slot)
			return -ENOMEM;
		*slot = whole_code(target, &ranges[i]);
		forget_seen(target);
	}
	return 0;
}

static struct jump_range range_of_all(const struct target *target)
{
	struct jump_range all = { UINT64_MAX, 0 };

	for (size_t i = 0; i < target->code_ranges.count; i++) {
		const struct jump_range *range = &target->code_ranges.items[i];

		all.start = range->start < all.start ? range->start : all.start;
		all.end = range->end > all.end ? range->end : all.end;
	}
	return all;
}

static int take_words(const struct target *target, const struct jump_range *ranges, size_t count, struct jump_words *ret)
{
	for (size_t i = 0; i < target->code_words.count; i++) {
		for (size_t k = 0; k < count; k++) {
			raddr *slot;

			if (!is_in(target->code_words.items[i], &ranges[k]))
				continue;
			slot = vec_push(&ret->words);
			if (!slot)
				return -ENOMEM;
			*slot = target->code_words.items[i];
		}
	}
	return 0;
}

/* Of those that are held. */
static int look_at_held(struct target *target, const struct jump_range *ranges, size_t count)
{
	struct look look = { .target = target };
	int r = cover(target, ranges, count);

	if (r < 0)
		return r;
	look.all = range_of_all(target);
	stacks_show(target, JUMP_STACK_LOOK, is_new, look_at_stack, &look);
	return look.failed ? -E2BIG : 0;
}

void jumps_look_ahead(struct target *target, const struct jump_range *ranges, size_t count)
{
	if (look_at_held(target, ranges, count) < 0)
		forget_seen(target);
}

int jumps_look_at_stacks(struct target *target, const struct jump_range *ranges, size_t count, struct jump_words *ret)
{
	int r;

	if (!target_holds_all(target))
		return -EBUSY;
	r = look_at_held(target, ranges, count);
	if (r == 0)
		r = take_words(target, ranges, count, ret);
	if (r < 0)
		forget_seen(target);
	return r;
}

void jump_words_fini(struct jump_words *words)
{
	vec_fini(&words->words);
}
