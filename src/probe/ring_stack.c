#include "probe/ring_stack.h"

#include "arch/arch.h"

#include <errno.h>
#include <string.h>

#define RED_ZONE 128u                      /* psABI 3.2.2; at an entry nothing is there, but it is read */

/* Of a stack that came with the record; what is behind its end are zeros, or is not there. */
static int read_known(const uint8_t *known, uint64_t length, uint64_t offset, bool lenient, uint8_t *buf, size_t len)
{
	size_t there = offset < length ? length - offset : 0;

	if (!lenient && len > there)
		return -EFAULT;
	if (there > len)
		there = len;
	memcpy(buf, known + offset, there);
	memset(buf + there, 0, len - there);
	return 0;
}

static int read_from_sp(const struct ring_piece *piece, uint64_t offset, uint8_t *buf, size_t len)
{
	size_t below = offset < RED_ZONE ? RED_ZONE - offset : 0;

	if (below > len)
		below = len;
	memset(buf, 0, below);
	return read_known(piece->record->stack, piece->record->stack_length, offset + below - RED_ZONE, piece->lenient,
			  buf + below, len - below);
}

/* What does not begin in either stack is none of them. */
static int read_piece(void *context, raddr at, void *buf, size_t len)
{
	const struct ring_piece *piece = context;
	const struct ring_record *record = piece->record;
	uint64_t offset = at - (record->sp - RED_ZONE), other = at - record->other_start;

	if (other < record->other_length)
		return read_known(record->stack + record->stack_length, record->other_length, other, piece->lenient, buf, len);
	if (offset <= RED_ZONE + record->stack_length)
		return read_from_sp(piece, offset, buf, len);
	return module_map_find(piece->map, at) ? reader_read(piece->code, at, buf, len) : -EFAULT;
}

/* That of a JIT is in no object.  It may have changed since, as a stack may, but nothing is taken from it: it only has to be a call
 * where the stack says that there is one. */
static int read_code(void *context, raddr at, void *buf, size_t len)
{
	const struct ring_piece *piece = context;

	return reader_read(piece->code, at, buf, len);
}

static const uint8_t *piece_in_place(void *context, raddr at, size_t *ret_len)
{
	const struct ring_piece *piece = context;
	const struct ring_record *record = piece->record;

	*ret_len = record->stack_length;
	return at == record->sp ? record->stack : NULL;
}

struct reader ring_piece_reader(struct ring_piece *piece)
{
	return (struct reader){ .read = read_piece, .context = piece, .read_code = read_code, .in_place = piece_in_place };
}

static void registers_at_entry(const struct ring_record *record, raddr function, struct arch_regs *ret_regs)
{
	arch_regs_clear(ret_regs);
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		ret_regs->reg[arch_callee_saved[i]] = record->saved[i];
	ret_regs->reg[ARCH_DWARF_SP] = record->sp;
	ret_regs->reg[ARCH_DWARF_PC] = function;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

uint32_t ring_stack_had(const struct ring_record *record)
{
	return larger(record->stack_length, record->other_length);
}

/* Where the other stack's piece begins is a little before that stack. */
static uint64_t other_end(const struct ring_record *record, const struct unwind_reach *reach)
{
	uint64_t end = reach->other_start - record->other_start + reach->other_bytes;

	return record->other_length > 0 && reach->other_start >= record->other_start && end <= RING_STACK_MAX ? end : 0;
}

static bool is_whole(const struct unwinder *unwinder)
{
	enum truncation reason = unwinder_last_reason(unwinder);

	return reason == TRUNCATED_NONE || reason == TRUNCATED_LIMIT;
}

struct ring_stack ring_stack_unwind(struct unwinder *unwinder, const struct module_map *map, const struct reader *code,
				    const struct ring_record *record, raddr function, uint32_t max_frames)
{
	struct ring_piece piece = { .record = record, .map = map, .code = code, .lenient = true };
	const struct reader reader = ring_piece_reader(&piece);
	struct ring_stack stack = { .had = ring_stack_had(record) };
	struct unwind_reach reach;
	struct arch_regs regs;

	registers_at_entry(record, function, &regs);
	stack.node = unwinder_unwind(unwinder, &regs, &reader, max_frames, &reach);
	stack.needed = larger(reach.bytes, (uint32_t)other_end(record, &reach));
	stack.cut = unwinder_last_reason(unwinder) == TRUNCATED_MEMORY;
	stack.whole = is_whole(unwinder);
	if (reach.bytes <= record->stack_length && other_end(record, &reach) <= record->other_length)
		return stack;
	/* It went by zeros.  Where the piece ends is no page's end, so this time it reads on word by word. */
	stack.cut = true;
	stack.whole = false;
	piece.lenient = false;
	stack.node = unwinder_unwind(unwinder, &regs, &reader, max_frames, NULL);
	return stack;
}

void ring_stack_learn(struct ring *ring, const struct ring_record *record, const struct ring_stack *stack)
{
	uint64_t length = ring_stack_length(ring, record->length_key);
	uint64_t needs = stack->needed + stack->needed / 4;

	/* What is known to be mapped may have ended there, and then more is not to be had. */
	if (stack->cut && stack->had >= length)
		ring_note_too_short(ring, record->length_key);
	else if (!stack->cut && (length == RING_STACK_UNKNOWN || length < needs))
		ring_set_stack_length(ring, record->length_key, needs);
}
