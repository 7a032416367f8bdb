#define _GNU_SOURCE
/* The ring engine's part of a target whose tracer is dead: found by its magic, checked against what this version would have made,
 * and taken over. */
#include "target/jumps.h"

#include "target/jumps_private.h"
#include "target/maps.h"

#include <errno.h>
#include <string.h>

#define NOTES_MAX ((RING_CODE_SIZE - sizeof(struct ring_code_header)) / sizeof(struct ring_code_note))

static bool is_plausible(const struct ring_code_note *note)
{
	return note->length > 0 && note->length <= ARCH_WINDOW_MAX && note->record < note->length && note->is_return <= 1 &&
	       note->hands_on <= 1 && note->waits <= RING_WAITS_EXEC && note->allocates <= 1 && note->resizes <= 1 && note->sampled <= 1 &&
	       note->told <= 1 && note->described <= 1 && note->unmaps <= RING_UNMAPS_BY_ADVICE && note->stored <= 1 &&
	       note->old_argument <= RING_WINDOW_NO_ARGUMENT &&
	       note->size_argument <= RING_WINDOW_NO_ARGUMENT && note->count_argument <= RING_WINDOW_NO_ARGUMENT;
}

/* As it was made, it is made again. */
static int adopt_jump(struct target *target, const struct jump_area *area, const struct ring_code_note *note)
{
	const struct module_range *range = module_map_find(&target->modules, note->window);
	const struct ring_window window = {
		.address = note->window, .text = note->text, .length = note->length, .record = note->record,
		.number = note->number, .is_return = note->is_return, .hands_on = note->hands_on,
		.allocates = note->allocates, .resizes = note->resizes, .sampled = note->sampled, .told = note->told,
		.old_argument = note->old_argument, .described = note->described,
		.size_argument = note->size_argument, .count_argument = note->count_argument,
		.sp_below = note->words_below * 8u, .waits = note->waits,
		.unmaps = note->unmaps, .stored = note->stored,
	};
	uint8_t code[RING_SITE_MAX], there[RING_SITE_MAX];
	const char *reason;
	struct jump *jump;
	int r;

	if (!is_plausible(note) || note->site - area->start > RING_CODE_SIZE - RING_SITE_MAX)
		return -EBADMSG;
	jumps_adopt_pads(target, note->pad);
	if (!range)
		return 0;                      /* its object is gone, and the jump with it */
	jump = vec_push(&target->jumps);
	target->text_changes++;
	if (!jump)
		return -ENOMEM;
	*jump = (struct jump){ .module = range->module, .planted = true, .was_planted = true };
	memcpy(jump->text, note->text, sizeof(note->text));
	r = ring_site_build(&window, area->start, note->site, code, &jump->site, &reason);
	if (r == 0)
		r = target_read_surely(target, note->site, there, jump->site.length);
	if (r == 0 && memcmp(code, there, jump->site.length) == 0) {
		jumps_adopt_pad(target, jump, note->pad);
		return 0;
	}
	target->jumps.count--;
	return -EBADMSG;
}

static int adopt_notes(struct target *target, const struct jump_area *area)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < area->notes; i++) {
		struct ring_code_note note;

		r = target_read_surely(target, area->start + RING_CODE_SIZE - (i + 1) * sizeof(note), &note, sizeof(note));
		if (r == 0)
			r = adopt_jump(target, area, &note);
	}
	return r;
}

static int adopt_area(struct target *target, raddr start)
{
	struct ring_code_header header;
	struct jump_area *area;
	int r = target_read_surely(target, start, &header, sizeof(header));

	if (r < 0 || memcmp(header.magic, RING_CODE_MAGIC, RING_CODE_MAGIC_SIZE - 1) != 0)
		return 0;
	/* Of another version: while that stays, so must the ring, which it writes to. */
	if (header.magic[RING_CODE_MAGIC_SIZE - 1] != RING_CODE_MAGIC[RING_CODE_MAGIC_SIZE - 1])
		return -EPROTO;
	if (header.notes > NOTES_MAX)
		return -EBADMSG;
	r = jumps_add_area(target, start, &area);
	if (r < 0)
		return r;
	area->notes = header.notes;
	return adopt_notes(target, area);
}

static bool may_be_area(const struct map_line *map)
{
	uint64_t size = map->end - map->start;

	return map->inode == 0 && !map->shared && !map->writable && map->executable && map->path[0] == '\0' &&
	       (size == RING_CODE_SIZE || size == RING_CODE_SIZE + JUMPS_PAGE);
}

int jumps_adopt(struct target *target)
{
	struct map_line map;
	struct maps maps;
	int r = maps_of(target, &maps);

	if (r < 0)
		return r;
	while (r == 0 && maps_next(&maps.cursor, &map)) {
		jumps_note_ring(target, &map);
		if (may_be_area(&map))
			r = adopt_area(target, map.start);
	}
	maps_close(&maps);
	return r;
}
