#include "unwind/trail.h"

#include <errno.h>
#include <stdlib.h>

int trails_init(struct trails *trails)
{
	trails->trails = calloc(TRAILS, sizeof(*trails->trails));
	if (!trails->trails)
		return -ENOMEM;
	for (unsigned int i = 0; i < TRAILS; i++)
		trails->trails[i].frames[0].sp = UINT64_MAX;
	return 0;
}

void trails_fini(struct trails *trails)
{
	free(trails->trails);
	*trails = (struct trails){ 0 };
}

size_t trails_memory(void)
{
	return TRAILS * sizeof(struct trail);
}

void trails_forget(struct trails *trails)
{
	for (unsigned int i = 0; i < TRAILS; i++)
		trails->trails[i].count = 0;
}

struct trail *trails_find(struct trails *trails, raddr sp)
{
	return &trails->trails[(sp >> 16) % TRAILS];
}

static uint64_t word_at(const struct stack_window *window, raddr at)
{
	return stack_copy_load(window->bytes + (at - window->start));
}

bool trail_holds(const struct trail *trail, uint32_t from, const struct stack_window *window)
{
	const struct trail_frame *frames = trail->frames;
	uint64_t differ = 0;

	/* Everything that is compared lies between the two sps: a frame keeps its caller's registers. */
	if (frames[from].sp - window->start > window->len || frames[1].sp - window->start > window->len)
		return false;
	for (uint32_t i = from; i > 1; i--) {
		const struct trail_frame *frame = &frames[i], *caller = &frames[i - 1];

		differ |= word_at(window, caller->sp - 8) ^ caller->pc;
		if (frame->bp_offset != 0)
			differ |= word_at(window, caller->sp + (uint64_t)(int64_t)frame->bp_offset) ^ caller->bp;
	}
	return differ == 0;
}
