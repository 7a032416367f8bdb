#include "ring/ring_eye.h"

#include "ring/ring_private.h"

struct ring_eye ring_eye(const struct ring *ring)
{
	return (struct ring_eye){ .data = ring->data, .head = &ring->control->head, .size = ring->size, .key = ring->key };
}

uint64_t ring_eye_reserved(const struct ring_eye *eye, uint64_t position)
{
	uint64_t bytes = __atomic_load_n(eye->head, __ATOMIC_ACQUIRE) - position;

	return bytes <= eye->size && bytes % RING_UNIT == 0 ? bytes : 0;
}

static const uint8_t *record_at(const struct ring_eye *eye, uint64_t position)
{
	return eye->data + (position & (eye->size - 1));
}

static bool is_committed(const struct ring_eye *eye, uint64_t position)
{
	const struct ring_head *head = (const void *)record_at(eye, position);

	/* Acquire: as the reader's. */
	return __atomic_load_n(&head->mark, __ATOMIC_ACQUIRE) == ((position ^ eye->key) | RING_COMMITTED);
}

/* Of what is void only the length is asked; it may lead anywhere in the ring. */
static uint32_t length_of_void(const struct ring_eye *eye, uint64_t position)
{
	const struct ring_head *head = (const void *)record_at(eye, position);
	uint32_t length = RING_LOAD(head, length);

	return length % RING_UNIT == 0 && length <= eye->size ? length : 0;
}

bool ring_eye_look(const struct ring_eye *eye, uint64_t position, struct ring_record *ret_record, uint32_t *ret_length)
{
	const struct ring_head *head = (const void *)record_at(eye, position);
	uint32_t length;

	if (!is_committed(eye, position))
		return false;
	ret_record->position = position;
	if (RING_LOAD(head, site) == RING_VOID) {
		ret_record->is_return = ret_record->has_stack = false;
		ret_record->site = RING_VOID;
		length = length_of_void(eye, position);
	} else {
		length = ring_parse(record_at(eye, position), eye->size, ret_record);
	}
	*ret_length = length;
	return length > 0;
}

bool ring_eye_find(const struct ring_eye *eye, uint64_t *position, uint64_t end)
{
	for (uint64_t at = *position; at < end; at += RING_UNIT) {
		if (!is_committed(eye, at))
			continue;
		*position = at;
		return true;
	}
	return false;
}
