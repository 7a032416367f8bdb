#include "probe/forms.h"

#include "arch/arch.h"

#include <errno.h>
#include <string.h>

#define STUB_MAX 16

static void forget_stacks(struct forms *forms)
{
	memset(forms->kept, 0, sizeof(forms->kept));
}

int forms_add(struct forms *forms, const struct form_function *function)
{
	struct form_function *slot = vec_push(&forms->functions);

	if (!slot)
		return -ENOMEM;
	*slot = *function;
	forget_stacks(forms);
	return 0;
}

void forms_drop_module(struct forms *forms, uint32_t module)
{
	for (size_t i = forms->functions.count; i-- > 0;) {
		if (forms->functions.items[i].module == module)
			vec_remove_unordered(&forms->functions, i);
	}
	forget_stacks(forms);
}

void forms_fini(struct forms *forms)
{
	vec_fini(&forms->functions);
}

size_t forms_memory(const struct forms *forms)
{
	return vec_memory(&forms->functions);
}

/* FORM_NONE: pc is in no operator new. */
static uint32_t form_at(const struct forms *forms, raddr pc)
{
	for (size_t i = 0; i < forms->functions.count; i++) {
		const struct form_function *function = &forms->functions.items[i];

		if (pc - function->start < (function->size ? function->size : 1))
			return function->form;
	}
	return FORM_NONE;
}

static uint32_t form_of_function(const struct forms *forms, raddr start)
{
	for (size_t i = 0; i < forms->functions.count; i++) {
		if (forms->functions.items[i].start == start)
			return forms->functions.items[i].form;
	}
	return FORM_NONE;
}

/* By way of the linker's stub or not. */
static uint32_t form_of_target(const struct forms *forms, const struct reader *code, raddr target)
{
	uint32_t form = form_of_function(forms, target);
	uint8_t stub[STUB_MAX];
	uint64_t function;
	raddr pointer;

	if (form != FORM_NONE || code->read(code->context, target, stub, sizeof(stub)) < 0 ||
	    !arch_decode_import_stub(stub, sizeof(stub), target, &pointer) || reader_u64(code, pointer, &function) < 0)
		return form;
	return form_of_function(forms, function);
}

/* What the call has called that returns to this address; FORM_NONE: nothing that is known. */
static uint32_t form_of_call(const struct forms *forms, const struct reader *code, raddr return_address)
{
	uint8_t call[ARCH_CALL_MAX];
	uint64_t function;
	raddr target;

	if (code->read(code->context, return_address - sizeof(call), call, sizeof(call)) < 0)
		return FORM_NONE;
	if (arch_direct_call(call, sizeof(call), return_address, &target))
		return form_of_target(forms, code, target);
	if (arch_call_through(call, sizeof(call), return_address, &target) && reader_u64(code, target, &function) == 0)
		return form_of_function(forms, function);
	return FORM_NONE;
}

static raddr address_of(const struct module_map *map, const struct frame *frame)
{
	return frame->module == MODULE_NONE ? frame->offset : frame->offset + map->modules.items[frame->module].bias;
}

static uint32_t look(const struct forms *forms, const struct stack_table *stacks, const struct module_map *map,
		     const struct reader *code, uint32_t stack)
{
	uint32_t inner = FORM_NONE, form;

	for (; stack != STACK_ROOT; stack = stack_table_node(stacks, stack).parent) {
		struct frame frame = stack_table_get_frame(stacks, stack_table_node(stacks, stack).frame);
		raddr address = address_of(map, &frame);

		/* The allocator's own. */
		if (frame.kind == FRAME_EXACT) {
			inner = form_at(forms, address);
			continue;
		}
		if (frame.kind != FRAME_CALL)
			break;
		form = form_at(forms, address - 1);
		if (form == FORM_NONE && inner == FORM_NONE)
			return FORM_MALLOC;
		if (form == FORM_NONE) {
			form = form_of_call(forms, code, address);
			return form != FORM_NONE ? form : inner | FORM_NEW_ARRAY;
		}
		inner = form;
	}
	return inner == FORM_NONE ? FORM_MALLOC : inner | FORM_NEW_ARRAY;
}

uint32_t forms_of_stack(struct forms *forms, const struct stack_table *stacks, const struct module_map *map,
			const struct reader *code, uint32_t stack)
{
	uint32_t slot = stack % FORMS_KEPT;

	if (stack == STACK_ROOT)
		return FORM_NONE;
	if (forms->kept[slot].stack != stack) {
		forms->kept[slot].forms = look(forms, stacks, map, code, stack);
		forms->kept[slot].stack = stack;
	}
	return forms->kept[slot].forms;
}
