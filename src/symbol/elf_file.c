#include "symbol/elf_file.h"

#include "base/fd.h"
#include "symbol/opener.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int read_code_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count; i++) {
		struct elf_segment *segment;
		GElf_Phdr phdr;

		if (!gelf_getphdr(file->elf, (int)i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) ||
		    phdr.p_vaddr + phdr.p_memsz < phdr.p_vaddr)
			continue;
		segment = vec_push(&file->code);
		if (!segment)
			return -ENOMEM;
		*segment = (struct elf_segment){ phdr.p_vaddr, phdr.p_vaddr + phdr.p_memsz };
	}
	return 0;
}

static int read_head(struct elf_file *file)
{
	GElf_Ehdr ehdr;
	ssize_t len;

	if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &ehdr))
		return -ENOEXEC;
	file->type = ehdr.e_type;
	len = dwelf_elf_gnu_build_id(file->elf, &file->build_id);
	if (len > 0)
		file->build_id_len = (size_t)len;
	else
		file->build_id = NULL;
	return read_code_segments(file);
}

int elf_file_open(int fd, struct elf_file **ret)
{
	struct elf_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file) {
		fd_close(&fd);
		return -ENOMEM;
	}
	file->fd = fd;
	elf_version(EV_CURRENT);
	file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	r = file->elf ? read_head(file) : -ENOEXEC;
	if (r < 0) {
		elf_file_free(file);
		return r;
	}
	*ret = file;
	return 0;
}

int elf_file_open_path(const char *path, struct elf_file **ret)
{
	/* The path comes out of a hostile file. */
	int fd = opener_open(path);

	if (fd < 0)
		return fd;
	return elf_file_open(fd, ret);
}

void elf_file_free(struct elf_file *file)
{
	if (!file)
		return;
	elf_end(file->elf);
	fd_close(&file->fd);
	vec_fini(&file->code);
	free(file);
}

Elf_Scn *elf_file_section(const struct elf_file *file, const char *name)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(file->elf, section))) {
		GElf_Shdr shdr;
		const char *have;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(file->elf, names, shdr.sh_name);
		if (have && strcmp(have, name) == 0)
			return section;
	}
	return NULL;
}

Elf_Data *elf_file_section_data(const struct elf_file *file, const char *name)
{
	Elf_Scn *section = elf_file_section(file, name);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	return data && data->d_buf && data->d_size > 0 ? data : NULL;
}

bool elf_file_is_code(const struct elf_file *file, uint64_t address)
{
	for (size_t i = 0; i < file->code.count; i++) {
		if (address >= file->code.items[i].lo && address < file->code.items[i].hi)
			return true;
	}
	return false;
}

bool elf_file_is_linked(const struct elf_file *file)
{
	return file->type == ET_EXEC || file->type == ET_DYN;
}

bool elf_file_same_build_id(const struct elf_file *file, const void *build_id, size_t len)
{
	return len > 0 && file->build_id_len == len && memcmp(file->build_id, build_id, len) == 0;
}
