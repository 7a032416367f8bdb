#include "unwind/lookup.h"

#include <errno.h>

/* Of code in no module nothing can be cached: what is there may change without notice. */
static const struct cfi_row no_module_row = { .module = MODULE_NONE, .kind = CFI_ROW_FRAME_POINTER };

bool lookup_is_bottom(struct unwinder *unwinder, uint32_t module, raddr pc)
{
	struct dwarf_cfi *cfi = module < unwinder->modules.count ? unwinder->modules.items[module] : NULL;
	uint8_t code[ARCH_CALL_MAX];

	return cfi && dwarf_cfi_begins(cfi, pc - unwinder->map->modules.items[module].bias) &&
	       stack_copy_code(&unwinder->memory, pc - sizeof(code), code, sizeof(code)) &&
	       !arch_ends_in_call(code, sizeof(code));
}

/* The number of a row made from a module's CFI, or negative errno. */
static int64_t make_row(struct unwinder *unwinder, uint32_t module, uint64_t address, bool bottom)
{
	struct dwarf_cfi *cfi = module < unwinder->modules.count ? unwinder->modules.items[module] : NULL;
	Dwarf_Frame *frame = NULL;
	struct cfi_row row;

	if (bottom || !cfi || dwarf_cfi_row(cfi, address, &row, &frame) < 0)
		row = (struct cfi_row){ .kind = CFI_ROW_NONE };
	row.module = module;
	return cfi_rows_intern(&unwinder->rows, &row, frame);
}

/* Both look-ups of a miss wait for memory several times; begun together they wait together. */
static void prefetch(const struct unwinder *unwinder, const struct frame *frame, uint64_t address)
{
	stack_table_prefetch_frame(unwinder->stacks, frame);
	if (frame->module < unwinder->modules.count && unwinder->modules.items[frame->module])
		dwarf_cfi_prefetch(unwinder->modules.items[frame->module], address);
}

static const struct cfi_row *miss(struct unwinder *unwinder, raddr pc, bool exact, uint32_t *ret_frame,
				  enum truncation *ret_reason)
{
	raddr address = exact ? pc : pc - 1;
	const struct module_range *range = module_map_find(unwinder->map, address);
	uint32_t module = range ? range->module : MODULE_NONE;
	raddr bias = range ? unwinder->map->modules.items[module].bias : 0;
	const struct frame key = {
		.module = module,
		.kind = exact ? FRAME_EXACT : FRAME_CALL,
		.offset = pc - bias,
	};
	int64_t frame, row;
	bool bottom;

	prefetch(unwinder, &key, address - bias);
	frame = stack_table_frame(unwinder->stacks, &key);
	*ret_reason = frame == -ENOSPC ? TRUNCATED_TABLE : TRUNCATED_NO_CFI;
	if (frame < 0)
		return NULL;
	*ret_frame = (uint32_t)frame;
	if (!range)
		return &no_module_row;
	unwinder->counters.row_misses++;
	bottom = !exact && lookup_is_bottom(unwinder, module, pc);
	row = make_row(unwinder, module, address - bias, bottom);
	if (row == -ENOSPC) {
		cfi_rows_restart(&unwinder->rows);
		row = make_row(unwinder, module, address - bias, bottom);
	}
	if (row < 0)
		return NULL;
	/* It may be another one when all can be read. */
	if (!unwinder->memory.unknown)
		cfi_rows_set(&unwinder->rows, cfi_key(pc, exact), (uint32_t)frame, (uint32_t)row);
	return &unwinder->rows.rows.items[row];
}

const struct cfi_row *lookup_pc(struct unwinder *unwinder, raddr pc, bool exact, uint32_t *ret_frame,
				enum truncation *ret_reason)
{
	const struct cfi_slot *slot = NULL;

	if (cfi_is_key(pc))
		slot = cfi_rows_find(&unwinder->rows, cfi_key(pc, exact));
	if (!slot)
		return miss(unwinder, pc, exact, ret_frame, ret_reason);
	*ret_frame = slot->frame;
	return &unwinder->rows.rows.items[slot->row];
}

void lookup_set_kind(struct unwinder *unwinder, raddr pc, bool exact, const struct cfi_row *row,
		     enum cfi_row_kind kind)
{
	const struct cfi_slot *slot = cfi_rows_find(&unwinder->rows, cfi_key(pc, exact));
	struct cfi_row changed = *row;
	int64_t number;

	if (unwinder->memory.unknown)
		return;
	changed.kind = (uint8_t)kind;
	number = cfi_rows_intern(&unwinder->rows, &changed, NULL);
	if (slot && number >= 0)
		cfi_rows_set(&unwinder->rows, slot->key, slot->frame, (uint32_t)number);
}
