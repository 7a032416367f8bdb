#define _GNU_SOURCE
/* Where jumps lead that a debugger's breakpoint within them must not change (arch_spared_target): mappings of pads, each a jump to a site.
 * They are where their jumps' bytes say, so there may be something of the program's there already.
 *
 * A jump's note names its pad before that is mapped.  So who heals finds what a tracer that died has left, and takes it out when
 * nothing but pads, or nothing yet, is in it. */
#include "target/jumps.h"

#include "target/jumps_private.h"
#include "target/maps.h"
#include "target/resident_area.h"

#include "target/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PADS_SIZE 65536u
#define PADS_MAX 128                       /* mappings, and places that are taken */

struct jump_pads {
	struct jump_pads *next;
	raddr start;
	enum { PADS_OURS, PADS_PERHAPS, PADS_TAKEN } state;
};

static raddr start_of(raddr pad)
{
	return pad & ~(raddr)(PADS_SIZE - 1);
}

static struct jump_pads *find(const struct target *target, raddr start)
{
	struct jump_pads *pads = target->jump_pads;

	while (pads && pads->start != start)
		pads = pads->next;
	return pads;
}

bool jumps_pads_contain(const struct target *target, raddr pc)
{
	if (!find(target, start_of(pc)))
		return false;
	for (size_t i = 0; i < target->jumps.count; i++) {
		if (target->jumps.items[i].pad == pc)
			return true;
	}
	return false;
}

static struct jump_pads *note(struct target *target, raddr start, int state)
{
	struct jump_pads *pads;
	unsigned count = 0;

	for (pads = target->jump_pads; pads; pads = pads->next)
		count++;
	pads = count < PADS_MAX ? calloc(1, sizeof(*pads)) : NULL;
	if (!pads)
		return NULL;
	*pads = (struct jump_pads){ target->jump_pads, start, state };
	target->jump_pads = pads;
	return pads;
}

/* --- making --- */

/* 1: it is there; 0: something else is; or negative errno. */
static int map_pads(struct target *target, raddr start)
{
	const struct arch_stub_call call = {
		.number = SYS_mmap,
		.args = { start, PADS_SIZE, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, (uint64_t)-1, 0 },
		.data_arg = -1,
	};
	struct jump_pads *pads = find(target, start);
	struct task *task;
	int64_t result;
	int r;

	if (pads)
		return pads->state == PADS_OURS;
	task = inject_find_task(target);
	pads = task ? note(target, start, PADS_PERHAPS) : NULL;
	if (!pads)
		return 0;
	r = inject_syscall(task, target->stub, &call, &result);
	if (r < 0)
		return r;
	pads->state = result == (int64_t)start ? PADS_OURS : PADS_TAKEN;
	/* A kernel before 4.17, which takes the address for a wish. */
	if (result > 0 && result != (int64_t)start)
		r = resident_unmap(task, (raddr)result, PADS_SIZE);
	return r < 0 ? r : pads->state == PADS_OURS;
}

static void forget(struct target *target, const struct jump_pads *pads)
{
	struct jump_pads **link = &target->jump_pads, *gone;

	while (*link != pads)
		link = &(*link)->next;
	gone = *link;
	*link = gone->next;
	free(gone);
}

/* The one that was mapped last, for a pad that is not to be. */
static int unmap_pads(struct target *target, raddr start)
{
	struct task *task = inject_find_task(target);
	int r = task ? resident_unmap(task, start, PADS_SIZE) : -EAGAIN;

	if (r == 0)
		forget(target, find(target, start));
	return r;
}

/* A pad may begin in one mapping and end in the next.  Where that is another's no note will name the first one. */
static int map_for(struct target *target, raddr pad)
{
	const raddr first = start_of(pad), last = start_of(pad + ARCH_JUMP_SIZE - 1);
	const bool is_new = !find(target, first);
	int r = map_pads(target, first);

	if (r > 0 && last != first) {
		r = map_pads(target, last);
		if (r == 0 && is_new)
			r = unmap_pads(target, first);
	}
	return r;
}

/* Jumps at the same distance from their pads have them apart; those at several may not. */
static bool is_used(const struct target *target, raddr pad)
{
	for (size_t i = 0; i < target->jumps.count; i++) {
		const struct jump *jump = &target->jumps.items[i];

		if (jump->pad != 0 && !jump->gone && pad < jump->pad + ARCH_JUMP_SIZE && jump->pad < pad + ARCH_JUMP_SIZE)
			return true;
	}
	return false;
}

/* 1: the jump has this pad; 0: it cannot be had; or negative errno. */
static int try_pad(struct target *target, struct jump *jump, raddr note_at, raddr pad)
{
	uint8_t bytes[ARCH_JUMP_SIZE];
	int r;

	if (pad == ARCH_NOWHERE || is_used(target, pad) || !arch_put_jump(pad, jump->site.at, bytes))
		return 0;
	r = target_write(target, note_at, &pad, sizeof(pad));
	if (r == 0)
		r = map_for(target, pad);
	if (r > 0)
		r = target_write(target, pad, bytes, sizeof(bytes)) < 0 ? -EIO : 1;
	if (r > 0)
		jump->pad = pad;
	return r;
}

/* A call for one was not seen to its end: no others are made. */
static bool is_in_doubt(const struct target *target)
{
	const struct jump_pads *pads = target->jump_pads;

	while (pads && pads->state != PADS_PERHAPS)
		pads = pads->next;
	return pads != NULL;
}

void jumps_spare(struct target *target, struct jump *jump, raddr note_at)
{
	static const raddr none = 0;
	unsigned starts = arch_starts_within(jump->text, jump->site.window_length);
	raddr pad;
	int r = 0;

	if (starts == 0)
		return;
	for (unsigned choice = 0; r == 0 && !is_in_doubt(target) && (pad = arch_spared_target(jump->site.window, starts, choice)) != 0; choice++)
		r = try_pad(target, jump, note_at, pad);
	/* What may be mapped, for all that is known, stays noted. */
	if (r == 0)
		target_write(target, note_at, &none, sizeof(none));
	jump->exposed = r <= 0;
}

size_t jumps_exposed(const struct target *target)
{
	size_t count = 0;

	for (size_t i = 0; i < target->jumps.count; i++)
		count += target->jumps.items[i].exposed && target->jumps.items[i].planted;
	return count;
}

/* --- of a tracer that died --- */

void jumps_adopt_pads(struct target *target, raddr pad)
{
	const raddr starts[] = { start_of(pad), start_of(pad + ARCH_JUMP_SIZE - 1) };

	for (size_t i = 0; pad != 0 && i < 2; i++) {
		if (!find(target, starts[i]))
			note(target, starts[i], PADS_PERHAPS);
	}
}

void jumps_adopt_pad(struct target *target, struct jump *jump, raddr pad)
{
	uint8_t bytes[ARCH_JUMP_SIZE], there[ARCH_JUMP_SIZE];

	/* Of an object that is gone, in whose place another one may be, or not there yet: then the jump is not planted. */
	if (pad != 0 && arch_put_jump(pad, jump->site.at, bytes) && target_read_surely(target, pad, there, sizeof(there)) == 0 &&
	    memcmp(there, bytes, sizeof(bytes)) == 0)
		jump->pad = pad;
}

/* --- going --- */

static bool leads_to_area(const struct target *target, raddr pad, const uint8_t bytes[ARCH_JUMP_SIZE])
{
	int32_t distance;

	memcpy(&distance, bytes + 1, sizeof(distance));
	return bytes[0] == 0xe9 && jumps_area_at(target, pad + ARCH_JUMP_SIZE + (raddr)(int64_t)distance);
}

/* 1, 0, or negative errno.  What cannot be read stays, and with it the areas, by whose notes it is found again. */
static int has_pads_alone(struct target *target, raddr start, uint64_t size)
{
	static uint8_t bytes[PADS_SIZE];
	int r = target_read_surely(target, start, bytes, size);

	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == 0)
			continue;
		/* One may begin before this, or end behind it. */
		if (i + ARCH_JUMP_SIZE <= size && leads_to_area(target, start + i, bytes + i))
			i += ARCH_JUMP_SIZE - 1;
		else if (i >= ARCH_JUMP_SIZE - 1 && i + ARCH_JUMP_SIZE <= size)
			return 0;
	}
	return 1;
}

static bool may_be_pads(const struct map_line *map)
{
	return map->inode == 0 && !map->shared && map->readable && !map->writable && map->executable && map->path[0] == '\0';
}

/* Two mappings side by side are one to the kernel; and of one the program may have put its own over a part. */
static int remove_within(struct target *target, struct task *task, const struct jump_pads *pads, const struct map_line *map)
{
	raddr start = map->start > pads->start ? map->start : pads->start;
	raddr end = map->end < pads->start + PADS_SIZE ? map->end : pads->start + PADS_SIZE;

	int r = start < end ? has_pads_alone(target, start, end - start) : 0;

	return r > 0 ? resident_unmap(task, start, end - start) : r;
}

/* What was mapped as ours may be the program's by now, which maps where it likes: MAP_FIXED takes what is there away. */
int jumps_remove_pads(struct target *target, struct task *task)
{
	struct map_line map;
	struct maps maps;
	int failed = 0, r;

	if (!target->jump_pads)
		return 0;
	r = maps_of(target, &maps);
	if (r < 0)
		return r;
	while (maps_next(&maps.cursor, &map)) {
		for (const struct jump_pads *pads = target->jump_pads; pads && may_be_pads(&map); pads = pads->next) {
			r = pads->state != PADS_TAKEN ? remove_within(target, task, pads, &map) : 0;
			failed = r < 0 ? r : failed;
		}
	}
	maps_close(&maps);
	return failed;
}

void jumps_forget_pads(struct target *target)
{
	while (target->jump_pads) {
		struct jump_pads *pads = target->jump_pads;

		target->jump_pads = pads->next;
		free(pads);
	}
}
