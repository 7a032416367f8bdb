#include "daemon/symbolize_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void symbolize_files_fini(struct symbolize_files *files)
{
	for (size_t i = 0; i < files->items.count; i++)
		free(files->items.items[i]);
	vec_fini(&files->items);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool has_build_id(const struct symbolize_file *file, const struct snapshot_module *module)
{
	return file->build_id_len == module->build_id_len &&
	       memcmp(file->build_id, module->build_id, file->build_id_len) == 0;
}

static bool is_same(const struct symbolize_file *file, const struct stat *st,
		    const struct snapshot_module *module, uint64_t user_key)
{
	return file->user_key == user_key && file->device == st->st_dev && file->inode == st->st_ino &&
	       file->size == st->st_size && is_same_time(&file->modified, &st->st_mtim) &&
	       is_same_time(&file->changed, &st->st_ctim) && file->names == !module &&
	       (!module || has_build_id(file, module));
}

static void forget(struct symbolize_files *files, size_t i)
{
	symbolize_files_drop_slot(files, files->items.items[i]);
	free(files->items.items[i]);
	vec_remove_unordered(&files->items, i);
}

static void forget_oldest(struct symbolize_files *files)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < files->items.count; i++) {
		const struct symbolize_file *file = files->items.items[i];

		if (file->references == 0 &&
		    (oldest == SIZE_MAX || file->last_used < files->items.items[oldest]->last_used))
			oldest = i;
	}
	if (oldest != SIZE_MAX)
		forget(files, oldest);
}

static struct symbolize_file *add(struct symbolize_files *files, const struct stat *st,
				  const struct snapshot_module *module, uint64_t user_key)
{
	struct symbolize_file *file;

	if (files->items.count >= SYMBOLIZE_FILES_MAX)
		forget_oldest(files);
	if (vec_reserve(&files->items, 1) < 0)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	files->items.items[files->items.count++] = file;
	file->number = ++files->last_number;
	file->user_key = user_key;
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->size = st->st_size;
	file->modified = st->st_mtim;
	file->changed = st->st_ctim;
	file->names = !module;
	if (module) {
		file->build_id_len = module->build_id_len;
		memcpy(file->build_id, module->build_id, module->build_id_len);
	}
	file->slot = -1;
	return file;
}

static struct symbolize_file *find(const struct symbolize_files *files, const struct stat *st,
				   const struct snapshot_module *module, uint64_t user_key)
{
	for (size_t i = 0; i < files->items.count; i++) {
		if (is_same(files->items.items[i], st, module, user_key))
			return files->items.items[i];
	}
	return NULL;
}

struct symbolize_file *symbolize_files_get(struct symbolize_files *files, int fd,
					   const struct snapshot_module *module, uint64_t user_key)
{
	struct symbolize_file *file;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (module && module->build_id_len > BUILD_ID_MAX))
		return NULL;
	file = find(files, &st, module, user_key);
	if (!file)
		file = add(files, &st, module, user_key);
	if (!file)
		return NULL;
	file->last_used = ++files->clock;
	file->references++;
	return file;
}

int symbolize_files_restore(struct symbolize_files *files, const struct symbolize_file *like, uint64_t *ret_number)
{
	struct symbolize_file *file;

	if (files->items.count >= SYMBOLIZE_FILES_MAX)
		forget_oldest(files);
	file = vec_reserve(&files->items, 1) < 0 ? NULL : malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = *like;
	file->number = ++files->last_number;
	file->last_used = ++files->clock;
	file->slot = -1;
	files->items.items[files->items.count++] = file;
	*ret_number = file->number;
	return 0;
}

void symbolize_files_put(struct symbolize_file *file)
{
	if (file)
		file->references--;
}

bool symbolize_file_usable(const struct symbolize_file *file)
{
	return !file->unreadable && file->crashes < SYMBOLIZE_CRASHES_MAX;
}

void symbolize_files_take_slot(struct symbolize_files *files, struct symbolize_file *file)
{
	int best = 0;

	for (int i = 0; i < SYMBOL_WIRE_MODULES_MAX; i++) {
		if (!files->slots[i]) {
			best = i;
			break;
		}
		if (files->slots[i]->last_used < files->slots[best]->last_used)
			best = i;
	}
	if (files->slots[best])
		files->slots[best]->slot = -1;
	files->slots[best] = file;
	file->slot = best;
}

void symbolize_files_drop_slot(struct symbolize_files *files, struct symbolize_file *file)
{
	if (file->slot < 0)
		return;
	files->slots[file->slot] = NULL;
	file->slot = -1;
}

void symbolize_files_drop_slots(struct symbolize_files *files)
{
	for (int i = 0; i < SYMBOL_WIRE_MODULES_MAX; i++) {
		if (files->slots[i])
			symbolize_files_drop_slot(files, files->slots[i]);
	}
}
