#include "symbol/symtab.h"

#include "symbol/intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
	uint64_t start, size;
	uint64_t limit;                      /* no further, when the size is unknown */
	const char *name;
	uint8_t bind, type;
};

struct symtab {
	VEC_OF(struct symbol) symbols;
	struct intervals index;              /* values are indexes of `symbols` */
};

struct symtab *symtab_new(void)
{
	return calloc(1, sizeof(struct symtab));
}

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	vec_fini(&symtab->symbols);
	intervals_fini(&symtab->index);
	free(symtab);
}

static bool is_function(const GElf_Sym *sym, const char *name, enum symtab_source source)
{
	unsigned type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !name || !name[0])
		return false;
	/* Without .symtab the next function may have no symbol at all, so nothing tells where one
	 * of unknown size ends. */
	if (sym->st_size == 0 && source == SYMTAB_DYNAMIC)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Labels of assembly code; not the compiler's own and not ARM's mapping symbols. */
	return type == STT_NOTYPE && name[0] != '.' && name[0] != '$';
}

static uint64_t section_end(Elf *elf, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, index);
	GElf_Shdr shdr;

	if (!section || !gelf_getshdr(section, &shdr) || shdr.sh_size > UINT64_MAX - shdr.sh_addr)
		return 0;
	return shdr.sh_addr + shdr.sh_size;
}

static int add_symbol(struct symtab *symtab, Elf *elf, const GElf_Sym *sym, const char *name)
{
	struct symbol *symbol = vec_push(&symtab->symbols);

	if (!symbol)
		return -ENOMEM;
	symbol->start = sym->st_value;
	symbol->size = sym->st_size;
	if (symbol->size > UINT64_MAX - symbol->start)
		symbol->size = UINT64_MAX - symbol->start;
	symbol->limit = symbol->size == 0 ? section_end(elf, sym->st_shndx) : 0;
	symbol->name = name;
	symbol->bind = GELF_ST_BIND(sym->st_info);
	symbol->type = GELF_ST_TYPE(sym->st_info);
	return 0;
}

static int64_t add_section(struct symtab *symtab, Elf *elf, Elf_Scn *section, const GElf_Shdr *shdr,
			   const struct elf_file *file, enum symtab_source source)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && shdr->sh_entsize > 0 ? data->d_size / shdr->sh_entsize : 0;
	int64_t added = 0;

	for (size_t i = 1; i < count; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym))
			break;
		if (!elf_file_is_code(file, sym.st_value))
			continue;
		name = elf_strptr(elf, shdr->sh_link, sym.st_name);
		if (!is_function(&sym, name, source))
			continue;
		if (add_symbol(symtab, elf, &sym, name) < 0)
			return -ENOMEM;
		added++;
	}
	return added;
}

int64_t symtab_add(struct symtab *symtab, Elf *elf, const struct elf_file *file,
		   enum symtab_source source)
{
	GElf_Word type = source == SYMTAB_STATIC ? SHT_SYMTAB : SHT_DYNSYM;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(section, &shdr) && shdr.sh_type == type)
			return add_section(symtab, elf, section, &shdr, file, source);
	}
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static unsigned underscores(const char *name)
{
	return (unsigned)strspn(name, "_");
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

static unsigned bind_order(unsigned bind)
{
	return bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;
}

/* The name that a person would use comes first: malloc before __libc_malloc, strdup (weak) before
 * __strdup (global), any of them before a local alias. */
static int compare_names(const struct symbol *x, const struct symbol *y)
{
	int order = compare(x->bind == STB_LOCAL, y->bind == STB_LOCAL);

	if (order == 0)
		order = compare(x->type == STT_NOTYPE, y->type == STT_NOTYPE);
	if (order == 0 && !is_mangled(x->name) && !is_mangled(y->name))
		order = compare(underscores(x->name), underscores(y->name));
	if (order == 0)
		order = compare(bind_order(x->bind), bind_order(y->bind));
	return order ? order : strcmp(x->name, y->name);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	int order = compare(x->start, y->start);

	if (order == 0)
		order = compare(y->size, x->size);
	return order ? order : compare_names(x, y);
}

/* A function of unknown size ends where the next one begins, or its section ends. */
static uint64_t guess_end(const struct symtab *symtab, size_t i)
{
	uint64_t start = symtab->symbols.items[i].start, limit = symtab->symbols.items[i].limit;

	while (++i < symtab->symbols.count && symtab->symbols.items[i].start == start)
		;
	if (i < symtab->symbols.count && symtab->symbols.items[i].start < limit)
		return symtab->symbols.items[i].start;
	return limit;
}

int symtab_finish(struct symtab *symtab)
{
	uint64_t covered = 0;    /* every address below belongs to a symbol that says so */

	if (symtab->symbols.count >= UINT32_MAX)
		return -ENOMEM;
	if (symtab->symbols.count > 0)
		qsort(symtab->symbols.items, symtab->symbols.count, sizeof(struct symbol),
		      compare_symbols);
	for (size_t i = 0; i < symtab->symbols.count; i++) {
		const struct symbol *symbol = &symtab->symbols.items[i];
		const struct symbol *before = i > 0 ? symbol - 1 : NULL;
		uint64_t end = symbol->start + symbol->size;

		if (before && before->start == symbol->start && before->size == symbol->size)
			continue;        /* an alias with a better name stands there */
		if (symbol->size == 0 && symbol->start < covered)
			continue;        /* a label inside a function */
		if (symbol->size == 0)
			end = guess_end(symtab, i);
		else if (end > covered)
			covered = end;
		if (intervals_add(&symtab->index, symbol->start, end, 0, (uint32_t)i) < 0)
			return -ENOMEM;
	}
	return intervals_flatten(&symtab->index);
}

bool symtab_find(const struct symtab *symtab, uint64_t address, struct symtab_symbol *ret)
{
	const struct interval *piece = intervals_find(&symtab->index, address);

	if (!piece)
		return false;
	ret->name = symtab->symbols.items[piece->value].name;
	ret->start = symtab->symbols.items[piece->value].start;
	return true;
}
