#include "base/cgroup.h"

#include "base/fd.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_TEXT_MAX 65536

/* --- where it is --- */

/* "4:memory,blkio:/path", "0::/path" */
static bool is_of(const char *line, const char *controller)
{
	const char *list = strchr(line, ':'), *end = list ? strchr(list + 1, ':') : NULL;
	size_t len = strlen(controller);

	if (!end)
		return false;
	if (len == 0)
		return end == list + 1;
	for (const char *word = list + 1; word < end; word += strcspn(word, ",:") + 1) {
		if (strcspn(word, ",:") == len && memcmp(word, controller, len) == 0)
			return true;
	}
	return false;
}

char *cgroup_path(char *text, const char *controller)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *path = is_of(line, controller) ? strchr(strchr(line, ':') + 1, ':') + 1 : NULL;

		if (!path)
			continue;
		/* One outside of the cgroup namespace is seen as "/.."; nothing of it is mounted here. */
		return *path == '/' && !strstr(path, "/..") ? path : NULL;
	}
	return NULL;
}

/* --- what is left of its memory --- */

struct version {
	const char *controller, *folder, *limit, *high, *used, *cache[2];
};

static const struct version versions[] = {
	{ "", "", "memory.max", "memory.high", "memory.current", { "inactive_file ", "active_file " } },
	{ "", "/unified", "memory.max", "memory.high", "memory.current", { "inactive_file ", "active_file " } },
	{ "memory", "/memory", "memory.limit_in_bytes", NULL, "memory.usage_in_bytes",
	  { "total_inactive_file ", "total_active_file " } },
};

static char *text_of(const char *folder, const char *name)
{
	char path[PATH_MAX], *text;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return NULL;
	return file_read_text(path, FILE_TEXT_MAX, &text, NULL) == 0 ? text : NULL;
}

/* "max", and a file that is not there, are no limit. */
static uint64_t limit_of(const char *folder, const char *name)
{
	char *text = name ? text_of(folder, name) : NULL, *end = NULL;
	uint64_t bytes = text ? strtoull(text, &end, 10) : UINT64_MAX;

	if (text && end == text)
		bytes = UINT64_MAX;
	free(text);
	return bytes;
}

static uint64_t cache_of(const char *folder, const struct version *version)
{
	char *text = text_of(folder, "memory.stat");
	uint64_t bytes = 0;

	for (unsigned i = 0; text && i < 2; i++) {
		size_t len = strlen(version->cache[i]);

		for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
			if (strncmp(line, version->cache[i], len) == 0)
				bytes += strtoull(line + len, NULL, 10);
		}
	}
	free(text);
	return bytes;
}

static uint64_t left_in(const char *folder, const struct version *version)
{
	uint64_t limit = limit_of(folder, version->limit), high = limit_of(folder, version->high), used, cache;

	limit = high < limit ? high : limit;
	used = limit == UINT64_MAX ? UINT64_MAX : limit_of(folder, version->used);
	if (used == UINT64_MAX)
		return UINT64_MAX;
	cache = cache_of(folder, version);
	used -= cache < used ? cache : used;
	return used < limit ? limit - used : 0;
}

/* Of the cgroup and of all that it is in. */
static uint64_t left_up_from(const char *mount, const char *cgroup, const struct version *version)
{
	char folder[PATH_MAX];
	uint64_t least = UINT64_MAX;
	size_t top;

	if (snprintf(folder, sizeof(folder), "%s%s%s", mount, version->folder, cgroup) >= (int)sizeof(folder))
		return UINT64_MAX;
	top = strlen(mount) + strlen(version->folder);
	for (;;) {
		uint64_t left = left_in(folder, version);
		char *slash = strrchr(folder, '/');

		least = left < least ? left : least;
		if (!slash || (size_t)(slash - folder) < top || folder[top] == '\0')
			return least;
		*slash = '\0';
	}
}

uint64_t cgroup_memory_left_of(const char *text, const char *mount)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		char *copy = strdup(text), *path = copy ? cgroup_path(copy, versions[i].controller) : NULL;
		uint64_t left = path ? left_up_from(mount, path, &versions[i]) : UINT64_MAX;

		least = left < least ? left : least;
		free(copy);
	}
	return least;
}

uint64_t cgroup_memory_left(int pid, const char *mount)
{
	char path[48], *text;
	uint64_t left;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (file_read_text(path, CGROUP_TEXT_MAX, &text, NULL) < 0)
		return UINT64_MAX;
	left = cgroup_memory_left_of(text, mount);
	free(text);
	return left;
}
