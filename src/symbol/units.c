#include "symbol/units.h"

#include "symbol/file_names.h"
#include "symbol/intervals.h"
#include "symbol/split.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

struct unit {
	struct units *owner;
	Dwarf_Die die;               /* the skeleton's, when the unit is split */
	Dwarf_Die full;              /* the one with children; valid once `opened` */
	bool opened, lines_tried, ranged;
	struct scopes *scopes;
	Dwarf_Lines *lines;
	size_t line_count;
	struct file_names *line_files, *call_files;
};

struct units {
	Dwarf *dwarf;
	const struct elf_file *file;
	struct split split;
	struct strtab *strings;
	VEC_OF(struct unit) units;           /* by DIE offset */
	struct intervals index, gathered;    /* values are indexes of `units` */
	bool complete;                       /* units that do not list their ranges are in, too */
	bool out_of_memory, incomplete;
};

struct gather {
	struct units *units;
	uint32_t unit;
};

static int gather_range(void *context, uint64_t lo, uint64_t hi)
{
	struct gather *gather = context;

	if (lo >= hi || !elf_file_is_code(gather->units->file, lo))
		return 0;
	gather->units->units.items[gather->unit].ranged = true;
	return intervals_add(&gather->units->gathered, lo, hi, 0, gather->unit);
}

/* The index is flattened from a copy of what was gathered, since more may be found later. */
static int make_index(struct units *units)
{
	struct intervals index = { 0 };
	size_t count = units->gathered.items.count;

	if (vec_reserve(&index.items, count + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		index.items.items[index.items.count++] = units->gathered.items.items[i];
	if (intervals_flatten(&index) < 0) {
		intervals_fini(&index);
		return -ENOMEM;
	}
	intervals_fini(&units->index);
	units->index = index;
	return 0;
}

static int add_unit(struct units *units, Dwarf_Die *die)
{
	struct gather gather = { units, (uint32_t)units->units.count };
	struct unit *unit = vec_push(&units->units);
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	if (!unit)
		return -ENOMEM;
	unit->owner = units;
	unit->die = *die;
	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (gather_range(&gather, lo, hi) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_units(struct units *units)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	while (dwarf_get_units(units->dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		if (dwarf_tag(&die) == DW_TAG_compile_unit ||
		    dwarf_tag(&die) == DW_TAG_skeleton_unit) {
			if (units->units.count == UINT32_MAX - 1 || add_unit(units, &die) < 0)
				return -ENOMEM;
		}
	}
	return units->units.count > 0 ? make_index(units) : -ENOENT;
}

int units_new(Dwarf *dwarf, const struct elf_file *file, struct strtab *strings,
	      struct units **ret)
{
	struct units *units = calloc(1, sizeof(*units));
	int r;

	if (!units)
		return -ENOMEM;
	units->dwarf = dwarf;
	units->file = file;
	units->split.file = file;
	units->strings = strings;
	r = read_units(units);
	if (r < 0) {
		units_free(units);
		return r;
	}
	*ret = units;
	return 0;
}

void units_free(struct units *units)
{
	if (!units)
		return;
	for (size_t i = 0; i < units->units.count; i++) {
		struct unit *unit = &units->units.items[i];

		scopes_free(unit->scopes);
		file_names_free(unit->line_files);
		file_names_free(unit->call_files);
	}
	split_fini(&units->split);
	vec_fini(&units->units);
	intervals_fini(&units->index);
	intervals_fini(&units->gathered);
	free(units);
}

/* A compiler may leave a unit's own ranges out: then its functions tell. */
static int complete(struct units *units)
{
	units->complete = true;
	for (size_t i = 0; i < units->units.count; i++) {
		struct gather gather = { units, (uint32_t)i };
		struct unit *unit = &units->units.items[i];

		if (!unit->ranged && unit_scopes(unit) &&
		    scopes_each_range(unit->scopes, gather_range, &gather) < 0)
			return -ENOMEM;
	}
	return make_index(units);
}

struct unit *units_find(struct units *units, uint64_t address)
{
	const struct interval *piece = intervals_find(&units->index, address);

	if (!piece && !units->complete) {
		if (complete(units) < 0)
			units->out_of_memory = true;
		piece = intervals_find(&units->index, address);
	}
	return piece ? &units->units.items[piece->value] : NULL;
}

bool units_out_of_memory(const struct units *units)
{
	return units->out_of_memory;
}

bool units_incomplete(const struct units *units)
{
	return units->incomplete;
}

/* A split unit's children are in another file, which libdw looks for beside this one. */
static void open_unit(struct unit *unit)
{
	uint8_t type;

	unit->opened = true;
	unit->full = unit->die;
	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) == 0 && type == DW_UT_skeleton &&
	    split_unit(&unit->owner->split, &unit->die, &unit->full) < 0)
		unit->owner->incomplete = true;
	if (scopes_new(&unit->full, unit->owner->file, &unit->scopes) < 0)
		unit->owner->out_of_memory = true;
}

struct scopes *unit_scopes(struct unit *unit)
{
	if (!unit->opened)
		open_unit(unit);
	return unit->scopes;
}

int unit_die(struct unit *unit, Dwarf_Off offset, Dwarf_Die *ret)
{
	if (!unit->opened)
		open_unit(unit);
	return dwarf_offdie(dwarf_cu_getdwarf(unit->full.cu), offset, ret) ? 0 : -ENOENT;
}

static void read_lines(struct unit *unit)
{
	unit->lines_tried = true;
	if (dwarf_getsrclines(&unit->die, &unit->lines, &unit->line_count) < 0)
		unit->line_count = 0;
}

/* The last row at or before an address; libdw has sorted them. */
static Dwarf_Line *find_row(const struct unit *unit, uint64_t address)
{
	size_t lo = 0, hi = unit->line_count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		Dwarf_Addr at;

		if (dwarf_lineaddr(dwarf_onesrcline(unit->lines, middle), &at) < 0 || at > address)
			hi = middle;
		else
			lo = middle + 1;
	}
	return lo > 0 ? dwarf_onesrcline(unit->lines, lo - 1) : NULL;
}

static const char *row_file(struct unit *unit, Dwarf_Line *row)
{
	Dwarf_Files *files;
	size_t number;

	if (dwarf_line_file(row, &files, &number) < 0)
		return NULL;
	if (!unit->line_files)
		unit->line_files = file_names_new(&unit->die, files, unit->owner->strings);
	return unit->line_files ? file_names_get(unit->line_files, number) : NULL;
}

int unit_line(struct unit *unit, uint64_t address, const char **ret_file, uint32_t *ret_line)
{
	const char *file;
	Dwarf_Line *row;
	bool end;
	int line;

	if (!unit->lines_tried)
		read_lines(unit);
	row = find_row(unit, address);
	if (!row || dwarf_lineendsequence(row, &end) < 0 || end || dwarf_lineno(row, &line) < 0 ||
	    line <= 0)
		return -ENOENT;
	file = row_file(unit, row);
	if (!file)
		return -ENOENT;
	*ret_file = file;
	*ret_line = (uint32_t)line;
	return 0;
}

const char *unit_call_file(struct unit *unit, uint32_t number)
{
	Dwarf_Files *files;
	size_t count;

	if (!unit->call_files) {
		if (!unit->opened || dwarf_getsrcfiles(&unit->full, &files, &count) < 0)
			return NULL;
		unit->call_files = file_names_new(&unit->die, files, unit->owner->strings);
	}
	return unit->call_files ? file_names_get(unit->call_files, number) : NULL;
}
