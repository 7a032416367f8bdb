#include "probe/elf_code.h"

#include "target/elf_file.h"
#include "target/elf_table.h"
#include "unwind/cfi_find.h"
#include "unwind/cfi_image.h"
#include "unwind/cfi_section.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A part of the file.  Its bytes are read when they are first asked for: read, since whoever cut a mapped file short would end us by
 * SIGBUS; and it is the file's instructions that are wanted, while into a private mapping of it the kernel writes the int3s of uprobes that
 * hold for every process (bpftrace's). */
struct part {
	uint64_t vaddr, offset;
	size_t size;
	bool tried;
	uint8_t *bytes;                    /* NULL: not read yet, or not to be had */
};

struct elf_code {
	Elf *elf;
	int fd;
	VEC_OF(struct part) code;          /* executable segments */
	size_t read;                       /* bytes of these */
	bool indexed;
	struct cfi_index index;            /* made when it is first asked for */
};

/* NULL: not all of it. */
static uint8_t *read_whole(int fd, uint64_t offset, size_t size, size_t most)
{
	uint8_t *bytes = size > 0 && size <= most ? malloc(size) : NULL;
	size_t done = 0;

	while (bytes && done < size) {
		ssize_t n = pread(fd, bytes + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(bytes);
			return NULL;
		}
		done += (size_t)n;
	}
	return bytes;
}

static const uint8_t *part_bytes(struct elf_code *code, struct part *part)
{
	if (!part->tried)
		part->bytes = read_whole(code->fd, part->offset, part->size, ELF_CODE_MAX - code->read);
	if (!part->tried && part->bytes)
		code->read += part->size;
	part->tried = true;
	return part->bytes;
}

static int note_segments(struct elf_code *code)
{
	size_t count;

	if (elf_kind(code->elf) != ELF_K_ELF || elf_getphdrnum(code->elf, &count) < 0 || count > ELF_SEGMENTS_MAX)
		return -ENOEXEC;
	for (size_t i = 0; i < count; i++) {
		struct part *part;
		GElf_Phdr phdr;

		if (!gelf_getphdr(code->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		part = vec_push(&code->code);
		if (!part)
			return -ENOMEM;
		*part = (struct part){ .vaddr = phdr.p_vaddr, .offset = phdr.p_offset, .size = phdr.p_filesz };
	}
	return 0;
}

int elf_code_open(int elf_fd, struct elf_code **ret)
{
	struct elf_code *code = calloc(1, sizeof(*code));
	int r;

	if (!code)
		return -ENOMEM;
	code->fd = elf_fd;
	code->elf = elf_table_begin(elf_fd);
	r = code->elf ? note_segments(code) : -ENOEXEC;
	if (r < 0) {
		elf_code_close(code);
		return r;
	}
	*ret = code;
	return 0;
}

void elf_code_close(struct elf_code *code)
{
	if (!code)
		return;
	cfi_index_fini(&code->index);
	for (size_t i = 0; i < code->code.count; i++)
		free(code->code.items[i].bytes);
	vec_fini(&code->code);
	elf_end(code->elf);
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
		data = elf_table_data(code->elf, section, &shdr);
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

int elf_code_each_local_function(struct elf_code *code,
				 int (*visit)(void *context, const char *symbol, uint64_t vaddr), void *context)
{
	struct function_visit v = { visit, context, true };

	return elf_table_is_static_program(code->elf) ? each_symbol(code, STT_FUNC, visit_function, &v) : 0;
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
	uint8_t *bytes = place.compressed ? NULL : read_whole(code->fd, place.offset, place.size, CFI_SECTION_MAX);

	code->indexed = true;
	section.bytes = bytes;
	if (!bytes || cfi_section_index(&section, &code->index) < 0)
		code->index = (struct cfi_index){ 0 };
	free(bytes);
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
			data = elf_table_data(code->elf, section, &shdr);
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
	Elf_Data *data = NULL;
	GElf_Shdr shdr;

	if (section && gelf_getshdr(section, &shdr))
		data = elf_table_data(code->elf, section, &shdr);
	if (!data || !gelf_getsym(data, (int)number, ret_symbol))
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

const uint8_t *elf_code_at(struct elf_code *code, uint64_t vaddr, size_t *ret_len)
{
	for (size_t i = 0; i < code->code.count; i++) {
		struct part *part = &code->code.items[i];
		const uint8_t *bytes = NULL;

		if (vaddr >= part->vaddr && vaddr - part->vaddr < part->size)
			bytes = part_bytes(code, part);
		if (!bytes)
			continue;
		*ret_len = part->size - (vaddr - part->vaddr);
		return bytes + (vaddr - part->vaddr);
	}
	return NULL;
}

void elf_code_each_segment(struct elf_code *code,
			   void (*visit)(void *context, const uint8_t *bytes, size_t len, uint64_t vaddr), void *context)
{
	for (size_t i = 0; i < code->code.count; i++) {
		struct part *part = &code->code.items[i];
		const uint8_t *bytes = part_bytes(code, part);

		if (bytes)
			visit(context, bytes, part->size, part->vaddr);
	}
}
