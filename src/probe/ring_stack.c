#include "probe/ring_stack.h"

#include "arch/arch.h"

#include <errno.h>
#include <string.h>

#define RED_ZONE 128u                      /* psABI 3.2.2; at an entry nothing is there, but it is read */

static int read_piece(void *context, raddr at, void *buf, size_t len)
{
	const struct ring_piece *piece = context;
	const struct ring_record *record = piece->record;
	raddr start = record->sp - RED_ZONE;
	uint64_t offset = at - start, end = RED_ZONE + record->stack_length;
	uint8_t *bytes = buf;
	size_t known;

	/* Of other stacks, as that which a signal's handler interrupted, nothing came with it. */
	if (offset >= RED_ZONE + RING_STACK_MAX)
		return module_map_find(piece->map, at) ? reader_read(piece->code, at, buf, len) : -EFAULT;
	if (!piece->lenient && (offset > end || len > end - offset))
		return -EFAULT;
	if (offset < RED_ZONE) {
		size_t below = RED_ZONE - offset < len ? RED_ZONE - offset : len;

		memset(bytes, 0, below);
		bytes += below;
		len -= below;
		offset += below;
	}
	known = offset < end ? end - offset : 0;
	if (known > len)
		known = len;
	memcpy(bytes, record->stack + (offset - RED_ZONE), known);
	memset(bytes + known, 0, len - known);
	return 0;
}

struct reader ring_piece_reader(struct ring_piece *piece)
{
	return (struct reader){ .read = read_piece, .context = piece };
}

static void registers_at_entry(const struct ring_record *record, raddr function, struct arch_regs *ret_regs)
{
	memset(ret_regs, 0, sizeof(*ret_regs));
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		ret_regs->reg[arch_callee_saved[i]] = record->saved[i];
	ret_regs->reg[ARCH_DWARF_SP] = record->sp;
	ret_regs->reg[ARCH_DWARF_PC] = function;
}

struct ring_stack ring_stack_unwind(struct unwinder *unwinder, const struct module_map *map, const struct reader *code,
				    const struct ring_record *record, raddr function, uint32_t max_frames)
{
	struct ring_piece piece = { .record = record, .map = map, .code = code, .lenient = true };
	const struct reader reader = ring_piece_reader(&piece);
	struct ring_stack stack = { 0 };
	struct arch_regs regs;

	registers_at_entry(record, function, &regs);
	stack.node = unwinder_unwind(unwinder, &regs, &reader, max_frames, &stack.needed);
	if (stack.needed <= record->stack_length)
		return stack;
	/* It went by zeros.  Where the piece ends is no page's end, so this time it reads on word by word. */
	stack.cut = true;
	piece.lenient = false;
	stack.node = unwinder_unwind(unwinder, &regs, &reader, max_frames, NULL);
	return stack;
}

void ring_stack_learn(struct ring *ring, raddr return_address, const struct ring_stack *stack)
{
	uint64_t length = ring_stack_length(ring, return_address);
	uint64_t needs = stack->needed + stack->needed / 4;

	if (stack->cut) {
		/* What is known to be mapped may end there, and then more is not to be had. */
		if (length < RING_STACK_UNKNOWN)
			ring_set_stack_length(ring, return_address, RING_STACK_UNKNOWN);
	} else if (length == RING_STACK_UNKNOWN || length < needs) {
		ring_set_stack_length(ring, return_address, needs);
	}
}
