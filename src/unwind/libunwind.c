#include "unwind/libunwind.h"

#include <libunwind.h>
#include <stdlib.h>

struct libunwind {
	unw_addr_space_t space;
};

/* What a step works on. */
static _Thread_local struct step {
	struct libunwind *libunwind;
	struct stack_copy *memory;
	const struct arch_regs *regs;
} current;

/* Tables are ours to find, and to check: libunwind believes what stands in them, and would open whatever file the
 * process's mappings name. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need,
			  void *context)
{
	(void)space;
	(void)ip;
	(void)info;
	(void)need;
	(void)context;
	return -UNW_ENOINFO;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int no_dynamic_info(unw_addr_space_t space, unw_word_t *address, void *context)
{
	(void)space;
	(void)address;
	(void)context;
	return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t space, unw_word_t at, unw_word_t *value, int write, void *context)
{
	(void)space;
	(void)context;
	if (write || !stack_copy_peek(current.memory, at, value, sizeof(*value)))
		return -UNW_EINVAL;
	return 0;
}

/* libunwind numbers the registers as DWARF does: UNW_X86_64_RAX is 0, RIP is 16. */
static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
			   void *context)
{
	(void)space;
	(void)context;
	if (write || number < 0 || number >= ARCH_DWARF_REGS)
		return -UNW_EBADREG;
	*value = current.regs->reg[number];
	return 0;
}

static int access_fp_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write,
			      void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EBADREG;
}

static int never_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t address, char *name, size_t len, unw_word_t *offset,
		   void *context)
{
	(void)space;
	(void)address;
	(void)name;
	(void)len;
	(void)offset;
	(void)context;
	return -UNW_ENOINFO;
}

static unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.put_unwind_info = put_unwind_info,
	.get_dyn_info_list_addr = no_dynamic_info,
	.access_mem = access_memory,
	.access_reg = access_register,
	.access_fpreg = access_fp_register,
	.resume = never_resume,
	.get_proc_name = no_name,
};

struct libunwind *libunwind_new(void)
{
	struct libunwind *libunwind = calloc(1, sizeof(*libunwind));

	if (!libunwind)
		return NULL;
	libunwind->space = unw_create_addr_space(&accessors, 0);
	if (!libunwind->space) {
		free(libunwind);
		return NULL;
	}
	return libunwind;
}

size_t libunwind_memory(void)
{
	return sizeof(struct libunwind);
}

void libunwind_free(struct libunwind *libunwind)
{
	if (!libunwind)
		return;
	unw_destroy_addr_space(libunwind->space);
	free(libunwind);
}

static void read_registers(unw_cursor_t *cursor, struct arch_regs *regs)
{
	for (int i = 0; i < ARCH_DWARF_REGS; i++) {
		unw_word_t value;

		if (unw_get_reg(cursor, i, &value) == 0)
			regs->reg[i] = value;
	}
}

/* Of anything else it could only guess, by the frame pointer, and a guess is not an answer. */
static enum libunwind_result step(struct libunwind *libunwind, struct arch_regs *regs)
{
	struct arch_regs start = *regs;
	unw_cursor_t cursor;
	int more;

	current.regs = &start;
	if (unw_init_remote(&cursor, libunwind->space, libunwind) < 0 || unw_is_signal_frame(&cursor) <= 0)
		return LIBUNWIND_UNKNOWN;
	more = unw_step(&cursor);
	if (more < 0)
		return LIBUNWIND_UNKNOWN;
	if (more == 0)
		return LIBUNWIND_END;
	read_registers(&cursor, regs);
	return LIBUNWIND_SIGNAL_STEP;
}

enum libunwind_result libunwind_step(struct libunwind *libunwind, struct stack_copy *memory, struct arch_regs *regs)
{
	enum libunwind_result result;

	current = (struct step){ .libunwind = libunwind, .memory = memory };
	result = step(libunwind, regs);
	current = (struct step){ 0 };
	return result;
}
