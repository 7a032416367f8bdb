#include "probe/elf_code.h"

#include "unwind/cfi_find.h"
#include "unwind/cfi_section.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct elf_code {
	Elf *elf;
	uint8_t *image;
	size_t image_size;
	int fd;
	bool indexed;
	struct cfi_index index;            /* made when it is first asked for */
};

/* Shared: into private mappings, libelf's own for one, the kernel writes the int3s of uprobes that hold for every
 * process (bpftrace's), ours included, and the file's instructions are what is asked for here. */
static uint8_t *map_file(int fd, size_t *ret_size)
{
	struct stat st;
	void *image;

	if (fstat(fd, &st) < 0 || st.st_size <= 0)
		return NULL;
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (image == MAP_FAILED)
		return NULL;
	*ret_size = (size_t)st.st_size;
	return image;
}

int elf_code_open(int elf_fd, struct elf_code **ret)
{
	struct elf_code *code = calloc(1, sizeof(*code));

	if (!code)
		return -ENOMEM;
	code->fd = elf_fd;
	elf_version(EV_CURRENT);
	code->image = map_file(elf_fd, &code->image_size);
	if (code->image)
		code->elf = elf_memory((char *)code->image, code->image_size);
	if (!code->elf || elf_kind(code->elf) != ELF_K_ELF) {
		elf_code_close(code);
		return -ENOEXEC;
	}
	*ret = code;
	return 0;
}

void elf_code_close(struct elf_code *code)
{
	if (!code)
		return;
	cfi_index_fini(&code->index);
	elf_end(code->elf);
	if (code->image)
		munmap(code->image, code->image_size);
	free(code);
}

/* Visits the symbols of one type (STT_) in both tables until `visit` returns non-zero. */
static int each_symbol(const struct elf_code *code, unsigned type,
		       int (*visit)(void *context, const GElf_Sym *symbol, const char *name), void *context)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;
	size_t seen = 0;

	while ((section = elf_nextscn(code->elf, section))) {
		Elf_Data *data;
		size_t count;

		if (!gelf_getshdr(section, &shdr) || (shdr.sh_type != SHT_DYNSYM && shdr.sh_type != SHT_SYMTAB) ||
		    shdr.sh_entsize == 0)
			continue;
		data = elf_getdata(section, NULL);
		if (!data)
			continue;
		count = data->d_size / shdr.sh_entsize;
		for (size_t i = 0; i < count && seen < ELF_SYMBOLS_MAX; i++, seen++) {
			GElf_Sym symbol;
			const char *name;
			int r;

			if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
			    GELF_ST_TYPE(symbol.st_info) != type)
				continue;
			name = elf_strptr(code->elf, shdr.sh_link, symbol.st_name);
			r = name ? visit(context, &symbol, name) : 0;
			if (r != 0)
				return r;
		}
	}
	return 0;
}

struct function_visit {
	int (*visit)(void *context, const char *symbol, uint64_t vaddr);
	void *context;
	bool local;
};

static int visit_function(void *context, const GElf_Sym *symbol, const char *name)
{
	const struct function_visit *v = context;

	if ((GELF_ST_BIND(symbol->st_info) == STB_LOCAL) != v->local)
		return 0;
	return v->visit(v->context, name, symbol->st_value);
}

int elf_code_each_function(struct elf_code *code,
			   int (*visit)(void *context, const char *symbol, uint64_t vaddr), void *context)
{
	/* A local symbol of that name is somebody's own static function. */
	struct function_visit v = { visit, context, false };

	return each_symbol(code, STT_FUNC, visit_function, &v);
}

static bool has_flag_pie(Elf *elf, const GElf_Phdr *dynamic)
{
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, dynamic->p_filesz, ELF_T_DYN);
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_FLAGS_1)
			return entry.d_un.d_val & DF_1_PIE;
	}
	return false;
}

/* Of type ET_DYN are libraries, too, and they have no interpreter either. */
static bool is_static_program(const struct elf_code *code)
{
	bool is_program = false;
	GElf_Ehdr ehdr;
	GElf_Phdr phdr;
	size_t count;

	if (!gelf_getehdr(code->elf, &ehdr) || elf_getphdrnum(code->elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(code->elf, (int)i, &phdr); i++) {
		if (phdr.p_type == PT_INTERP)
			return false;
		is_program |= phdr.p_type == PT_DYNAMIC && has_flag_pie(code->elf, &phdr);
	}
	return is_program || ehdr.e_type == ET_EXEC;
}

int elf_code_each_local_function(struct elf_code *code,
				 int (*visit)(void *context, const char *symbol, uint64_t vaddr), void *context)
{
	struct function_visit v = { visit, context, true };

	return is_static_program(code) ? each_symbol(code, STT_FUNC, visit_function, &v) : 0;
}

struct variable_search {
	const char *name;
	uint64_t vaddr;
};

static int visit_variable(void *context, const GElf_Sym *symbol, const char *name)
{
	struct variable_search *search = context;

	if (strcmp(name, search->name) != 0)
		return 0;
	search->vaddr = symbol->st_value;
	return 1;
}

bool elf_code_find_variable(struct elf_code *code, const char *name, uint64_t *ret_vaddr)
{
	struct variable_search search = { name, 0 };

	if (each_symbol(code, STT_OBJECT, visit_variable, &search) == 0)
		return false;
	*ret_vaddr = search.vaddr;
	return true;
}

struct size_search {
	uint64_t vaddr, size;
};

static int visit_size(void *context, const GElf_Sym *symbol, const char *name)
{
	struct size_search *search = context;

	(void)name;
	if (symbol->st_value == search->vaddr && symbol->st_size > search->size)
		search->size = symbol->st_size;
	return 0;
}

static void make_index(struct elf_code *code)
{
	struct cfi_place place = cfi_find_eh_frame(code->elf, code->fd);
	struct cfi_section section = { .size = place.size, .address = place.address, .eh_frame = true };

	code->indexed = true;
	if (place.size == 0 || place.compressed || place.offset > code->image_size ||
	    place.size > code->image_size - place.offset)
		return;
	section.bytes = code->image + place.offset;
	if (cfi_section_index(&section, &code->index) < 0)
		code->index = (struct cfi_index){ 0 };
}

static uint64_t size_by_unwind_tables(struct elf_code *code, uint64_t vaddr)
{
	size_t low = 0, high;

	if (!code->indexed)
		make_index(code);
	high = code->index.fdes.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct cfi_fde *fde = &code->index.fdes.items[middle];

		if (vaddr < fde->start)
			high = middle;
		else if (vaddr >= fde->end)
			low = middle + 1;
		else
			return fde->end - vaddr;
	}
	return 0;
}

uint64_t elf_code_function_size(struct elf_code *code, uint64_t vaddr)
{
	struct size_search search = { vaddr, size_by_unwind_tables(code, vaddr) };

	if (search.size == 0)
		each_symbol(code, STT_FUNC, visit_size, &search);
	return search.size;
}

struct next_search {
	uint64_t vaddr, next;
};

static int visit_next(void *context, const GElf_Sym *symbol, const char *name)
{
	struct next_search *search = context;

	(void)name;
	if (symbol->st_value > search->vaddr && symbol->st_value < search->next)
		search->next = symbol->st_value;
	return 0;
}

uint64_t elf_code_next_function(struct elf_code *code, uint64_t vaddr)
{
	struct next_search search = { vaddr, UINT64_MAX };

	each_symbol(code, STT_FUNC, visit_next, &search);
	return search.next;
}

struct name_search {
	const char *name;
	uint64_t vaddr;
};

static int visit_name(void *context, const GElf_Sym *symbol, const char *name)
{
	const struct name_search *search = context;

	return symbol->st_value == search->vaddr && strcmp(name, search->name) == 0;
}

bool elf_code_is_named(struct elf_code *code, uint64_t vaddr, const char *name)
{
	struct name_search search = { name, vaddr };

	return each_symbol(code, STT_FUNC, visit_name, &search) != 0;
}

/* What fills the pointer at vaddr. */
static bool find_import(const struct elf_code *code, uint64_t vaddr, GElf_Rela *ret_rela, size_t *ret_table)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(code->elf, section))) {
		Elf_Data *data = NULL;

		if (gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_RELA && shdr.sh_entsize != 0)
			data = elf_getdata(section, NULL);
		for (size_t i = 0; data && i < data->d_size / shdr.sh_entsize; i++) {
			if (!gelf_getrela(data, (int)i, ret_rela) || ret_rela->r_offset != vaddr)
				continue;
			*ret_table = shdr.sh_link;
			return true;
		}
	}
	return false;
}

static bool get_symbol(const struct elf_code *code, size_t table, size_t number, GElf_Sym *ret_symbol, size_t *ret_strings)
{
	Elf_Scn *section = elf_getscn(code->elf, table);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	GElf_Shdr shdr;

	if (!data || !gelf_getshdr(section, &shdr) || !gelf_getsym(data, (int)number, ret_symbol))
		return false;
	*ret_strings = shdr.sh_link;
	return true;
}

const char *elf_code_import_name(const struct elf_code *code, uint64_t vaddr)
{
	size_t table, strings;
	GElf_Rela rela;
	GElf_Sym symbol;

	if (!find_import(code, vaddr, &rela, &table))
		return NULL;
	if (GELF_R_TYPE(rela.r_info) == R_X86_64_IRELATIVE)
		return "";
	if (!get_symbol(code, table, GELF_R_SYM(rela.r_info), &symbol, &strings))
		return NULL;
	return elf_strptr(code->elf, strings, symbol.st_name);
}

bool elf_code_import_is_own(const struct elf_code *code, uint64_t vaddr, uint64_t *ret_vaddr)
{
	size_t table, strings;
	GElf_Rela rela;
	GElf_Sym symbol;

	if (!find_import(code, vaddr, &rela, &table) || GELF_R_TYPE(rela.r_info) == R_X86_64_IRELATIVE ||
	    !get_symbol(code, table, GELF_R_SYM(rela.r_info), &symbol, &strings) || symbol.st_shndx == SHN_UNDEF ||
	    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
		return false;
	*ret_vaddr = symbol.st_value;
	return true;
}

/* Null: no executable segment, or one that is not all in the file. */
static const uint8_t *segment_at(const struct elf_code *code, size_t number, uint64_t *ret_vaddr, size_t *ret_len)
{
	GElf_Phdr phdr;

	if (!gelf_getphdr(code->elf, (int)number, &phdr) || phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) ||
	    phdr.p_offset > code->image_size || phdr.p_filesz > code->image_size - phdr.p_offset)
		return NULL;
	*ret_vaddr = phdr.p_vaddr;
	*ret_len = phdr.p_filesz;
	return code->image + phdr.p_offset;
}

const uint8_t *elf_code_at(const struct elf_code *code, uint64_t vaddr, size_t *ret_len)
{
	size_t count, len;

	if (elf_getphdrnum(code->elf, &count) < 0)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		uint64_t start;
		const uint8_t *bytes = segment_at(code, i, &start, &len);

		if (!bytes || vaddr < start || vaddr - start >= len)
			continue;
		*ret_len = len - (vaddr - start);
		return bytes + (vaddr - start);
	}
	return NULL;
}

void elf_code_each_segment(const struct elf_code *code,
			   void (*visit)(void *context, const uint8_t *bytes, size_t len, uint64_t vaddr), void *context)
{
	size_t count, len;

	if (elf_getphdrnum(code->elf, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t start;
		const uint8_t *bytes = segment_at(code, i, &start, &len);

		if (bytes)
			visit(context, bytes, len, start);
	}
}
