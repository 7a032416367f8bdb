#include "symbol/split.h"

#include "symbol/opener.h"

#include <errno.h>

int split_unit(Dwarf_Die *skeleton, const struct elf_file *file, Dwarf_Die *ret)
{
	Dwarf_Die split = { 0 };
	int r;

	(void)file;
	opener_enter(NULL, NULL);
	r = dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL);
	opener_leave();
	if (r < 0 || !split.addr)
		return -ENOENT;
	*ret = split;
	return 0;
}
