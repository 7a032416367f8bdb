#include "target/bp.h"

#include "target/resident.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t int3 = ARCH_BREAKPOINT_BYTE;

static struct breakpoint **chain(const struct target *target, raddr address)
{
	return &target->bp_hash[hash_u64(address) & (target->bp_hash_size - 1)];
}

struct breakpoint *bp_find(const struct target *target, raddr address)
{
	struct breakpoint *bp;

	if (target->bp_hash_size == 0)
		return NULL;
	for (bp = *chain(target, address); bp && bp->address != address; bp = bp->hash_next)
		;
	return bp;
}

static int grow_hash(struct target *target)
{
	size_t size = target->bp_hash_size ? target->bp_hash_size * 2 : 256;
	struct breakpoint **hash = calloc(size, sizeof(struct breakpoint *));

	if (!hash)
		return -ENOMEM;
	free(target->bp_hash);
	target->bp_hash = hash;
	target->bp_hash_size = size;
	for (size_t i = 0; i < target->breakpoints.count; i++) {
		struct breakpoint *bp = target->breakpoints.items[i];

		bp->hash_next = *chain(target, bp->address);
		*chain(target, bp->address) = bp;
	}
	return 0;
}

/* Without a slot, and not in the hash yet. */
static struct breakpoint *bp_new(struct target *target, raddr address, uint32_t module, const uint8_t *text,
				 size_t text_len, int *ret_error)
{
	struct breakpoint *bp, **slot;

	*ret_error = -ENOSPC;
	if (target->breakpoints.count >= BREAKPOINTS_MAX)
		return NULL;
	*ret_error = -ENOMEM;
	if (target->breakpoints.count >= target->bp_hash_size && grow_hash(target) < 0)
		return NULL;
	bp = calloc(1, sizeof(*bp));
	slot = bp ? vec_push(&target->breakpoints) : NULL;
	target->text_changes++;
	if (!slot) {
		free(bp);
		return NULL;
	}
	*slot = bp;
	bp->address = address;
	bp->module = module;
	bp->original = text[0];
	memcpy(bp->text, text, text_len);
	bp->text_len = (uint32_t)text_len;
	return bp;
}

static void add_to_hash(struct target *target, struct breakpoint *bp)
{
	bp->hash_next = *chain(target, bp->address);
	*chain(target, bp->address) = bp;
}

static void note_planted(struct target *target, struct breakpoint *bp)
{
	bp->planted = bp->was_planted = true;
	if (target->bp_lowest == 0 || bp->address < target->bp_lowest)
		target->bp_lowest = bp->address;
	if (bp->address > target->bp_highest)
		target->bp_highest = bp->address;
}

int bp_prepare(struct target *target, raddr address, uint32_t module, const uint8_t *text, size_t text_len,
	       struct breakpoint **ret_bp, const char **ret_reason)
{
	struct breakpoint *bp = bp_find(target, address);
	uint8_t memory[sizeof(bp->text)];
	int r;

	if (bp) {
		*ret_bp = bp;
		return -EEXIST;
	}
	if (text_len > sizeof(bp->text))
		text_len = sizeof(bp->text);
	r = target_read(target, address, memory, text_len);
	if (r < 0)
		return r;
	if (memory[0] != text[0])
		return -EBUSY;
	bp = bp_new(target, address, module, text, text_len, &r);
	if (!bp)
		return r;
	r = resident_add_slot(target, bp, ret_reason);
	if (r < 0) {
		target->breakpoints.count--;
		free(bp);
		return r;
	}
	add_to_hash(target, bp);
	*ret_bp = bp;
	return 0;
}

int bp_adopt(struct target *target, raddr address, uint32_t module, const uint8_t *text, size_t text_len,
	     raddr slot)
{
	struct breakpoint *bp = bp_find(target, address);
	int r;

	if (bp)
		return -EEXIST;
	bp = bp_new(target, address, module, text, text_len < sizeof(bp->text) ? text_len : sizeof(bp->text), &r);
	if (!bp)
		return r;
	bp->slot = slot;
	add_to_hash(target, bp);
	note_planted(target, bp);
	return 0;
}

int bp_plant(struct target *target, struct breakpoint *bp)
{
	uint8_t there;
	int r;

	if (bp->planted)
		return 0;
	r = target_read(target, bp->address, &there, 1);
	if (r < 0)
		return r;
	if (there != bp->original)
		return -EBUSY;
	r = target_write(target, bp->address, &int3, 1);
	if (r < 0)
		return r;
	note_planted(target, bp);
	return 0;
}

/* What really stands in memory, our own int3 not hidden.  One that is not seen for another reason than that its memory
 * is gone would be left behind. */
static int read_raw(struct target *target, const struct breakpoint *bp, uint8_t *ret_byte)
{
	return target_read_surely(target, bp->address, ret_byte, 1);
}

unsigned bp_restore_all(struct target *target)
{
	unsigned left = 0;

	for (size_t i = 0; i < target->breakpoints.count; i++) {
		struct breakpoint *bp = target->breakpoints.items[i];
		uint8_t there;

		if (!bp->planted)
			continue;
		if (read_raw(target, bp, &there) < 0)
			continue;                      /* unmapped: nothing to restore */
		bp->planted = false;
		if (there == ARCH_BREAKPOINT_BYTE && target_write(target, bp->address, &bp->original, 1) < 0)
			left++;
	}
	return left;
}

unsigned bp_verify(struct target *target, bool replant)
{
	unsigned missing = 0;

	for (size_t i = 0; i < target->breakpoints.count; i++) {
		struct breakpoint *bp = target->breakpoints.items[i];
		uint8_t there;

		if (!bp->planted || read_raw(target, bp, &there) < 0 || there == ARCH_BREAKPOINT_BYTE)
			continue;
		missing++;
		if (replant && there == bp->original)
			target_write(target, bp->address, &int3, 1);
	}
	return missing;
}

static void unlink_from_hash(struct target *target, struct breakpoint *bp)
{
	struct breakpoint **link = chain(target, bp->address);

	while (*link != bp)
		link = &(*link)->hash_next;
	*link = bp->hash_next;
}

void bp_drop_module(struct target *target, uint32_t module)
{
	for (size_t i = target->breakpoints.count; i-- > 0;) {
		struct breakpoint *bp = target->breakpoints.items[i];

		if (bp->module != module)
			continue;
		unlink_from_hash(target, bp);
		resident_drop_slot(target, bp);
		vec_remove_unordered(&target->breakpoints, i);
		free(bp);
	}
}

int bp_take_out(struct target *target, struct breakpoint *bp)
{
	uint8_t there;
	int r = bp->planted ? read_raw(target, bp, &there) : 0;

	if (r == 0 && bp->planted && there == ARCH_BREAKPOINT_BYTE)
		r = target_write(target, bp->address, &bp->original, 1);
	if (r < 0)
		return r;
	unlink_from_hash(target, bp);
	resident_drop_slot(target, bp);
	for (size_t i = 0; i < target->breakpoints.count; i++) {
		if (target->breakpoints.items[i] == bp) {
			vec_remove_unordered(&target->breakpoints, i);
			break;
		}
	}
	free(bp);
	return 0;
}

void bp_drop_all(struct target *target)
{
	for (size_t i = 0; i < target->breakpoints.count; i++)
		free(target->breakpoints.items[i]);
	target->breakpoints.count = 0;
	free(target->bp_hash);
	target->bp_hash = NULL;
	target->bp_hash_size = 0;
}

void bp_hide(const struct target *target, raddr at, void *buf, size_t len)
{
	/* A read of one stack is far from all text: the common case is two comparisons. */
	if (at > target->bp_highest || at + len <= target->bp_lowest)
		return;
	for (size_t i = 0; i < target->breakpoints.count; i++) {
		const struct breakpoint *bp = target->breakpoints.items[i];

		if (bp->planted && bp->address >= at && bp->address - at < len)
			((uint8_t *)buf)[bp->address - at] = bp->original;
	}
}
