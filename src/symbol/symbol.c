#include "symbol/symbol.h"

#include "base/strtab.h"
#include "symbol/debugfile.h"
#include "symbol/demangle.h"
#include "symbol/minidebug.h"
#include "symbol/symtab.h"
#include "symbol/units.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct symbol_module {
	struct elf_file *file;
	struct elf_file *debug;              /* separate debug file, or NULL */
	struct elf_file *alternate;          /* what the DWARF shares with others, or NULL */
	struct minidebug *minidebug;
	Dwarf *dwarf, *alternate_dwarf;
	struct units *units;
	struct symtab *symtab;
	struct strtab *strings;
	unsigned sources;
	bool lacks_alternate;
};

static bool has_dwarf(const struct elf_file *file)
{
	return elf_file_section(file, ".debug_info") || elf_file_section(file, ".zdebug_info");
}

static int attach_alternate(struct symbol_module *module, const struct elf_file *from,
			    const char *debug_root)
{
	int r = debugfile_find_alternate(module->dwarf, from, debug_root, &module->alternate);

	module->lacks_alternate = r == -ENOENT || r == -EXDEV;
	if (r < 0 || !module->alternate)
		return r == -ENOENT ? 0 : r;
	module->alternate_dwarf = dwarf_begin_elf(module->alternate->elf, DWARF_C_READ, NULL);
	if (!module->alternate_dwarf)
		return -EXDEV;
	dwarf_setalt(module->dwarf, module->alternate_dwarf);
	return 0;
}

static int open_dwarf(struct symbol_module *module, const char *debug_root)
{
	const struct elf_file *from = module->debug ? module->debug : module->file;
	int r;

	if (!has_dwarf(from))
		return -ENOENT;
	module->dwarf = dwarf_begin_elf(from->elf, DWARF_C_READ, NULL);
	if (!module->dwarf)
		return -ENOENT;
	r = attach_alternate(module, from, debug_root);
	if (r < 0)
		return r;
	r = units_new(module->dwarf, module->file, module->strings, &module->units);
	if (r == 0)
		module->sources |= SYMBOL_FROM_DWARF | (module->debug ? SYMBOL_FROM_DEBUG_FILE : 0);
	return r;
}

static int add_symbols(struct symbol_module *module, Elf *elf, enum symtab_source table,
		       unsigned source)
{
	int64_t added = symtab_add(module->symtab, elf, module->file, table);

	if (added > 0)
		module->sources |= source;
	return added < 0 ? (int)added : added > 0;
}

static int read_symbols(struct symbol_module *module)
{
	int r = add_symbols(module, module->file->elf, SYMTAB_STATIC, SYMBOL_FROM_SYMTAB);

	if (r == 0 && module->debug)
		r = add_symbols(module, module->debug->elf, SYMTAB_STATIC, SYMBOL_FROM_SYMTAB);
	if (r == 0 && minidebug_open(module->file, &module->minidebug) == 0)
		r = add_symbols(module, minidebug_elf(module->minidebug), SYMTAB_STATIC,
				SYMBOL_FROM_MINIDEBUG);
	if (r >= 0)
		r = add_symbols(module, module->file->elf, SYMTAB_DYNAMIC, SYMBOL_FROM_DYNSYM);
	return r < 0 ? r : symtab_finish(module->symtab);
}

/* On this machine first. */
static int find_debug(struct symbol_module *module, const char *debug_root)
{
	int r = debugfile_find(module->file, debug_root, &module->debug);

	return r == -ENOENT ? debugfile_fetch(module->file, &module->debug) : r;
}

static int read_everything(struct symbol_module *module, const char *debug_root)
{
	int r = 0;

	module->strings = strtab_new();
	module->symtab = symtab_new();
	if (!module->strings || !module->symtab)
		return -ENOMEM;
	if (!has_dwarf(module->file))
		r = find_debug(module, debug_root);
	if (r == -ENOMEM || r == -EINPROGRESS)
		return r;
	r = open_dwarf(module, debug_root);
	if (r == -ENOMEM || r == -EINPROGRESS)
		return r;
	return read_symbols(module);
}

int symbol_module_open(int fd, const char *debug_root, struct symbol_module **ret)
{
	struct symbol_module *module;
	struct elf_file *file;
	int r = elf_file_open(fd, &file);

	if (r < 0)
		return r;
	module = elf_file_is_linked(file) ? calloc(1, sizeof(*module)) : NULL;
	if (!module) {
		r = elf_file_is_linked(file) ? -ENOMEM : -ENOEXEC;
		elf_file_free(file);
		return r;
	}
	module->file = file;
	r = read_everything(module, debug_root);
	if (r < 0) {
		symbol_module_free(module);
		return r;
	}
	*ret = module;
	return 0;
}

void symbol_module_free(struct symbol_module *module)
{
	if (!module)
		return;
	units_free(module->units);
	symtab_free(module->symtab);
	if (module->dwarf)
		dwarf_end(module->dwarf);
	if (module->alternate_dwarf)
		dwarf_end(module->alternate_dwarf);
	minidebug_free(module->minidebug);
	elf_file_free(module->alternate);
	elf_file_free(module->debug);
	elf_file_free(module->file);
	strtab_free(module->strings);
	free(module);
}

unsigned symbol_module_sources(const struct symbol_module *module)
{
	return module->sources;
}

bool symbol_module_is_incomplete(const struct symbol_module *module)
{
	return module->lacks_alternate || (module->units && units_incomplete(module->units));
}

static const char *intern(struct symbol_module *module, const char *text, size_t len)
{
	int64_t id = strtab_add_len(module->strings, text,
				    len < SYMBOL_NAME_MAX ? len : SYMBOL_NAME_MAX - 1);

	return id < 0 ? NULL : strtab_get(module->strings, (uint32_t)id);
}

/* A name as people write it: demangled, without the "@@VERSION" of a symbol table. */
static const char *readable_name(struct symbol_module *module, const char *name)
{
	size_t len = strcspn(name, "@");
	const char *bare = intern(module, name, len > 0 ? len : strlen(name)), *readable;
	char *demangled = bare ? demangle(bare) : NULL;

	if (!demangled)
		return bare;
	readable = intern(module, demangled, strlen(demangled));
	free(demangled);
	return readable;
}

static const char *linkage_name(Dwarf_Die *die)
{
	static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		Dwarf_Attribute attribute;
		const char *name = NULL;

		if (dwarf_attr_integrate(die, names[i], &attribute))
			name = dwarf_formstring(&attribute);
		if (name && name[0])
			return name;
	}
	return NULL;
}

/* Only a mangled symbol says more than the bare name of a DIE: it has the namespaces in it. */
static const char *die_name(Dwarf_Die *die, const struct symtab_symbol *symbol)
{
	const char *name = linkage_name(die);

	if (!name && symbol && demangle_wanted(symbol->name))
		name = symbol->name;
	if (!name)
		name = dwarf_diename(die);
	if ((!name || !name[0]) && symbol)
		name = symbol->name;
	return name;
}

static const char *scope_name(struct symbol_module *module, struct unit *unit, struct scope *scope,
			      const struct symtab_symbol *symbol)
{
	const char *name = NULL;
	Dwarf_Die die;

	if (scope->name)
		return scope->name[0] ? scope->name : NULL;
	if (unit_die(unit, scope->die, &die) == 0)
		name = die_name(&die, scope->parent == SCOPE_NONE ? symbol : NULL);
	name = name ? readable_name(module, name) : NULL;
	scope->name = name ? name : "";
	return name;
}

/* The line of a level is where it stands in its code: the row's line for the innermost one, the
 * place of the inlined call for the one around. */
static int unfold(struct symbol_module *module, struct unit *unit, uint64_t pc, uint64_t address,
		     const struct symtab_symbol *symbol, struct symbol_location *locations)
{
	struct scopes *scopes = unit_scopes(unit);
	uint32_t id = scopes ? scopes_find(scopes, pc) : SCOPE_NONE;
	struct symbol_location here = { 0 };
	int count = 0;

	if (unit_line(unit, pc, &here.file, &here.line) < 0)
		here.file = NULL;
	while (id != SCOPE_NONE) {
		struct scope *scope = scopes_get(scopes, id);

		here.function = scope_name(module, unit, scope, symbol);
		here.function_offset = address - scopes_start(scopes, id, pc);
		here.inlined = scope->parent != SCOPE_NONE;
		if (count < SYMBOL_LOCATIONS_MAX - 1 || !here.inlined)
			locations[count++] = here;
		here.line = scope->call_line;
		here.file = here.line > 0 ? unit_call_file(unit, scope->call_file) : NULL;
		if (!here.file)
			here.line = 0;
		id = scope->parent;
	}
	if (count > 0 || !here.file)
		return count;
	locations[0] = here;             /* assembly code: rows, but no function DIE */
	if (symbol) {
		locations[0].function = readable_name(module, symbol->name);
		locations[0].function_offset = address - symbol->start;
	}
	return 1;
}

int symbol_module_resolve(struct symbol_module *module, uint64_t address, bool is_call,
			  struct symbol_location *locations)
{
	uint64_t pc = is_call && address > 0 ? address - 1 : address;
	struct symtab_symbol symbol;
	struct unit *unit = NULL;
	bool named;
	int count = 0;

	if (!elf_file_is_code(module->file, pc))
		return 0;
	named = symtab_find(module->symtab, pc, &symbol);
	if (module->units)
		unit = units_find(module->units, pc);
	if (unit)
		count = unfold(module, unit, pc, address, named ? &symbol : NULL, locations);
	if (module->units && units_out_of_memory(module->units))
		return -ENOMEM;
	if (count > 0 || !named)
		return count;
	locations[0] = (struct symbol_location){
		.function = readable_name(module, symbol.name),
		.function_offset = address - symbol.start,
	};
	return 1;
}
