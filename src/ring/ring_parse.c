/* What a record's bytes say, which the program may write to meanwhile. */
#include "ring/ring_private.h"

#include <string.h>

/* Whether a record of this length may be there, with so much stack behind its fixed part. */
static bool has_room(const struct ring_record *record, uint64_t length, uint64_t most, uint64_t fixed)
{
	uint64_t stacks = (uint64_t)record->stack_length + record->other_length;

	return length % RING_UNIT == 0 && length <= most && record->stack_length <= RING_STACK_MAX &&
	       record->other_length <= RING_STACK_MAX && stacks % 8 == 0 && length >= fixed + stacks;
}

static void take_lengths(struct ring_record *record, uint32_t length, uint32_t first_length, uint64_t other_start)
{
	record->stack_length = length;
	if (other_start == 0 || first_length > length || first_length % 8 != 0)
		return;
	record->stack_length = first_length;
	record->other_length = length - first_length;
	record->other_start = other_start;
}

static bool take_stack_of_call(const uint8_t *at, uint32_t length, uint64_t most, struct ring_record *record)
{
	const struct ring_call_within *part = (const void *)at;

	take_lengths(record, RING_LOAD(part, stack_length), RING_LOAD(part, first_length), RING_LOAD(part, other_start));
	if (!has_room(record, length, most, sizeof(*part)))
		return false;
	record->has_stack = true;
	record->stack_start = part->stack_start;
	memcpy(record->saved, part->saved, sizeof(record->saved));
	record->stack = (const uint8_t *)part->stack;
	return true;
}

static bool take_call(const uint8_t *at, uint32_t length, uint64_t most, struct ring_record *record)
{
	const struct ring_call *call = (const void *)at;

	record->return_address = call->return_address;
	memcpy(record->args, call->args, sizeof(record->args));
	return length == sizeof(*call) || take_stack_of_call(at, length, most, record);
}

static bool take_return(const uint8_t *at, uint32_t length, uint64_t most, struct ring_record *record)
{
	const struct ring_return *part = (const void *)at;

	take_lengths(record, RING_LOAD(part, stack_length), RING_LOAD(part, first_length), RING_LOAD(part, other_start));
	if (!has_room(record, length, most, sizeof(*part)))
		return false;
	record->has_stack = true;
	record->time = part->time;
	record->result = part->result;
	record->length_key = part->length_key;
	record->thread_pointer = record->sp + 8 * (uint64_t)part->pointer_words;
	memcpy(record->saved, part->saved, sizeof(record->saved));
	record->stack = (const uint8_t *)part->stack;
	return true;
}

void ring_parse_site(uint32_t site, struct ring_record *record)
{
	record->site = site & RING_NUMBER_MASK;
	record->is_return = (site & RING_RETURN) != 0;
	record->stored = record->is_return && (site & RING_STORED);
	record->unsampled = !record->is_return && (site & RING_UNSAMPLED);
	record->nested = record->unsampled && (site & RING_NESTED);
}

/* Filled in where it is to be, straight from the ring, and what others have is left as it is: to clear all of it, or to copy it, takes
 * longer than all else here. */
uint32_t ring_parse(const uint8_t *at, uint64_t most, struct ring_record *record)
{
	struct ring_head head;
	bool is_whole;

	memcpy(&head, at, sizeof(head));
	record->thread = head.thread;
	record->sp = head.sp;
	record->has_stack = false;
	record->stack_length = record->other_length = 0;
	record->other_start = 0;
	ring_parse_site(head.site, record);
	is_whole = record->is_return ? take_return(at, head.length, most, record) : take_call(at, head.length, most, record);
	return is_whole ? head.length : 0;
}
