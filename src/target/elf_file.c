#include "target/elf_file.h"

#include "target/elf_table.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#define IN_PAGE 4095ULL

/* Notes are padded to the segment's alignment: 4, or 8 for some (gABI, Note Section). */
static void find_build_id(Elf *elf, const GElf_Phdr *phdr, struct elf_file *file)
{
	size_t size = phdr->p_filesz < ELF_NOTES_MAX ? phdr->p_filesz : ELF_NOTES_MAX;
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)phdr->p_offset, size,
					      phdr->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	size_t at = 0, name_at, desc_at;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp(bytes + name_at, "GNU", 4) != 0 || note.n_descsz > BUILD_ID_MAX)
			continue;
		memcpy(file->build_id, bytes + desc_at, note.n_descsz);
		file->build_id_len = note.n_descsz;
		file->build_id_vaddr = phdr->p_vaddr + desc_at;
		return;
	}
}

static int read_segments(Elf *elf, struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0 || count > ELF_SEGMENTS_MAX)
		return -ENOEXEC;
	for (size_t i = 0; i < count; i++) {
		struct elf_segment *segment;
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type == PT_NOTE && file->build_id_len == 0)
			find_build_id(elf, &phdr, file);
		if (phdr.p_type == PT_DYNAMIC)
			file->dynamic_vaddr = phdr.p_vaddr;
		if (phdr.p_type != PT_LOAD)
			continue;
		segment = vec_push(&file->segments);
		if (!segment)
			return -ENOMEM;
		segment->offset = phdr.p_offset;
		segment->vaddr = phdr.p_vaddr;
		segment->file_size = phdr.p_filesz;
		segment->memory_size = phdr.p_memsz;
		segment->executable = phdr.p_flags & PF_X;
	}
	return 0;
}

int elf_file_read(int fd, struct elf_file *ret)
{
	struct elf_file file = { 0 };
	GElf_Ehdr ehdr;
	Elf *elf;
	int r = -ENOEXEC;

	elf = elf_table_begin(fd);
	if (!elf)
		return -ENOEXEC;
	if (elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr)) {
		file.is_64 = gelf_getclass(elf) == ELFCLASS64;
		file.machine = ehdr.e_machine;
		r = read_segments(elf, &file);
	}
	elf_end(elf);
	if (r < 0) {
		elf_file_fini(&file);
		return r;
	}
	*ret = file;
	return 0;
}

void elf_file_fini(struct elf_file *file)
{
	vec_fini(&file->segments);
}

const struct elf_segment *elf_file_segment_at(const struct elf_file *file, uint64_t offset, bool executable)
{
	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *s = &file->segments.items[i];

		if (s->executable == executable && offset >= (s->offset & ~IN_PAGE) &&
		    offset < s->offset + s->file_size)
			return s;
	}
	return NULL;
}

static size_t symbol_count(const Elf_Data *data, uint64_t entry_size)
{
	size_t count = data->d_size / entry_size;

	return count < ELF_TABLE_SYMBOLS_MAX ? count : ELF_TABLE_SYMBOLS_MAX;
}

static unsigned find_symbols(Elf *elf, Elf_Scn *section, const char *const *names, unsigned count,
			     uint64_t *ret_vaddrs)
{
	Elf_Data *data = NULL;
	unsigned found = 0;
	GElf_Shdr shdr;

	if (gelf_getshdr(section, &shdr) && shdr.sh_entsize > 0)
		data = elf_table_data(elf, section, &shdr);
	for (size_t i = 0; data && found < count && i < symbol_count(data, shdr.sh_entsize); i++) {
		GElf_Sym symbol;
		const char *text;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0)
			continue;
		text = elf_strptr(elf, shdr.sh_link, symbol.st_name);
		for (unsigned k = 0; text && k < count; k++) {
			if (ret_vaddrs[k] == 0 && strcmp(text, names[k]) == 0) {
				ret_vaddrs[k] = symbol.st_value;
				found++;
			}
		}
	}
	return found;
}

/* The first table of this type that defines any. */
static unsigned find_in_tables(Elf *elf, uint32_t type, const char *const *names, unsigned count, uint64_t *ret_vaddrs)
{
	Elf_Scn *section = NULL;
	unsigned found = 0;
	GElf_Shdr shdr;

	memset(ret_vaddrs, 0, count * sizeof(*ret_vaddrs));
	while (elf && found == 0 && (section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &shdr) && shdr.sh_type == type)
			found = find_symbols(elf, section, names, count, ret_vaddrs);
	}
	return found;
}

unsigned elf_file_program_symbols(int fd, const char *const *names, unsigned count, uint64_t *ret_vaddrs)
{
	Elf *elf = elf_table_begin(fd);
	bool is_one = elf && elf_table_is_static_program(elf);
	unsigned found = find_in_tables(is_one ? elf : NULL, SHT_SYMTAB, names, count, ret_vaddrs);

	elf_end(elf);
	return found;
}

unsigned elf_file_symbols(int fd, const char *const *names, unsigned count, uint64_t *ret_vaddrs)
{
	Elf *elf = elf_table_begin(fd);
	unsigned found = find_in_tables(elf, SHT_DYNSYM, names, count, ret_vaddrs);

	elf_end(elf);
	return found;
}

int elf_file_symbol(int fd, const char *name, uint64_t *ret_vaddr)
{
	uint64_t vaddr;

	if (elf_file_symbols(fd, &name, 1, &vaddr) == 0)
		return -ENOENT;
	*ret_vaddr = vaddr;
	return 0;
}

static bool has_function(Elf *elf, Elf_Scn *section, const GElf_Shdr *shdr, uint64_t vaddr)
{
	Elf_Data *data = elf_table_data(elf, section, shdr);

	for (size_t i = 0; data && i < symbol_count(data, shdr->sh_entsize); i++) {
		GElf_Sym symbol;

		if (gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF && symbol.st_value == vaddr &&
		    GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
			return true;
	}
	return false;
}

bool elf_file_has_function(int fd, uint64_t vaddr)
{
	Elf_Scn *section = NULL;
	bool found = false;
	GElf_Shdr shdr;
	Elf *elf;

	elf = elf_table_begin(fd);
	while (elf && !found && (section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &shdr) && shdr.sh_entsize != 0 &&
		    (shdr.sh_type == SHT_DYNSYM || shdr.sh_type == SHT_SYMTAB))
			found = has_function(elf, section, &shdr, vaddr);
	}
	elf_end(elf);
	return found;
}

int elf_file_text_of(int fd, const struct elf_file *file, uint64_t vaddr, uint8_t *buf, size_t space, size_t *ret_len)
{
	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *s = &file->segments.items[i];
		uint64_t left;
		ssize_t n;

		if (!s->executable || vaddr < s->vaddr || vaddr - s->vaddr >= s->file_size)
			continue;
		left = s->file_size - (vaddr - s->vaddr);
		n = pread(fd, buf, left < space ? left : space, (off_t)(s->offset + (vaddr - s->vaddr)));
		if (n <= 0)
			return -ENOENT;
		*ret_len = (size_t)n;
		return 0;
	}
	return -ENOENT;
}

int elf_file_text(int fd, uint64_t vaddr, uint8_t *buf, size_t space, size_t *ret_len)
{
	struct elf_file file;
	int r = elf_file_read(fd, &file);

	if (r < 0)
		return r;
	r = elf_file_text_of(fd, &file, vaddr, buf, space, ret_len);
	elf_file_fini(&file);
	return r;
}
