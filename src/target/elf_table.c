#include "target/elf_table.h"

#include <stdbool.h>
#include <stddef.h>

Elf *elf_table_begin(int fd)
{
	elf_version(EV_CURRENT);
	return elf_begin(fd, ELF_C_READ, NULL);
}

static bool is_small_enough(Elf *elf, const GElf_Shdr *table)
{
	Elf_Scn *section = elf_getscn(elf, table->sh_link);
	GElf_Shdr linked;

	return table->sh_size <= ELF_TABLE_MAX && section && gelf_getshdr(section, &linked) && linked.sh_size <= ELF_TABLE_MAX;
}

Elf_Data *elf_table_data(Elf *elf, Elf_Scn *section, const GElf_Shdr *shdr)
{
	return is_small_enough(elf, shdr) ? elf_getdata(section, NULL) : NULL;
}
