#define _GNU_SOURCE              /* memfd_create */
#include "symbol/dwp.h"

#include "base/fd.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD_BYTES 16            /* version, columns, units, slots */
#define COLUMNS_MAX 8            /* kinds of sections that there are */
#define TEXT_MAX 256             /* of the names of sections */

/* --- the index: offsets are multiples of 4 in it, and nothing is aligned to 8 --- */

struct index {
	const unsigned char *bytes;
	uint32_t version, columns, units, slots;
	size_t rows_at;          /* the number of the row of each slot */
	size_t columns_at;       /* which section each column is of */
	size_t offsets_at, sizes_at;
};

static uint32_t word(const struct index *index, size_t at)
{
	uint32_t value;

	memcpy(&value, index->bytes + at, sizeof(value));
	return value;
}

static uint64_t long_word(const struct index *index, size_t at)
{
	uint64_t value;

	memcpy(&value, index->bytes + at, sizeof(value));
	return value;
}

/* Sizes are computed in 64 bits of numbers of 32 at most. */
static bool fits(struct index *index, size_t len)
{
	uint64_t cells = (uint64_t)index->columns * index->units;

	if (index->columns == 0 || index->columns > COLUMNS_MAX || index->units > len || index->slots > len)
		return false;
	index->rows_at = HEAD_BYTES + (size_t)index->slots * 8;
	index->columns_at = index->rows_at + (size_t)index->slots * 4;
	index->offsets_at = index->columns_at + (size_t)index->columns * 4;
	index->sizes_at = index->offsets_at + cells * 4;
	return index->sizes_at + cells * 4 <= len;
}

static int index_read(const struct elf_file *package, struct index *ret)
{
	const Elf_Data *data = elf_file_section_data(package, ".debug_cu_index");
	struct index index;

	if (!data || data->d_size < HEAD_BYTES)
		return -ENOENT;
	index.bytes = data->d_buf;
	/* DWARF 5 has two bytes of padding there. */
	index.version = word(&index, 0) & 0xffff;
	index.columns = word(&index, 4);
	index.units = word(&index, 8);
	index.slots = word(&index, 12);
	if ((index.version != 2 && index.version != 5) || !fits(&index, data->d_size))
		return -ENOENT;
	*ret = index;
	return 0;
}

/* The unit's row, from 0.  The table is a hash table; there are not so many units that it has to be used as one. */
static int find_row(const struct index *index, uint64_t unit_id, uint32_t *ret_row)
{
	for (uint32_t i = 0; i < index->slots; i++) {
		uint32_t row = word(index, index->rows_at + (size_t)i * 4);

		if (row == 0 || row > index->units || long_word(index, HEAD_BYTES + (size_t)i * 8) != unit_id)
			continue;
		*ret_row = row - 1;
		return 0;
	}
	return -ENOENT;
}

/* --- the pieces --- */

static const char *section_name(uint32_t version, uint32_t kind)
{
	static const char *const of_version_2[] = {
		[1] = ".debug_info.dwo", [3] = ".debug_abbrev.dwo", [4] = ".debug_line.dwo", [5] = ".debug_loc.dwo",
		[6] = ".debug_str_offsets.dwo",
	};
	static const char *const of_version_5[] = {
		[1] = ".debug_info.dwo", [3] = ".debug_abbrev.dwo", [4] = ".debug_line.dwo", [5] = ".debug_loclists.dwo",
		[6] = ".debug_str_offsets.dwo", [8] = ".debug_rnglists.dwo",
	};

	if (version == 2)
		return kind < sizeof(of_version_2) / sizeof(of_version_2[0]) ? of_version_2[kind] : NULL;
	return kind < sizeof(of_version_5) / sizeof(of_version_5[0]) ? of_version_5[kind] : NULL;
}

struct piece {
	const char *name;
	const unsigned char *bytes;
	size_t len;
};

/* NULL: it is compressed, which no tool does to a package, or not there. */
static const Elf_Data *plain_section(const struct elf_file *package, const char *name)
{
	Elf_Scn *section = elf_file_section(package, name);
	GElf_Shdr shdr;

	if (!section || !gelf_getshdr(section, &shdr) || shdr.sh_flags & SHF_COMPRESSED)
		return NULL;
	return elf_file_section_data(package, name);
}

static int take_piece(const struct elf_file *package, const struct index *index, uint32_t row, uint32_t column,
		      struct piece *ret)
{
	size_t cell = ((size_t)row * index->columns + column) * 4;
	const char *name = section_name(index->version, word(index, index->columns_at + (size_t)column * 4));
	const Elf_Data *data = name ? plain_section(package, name) : NULL;
	uint64_t offset = word(index, index->offsets_at + cell), size = word(index, index->sizes_at + cell);

	if (!data)
		return 0;
	if (offset + size > data->d_size)
		return -ENOENT;
	*ret = (struct piece){ name, (const unsigned char *)data->d_buf + offset, size };
	return 1;
}

/* What the unit has of each section, and all of the strings.  Their number, or negative errno. */
static int take_pieces(const struct elf_file *package, const struct index *index, uint32_t row,
		       struct piece pieces[COLUMNS_MAX + 1])
{
	const Elf_Data *strings = plain_section(package, ".debug_str.dwo");
	size_t bytes = 0;
	int count = 0;

	for (uint32_t column = 0; column < index->columns; column++) {
		int r = take_piece(package, index, row, column, &pieces[count]);

		if (r < 0)
			return r;
		count += r;
	}
	if (strings)
		pieces[count++] = (struct piece){ ".debug_str.dwo", strings->d_buf, strings->d_size };
	for (int i = 0; i < count; i++)
		bytes += pieces[i].len;
	return bytes > DWP_UNIT_BYTES_MAX ? -EFBIG : count;
}

/* --- the file --- */

struct layout {
	Elf64_Ehdr head;
	Elf64_Shdr sections[COLUMNS_MAX + 3];        /* none, the pieces, the names */
	char names[TEXT_MAX];
	size_t names_len;
};

static uint32_t add_name(struct layout *layout, const char *name)
{
	size_t at = layout->names_len, len = strlen(name) + 1;

	memcpy(layout->names + at, name, len);
	layout->names_len += len;
	return (uint32_t)at;
}

/* Head, pieces, names, table of sections. */
static void lay_out(struct layout *layout, const struct elf_file *package, const struct piece *pieces, size_t count)
{
	Elf64_Off at = sizeof(layout->head);
	GElf_Ehdr like;

	gelf_getehdr(package->elf, &like);
	memcpy(layout->head.e_ident, like.e_ident, sizeof(layout->head.e_ident));
	layout->head.e_type = ET_REL;
	layout->head.e_machine = like.e_machine;
	layout->head.e_version = EV_CURRENT;
	layout->head.e_ehsize = sizeof(layout->head);
	layout->head.e_shentsize = sizeof(layout->sections[0]);
	layout->head.e_shnum = (Elf64_Half)(count + 2);
	layout->head.e_shstrndx = (Elf64_Half)(count + 1);
	add_name(layout, "");
	for (size_t i = 0; i < count; i++) {
		layout->sections[i + 1] = (Elf64_Shdr){ .sh_name = add_name(layout, pieces[i].name), .sh_type = SHT_PROGBITS,
							.sh_offset = at, .sh_size = pieces[i].len, .sh_addralign = 1 };
		at += pieces[i].len;
	}
	layout->sections[count + 1].sh_name = add_name(layout, ".shstrtab");
	layout->sections[count + 1].sh_type = SHT_STRTAB;
	layout->sections[count + 1].sh_offset = at;
	layout->sections[count + 1].sh_size = layout->names_len;
	layout->sections[count + 1].sh_addralign = 1;
	layout->head.e_shoff = at + layout->names_len;
}

static int write_file(const struct layout *layout, const struct piece *pieces, size_t count)
{
	int fd = memfd_create("dwo", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, &layout->head, sizeof(layout->head));
	for (size_t i = 0; r == 0 && i < count; i++)
		r = fd_write_all(fd, pieces[i].bytes, pieces[i].len);
	if (r == 0)
		r = fd_write_all(fd, layout->names, layout->names_len);
	if (r == 0)
		r = fd_write_all(fd, layout->sections, layout->head.e_shnum * sizeof(layout->sections[0]));
	if (r == 0)
		return fd;
	fd_close(&fd);
	return r;
}

int dwp_extract(const struct elf_file *package, uint64_t unit_id)
{
	struct piece pieces[COLUMNS_MAX + 1];
	struct layout layout = { 0 };
	struct index index;
	uint32_t row;
	int r;

	if (gelf_getclass(package->elf) != ELFCLASS64)
		return -ENOENT;
	r = index_read(package, &index);
	if (r == 0)
		r = find_row(&index, unit_id, &row);
	if (r == 0)
		r = take_pieces(package, &index, row, pieces);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	lay_out(&layout, package, pieces, (size_t)r);
	return write_file(&layout, pieces, (size_t)r);
}
