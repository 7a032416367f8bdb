#include "target/loader.h"

#include "target/elf_file.h"

#include "base/fd.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUXV_MAX 8192
#define DYNAMIC_MAX 512
#define R_BRK_OFFSET 16        /* struct r_debug: int r_version; struct link_map *r_map; r_brk */

static int auxv_value(const struct target *target, uint64_t type, uint64_t *ret_value)
{
	Elf64_auxv_t *auxv;
	char path[64], *text;
	size_t len;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/auxv", target->memory_tid);
	r = file_read_text(path, AUXV_MAX, &text, &len);
	if (r < 0)
		return r;
	auxv = (Elf64_auxv_t *)(void *)text;
	r = -ENOENT;
	for (size_t i = 0; i < len / sizeof(*auxv); i++) {
		if (auxv[i].a_type == type && auxv[i].a_un.a_val != 0) {
			*ret_value = auxv[i].a_un.a_val;
			r = 0;
			break;
		}
	}
	free(text);
	return r;
}

/* A loader that has run wrote its r_debug's address into DT_DEBUG of the program. */
static int hook_from_r_debug(struct target *target, raddr *ret_hook)
{
	const struct module_range *range;
	struct elf_file file;
	uint64_t entry, r_debug = 0;
	Elf64_Dyn dyn;
	raddr at;
	int fd, r = auxv_value(target, AT_ENTRY, &entry);

	if (r < 0)
		return r;
	range = module_map_find(&target->modules, entry);
	fd = range ? target_module_fd(target, range->module) : -1;
	if (fd < 0 || elf_file_read(fd, &file) < 0)
		return -ENOENT;
	at = file.dynamic_vaddr ? file.dynamic_vaddr + target->modules.modules.items[range->module].bias : 0;
	elf_file_fini(&file);
	for (unsigned i = 0; at != 0 && i < DYNAMIC_MAX; i++, at += sizeof(dyn)) {
		r = target_read(target, at, &dyn, sizeof(dyn));
		if (r < 0 || dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_DEBUG)
			r_debug = dyn.d_un.d_ptr;
	}
	if (r_debug == 0)
		return -ENOENT;
	r = target_read(target, r_debug + R_BRK_OFFSET, ret_hook, sizeof(*ret_hook));
	return r == 0 && *ret_hook == 0 ? -ENOENT : r;
}

/* One that has not yet: by name. */
static int hook_by_symbol(struct target *target, raddr *ret_hook)
{
	const struct module_range *range = NULL;
	uint64_t base, vaddr;
	int r = auxv_value(target, AT_BASE, &base);

	if (r < 0)
		return r;
	for (size_t i = 0; i < target->modules.ranges.count; i++) {
		const struct module_range *candidate = &target->modules.ranges.items[i];

		if (target->modules.modules.items[candidate->module].bias == base)
			range = candidate;
	}
	if (!range)
		return -ENOENT;
	r = elf_file_symbol(target_module_fd(target, range->module), "_dl_debug_state", &vaddr);
	if (r == 0)
		*ret_hook = base + vaddr;
	return r;
}

/* What the process says of its loader may be anything, and an int3 in the middle of an instruction changes what the
 * program does. */
static bool is_function(const struct target *target, raddr at)
{
	const struct module_range *range = module_map_find(&target->modules, at);

	return range && elf_file_has_function(target_module_fd(target, range->module),
					      at - target->modules.modules.items[range->module].bias);
}

int loader_find_hook(struct target *target, struct loader_hook *ret)
{
	const struct module_range *range;
	struct loader_hook hook = { 0 };
	int r = hook_from_r_debug(target, &hook.address);

	if (r == 0 && !is_function(target, hook.address))
		r = -ENOENT;
	if (r < 0)
		r = hook_by_symbol(target, &hook.address);
	if (r < 0)
		return r == -ESRCH ? r : 0;
	range = module_map_find(&target->modules, hook.address);
	if (!range)
		return 0;
	hook.module = range->module;
	r = elf_file_text(target_module_fd(target, hook.module), hook.address - target->modules.modules.items[hook.module].bias,
			  hook.text, sizeof(hook.text), &hook.text_len);
	if (r < 0)
		return r;
	*ret = hook;
	return 1;
}

int loader_prepare_hook(struct target *target, const struct loader_hook *hook, struct breakpoint **ret_bp,
			const char **ret_reason)
{
	int r = bp_prepare(target, hook->address, hook->module, hook->text, hook->text_len, ret_bp, ret_reason);

	if (r < 0 && r != -EEXIST)
		return r;
	(*ret_bp)->ambiguous = true;       /* often a lone ret */
	return 0;
}
