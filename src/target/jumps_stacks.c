/* What threads come back to: words on their stacks that lead into a stretch of code. */
#include "target/attach.h"
#include "target/jumps.h"

#include "target/jumps_private.h"

#include <errno.h>

struct look {
	struct target *target;
	const struct jump_range *ranges;
	size_t count;
	struct jump_range all;                 /* from the first one to the last: most words are in none */
	struct jump_words *found;
};

static struct jump_range range_of_all(const struct jump_range *ranges, size_t count)
{
	struct jump_range all = { UINT64_MAX, 0 };

	for (size_t i = 0; i < count; i++) {
		all.start = ranges[i].start < all.start ? ranges[i].start : all.start;
		all.end = ranges[i].end > all.end ? ranges[i].end : all.end;
	}
	return all;
}

static bool is_in(raddr word, const struct jump_range *range)
{
	return word > range->start && word < range->end;
}

static void note_word(const struct look *look, raddr word)
{
	for (size_t i = 0; i < look->count; i++) {
		raddr *slot = is_in(word, &look->ranges[i]) ? vec_push(&look->found->words) : NULL;

		if (slot)
			*slot = word;
	}
}

static void look_at_words(const struct look *look, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_in(words[i], &look->all))
			note_word(look, words[i]);
	}
}

/* Of a stack that ends before that. */
static void look_at_pages(const struct look *look, const struct target_part *part)
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

static void look_at_stack(void *context, struct task *task, const struct target_part *part)
{
	const struct look *look = context;

	task->is_looked_at = task->regs_known;
	if (part->is_there)
		look_at_words(look, part->buf, part->len / 8);
	else
		look_at_pages(look, part);
}

int jumps_look_at_stacks(struct target *target, const struct jump_range *ranges, size_t count, struct jump_words *ret)
{
	struct look look = { .target = target, .ranges = ranges, .count = count, .all = range_of_all(ranges, count), .found = ret };

	if (!target_holds_all(target))
		return -EBUSY;
	stacks_show(target, JUMP_STACK_LOOK, look_at_stack, &look);
	return 0;
}

void jump_words_fini(struct jump_words *words)
{
	vec_fini(&words->words);
}
