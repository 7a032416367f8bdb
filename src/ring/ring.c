#define _GNU_SOURCE
#include "ring/ring_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- memory --- */

/* The data twice, in one piece of addresses. */
static int map_all(struct ring *ring)
{
	size_t once = RING_CONTROL_SIZE + ring->size;
	void *again;

	ring->mapping = mmap(NULL, ring_mapping_size(ring), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring->mapping == MAP_FAILED) {
		ring->mapping = NULL;
		return -errno;
	}
	if (mmap(ring->mapping, once, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ring->fd, 0) == MAP_FAILED)
		return -errno;
	again = mmap(ring->mapping + once, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ring->fd,
		     RING_CONTROL_SIZE);
	return again == MAP_FAILED ? -errno : 0;
}

static int fill_control(struct ring *ring)
{
	struct ring_control *control = ring->control;

	if (getrandom(&ring->key, sizeof(ring->key), 0) != sizeof(ring->key))
		return -errno;
	ring->key &= ~(uint64_t)(RING_UNIT - 1);
	memcpy(control->magic, RING_MAGIC, RING_MAGIC_SIZE);
	control->size = ring->size;
	control->key = ring->key;
	control->thread_mask = UINT64_MAX;
	return 0;
}

static int make_memory(uint64_t size, int *ret_fd)
{
	int fd = memfd_create("allocwatch-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)(RING_CONTROL_SIZE + size)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Memory that could be cut short would be the reader's end, by SIGBUS. */
static bool is_sealed(int fd, uint64_t size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_size >= RING_CONTROL_SIZE + size;
}

static int open_ring(struct ring *ring)
{
	int r = is_sealed(ring->fd, ring->size) ? map_all(ring) : -EINVAL;

	if (r < 0)
		return r;
	ring->control = (struct ring_control *)(void *)ring->mapping;
	ring->data = ring->mapping + RING_CONTROL_SIZE;
	return fill_control(ring);
}

static bool is_size(uint64_t size)
{
	return size >= RING_SIZE_MIN && size <= RING_SIZE_MAX && (size & (size - 1)) == 0;
}

int ring_open(int fd, uint64_t size, struct ring **ret_ring)
{
	struct ring *ring = is_size(size) ? calloc(1, sizeof(*ring)) : NULL;
	int r;

	if (!ring) {
		close(fd);
		return is_size(size) ? -ENOMEM : -EINVAL;
	}
	ring->fd = fd;
	ring->size = size;
	r = open_ring(ring);
	if (r < 0) {
		ring_free(ring);
		return r;
	}
	*ret_ring = ring;
	return 0;
}

int ring_new(uint64_t size, struct ring **ret_ring)
{
	int fd = -1, r = is_size(size) ? make_memory(size, &fd) : -EINVAL;

	return r < 0 ? r : ring_open(fd, size, ret_ring);
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	if (ring->mapping)
		munmap(ring->mapping, ring_mapping_size(ring));
	if (ring->fd >= 0)
		close(ring->fd);
	free(ring);
}

int ring_fd(const struct ring *ring)
{
	return ring->fd;
}

size_t ring_mapping_size(const struct ring *ring)
{
	return RING_CONTROL_SIZE + 2 * (size_t)ring->size;
}

struct ring_control *ring_control(struct ring *ring)
{
	return ring->control;
}

/* --- reading --- */

/* Every store is a cache miss for each writer: seldom, unless there is nothing else to do. */
static void publish(struct ring *ring, uint64_t at_least)
{
	if (ring->position - ring->published < at_least)
		return;
	ring->published = ring->position;
	/* Release: what was read is read before it may be overwritten. */
	__atomic_store_n(&ring->control->tail, ring->published, __ATOMIC_RELEASE);
}

/* 1: something has been reserved at the position, 0: nothing. */
static int look_at_head(struct ring *ring)
{
	if (ring->head != ring->position)
		return 1;
	ring->head = __atomic_load_n(&ring->control->head, __ATOMIC_ACQUIRE);
	if (ring->head - ring->position > ring->size || ring->head % RING_UNIT != 0) {
		ring->head = ring->position;
		return -EBADMSG;
	}
	return ring->head != ring->position;
}

static const uint8_t *record_at(const struct ring *ring, uint64_t position)
{
	return ring->data + (position & (ring->size - 1));
}

static uint64_t mark_at(const struct ring *ring, uint64_t position)
{
	const struct ring_head *head = (const void *)record_at(ring, position);

	/* Acquire: pairs with the writer's last store; what stands in the record was written before it. */
	return __atomic_load_n(&head->mark, __ATOMIC_ACQUIRE);
}

static int take_record(struct ring *ring, struct ring_record *record)
{
	uint32_t length = ring_parse(record_at(ring, record->position), ring->head - record->position, record);

	ring->length = length;
	return length > 0 ? 0 : -EBADMSG;
}

/* What is known of one that is not committed. */
static int tell_unfinished(const struct ring *ring, uint64_t mark, struct ring_record *record)
{
	struct ring_head head = { 0 };

	if (mark == ((record->position ^ ring->key) | RING_OPEN))
		memcpy(&head, record_at(ring, record->position), sizeof(head));
	record->thread = head.thread;
	ring_parse_site(head.site, record);
	return -EAGAIN;
}

/* Of what was given up before it was written. */
static bool pass_void(struct ring *ring)
{
	struct ring_head head;

	memcpy(&head, record_at(ring, ring->position), sizeof(head));
	if (head.mark != ((ring->position ^ ring->key) | RING_COMMITTED) || head.site != RING_VOID || head.length == 0 ||
	    head.length % RING_UNIT != 0 || head.length > ring->head - ring->position)
		return false;
	ring->position += head.length;
	publish(ring, ring->size / 8);
	return true;
}

int ring_next(struct ring *ring, struct ring_record *ret_record)
{
	uint64_t began = ring->position, mark;
	int r = look_at_head(ring);

	/* Once around the ring at most: a program that writes nothing else must not keep its reader here. */
	while (r > 0 && pass_void(ring))
		r = ring->position - began < ring->size ? look_at_head(ring) : 0;
	ring->length = 0;
	if (r <= 0) {
		publish(ring, 1);
		return r;
	}
	ret_record->position = ring->position;
	mark = mark_at(ring, ring->position);
	if (mark == ((ring->position ^ ring->key) | RING_COMMITTED)) {
		r = take_record(ring, ret_record);
		return r == 0 ? 1 : r;
	}
	publish(ring, 1);
	return tell_unfinished(ring, mark, ret_record);
}

uint64_t ring_reserved(const struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->control->head, __ATOMIC_ACQUIRE);

	return head - ring->position > ring->size ? ring->position + ring->size : head;
}

uint64_t ring_position(const struct ring *ring)
{
	return ring->position;
}

void ring_done(struct ring *ring)
{
	ring->position += ring->length;
	ring->length = 0;
	publish(ring, ring->size / 8);
}

/* --- what was left half-written --- */

static bool is_marked(const struct ring *ring, uint64_t position)
{
	uint64_t mark = mark_at(ring, position) ^ ring->key ^ position;

	return mark == RING_OPEN || mark == RING_COMMITTED;
}

/* Of the piece at this position, as it says itself; 0: it cannot be that long. */
static uint32_t told_length(const struct ring *ring, uint64_t position)
{
	const struct ring_head *head = (const void *)record_at(ring, position);
	uint32_t length = RING_LOAD(head, length);

	return length % RING_UNIT == 0 && length <= ring->head - position ? length : 0;
}

uint64_t ring_skip(struct ring *ring)
{
	uint64_t began = ring->position, length = 0;

	if (look_at_head(ring) <= 0)
		return 0;
	/* Behind one that says its length another may have been reserved whose writer has said nothing yet. */
	if (mark_at(ring, began) == ((began ^ ring->key) | RING_OPEN))
		length = told_length(ring, began);
	ring->position += length;
	while (length == 0 && ring->position != ring->head && (ring->position == began || !is_marked(ring, ring->position)))
		ring->position += RING_UNIT;
	ring->length = 0;
	publish(ring, ring->size / 8);
	return ring->position - began;
}

static bool look_from(struct ring *ring, uint64_t position)
{
	ring->head = __atomic_load_n(&ring->control->head, __ATOMIC_ACQUIRE);
	if (ring->head - ring->position <= ring->size && ring->head % RING_UNIT == 0)
		return position - ring->position <= ring->head - ring->position;
	ring->head = ring->position;
	return false;
}

bool ring_find_unfinished(struct ring *ring, uint64_t *position, uint64_t *ret_thread)
{
	uint64_t at = *position;
	struct ring_record record = { .thread = 0 };

	if (!look_from(ring, at))
		return false;
	while (at != ring->head) {
		uint64_t mark = mark_at(ring, at);
		uint32_t length = told_length(ring, at);

		if (mark != ((at ^ ring->key) | RING_COMMITTED)) {
			record.position = at;
			tell_unfinished(ring, mark, &record);
			*position = at;
			*ret_thread = record.thread;
			return true;
		}
		if (length == 0)
			return false;
		at += length;
	}
	return false;
}

void ring_make_void(struct ring *ring, uint64_t position)
{
	struct ring_head *head = (struct ring_head *)(uintptr_t)record_at(ring, position);
	uint32_t length;

	if (!look_from(ring, position) || position == ring->head)
		return;
	length = is_marked(ring, position) ? told_length(ring, position) : 0;
	if (length == 0) {
		do
			length += RING_UNIT;
		while (position + length != ring->head && !is_marked(ring, position + length));
	}
	head->length = length;
	head->site = RING_VOID;
	__atomic_store_n(&head->mark, (position ^ ring->key) | RING_COMMITTED, __ATOMIC_RELEASE);
}

/* --- what is pending --- */

static struct ring_slot *slot_of(struct ring *ring, uint64_t thread)
{
	return &ring->control->slots[thread & (RING_SLOTS - 1)];
}

static uint64_t *find_pending(struct ring_slot *slot, uint64_t sp)
{
	for (unsigned i = 0; i < RING_PENDING_MAX; i++) {
		if (__atomic_load_n(&slot->sp[i], __ATOMIC_RELAXED) == sp)
			return &slot->sp[i];
	}
	return NULL;
}

/* It is the thread's, or nobody's. */
static bool is_slot_for(const struct ring_slot *slot, uint64_t thread)
{
	bool is_free = __atomic_load_n(&slot->thread, __ATOMIC_RELAXED) == thread;

	for (unsigned i = 0; !is_free && i < RING_PENDING_MAX; i++) {
		if (__atomic_load_n(&slot->sp[i], __ATOMIC_RELAXED) != 0)
			return false;
	}
	return true;
}

/* Another thread's stays: what is missing of this one is seen, and told. */
void ring_note_pending(struct ring *ring, uint64_t thread, uint64_t sp)
{
	struct ring_slot *slot = slot_of(ring, thread);
	uint64_t *place = find_pending(slot, sp);

	if (place || !is_slot_for(slot, thread))
		return;
	place = find_pending(slot, 0);
	if (!place)
		return;
	__atomic_store_n(&slot->thread, thread, __ATOMIC_RELAXED);
	__atomic_store_n(place, sp, __ATOMIC_RELEASE);
}

void ring_note_returned(struct ring *ring, uint64_t thread, uint64_t sp)
{
	struct ring_slot *slot = slot_of(ring, thread);
	uint64_t *place = find_pending(slot, sp);

	if (place && __atomic_load_n(&slot->thread, __ATOMIC_RELAXED) == thread)
		__atomic_store_n(place, 0, __ATOMIC_RELEASE);
}

void ring_forget_thread(struct ring *ring, uint64_t thread)
{
	struct ring_slot *slot = slot_of(ring, thread);

	for (unsigned i = 0; i < RING_PENDING_MAX && __atomic_load_n(&slot->thread, __ATOMIC_RELAXED) == thread; i++)
		__atomic_store_n(&slot->sp[i], 0, __ATOMIC_RELEASE);
}

/* --- the loader's hook --- */

void ring_serve_hook(struct ring *ring, uint64_t position)
{
	/* An earlier one may be served later. */
	if (position + 1 > ring->hook_served)
		ring->hook_served = position + 1;
	/* Release: what was planted for it is there before. */
	__atomic_store_n(&ring->control->hook_served, ring->hook_served, __ATOMIC_RELEASE);
	syscall(SYS_futex, &ring->control->hook_served, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- lengths, losses --- */

static uint16_t units_of(uint64_t bytes)
{
	if (bytes > RING_STACK_MAX)
		bytes = RING_STACK_MAX;
	return (uint16_t)((bytes + RING_UNIT - 1) / RING_UNIT);
}

static uint32_t entry_of(uint32_t key, uint16_t units)
{
	return (uint32_t)units << 16 | (key >> RING_KEY_TAG_SHIFT & UINT16_MAX);
}

static size_t set_of(uint32_t key)
{
	return (size_t)(key >> RING_KEY_SET_SHIFT) * RING_LENGTHS_WAYS;
}

static uint32_t entry_at(const struct ring *ring, size_t i)
{
	return __atomic_load_n(&ring->control->lengths[i], __ATOMIC_RELAXED);
}

static void set_entry(struct ring *ring, size_t i, uint32_t key, uint16_t units)
{
	__atomic_store_n(&ring->control->lengths[i], entry_of(key, units), __ATOMIC_RELAXED);
}

/* RING_LENGTHS: it has none.  The first one is found first, as the program does. */
static size_t find_entry(const struct ring *ring, uint32_t key)
{
	size_t first = set_of(key);

	for (size_t i = first; i < first + RING_LENGTHS_WAYS; i++)
		if ((uint16_t)entry_at(ring, i) == (uint16_t)entry_of(key, 0))
			return i;
	return RING_LENGTHS;
}

/* Its entry, or that of another place, which is known no more. */
static size_t take_entry(struct ring *ring, uint32_t key)
{
	size_t i = find_entry(ring, key);

	if (i != RING_LENGTHS)
		return i;
	i = set_of(key) + ring->taken++ % RING_LENGTHS_WAYS;
	ring->too_short[i] = 0;
	return i;
}

void ring_set_stack_length(struct ring *ring, uint32_t key, uint64_t bytes)
{
	size_t i = take_entry(ring, key);
	uint64_t least = (uint64_t)ring->too_short[i] * RING_GROWTH * RING_UNIT;

	set_entry(ring, i, key, units_of(bytes > least ? bytes : least));
}

void ring_note_too_short(struct ring *ring, uint32_t key)
{
	uint16_t units = units_of(ring_stack_length(ring, key));
	size_t i = take_entry(ring, key);

	if (ring->too_short[i] < units && units < units_of(RING_STACK_MAX))
		ring->too_short[i] = units;
	set_entry(ring, i, key, units_of(RING_STACK_MAX));
}

void ring_set_all_stack_lengths(struct ring *ring, uint64_t bytes)
{
	uint16_t units = units_of(bytes);

	ring->unknown_length = units * RING_UNIT;
	__atomic_store_n(&ring->control->unknown_length, ring->unknown_length, __ATOMIC_RELAXED);
	for (size_t i = 0; i < RING_LENGTHS; i++)
		set_entry(ring, i, 0, units);
	memset(ring->too_short, 0, sizeof(ring->too_short));
}

uint64_t ring_stack_length(const struct ring *ring, uint32_t key)
{
	size_t i = find_entry(ring, key);

	return i == RING_LENGTHS ? ring->unknown_length : (uint64_t)(entry_at(ring, i) >> 16) * RING_UNIT;
}

uint64_t ring_take_lost(struct ring *ring)
{
	uint64_t lost = __atomic_load_n(&ring->control->lost, __ATOMIC_RELAXED), since = lost - ring->lost;

	ring->lost = lost;
	return since;
}

uint64_t ring_waits(const struct ring *ring)
{
	return __atomic_load_n(&ring->control->waits, __ATOMIC_RELAXED);
}
