#include "symbol/file_names.h"

#include "base/vec.h"
#include "symbol/path.h"

#include <dwarf.h>
#include <stdlib.h>

struct file_names {
	Dwarf_Files *files;
	const char *comp_dir;
	struct strtab *strings;
	VEC_OF(const char *) paths;          /* NULL: not made yet */
};

struct file_names *file_names_new(Dwarf_Die *unit, Dwarf_Files *files, struct strtab *strings)
{
	struct file_names *names = calloc(1, sizeof(*names));
	Dwarf_Attribute attribute;

	if (!names)
		return NULL;
	names->files = files;
	names->strings = strings;
	if (dwarf_attr(unit, DW_AT_comp_dir, &attribute))
		names->comp_dir = dwarf_formstring(&attribute);
	return names;
}

void file_names_free(struct file_names *names)
{
	if (!names)
		return;
	vec_fini(&names->paths);
	free(names);
}

static const char *make_path(struct file_names *names, size_t number)
{
	const char *name = dwarf_filesrc(names->files, number, NULL, NULL);
	char path[FILE_NAME_MAX];
	int64_t id;

	if (!name || !name[0])
		return NULL;
	path_join(names->comp_dir, name, path, sizeof(path));
	id = strtab_add(names->strings, path);
	return id < 0 ? NULL : strtab_get(names->strings, (uint32_t)id);
}

const char *file_names_get(struct file_names *names, size_t number)
{
	if (number >= names->paths.count) {
		if (!dwarf_filesrc(names->files, number, NULL, NULL) ||
		    vec_reserve(&names->paths, number + 1 - names->paths.count) < 0)
			return NULL;
		while (names->paths.count <= number)
			names->paths.items[names->paths.count++] = NULL;
	}
	if (!names->paths.items[number])
		names->paths.items[number] = make_path(names, number);
	return names->paths.items[number];
}
