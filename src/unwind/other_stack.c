#include "unwind/other_stack.h"

#include "unwind/cfi_find.h"

#include <string.h>

#define TABLE_MAX ((uint64_t)256 << 20)        /* bytes of a symbol table, or of its names */

/* "runtime.asmcgocall.abi0", "runtime.asmcgocall_no_g.abi0". */
static bool is_switch(const char *name)
{
	static const char start[] = "runtime.asmcgocall";

	return name && strncmp(name, start, sizeof(start) - 1) == 0;
}

static void take(const GElf_Sym *symbol, struct other_stack *other)
{
	if (other->count == OTHER_STACK_MAX)
		return;
	other->functions[other->count].start = symbol->st_value;
	other->functions[other->count].size = symbol->st_size;
	other->count++;
}

static bool is_small_enough(Elf *elf, const GElf_Shdr *table)
{
	GElf_Shdr names;

	return table->sh_size <= TABLE_MAX && gelf_getshdr(elf_getscn(elf, table->sh_link), &names) && names.sh_size <= TABLE_MAX;
}

static void look_through(Elf *elf, Elf_Scn *section, const GElf_Shdr *table, struct other_stack *other)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
		    is_switch(elf_strptr(elf, table->sh_link, symbol.st_name)))
			take(&symbol, other);
	}
}

static void find_in(Elf *elf, struct other_stack *other)
{
	Elf_Scn *section = NULL;
	GElf_Shdr table;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &table) && table.sh_type == SHT_SYMTAB && is_small_enough(elf, &table))
			look_through(elf, section, &table, other);
	}
}

void other_stack_find(int elf_fd, struct other_stack *ret)
{
	Elf *elf = elf_begin(elf_fd, ELF_C_READ, NULL);

	*ret = (struct other_stack){ .count = 0 };
	if (elf && cfi_has_section(elf, ".note.go.buildid"))
		find_in(elf, ret);
	elf_end(elf);
}

bool other_stack_has(const struct other_stack *other, uint64_t address)
{
	for (unsigned i = 0; i < other->count; i++) {
		if (address - other->functions[i].start < other->functions[i].size)
			return true;
	}
	return false;
}
