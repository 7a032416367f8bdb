#include "walker.h"

#include "base/fd.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>

struct walker {
	Dwfl *dwfl;
	const struct recorded_stack *stack;
	raddr *pcs;
	unsigned int count;
};

static int no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file_name,
		  Elf **elf)
{
	(void)module;
	(void)data;
	(void)name;
	(void)base;
	(void)file_name;
	(void)elf;
	return -1;
}

/* No debug files: the tables that a program itself unwinds with are enough. */
static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			const char *file_name, const char *link, GElf_Word crc, char **debug_name)
{
	(void)module;
	(void)data;
	(void)name;
	(void)base;
	(void)file_name;
	(void)link;
	(void)crc;
	(void)debug_name;
	return -1;
}

static const Dwfl_Callbacks callbacks = { .find_elf = no_elf, .find_debuginfo = no_debuginfo };

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = context;
	return 1;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *ret, void *context)
{
	const struct walker *walker = context;
	struct reader reader = recording_reader(walker->stack);

	(void)dwfl;
	return reader_u64(&reader, at, ret) == 0;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct walker *walker = context;
	const uint64_t *reg = walker->stack->regs.reg;

	dwfl_thread_state_register_pc(thread, reg[ARCH_DWARF_PC]);
	return dwfl_thread_state_registers(thread, 0, ARCH_DWARF_REGS, reg);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static bool report_modules(struct walker *walker, const struct recording *recording)
{
	dwfl_report_begin(walker->dwfl);
	for (uint32_t i = 0; i < recording->map.modules.count; i++) {
		const struct module *module = &recording->map.modules.items[i];
		int fd = recording_open_module(recording, i);

		/* On success the descriptor is libdwfl's. */
		if (fd >= 0 && !dwfl_report_elf(walker->dwfl, module->path, module->path, fd, module->bias, true))
			fd_close(&fd);
	}
	return dwfl_report_end(walker->dwfl, NULL, NULL) == 0;
}

struct walker *walker_new(const struct recording *recording)
{
	struct walker *walker = calloc(1, sizeof(*walker));

	if (!walker)
		return NULL;
	walker->dwfl = dwfl_begin(&callbacks);
	if (walker->dwfl && report_modules(walker, recording) &&
	    dwfl_attach_state(walker->dwfl, NULL, 1, &thread_callbacks, walker))
		return walker;
	fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
	walker_free(walker);
	return NULL;
}

void walker_free(struct walker *walker)
{
	if (walker && walker->dwfl)
		dwfl_end(walker->dwfl);
	free(walker);
}

static int take_frame(Dwfl_Frame *frame, void *context)
{
	struct walker *walker = context;

	if (walker->count == WALKER_FRAMES_MAX || !dwfl_frame_pc(frame, &walker->pcs[walker->count], NULL))
		return DWARF_CB_ABORT;
	walker->count++;
	return DWARF_CB_OK;
}

unsigned int walker_walk(struct walker *walker, const struct recorded_stack *stack,
			 raddr pcs[WALKER_FRAMES_MAX])
{
	walker->stack = stack;
	walker->pcs = pcs;
	walker->count = 0;
	dwfl_getthread_frames(walker->dwfl, 1, take_frame, walker);
	return walker->count;
}
