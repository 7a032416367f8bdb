#include "unwind/endings.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

/* What is exported is looked at, or all symbols where nothing is. */
#define SYMBOLS_MAX (1u << 20)
#define TABLE_MAX ((uint64_t)256 << 20)        /* bytes of a symbol table, or of its names */

static const struct {
	const char *name;
	bool takes_result;
} names[] = {
	{ "exit", true }, { "pthread_exit", true }, { "thrd_exit", true }, { "_exit", true }, { "_Exit", true },
	{ "quick_exit", false }, { "abort", false }, { "longjmp", false }, { "_longjmp", false }, { "siglongjmp", false },
	{ "__stack_chk_fail", false }, { "__assert_fail", false },
};

static int note(struct endings *endings, uint32_t module, const char *name, uint64_t vaddr)
{
	struct ending *ending;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].name) != 0)
			continue;
		if (endings->items.count >= ENDINGS_MAX)
			return 0;
		ending = vec_push(&endings->items);
		if (!ending)
			return -ENOMEM;
		*ending = (struct ending){ module, names[i].takes_result, vaddr };
	}
	return 0;
}

static int note_all(struct endings *endings, uint32_t module, Elf *elf, Elf_Scn *section, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && shdr->sh_entsize > 0 ? data->d_size / shdr->sh_entsize : 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count && i < SYMBOLS_MAX; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(elf, shdr->sh_link, symbol.st_name);
		if (name)
			r = note(endings, module, name, symbol.st_value);
	}
	return r;
}

static Elf_Scn *find_section(Elf *elf, uint32_t type, GElf_Shdr *ret_shdr)
{
	Elf_Scn *section = NULL;
	GElf_Shdr strings;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, ret_shdr) && ret_shdr->sh_type == type && ret_shdr->sh_size <= TABLE_MAX &&
		    gelf_getshdr(elf_getscn(elf, ret_shdr->sh_link), &strings) && strings.sh_size <= TABLE_MAX)
			return section;
	}
	return NULL;
}

/* Read, not mapped: whoever cuts the file short meanwhile ends nobody. */
int endings_add(struct endings *endings, uint32_t module, int elf_fd)
{
	Elf_Scn *section;
	GElf_Shdr shdr;
	Elf *elf;
	int r = 0;

	elf_version(EV_CURRENT);
	elf = elf_begin(elf_fd, ELF_C_READ, NULL);
	if (!elf)
		return 0;
	section = find_section(elf, SHT_DYNSYM, &shdr);
	if (!section)
		section = find_section(elf, SHT_SYMTAB, &shdr);
	if (section)
		r = note_all(endings, module, elf, section, &shdr);
	elf_end(elf);
	return r;
}

void endings_drop(struct endings *endings, uint32_t module)
{
	for (size_t i = endings->items.count; i-- > 0;) {
		if (endings->items.items[i].module == module)
			vec_remove_unordered(&endings->items, i);
	}
}

void endings_fini(struct endings *endings)
{
	vec_fini(&endings->items);
}

const struct ending *endings_find(const struct endings *endings, uint32_t module, uint64_t vaddr)
{
	for (size_t i = 0; i < endings->items.count; i++) {
		const struct ending *ending = &endings->items.items[i];

		if (ending->module == module && ending->vaddr == vaddr)
			return ending;
	}
	return NULL;
}
