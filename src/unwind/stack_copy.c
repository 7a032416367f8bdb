#include "unwind/stack_copy.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE 4096u
#define RED_ZONE 128u      /* below sp a leaf function may keep registers (x86-64 psABI, 3.2.2) */
#define LEARNED_MIN 1024u
#define LEARNED_FIRST 4096u
#define LEARNED_SLACK 256u

int stack_copy_init(struct stack_copy *copy)
{
	uint8_t *bytes = malloc(STACK_WINDOWS * (size_t)STACK_WINDOW_MAX);

	if (!bytes)
		return -ENOMEM;
	*copy = (struct stack_copy){ .learned = LEARNED_FIRST };
	for (unsigned int i = 0; i < STACK_WINDOWS; i++)
		copy->windows[i].bytes = bytes + i * (size_t)STACK_WINDOW_MAX;
	copy->current = &copy->windows[0];
	return 0;
}

void stack_copy_fini(struct stack_copy *copy)
{
	free(copy->windows[0].bytes);
}

void stack_copy_begin(struct stack_copy *copy, const struct reader *reader, raddr sp)
{
	for (unsigned int i = 0; i < STACK_WINDOWS; i++)
		copy->windows[i].len = 0;
	copy->current = &copy->windows[0];
	copy->fetches = 0;
	copy->reader = reader;
	copy->sp = sp;
}

/* Up at once, down slowly: one read too many costs more than some kilobytes too many. */
void stack_copy_learn(struct stack_copy *copy, raddr end)
{
	uint64_t used = end - copy->sp + RED_ZONE;

	if (end < copy->sp || used > STACK_WINDOW_MAX)
		used = STACK_WINDOW_MAX;
	if (used > copy->learned)
		copy->learned = (uint32_t)used + LEARNED_SLACK;
	else
		copy->learned -= (copy->learned - (uint32_t)used) / 64;
	if (copy->learned > STACK_WINDOW_MAX)
		copy->learned = STACK_WINDOW_MAX;
	if (copy->learned < LEARNED_MIN)
		copy->learned = LEARNED_MIN;
}

static raddr *end_slot(struct stack_copy *copy, raddr address)
{
	return &copy->ends[(address / STACK_WINDOW_MAX) % STACK_ENDS];
}

/* Cuts a read that would cross an end of memory met before: it may be out of date, which then costs
 * one more read. */
static uint32_t cut_at_known_end(struct stack_copy *copy, raddr start, uint32_t len)
{
	raddr end = *end_slot(copy, start);

	if (end > start && end - start < len)
		return (uint32_t)(end - start);
	end = *end_slot(copy, start + len - 1);
	if (end > start && end - start < len)
		return (uint32_t)(end - start);
	return len;
}

/* What of [start, start + len) can be read, at least `need` bytes of it; 0 when not even that.
 * Memory ends at page boundaries, so those are searched by halves. */
static uint32_t read_most(struct stack_copy *copy, struct stack_window *window, raddr start, uint32_t len,
			  uint32_t need)
{
	uint64_t good_page, bad_page;
	uint32_t good = 0;
	int err = reader_read(copy->reader, start, window->bytes, len);

	if (err == 0)
		return len;
	good_page = (start + need - 1) / PAGE;          /* the last page that must be readable */
	bad_page = (start + len - 1) / PAGE;
	while (err != -ESRCH && good_page < bad_page) {
		uint64_t page = good ? (good_page + bad_page) / 2 : good_page;
		raddr end = (page + 1) * PAGE;
		uint32_t want = end - start < len ? (uint32_t)(end - start) : len;

		if (good && page == good_page)
			break;
		err = reader_read(copy->reader, start, window->bytes, want);
		if (err == 0) {
			good = want;
			good_page = page;
		} else if (!good) {
			return 0;
		} else {
			bad_page = page;
		}
	}
	if (good == 0 || err == -ESRCH)
		return 0;
	*end_slot(copy, start + good) = start + good;
	/* A failed try leaves the buffer undefined. */
	if (err < 0 && reader_read(copy->reader, start, window->bytes, good) < 0)
		return 0;
	return good;
}

static const uint8_t *find_window(struct stack_copy *copy, raddr at, size_t len)
{
	for (unsigned int i = 0; i < STACK_WINDOWS; i++) {
		struct stack_window *window = &copy->windows[i];
		uint64_t offset = at - window->start;

		if (offset < window->len && len <= window->len - offset) {
			copy->current = window;
			return window->bytes + offset;
		}
	}
	return NULL;
}

static bool read_window(struct stack_copy *copy, raddr start, uint32_t len, raddr must, size_t must_len)
{
	struct stack_window *window = &copy->windows[copy->fetches % STACK_WINDOWS];
	uint32_t need = (uint32_t)(must + must_len - start);

	copy->fetches++;
	window->len = 0;
	window->start = start;
	len = cut_at_known_end(copy, start, len);
	if (len < need)
		len = need;
	window->len = read_most(copy, window, start, len, need);
	copy->current = window;
	return window->len != 0;
}

/* The first piece holds the top of the stack, red zone included as far as it is on the same page: the
 * page below may not be there yet. */
static void read_first(struct stack_copy *copy)
{
	raddr page = copy->sp & ~(raddr)(PAGE - 1);
	raddr start = copy->sp - page < RED_ZONE ? page : copy->sp - RED_ZONE;

	read_window(copy, start, copy->learned, copy->sp, sizeof(uint64_t));
}

const uint8_t *stack_copy_fetch(struct stack_copy *copy, raddr at, size_t len)
{
	const uint8_t *bytes;
	uint32_t size;

	if (len > PAGE || at + len < at)
		return NULL;
	if (copy->fetches == 0)
		read_first(copy);
	bytes = find_window(copy, at, len);
	if (bytes)
		return bytes;
	if (copy->fetches >= STACK_FETCHES_MAX)
		return NULL;
	size = copy->fetches > 4 ? STACK_WINDOW_MAX : PAGE << copy->fetches;
	if (size > STACK_WINDOW_MAX)
		size = STACK_WINDOW_MAX;
	if (!read_window(copy, at, size, at, len))
		return NULL;
	return find_window(copy, at, len);
}

bool stack_copy_peek(struct stack_copy *copy, raddr at, void *buf, size_t len)
{
	const struct stack_window *window = copy->current;
	uint64_t offset = at - window->start;

	if (offset < window->len && len <= window->len - offset) {
		memcpy(buf, window->bytes + offset, len);
		return true;
	}
	return reader_read(copy->reader, at, buf, len) == 0;
}
