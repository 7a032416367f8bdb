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

static bool has_flag_pie(Elf *elf, const GElf_Phdr *dynamic)
{
	size_t size = dynamic->p_filesz < ELF_TABLE_MAX ? dynamic->p_filesz : ELF_TABLE_MAX;
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, size, ELF_T_DYN);
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_FLAGS_1)
			return entry.d_un.d_val & DF_1_PIE;
	}
	return false;
}

/* Of type ET_DYN are libraries, too, and they have no interpreter either. */
bool elf_table_is_static_program(Elf *elf)
{
	bool is_program = false, has_dynamic = false;
	GElf_Ehdr ehdr;
	GElf_Phdr phdr;
	size_t count;

	if (!gelf_getehdr(elf, &ehdr) || elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &phdr); i++) {
		if (phdr.p_type == PT_INTERP)
			return false;
		/* The first one alone: each is read, and kept in memory. */
		if (phdr.p_type != PT_DYNAMIC || has_dynamic)
			continue;
		has_dynamic = true;
		is_program = has_flag_pie(elf, &phdr);
	}
	return is_program || ehdr.e_type == ET_EXEC;
}
