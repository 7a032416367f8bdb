#include "daemon/module_files.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/vec.h"
#include "daemon/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct module_file {
	uint64_t hash;                     /* of path and build-id */
	uint32_t id;
	int fd;
};

struct module_files {
	unsigned references;
	struct file_user user;
	struct generated generated;
	VEC_OF(struct module_file) files;  /* sorted by hash */
};

/* Descriptors that all targets together hold, and may hold. */
static size_t open_files, open_files_max = MODULE_FILES_MAX;

void module_files_set_limit(size_t reserved)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			getrlimit(RLIMIT_NOFILE, &limit);
	}
	open_files_max = limit.rlim_cur > 2 * reserved ? limit.rlim_cur - reserved : limit.rlim_cur / 2;
}

struct module_files *module_files_new(void)
{
	struct module_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	files->references = 1;
	file_user_of_nobody(&files->user);
	generated_init(&files->generated);
	return files;
}

void module_files_set_user(struct module_files *files, const struct file_user *user)
{
	files->user = *user;
}

const struct file_user *module_files_user(const struct module_files *files)
{
	return &files->user;
}

void module_files_look(struct module_files *files, int pid, uint64_t start_time)
{
	generated_look(&files->generated, pid, start_time);
}

struct generated *module_files_generated(struct module_files *files)
{
	return &files->generated;
}

struct module_files *module_files_ref(struct module_files *files)
{
	files->references++;
	return files;
}

void module_files_unref(struct module_files *files)
{
	if (!files || --files->references > 0)
		return;
	for (size_t i = 0; i < files->files.count; i++) {
		open_files -= files->files.items[i].fd >= 0;
		fd_close(&files->files.items[i].fd);
	}
	vec_fini(&files->files);
	generated_fini(&files->generated);
	free(files);
}

/* The identity of a module's file.  Two that collide would have to be made to, by the target, which
 * could as well lie about its files. */
static uint64_t identity(const char *path, const uint8_t *build_id, uint32_t build_id_len)
{
	return hash_pair(hash_bytes(path, strlen(path)), hash_bytes(build_id, build_id_len));
}

static size_t lower_bound(const struct module_files *files, uint64_t hash)
{
	size_t low = 0, high = files->files.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (files->files.items[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The same file, loaded once more, which one descriptor serves, or else the module itself. */
static struct module_file *known(const struct module_files *files, size_t at, uint64_t hash, uint32_t id)
{
	struct module_file *same = NULL;

	for (; at < files->files.count && files->files.items[at].hash == hash; at++) {
		struct module_file *file = &files->files.items[at];

		if (file->fd >= 0)
			return file;
		if (file->id == id)
			same = file;
	}
	return same;
}

/* It was told before without its file. */
static void take_file(struct module_file *file, int *fd)
{
	if (file->fd >= 0 || *fd < 0 || open_files >= open_files_max)
		return;
	file->fd = *fd;
	*fd = -1;
	open_files++;
}

int module_files_add(struct module_files *files, const struct wire_module *message, int *fd)
{
	uint64_t hash = identity(message->path, message->build_id, message->build_id_len);
	size_t at = lower_bound(files, hash);
	struct module_file *file = known(files, at, hash, message->module);

	generated_note_mapping(&files->generated, message->path);
	if (file) {
		take_file(file, fd);
		return -EEXIST;
	}
	if (files->files.count >= MODULE_FILES_MAX || open_files >= open_files_max)
		return -ENOSPC;
	if (!vec_push(&files->files))
		return -ENOMEM;
	file = &files->files.items[at];
	memmove(file + 1, file, (files->files.count - 1 - at) * sizeof(*file));
	file->hash = hash;
	file->id = message->module;
	file->fd = *fd;
	*fd = -1;
	open_files += file->fd >= 0;
	return 0;
}

/* Of several with one identity (a file loaded twice) the first that has a descriptor. */
static int find(const struct module_files *files, uint64_t hash)
{
	for (size_t i = lower_bound(files, hash); i < files->files.count && files->files.items[i].hash == hash;
	     i++) {
		if (files->files.items[i].fd >= 0)
			return files->files.items[i].fd;
	}
	return -1;
}

int *module_files_match(const struct module_files *files, const struct snapshot *snapshot)
{
	int *fds = calloc(snapshot->modules.count + 1, sizeof(*fds));

	if (!fds)
		return NULL;
	for (size_t i = 0; i < snapshot->modules.count; i++) {
		const struct snapshot_module *module = &snapshot->modules.items[i];

		fds[i] = find(files, identity(strtab_get(snapshot->strings, module->path), module->build_id,
					      module->build_id_len));
	}
	return fds;
}
