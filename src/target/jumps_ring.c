/* The ring in the process: its memfd, which the process has open for a moment, and its mappings. */
#define _GNU_SOURCE
#include "target/jumps.h"

#include "target/jumps_private.h"

#include "target/inject.h"
#include "target/maps.h"
#include "target/resident_area.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int make_memfd(struct task *task, int *ret_number)
{
	const struct arch_stub_call made = {
		.number = SYS_memfd_create, .args = { 0, MFD_CLOEXEC | MFD_ALLOW_SEALING },
		.data = JUMPS_RING_NAME, .data_length = sizeof(JUMPS_RING_NAME), .data_arg = 0,
	};
	int64_t result;
	int r = jumps_call(task, &made, &result);

	*ret_number = (int)result;
	return r;
}

/* Sealed: else the program could cut it short, and its reader would die of SIGBUS. */
static int open_memfd(const struct target *target, int number, uint64_t size, int *ret_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", target->memory_tid, number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int r = -errno;

		fd_close(&fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* At that place, or at any (0); the place, or negative errno. */
static int64_t map_piece(struct task *task, raddr at, uint64_t size, int number, uint64_t offset)
{
	const struct arch_stub_call made = {
		.number = SYS_mmap,
		.args = { at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), (uint64_t)number, offset },
		.data_arg = -1,
	};
	int64_t result;
	int r = jumps_call(task, &made, &result);

	return r < 0 ? r : result;
}

/* Of the memfd all along, past its end at first, so that who heals knows it at every moment. */
static int map_pieces(struct target *target, struct task *task, int number, uint64_t control, uint64_t data)
{
	int64_t at = map_piece(task, target->ring, control + 2 * data, number, 0);

	if (at < 0)
		return (int)at;
	target->ring = (raddr)at;
	target->ring_size = control + 2 * data;
	at = map_piece(task, target->ring + control + data, data, number, control);
	if (at < 0)
		return (int)at;
	/* No dump of the program's memory needs it. */
	jumps_call_plain(task, SYS_madvise, target->ring, target->ring_size, MADV_DONTDUMP);
	return 0;
}

int jumps_map_ring(struct target *target, uint64_t control, uint64_t data, int *ret_fd)
{
	struct task *task = inject_find_task(target);
	int number, r;

	if (!task)
		return -EAGAIN;
	*ret_fd = -1;
	r = resident_note_begun(target, JUMPS_DESCRIPTOR_BEGUN);
	if (r < 0)
		return r;
	r = make_memfd(task, &number);
	target->ring_lost = r == -ETIMEDOUT;
	if (r < 0) {
		if (!target->ring_lost)
			resident_note_begun(target, 0);
		return r;
	}
	r = open_memfd(target, number, control + data, ret_fd);
	if (r == 0)
		r = map_pieces(target, task, number, control, data);
	target->ring_lost = r == -ETIMEDOUT;
	if (jumps_call_plain(task, SYS_close, (uint64_t)number, 0, 0) == 0)
		resident_note_begun(target, 0);
	else
		target->ring_lost = true;
	if (r < 0)
		fd_close(ret_fd);
	return r;
}

bool jumps_descriptor_is_begun(const struct target *target)
{
	return target->ring_lost ||
	       (target->adopted && target->areas && target->areas->header.begun == JUMPS_DESCRIPTOR_BEGUN);
}

/* It is mapped in two pieces that lie side by side. */
void jumps_note_ring(struct target *target, const struct map_line *map)
{
	if (!map->shared || strcmp(map->path, "/memfd:" JUMPS_RING_NAME) != 0)
		return;
	if (target->ring == 0)
		target->ring = map->start;
	if (map->start == target->ring + target->ring_size)
		target->ring_size += map->end - map->start;
}

int jumps_find_ring(struct target *target)
{
	struct map_line map;
	struct maps maps;
	int r = maps_of(target, &maps);

	if (r < 0)
		return r;
	target->ring = target->ring_size = 0;
	while (maps_next(&maps.cursor, &map))
		jumps_note_ring(target, &map);
	maps_close(&maps);
	return 0;
}

/* Only then is it looked for, since a process may have many. */
int jumps_close_descriptor(struct target *target, struct task *task)
{
	static const char name[] = "/memfd:" JUMPS_RING_NAME " (deleted)";
	char folder[64], there[sizeof(name) + 1];
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", target->memory_tid);
	dir = opendir(folder);
	if (!dir)
		return -errno;
	while (r >= 0 && (r = folder_next(dir, &entry)) > 0) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, there, sizeof(there));

		if (n == (ssize_t)sizeof(name) - 1 && memcmp(there, name, sizeof(name) - 1) == 0)
			r = jumps_call_plain(task, SYS_close, strtoul(entry->d_name, NULL, 10), 0, 0);
	}
	closedir(dir);
	return r;
}
