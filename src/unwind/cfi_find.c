#include "unwind/cfi_find.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static struct cfi_place find_section(Elf *elf, const char *want)
{
	struct cfi_place place = { 0 };
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0 || names == 0)
		return place;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, want) != 0)
			continue;
		place = (struct cfi_place){
			.address = header.sh_addr,
			.offset = header.sh_offset,
			.size = header.sh_size,
			.section = section,
			.compressed = header.sh_flags & SHF_COMPRESSED,
		};
		break;
	}
	return place;
}

/* The .eh_frame address that the start of .eh_frame_hdr gives (LSB Core 5.0, 10.6.2); false when it is
 * written in a form that no linker uses. */
static bool eh_frame_address(int fd, const GElf_Phdr *header, uint64_t *ret_address)
{
	uint8_t bytes[12] = { 0 };
	int32_t relative;
	ssize_t n;

	n = pread(fd, bytes, sizeof(bytes), (off_t)header->p_offset);
	if (n < 8 || header->p_filesz < 8 || bytes[0] != 1)
		return false;
	switch (bytes[1]) {
	case DW_EH_PE_pcrel | DW_EH_PE_sdata4:
		memcpy(&relative, bytes + 4, sizeof(relative));
		*ret_address = header->p_vaddr + 4 + (uint64_t)(int64_t)relative;
		return true;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
		memcpy(ret_address, bytes + 4, sizeof(*ret_address));
		return n == sizeof(bytes);
	}
	return false;
}

/* The rest of the segment from an address on: where the table ends is not written anywhere. */
static struct cfi_place rest_of_segment(Elf *elf, size_t count, uint64_t address)
{
	struct cfi_place place = { 0 };
	GElf_Phdr header;

	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD)
			continue;
		if (address < header.p_vaddr || address - header.p_vaddr >= header.p_filesz)
			continue;
		place.address = address;
		place.offset = header.p_offset + (address - header.p_vaddr);
		place.size = header.p_filesz - (address - header.p_vaddr);
		break;
	}
	return place;
}

struct cfi_place cfi_find_eh_frame(Elf *elf, int fd)
{
	struct cfi_place section = find_section(elf, ".eh_frame");
	uint64_t address;
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return section;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_GNU_EH_FRAME)
			continue;
		if (!eh_frame_address(fd, &header, &address) ||
		    (section.size && section.address == address))
			return section;
		return rest_of_segment(elf, count, address);
	}
	return section;
}

struct cfi_place cfi_find_debug_frame(Elf *elf)
{
	return find_section(elf, ".debug_frame");
}

bool cfi_has_section(Elf *elf, const char *name)
{
	return find_section(elf, name).size > 0;
}
