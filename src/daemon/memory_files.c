#include "daemon/memory_files.h"

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_TEXT_MAX 4096

/* --- where they are --- */

static bool ends_with(const char *text, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);

	return len > suffix_len && memcmp(text + len - suffix_len, suffix, suffix_len) == 0;
}

static void cut_after_unit(char *path)
{
	char *unit_end = NULL;

	for (char *part = path; *part == '/'; part += strcspn(part + 1, "/") + 1) {
		size_t len = strcspn(part + 1, "/") + 1;

		if (ends_with(part, len, ".service") || ends_with(part, len, ".scope"))
			unit_end = part + len;
	}
	if (unit_end)
		*unit_end = '\0';
}

char *memory_files_cgroup(char *text, const char *controller)
{
	char *path = cgroup_path(text, controller);

	if (path)
		cut_after_unit(path);
	return path;
}

static int open_in(const char *folder, const char *cgroup, const char *name, int flags)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s/%s", folder, cgroup, name) >= (int)sizeof(path))
		return -1;
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static char *read_cgroups(int pid)
{
	char path[48], *text;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	return file_read_text(path, CGROUP_TEXT_MAX, &text, NULL) < 0 ? NULL : text;
}

/* The path of a process's cgroup, to be freed with *ret_text; NULL. */
static char *cgroup_of(int pid, const char *controller, char **ret_text)
{
	*ret_text = read_cgroups(pid);
	return *ret_text ? memory_files_cgroup(*ret_text, controller) : NULL;
}

static uint64_t hash_of_cgroups(int pid)
{
	char *text = read_cgroups(pid);
	uint64_t hash = text ? hash_bytes(text, strlen(text)) : 0;

	free(text);
	return hash;
}

/* --- pressure --- */

/* False: it has to be looked at.  That may be for want of rights, as where cgroups are mounted read-only for a service. */
static bool order_trigger(int fd, uint64_t stalled_us)
{
	char order[64];
	int len = snprintf(order, sizeof(order), "some %" PRIu64 " %llu", stalled_us,
			   (unsigned long long)(ALARM_WINDOW_NS / NSEC_PER_USEC));

	/* Its NUL is written, too: Documentation/accounting/psi.rst. */
	return fd >= 0 && write(fd, order, (size_t)len + 1) == len + 1;
}

static void open_pressure(struct memory_files *files, const char *folder, const char *cgroup, const char *name,
			  uint64_t stalled_us)
{
	int fd;

	if (files->pressure >= 0)
		return;
	fd = open_in(folder, cgroup, name, O_RDWR);
	files->triggers = order_trigger(fd, stalled_us);
	if (!files->triggers)
		fd_close(&fd);
	files->pressure = fd >= 0 ? fd : open_in(folder, cgroup, name, O_RDONLY);
}

/* --- opening --- */

static void open_version_2(struct memory_files *files, const char *folder, const char *cgroup, uint64_t stalled_us)
{
	if (files->events < 0)
		files->events = open_in(folder, cgroup, "memory.events", O_RDONLY);
	if (stalled_us > 0)
		open_pressure(files, folder, cgroup, "memory.pressure", stalled_us);
}

static void open_all_of_version_2(struct memory_files *files, const char *cgroups, uint64_t stalled_us)
{
	char unified[PATH_MAX], *text, *cgroup = cgroup_of(files->pid, "", &text);

	if (cgroup && snprintf(unified, sizeof(unified), "%s/unified", cgroups) < (int)sizeof(unified)) {
		open_version_2(files, cgroups, cgroup, stalled_us);
		open_version_2(files, unified, cgroup, stalled_us);
	}
	free(text);
}

static void open_version_1(struct memory_files *files, const char *cgroups)
{
	char folder[PATH_MAX], *text, *cgroup = cgroup_of(files->pid, "memory", &text);

	if (cgroup && snprintf(folder, sizeof(folder), "%s/memory", cgroups) < (int)sizeof(folder)) {
		files->failures = open_in(folder, cgroup, "memory.failcnt", O_RDONLY);
		files->swap_failures = open_in(folder, cgroup, "memory.memsw.failcnt", O_RDONLY);
		files->control = open_in(folder, cgroup, "memory.oom_control", O_RDONLY);
	}
	free(text);
}

void memory_files_open(struct memory_files *files, int pid, const char *cgroups, uint64_t stalled_us)
{
	*files = (struct memory_files){ .pid = pid, .events = -1, .failures = -1, .swap_failures = -1,
					.control = -1, .pressure = -1, .cgroups = hash_of_cgroups(pid) };
	open_all_of_version_2(files, cgroups, stalled_us);
	if (files->events < 0)
		open_version_1(files, cgroups);
	if (stalled_us > 0)
		open_pressure(files, "/proc", "/pressure", "memory", stalled_us);
}

void memory_files_close(struct memory_files *files)
{
	fd_close(&files->events);
	fd_close(&files->failures);
	fd_close(&files->swap_failures);
	fd_close(&files->control);
	fd_close(&files->pressure);
}

/* A process that is gone has none, and has not moved. */
bool memory_files_have_moved(const struct memory_files *files)
{
	uint64_t now = hash_of_cgroups(files->pid);

	return now != 0 && now != files->cgroups;
}

/* --- reading --- */

static bool read_again(int *fd, char text[FILE_TEXT_MAX])
{
	ssize_t n = *fd < 0 ? -1 : pread(*fd, text, FILE_TEXT_MAX - 1, 0);

	if (n < 0) {
		fd_close(fd);
		return false;
	}
	text[n] = '\0';
	return true;
}

/* Of a line "name NUMBER" or a word "name=NUMBER"; 0: it is not there. */
static uint64_t number_behind(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strstr(text, name); at; at = strstr(at + len, name)) {
		bool begins = at == text || at[-1] == '\n' || at[-1] == ' ';

		if (begins && (at[len] == ' ' || at[len] == '='))
			return strtoull(at + len + 1, NULL, 10);
	}
	return 0;
}

static uint64_t resident_bytes(int pid)
{
	char path[48], *text, *second;
	uint64_t pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (file_read_text(path, FILE_TEXT_MAX, &text, NULL) < 0)
		return 0;
	second = strchr(text, ' ');
	if (second)
		pages = strtoull(second, NULL, 10);
	free(text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void memory_files_read(struct memory_files *files, struct alarm_figures *ret)
{
	char text[FILE_TEXT_MAX];

	ret->rss_bytes = resident_bytes(files->pid);
	if (read_again(&files->events, text)) {
		ret->high = number_behind(text, "high");
		ret->max = number_behind(text, "max");
		ret->oom = number_behind(text, "oom") + number_behind(text, "oom_kill");
	}
	if (read_again(&files->failures, text))
		ret->max += strtoull(text, NULL, 10);
	if (read_again(&files->swap_failures, text))
		ret->max += strtoull(text, NULL, 10);
	if (read_again(&files->control, text))
		ret->oom = number_behind(text, "oom_kill");
	/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" is the first line. */
	if (read_again(&files->pressure, text))
		ret->stalled_us = number_behind(text, "total");
}
