#include "unwind/stack_copy.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE 4096u
#define RED_ZONE 128u      /* below sp a leaf function may keep registers (x86-64 psABI, 3.2.2) */

int stack_copy_init(struct stack_copy *copy)
{
	uint8_t *bytes = malloc(STACK_WINDOWS * (size_t)STACK_WINDOW_MAX);

	if (!bytes)
		return -ENOMEM;
	*copy = (struct stack_copy){ .buffers = bytes };
	copy->current = &copy->windows[0];
	return 0;
}

void stack_copy_fini(struct stack_copy *copy)
{
	free(copy->buffers);
}

void stack_copy_begin(struct stack_copy *copy, const struct reader *reader, raddr sp)
{
	for (unsigned int i = 0; i < STACK_WINDOWS; i++)
		copy->windows[i].len = 0;
	copy->current = &copy->windows[0];
	copy->fetches = 0;
	copy->unknown = false;
	copy->reader = reader;
	copy->sp = sp;
}

static raddr *top_slot(struct stack_copy *copy)
{
	return &copy->tops[(copy->sp / STACK_WINDOW_MAX) % STACK_TOPS];
}

/* Where stacks are cut at a number of frames the top moves with the depth: up at once, down slowly, since
 * one read too many costs more than some kilobytes too many. */
void stack_copy_learn(struct stack_copy *copy, raddr top)
{
	raddr *slot = top_slot(copy);

	if (top >= *slot || *slot - top > STACK_WINDOW_MAX)
		*slot = top;
	else
		*slot -= (*slot - top + 7) / 8;
}

/* Bytes from sp that the first piece should hold. */
static uint32_t wanted_bytes(struct stack_copy *copy)
{
	raddr top = *top_slot(copy);

	if (top <= copy->sp || top - copy->sp > STACK_WINDOW_MAX - PAGE)
		return STACK_FIRST;
	return (uint32_t)(top - copy->sp);
}

static int note_unknown(struct stack_copy *copy, int err)
{
	copy->unknown |= err == -EAGAIN;
	return err;
}

static int try_read(struct stack_copy *copy, struct stack_window *window, uint32_t len)
{
	uint8_t *buffer = copy->buffers + (size_t)(window - copy->windows) * STACK_WINDOW_MAX;
	int err = note_unknown(copy, reader_read(copy->reader, window->start, buffer, len));

	window->bytes = buffer;
	if (err == 0)
		window->len = len;
	return err;
}

/* Memory ends at a page, which is searched by halves between one that must be there and one that cannot
 * be read.  A failed try leaves the buffer undefined, so the best length is read once more. */
static void read_to_the_end(struct stack_copy *copy, struct stack_window *window, uint32_t len, uint32_t need)
{
	raddr good = (window->start + need - 1) / PAGE, bad = (window->start + len - 1) / PAGE;
	uint32_t best = need;
	int err = -EFAULT;

	while (good < bad) {
		raddr page = (good + bad) / 2;
		uint32_t want = (uint32_t)((page + 1) * PAGE - window->start);

		err = try_read(copy, window, want);
		if (err == -ESRCH || err == -EAGAIN)
			return;
		if (err == 0) {
			best = want;
			good = page + 1;
		} else {
			bad = page;
		}
	}
	if (err == 0)
		return;
	window->len = 0;
	try_read(copy, window, best);
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

/* Reads [start, start + len) into the next window, or as much of it as there is; false when that does not
 * include [must, must + must_len). */
static bool read_window(struct stack_copy *copy, raddr start, uint32_t len, raddr must, size_t must_len)
{
	struct stack_window *window = &copy->windows[copy->fetches % STACK_WINDOWS];
	uint32_t need = (uint32_t)(must + must_len - start);
	int err;

	copy->fetches++;
	copy->current = window;
	window->len = 0;
	window->start = start;
	if (len < need)
		len = need;
	err = try_read(copy, window, len);
	if (err < 0 && err != -ESRCH && err != -EAGAIN && len > need)
		read_to_the_end(copy, window, len, need);
	return window->len != 0;
}

/* What the reader has is not copied: mostly it comes out of another processor's cache, and of many of its lines nothing is asked. */
static bool take_in_place(struct stack_copy *copy)
{
	struct stack_window *window = &copy->windows[0];
	size_t len = 0;

	if (!copy->reader->in_place)
		return false;
	window->start = copy->sp;
	window->bytes = copy->reader->in_place(copy->reader->context, copy->sp, &len);
	window->len = window->bytes ? (uint32_t)(len < STACK_IN_PLACE_MAX ? len : STACK_IN_PLACE_MAX) : 0;
	copy->fetches = window->bytes != NULL;
	return window->bytes != NULL;
}

/* The first piece holds the top of the stack, red zone included: registers are saved there by leaf
 * functions, and after an epilogue's pops the tables still name places below sp.  When the page below is
 * not there, never having been used, it begins with sp's page. */
static void read_first(struct stack_copy *copy)
{
	raddr page = copy->sp & ~(raddr)(PAGE - 1);
	uint32_t wanted;

	if (take_in_place(copy))
		return;
	wanted = wanted_bytes(copy);
	if (read_window(copy, copy->sp - RED_ZONE, RED_ZONE + wanted, copy->sp, sizeof(uint64_t)) ||
	    copy->sp - page >= RED_ZONE)
		return;
	read_window(copy, page, (uint32_t)(copy->sp - page) + wanted, copy->sp, sizeof(uint64_t));
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
	return note_unknown(copy, reader_read(copy->reader, at, buf, len)) == 0;
}

bool stack_copy_code(struct stack_copy *copy, raddr at, void *buf, size_t len)
{
	return note_unknown(copy, reader_code(copy->reader, at, buf, len)) == 0;
}
