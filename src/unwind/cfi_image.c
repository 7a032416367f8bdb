#include "unwind/cfi_image.h"

#include "unwind/cfi_find.h"
#include "unwind/cfi_section.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTION_NULL, SECTION_HDR, SECTION_EH_FRAME, SECTION_DEBUG_FRAME, SECTION_NAMES, SECTION_COUNT };

static const char names[] = "\0.eh_frame_hdr\0.eh_frame\0.debug_frame\0.shstrtab";
static const uint32_t name_offsets[SECTION_COUNT] = { 0, 1, 15, 25, 38 };

struct builder {
	struct cfi_image image;
	size_t space;
	Elf64_Shdr sections[SECTION_COUNT];
};

/* Room for len bytes at the image's end, 8-aligned; NULL without memory. */
static char *append(struct builder *b, size_t len)
{
	size_t at = (b->image.size + 7) & ~(size_t)7;

	if (at + len > b->space) {
		size_t space = at + len + 4096;
		char *grown = realloc(b->image.bytes, space);

		if (!grown)
			return NULL;
		b->image.bytes = grown;
		b->space = space;
	}
	memset(b->image.bytes + b->image.size, 0, at - b->image.size);
	b->image.size = at + len;
	return b->image.bytes + at;
}

static char *append_section(struct builder *b, int number, uint64_t address, size_t len)
{
	char *at = append(b, len);

	if (!at)
		return NULL;
	b->sections[number] = (Elf64_Shdr){
		.sh_name = name_offsets[number],
		.sh_type = number == SECTION_NAMES ? SHT_STRTAB : SHT_PROGBITS,
		.sh_addr = address,
		.sh_offset = (uint64_t)(at - b->image.bytes),
		.sh_size = len,
		.sh_addralign = 1,
	};
	return at;
}

/* Takes a section back that turned out to be of no use. */
static void drop_section(struct builder *b, int number)
{
	b->image.size = b->sections[number].sh_offset;
	b->sections[number] = (Elf64_Shdr){ 0 };
}

static int read_bytes(int fd, uint64_t offset, char *to, size_t len)
{
	while (len > 0) {
		ssize_t n = pread(fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int add_compressed(struct builder *b, int number, const struct cfi_place *place)
{
	Elf_Data *data;
	GElf_Chdr header;
	char *to;

	if (!gelf_getchdr(place->section, &header) || header.ch_size > CFI_SECTION_MAX)
		return -ENODATA;
	if (elf_compress(place->section, 0, 0) < 0)
		return -ENODATA;
	data = elf_rawdata(place->section, NULL);
	if (!data || !data->d_buf || data->d_size > CFI_SECTION_MAX)
		return -ENODATA;
	to = append_section(b, number, place->address, data->d_size);
	if (!to)
		return -ENOMEM;
	memcpy(to, data->d_buf, data->d_size);
	return 0;
}

static int add_place(struct builder *b, int number, const struct cfi_place *place, int fd)
{
	struct stat st;
	char *to;
	int err;

	if (place->size == 0 || place->size > CFI_SECTION_MAX)
		return -ENODATA;
	if (place->compressed)
		return add_compressed(b, number, place);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (place->offset > (uint64_t)st.st_size || place->size > (uint64_t)st.st_size - place->offset)
		return -ENODATA;
	to = append_section(b, number, place->address, (size_t)place->size);
	if (!to)
		return -ENOMEM;
	err = read_bytes(fd, place->offset, to, (size_t)place->size);
	if (err < 0)
		drop_section(b, number);
	return err;
}

static int index_section(struct builder *b, int number, struct cfi_index *ret)
{
	const struct cfi_section section = {
		.bytes = (const uint8_t *)b->image.bytes + b->sections[number].sh_offset,
		.size = b->sections[number].sh_size,
		.address = b->sections[number].sh_addr,
		.eh_frame = number == SECTION_EH_FRAME,
	};

	return cfi_section_index(&section, ret);
}

/* A search table with absolute 64-bit addresses: any layout fits, and libdw reads it. */
static int add_search_table(struct builder *b, const struct cfi_index *index)
{
	uint64_t eh_frame = b->sections[SECTION_EH_FRAME].sh_addr;
	size_t count = index->fdes.count;
	uint32_t count32 = (uint32_t)count;
	char *to = append_section(b, SECTION_HDR, eh_frame + b->sections[SECTION_EH_FRAME].sh_size,
				  16 + count * 16);

	if (!to)
		return -ENOMEM;
	to[0] = 1;
	to[1] = DW_EH_PE_udata8;
	to[2] = DW_EH_PE_udata4;
	to[3] = DW_EH_PE_udata8;
	memcpy(to + 4, &eh_frame, 8);
	memcpy(to + 12, &count32, 4);
	for (size_t i = 0; i < count; i++) {
		uint64_t pair[2] = { index->fdes.items[i].start, eh_frame + index->fdes.items[i].offset };

		memcpy(to + 16 + i * 16, pair, sizeof(pair));
	}
	b->image.eh_frame = b->sections[SECTION_EH_FRAME].sh_offset;
	b->image.eh_frame_size = b->sections[SECTION_EH_FRAME].sh_size;
	b->image.eh_frame_address = eh_frame;
	b->image.search_table = (size_t)(to + 16 - b->image.bytes);
	b->image.functions = count32;
	return 0;
}

static int add_eh_frame(struct builder *b, Elf *elf, int fd)
{
	struct cfi_place place = cfi_find_eh_frame(elf, fd);
	struct cfi_index index;
	int err;

	err = add_place(b, SECTION_EH_FRAME, &place, fd);
	if (err < 0)
		return err;
	err = index_section(b, SECTION_EH_FRAME, &index);
	if (err < 0)
		return err;
	b->image.refused += index.refused;
	if (index.fdes.count == 0) {
		drop_section(b, SECTION_EH_FRAME);
		err = -ENODATA;
	} else {
		err = add_search_table(b, &index);
	}
	b->image.has_eh_frame = err == 0;
	cfi_index_fini(&index);
	return err;
}

/* libdw reads this one from its start to its end, so all of it must be good. */
static int add_debug_frame(struct builder *b, Elf *elf, int fd)
{
	struct cfi_place place = cfi_find_debug_frame(elf);
	struct cfi_index index;
	int err;

	err = add_place(b, SECTION_DEBUG_FRAME, &place, fd);
	if (err < 0)
		return err;
	err = index_section(b, SECTION_DEBUG_FRAME, &index);
	if (err < 0)
		return err;
	b->image.has_debug_frame = index.fdes.count > 0 && index.refused == 0 && index.complete;
	b->image.refused += index.refused;
	cfi_index_fini(&index);
	if (b->image.has_debug_frame)
		return 0;
	drop_section(b, SECTION_DEBUG_FRAME);
	return -ENODATA;
}

static int finish(struct builder *b)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTION_COUNT,
		.e_shstrndx = SECTION_NAMES,
	};
	char *to = append_section(b, SECTION_NAMES, 0, sizeof(names));

	if (!to)
		return -ENOMEM;
	memcpy(to, names, sizeof(names));
	to = append(b, sizeof(b->sections));
	if (!to)
		return -ENOMEM;
	memcpy(to, b->sections, sizeof(b->sections));
	header.e_shoff = (uint64_t)(to - b->image.bytes);
	memcpy(b->image.bytes, &header, sizeof(header));
	/* It does not grow any more; a realloc to less may fail, and what was there stays. */
	to = realloc(b->image.bytes, b->image.size);
	if (to)
		b->image.bytes = to;
	return 0;
}

static int build(struct builder *b, Elf *elf, int fd)
{
	int err;

	if (!append(b, sizeof(Elf64_Ehdr)))
		return -ENOMEM;
	err = add_eh_frame(b, elf, fd);
	if (err == -ENOMEM)
		return err;
	err = add_debug_frame(b, elf, fd);
	if (err == -ENOMEM)
		return err;
	if (!b->image.has_eh_frame && !b->image.has_debug_frame)
		return -ENODATA;
	return finish(b);
}

int cfi_image_make(int elf_fd, struct cfi_image *ret)
{
	struct builder b = { 0 };
	GElf_Ehdr header;
	Elf *elf;
	int err;

	elf_version(EV_CURRENT);
	elf = elf_begin(elf_fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	err = -ENOEXEC;
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) ||
	    gelf_getclass(elf) != ELFCLASS64 || header.e_machine != EM_X86_64)
		goto out;
	err = build(&b, elf, elf_fd);
	if (err < 0) {
		free(b.image.bytes);
		goto out;
	}
	*ret = b.image;
out:
	elf_end(elf);
	return err;
}

void cfi_image_fini(struct cfi_image *image)
{
	free(image->bytes);
	*image = (struct cfi_image){ 0 };
}
