#include "forged.h"

#include "live.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define CODE_AT PAGE                   /* in the file and in memory */
#define TABLE_AT (2 * PAGE)
#define HEADER_OF_TABLE 64u            /* .eh_frame_hdr lies before the table, with room to align */
#define GIANT (2ull << 30)
#define FULL (200u << 20)
#define SEGMENTS 3
#define SECTIONS 4

enum { CODE, REST, EH_FRAME };

/* The first page, and what follows the second. */
struct draft {
	Elf64_Ehdr head;
	Elf64_Phdr segments[SEGMENTS];
	Elf64_Shdr sections[SECTIONS];
	uint64_t table_size, file_size;
};

static struct draft plain(void)
{
	struct draft d = {
		.head = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			.e_phoff = offsetof(struct draft, segments), .e_shoff = offsetof(struct draft, sections),
			.e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr), .e_phnum = SEGMENTS, .e_shnum = SECTIONS,
		},
		.table_size = PAGE,
	};

	d.segments[CODE] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = CODE_AT, .p_vaddr = CODE_AT,
					 .p_filesz = PAGE, .p_memsz = PAGE, .p_align = PAGE };
	d.segments[REST] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = TABLE_AT - HEADER_OF_TABLE,
					 .p_vaddr = TABLE_AT - HEADER_OF_TABLE, .p_align = 1 };
	d.segments[EH_FRAME] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME, .p_flags = PF_R,
					     .p_offset = TABLE_AT - HEADER_OF_TABLE,
					     .p_vaddr = TABLE_AT - HEADER_OF_TABLE, .p_filesz = 12, .p_memsz = 12 };
	d.sections[1] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_offset = TABLE_AT, .sh_size = sizeof(Elf64_Sym), .sh_link = 2,
				      .sh_entsize = sizeof(Elf64_Sym), .sh_addralign = 8 };
	d.sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = TABLE_AT, .sh_size = PAGE, .sh_addralign = 1 };
	return d;
}

static void forge(struct draft *d, enum forged kind)
{
	switch (kind) {
	case FORGED_GIANT_TABLE:
		d->table_size = GIANT;
		break;
	case FORGED_FULL_TABLE:
		d->table_size = FULL;
		break;
	case FORGED_SECTION_COUNT:
		d->head.e_shnum = 0;
		d->sections[0].sh_size = 1ull << 60;
		break;
	case FORGED_SECTIONS_PAST_END:
		d->head.e_shoff = 1ull << 62;
		break;
	case FORGED_SEGMENT_COUNT:
		d->head.e_phnum = PN_XNUM;
		d->sections[0].sh_info = UINT32_MAX;
		break;
	case FORGED_SEGMENTS_OVERLAP:
		d->segments[EH_FRAME] = d->segments[CODE];
		d->segments[EH_FRAME].p_vaddr += 16;
		d->segments[REST] = d->segments[CODE];
		d->segments[REST].p_filesz = d->segments[REST].p_memsz = UINT64_MAX - CODE_AT;
		break;
	case FORGED_GIANT_SYMBOLS:
		d->table_size = d->sections[2].sh_size = GIANT;
		d->sections[1].sh_size = GIANT / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
		break;
	case FORGED_SIZES:
		d->segments[EH_FRAME].p_offset = UINT64_MAX - 4;
		d->segments[REST].p_memsz = UINT64_MAX;
		d->sections[1].sh_offset = UINT64_MAX - 8;
		d->sections[2].sh_size = UINT64_MAX;
		break;
	default:
		break;
	}
}

static void put(int fd, uint64_t at, const void *bytes, size_t len)
{
	if (pwrite(fd, bytes, len, (off_t)at) != (ssize_t)len)
		live_fail("writing a forged file: %s", strerror(errno));
}

/* A CIE as gcc writes it, "zR", padded to 24 bytes. */
static const uint8_t cie[24] = { 20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1 };

/* Entries of 20 bytes, each of the same code. */
static void fill_table(int fd)
{
	static uint8_t chunk[1 << 20];
	uint32_t at = sizeof(cie);

	put(fd, TABLE_AT, cie, sizeof(cie));
	while (at + sizeof(chunk) < FULL) {
		for (uint32_t i = 0; i + 20 <= sizeof(chunk); i += 20) {
			uint32_t entry[5] = { 16, at + i + 4, (uint32_t)(CODE_AT - (TABLE_AT + at + i + 8)), 64, 0 };

			memcpy(chunk + i, entry, sizeof(entry));
		}
		put(fd, TABLE_AT + at, chunk, sizeof(chunk) / 20 * 20);
		at += sizeof(chunk) / 20 * 20;
	}
}

static void write_loops(int fd)
{
	/* The second is its own head, the third's head lies behind it, the fourth's length leads to the beginning. */
	static const uint32_t entries[] = {
		16, 4, CODE_AT, 64, 0,
		16, UINT32_MAX - 40, CODE_AT, 64, 0,
		UINT32_MAX - 60, 1, 2, 3, 4,
		UINT32_MAX, 8, 0, 0, 0,
	};

	put(fd, TABLE_AT, cie, sizeof(cie));
	put(fd, TABLE_AT + sizeof(cie), entries, sizeof(entries));
}

const char *forged_file(enum forged kind)
{
	static const uint8_t hdr[12] = { 1, 0x1b, 0xff, 0xff, HEADER_OF_TABLE - 4 };
	const char *path = live_text("%s/forged-%d", live_folder(), (int)kind);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct draft d = plain();

	if (fd < 0)
		live_fail("%s: %s", path, strerror(errno));
	d.segments[REST].p_filesz = 0;
	forge(&d, kind);
	if (d.segments[REST].p_filesz == 0)
		d.segments[REST].p_filesz = d.segments[REST].p_memsz = d.table_size + HEADER_OF_TABLE;
	if (ftruncate(fd, (off_t)(TABLE_AT + d.table_size)) < 0)
		live_fail("%s: %s", path, strerror(errno));
	put(fd, 0, &d, offsetof(struct draft, table_size));
	put(fd, TABLE_AT - HEADER_OF_TABLE, hdr, sizeof(hdr));
	if (kind == FORGED_FULL_TABLE)
		fill_table(fd);
	if (kind == FORGED_LOOPS)
		write_loops(fd);
	close(fd);
	return path;
}
