#include "symbol/debugfile.h"

#include "symbol/opener.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_ID_BYTES_MIN 3
#define BUILD_ID_BYTES_MAX 64

/* The directory an open file lies in, from this process's own view: a hint where to look, never a
 * proof of anything. */
static int directory_of(int fd, char *dir, size_t space)
{
	char link[32];
	ssize_t len;
	char *slash;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, dir, space - 1);
	if (len <= 0 || dir[0] != '/')
		return -ENOENT;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	*slash = '\0';
	return 0;
}

static int build_id_path(const char *root, const void *build_id, size_t len, char *path,
			 size_t space)
{
	const unsigned char *id = build_id;
	size_t at;

	if (len < BUILD_ID_BYTES_MIN || len > BUILD_ID_BYTES_MAX)
		return -ENOENT;
	at = (size_t)snprintf(path, space, "%s/.build-id/%02x/", root, id[0]);
	if (at + 2 * len + sizeof(".debug") > space)
		return -ENAMETOOLONG;
	for (size_t i = 1; i < len; i++)
		at += (size_t)snprintf(path + at, space - at, "%02x", id[i]);
	strcpy(path + at, ".debug");
	return 0;
}

static int open_by_build_id(const char *root, const void *build_id, size_t len,
			    struct elf_file **ret)
{
	struct elf_file *found;
	char path[PATH_MAX];
	int r = build_id_path(root, build_id, len, path, sizeof(path));

	if (r < 0)
		return r;
	r = elf_file_open_path(path, &found);
	if (r < 0)
		return r;
	if (!elf_file_same_build_id(found, build_id, len)) {
		elf_file_free(found);
		return -ENOENT;
	}
	*ret = found;
	return 0;
}

int debugfile_crc(int fd, uint32_t *ret_crc)
{
	static uint32_t table[256];
	unsigned char buf[65536];
	uint32_t crc = UINT32_MAX;
	off_t at = 0;
	ssize_t n;

	for (uint32_t i = 0; i < 256 && !table[255]; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? 0xedb88320u ^ (value >> 1) : value >> 1;
		table[i] = value;
	}
	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			crc = table[(crc ^ buf[i]) & 0xff] ^ (crc >> 8);
		at += n;
	}
	if (n < 0)
		return -errno;
	*ret_crc = ~crc;
	return 0;
}

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static bool belongs_to(const struct elf_file *debug, const struct elf_file *file, uint32_t crc)
{
	uint32_t have;

	if (is_same_file(debug->fd, file->fd))
		return false;
	if (file->build_id_len > 0 &&
	    !elf_file_same_build_id(debug, file->build_id, file->build_id_len))
		return false;
	return debugfile_crc(debug->fd, &have) == 0 && have == crc;
}

/* Beside the file, in .debug/ there, under the root. */
static void candidate_path(int place, const char *root, const char *dir, const char *name,
			   char *path, size_t space)
{
	if (place == 0)
		snprintf(path, space, "%s/%s", dir, name);
	else if (place == 1)
		snprintf(path, space, "%s/.debug/%s", dir, name);
	else
		snprintf(path, space, "%s%s/%s", root, dir, name);
}

static int open_by_link(const struct elf_file *file, const char *root, struct elf_file **ret)
{
	char dir[PATH_MAX], path[3 * PATH_MAX];
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);

	if (!name || !name[0] || strchr(name, '/') || directory_of(file->fd, dir, sizeof(dir)) < 0)
		return -ENOENT;
	for (int place = 0; place < 3; place++) {
		struct elf_file *found;
		int r;

		candidate_path(place, root, dir, name, path, sizeof(path));
		r = elf_file_open_path(path, &found);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			continue;
		if (belongs_to(found, file, crc)) {
			*ret = found;
			return 0;
		}
		elf_file_free(found);
	}
	return -ENOENT;
}

int debugfile_find(const struct elf_file *file, const char *debug_root, struct elf_file **ret)
{
	int r = open_by_build_id(debug_root, file->build_id, file->build_id_len, ret);

	if (r < 0 && r != -ENOMEM)
		r = open_by_link(file, debug_root, ret);
	return r == 0 || r == -ENOMEM ? r : -ENOENT;
}

/* own: it is that of the object itself; else of what dwz has made. */
static int fetch(const void *build_id, size_t len, bool own, struct elf_file **ret)
{
	struct elf_file *found;
	int fd, r;

	if (len < BUILD_ID_BYTES_MIN || len > BUILD_ID_BYTES_MAX)
		return -ENOENT;
	fd = own ? opener_fetch(NULL, 0) : opener_fetch(build_id, len);
	if (fd < 0)
		return fd == -EINPROGRESS || fd == -ENOMEM ? fd : -ENOENT;
	r = elf_file_open(fd, &found);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	if (!elf_file_same_build_id(found, build_id, len)) {
		elf_file_free(found);
		return -ENOENT;
	}
	*ret = found;
	return 0;
}

int debugfile_fetch(const struct elf_file *file, struct elf_file **ret)
{
	return fetch(file->build_id, file->build_id_len, true, ret);
}

/* --- what dwz has moved to a file of its own --- */

/* Nothing is there that libdw could open in our place. */
static bool is_absent(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES;
}

/* Where the link says; without a folder of its own nothing is beside it. */
static int linked_path(const struct elf_file *file, const char *name, char *path, size_t space)
{
	char dir[PATH_MAX];

	if (name[0] == '/')
		snprintf(path, space, "%s", name);
	else if (directory_of(file->fd, dir, sizeof(dir)) == 0)
		snprintf(path, space, "%s/%s", dir, name);
	else
		return -ENOENT;
	return 0;
}

/* Debian and Fedora have all of them below one folder, whatever leads there from the file. */
static int distribution_path(const char *root, const char *name, char *path, size_t space)
{
	static const char folder[] = "/.dwz/";
	const char *at = strstr(name, folder);

	if (!at)
		return -ENOENT;
	snprintf(path, space, "%s%s", root, at);
	return 0;
}

/* -EXDEV: it is another one. */
static int open_alternate(const char *path, const void *build_id, size_t len, struct elf_file **ret)
{
	struct elf_file *found;
	int r = elf_file_open_path(path, &found);

	if (r < 0)
		return is_absent(r) ? -ENOENT : r == -ENOMEM ? r : -EXDEV;
	if (!elf_file_same_build_id(found, build_id, len)) {
		elf_file_free(found);
		return -EXDEV;
	}
	*ret = found;
	return 0;
}

int debugfile_find_alternate(Dwarf *dwarf, const struct elf_file *file, const char *debug_root,
			     struct elf_file **ret)
{
	char path[2 * PATH_MAX];
	const void *build_id;
	const char *name;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);
	int linked = -ENOENT, r;

	*ret = NULL;
	if (len <= 0)
		return 0;
	r = open_by_build_id(debug_root, build_id, (size_t)len, ret);
	if (r < 0 && r != -ENOMEM && linked_path(file, name, path, sizeof(path)) == 0)
		r = linked = open_alternate(path, build_id, (size_t)len, ret);
	if (r < 0 && r != -ENOMEM && distribution_path(debug_root, name, path, sizeof(path)) == 0)
		r = open_alternate(path, build_id, (size_t)len, ret);
	if (r < 0 && r != -ENOMEM)
		r = fetch(build_id, (size_t)len, false, ret);
	if (r == 0 || r == -ENOMEM || r == -EINPROGRESS)
		return r;
	return linked == -EXDEV ? -EXDEV : -ENOENT;
}
