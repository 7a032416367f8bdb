#define _GNU_SOURCE              /* asprintf */
#include "daemon/conf_folders.h"

#include "base/fd.h"
#include "daemon/places.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER_NAME "/allocwatch"
#define SUFFIX ".conf"

/* --- where --- */

static const char *const system_folders[] = { SYSCONFDIR FOLDER_NAME, "/run" FOLDER_NAME, VENDORCONFDIR FOLDER_NAME };
#define SYSTEM_FOLDERS (sizeof(system_folders) / sizeof(system_folders[0]))

int conf_folders(bool system, char *ret_folders[CONF_FOLDERS_MAX + 1])
{
	char *base;

	memset(ret_folders, 0, sizeof(*ret_folders) * (CONF_FOLDERS_MAX + 1));
	if (!system) {
		base = place_of_user("XDG_CONFIG_HOME", "/.config");
		if (base && asprintf(&ret_folders[0], "%s" FOLDER_NAME, base) < 0)
			ret_folders[0] = NULL;
		free(base);
		return !base || ret_folders[0] ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < SYSTEM_FOLDERS; i++) {
		ret_folders[i] = strdup(system_folders[i]);
		if (!ret_folders[i]) {
			conf_folders_free(ret_folders);
			return -ENOMEM;
		}
	}
	return 0;
}

void conf_folders_free(char *folders[CONF_FOLDERS_MAX + 1])
{
	for (size_t i = 0; i < CONF_FOLDERS_MAX; i++) {
		free(folders[i]);
		folders[i] = NULL;
	}
}

/* --- drop-ins --- */

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Not those of editors and of packages' managers. */
static bool is_drop_in(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > strlen(SUFFIX) && strcmp(name + len - strlen(SUFFIX), SUFFIX) == 0;
}

static bool is_known(const struct conf_paths *drop_ins, const char *name)
{
	for (size_t i = 0; i < drop_ins->files.count; i++) {
		if (strcmp(base_name(drop_ins->files.items[i]), name) == 0)
			return true;
	}
	return false;
}

static int add(struct conf_paths *paths, const char *folder, const char *name)
{
	char *path, **slot;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return -ENOMEM;
	slot = vec_push(&paths->files);
	if (!slot) {
		free(path);
		return -ENOMEM;
	}
	*slot = path;
	return 0;
}

/* 0; -ENOMEM; -E2BIG, complained of. */
static int take_entry(struct conf_reader *reader, const char *folder, const char *name, struct conf_paths *drop_ins)
{
	if (!is_drop_in(name) || is_known(drop_ins, name))
		return 0;
	if (drop_ins->files.count < CONF_FILES_MAX)
		return add(drop_ins, folder, name);
	conf_complain(reader, CONF_ERROR, "there are more than %d drop-ins", CONF_FILES_MAX);
	return -E2BIG;
}

static int look_through(struct conf_reader *reader, const char *folder, struct conf_paths *drop_ins)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int r = 0, more = 0;

	reader->path = folder;
	reader->line = 0;
	if (!dir) {
		if (errno != ENOENT && errno != ENOTDIR)
			conf_complain(reader, CONF_ERROR, "cannot be looked through: %s", strerror(errno));
		return 0;
	}
	while (r == 0 && (more = folder_next(dir, &entry)) > 0)
		r = take_entry(reader, folder, entry->d_name, drop_ins);
	if (more < 0)
		conf_complain(reader, CONF_ERROR, "cannot be looked through: %s", strerror(-more));
	closedir(dir);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(base_name(*(char *const *)a), base_name(*(char *const *)b));
}

static int look_through_all(struct conf_reader *reader, char *const *folders, struct conf_paths *drop_ins)
{
	int r = 0;

	for (; r == 0 && *folders; folders++) {
		char *folder;

		if (asprintf(&folder, "%s/" CONF_NAME ".d", *folders) < 0)
			return -ENOMEM;
		r = look_through(reader, folder, drop_ins);
		free(folder);
	}
	return r == -E2BIG ? 0 : r;
}

/* The drop-ins behind the main file. */
static int append_sorted(struct conf_paths *paths, struct conf_paths *drop_ins)
{
	if (drop_ins->files.count == 0)
		return 0;
	qsort(drop_ins->files.items, drop_ins->files.count, sizeof(char *), by_name);
	if (vec_reserve(&paths->files, drop_ins->files.count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < drop_ins->files.count; i++)
		*vec_push(&paths->files) = drop_ins->files.items[i];
	drop_ins->files.count = 0;
	return 0;
}

/* --- all of it --- */

static int find_main(char *const *folders, struct conf_paths *paths)
{
	for (; *folders; folders++) {
		char *path;
		bool there;

		if (asprintf(&path, "%s/" CONF_NAME, *folders) < 0)
			return -ENOMEM;
		there = access(path, F_OK) == 0 || errno != ENOENT;
		free(path);
		if (there)
			return add(paths, *folders, CONF_NAME);
	}
	return 0;
}

int conf_paths_find(struct conf_reader *reader, char *const *folders, struct conf_paths *ret)
{
	struct conf_paths paths = { 0 }, drop_ins = { 0 };
	int r = find_main(folders, &paths);

	if (r == 0)
		r = look_through_all(reader, folders, &drop_ins);
	if (r == 0)
		r = append_sorted(&paths, &drop_ins);
	conf_paths_fini(&drop_ins);
	if (r < 0)
		conf_paths_fini(&paths);
	else
		*ret = paths;
	return r;
}

int conf_paths_of_file(struct conf_reader *reader, const char *file, struct conf_paths *ret)
{
	struct conf_paths paths = { 0 }, drop_ins = { 0 };
	char *folder = NULL, **slot = vec_push(&paths.files);
	int r = -ENOMEM;

	if (slot)
		*slot = strdup(file);
	if (slot && *slot && asprintf(&folder, "%s.d", file) >= 0)
		r = look_through(reader, folder, &drop_ins);
	if (r == 0 || r == -E2BIG)
		r = append_sorted(&paths, &drop_ins);
	free(folder);
	conf_paths_fini(&drop_ins);
	if (r < 0)
		conf_paths_fini(&paths);
	else
		*ret = paths;
	return r;
}

void conf_paths_fini(struct conf_paths *paths)
{
	for (size_t i = 0; i < paths->files.count; i++)
		free(paths->files.items[i]);
	vec_fini(&paths->files);
}
