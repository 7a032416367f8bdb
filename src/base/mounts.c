#define _GNU_SOURCE              /* statx */
#include "base/mounts.h"

#include "base/fd.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELDS_MAX 64                /* before the type: six, and optional ones */

struct mounts {
	VEC_OF(uint64_t) own;        /* numbers, sorted */
};

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* An overlay that a user has mounted may have anything below it; the kernel marks it. */
static bool is_own(const char *type, const char *options)
{
	static const char *const types[] = {
		"bcachefs", "btrfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hugetlbfs", "iso9660",
		"jfs", "minix", "ntfs3", "overlay", "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "udf", "vfat", "xfs",
		"zfs",
	};

	if (strcmp(type, "overlay") == 0 && strstr(options, "userxattr"))
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(type, types[i]) == 0)
			return true;
	}
	return false;
}

/* "36 35 98:0 /root /point options optional... - type source options" */
static bool parse(char *line, uint64_t *ret_number)
{
	char *save = NULL, *field = strtok_r(line, " ", &save), *type, *options;
	char *end;

	*ret_number = field ? strtoull(field, &end, 10) : 0;
	if (!field || end == field || *end != '\0')
		return false;
	for (unsigned i = 0; field && strcmp(field, "-") != 0; i++) {
		if (i > FIELDS_MAX)
			return false;
		field = strtok_r(NULL, " ", &save);
	}
	type = field ? strtok_r(NULL, " ", &save) : NULL;
	/* The source may be empty: what is left is searched as a whole. */
	options = type && save ? save : NULL;
	return options && is_own(type, options);
}

int mounts_parse(char *text, struct mounts **ret)
{
	struct mounts *mounts = calloc(1, sizeof(*mounts));
	char *save = NULL;

	if (!mounts)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t number, *slot;

		if (!parse(line, &number))
			continue;
		slot = vec_push(&mounts->own);
		if (!slot) {
			mounts_free(mounts);
			return -ENOMEM;
		}
		*slot = number;
	}
	if (mounts->own.count > 0)
		qsort(mounts->own.items, mounts->own.count, sizeof(uint64_t), compare);
	*ret = mounts;
	return 0;
}

int mounts_read(pid_t pid, struct mounts **ret)
{
	char path[64], *text;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	r = file_read_text(path, MOUNTS_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	r = mounts_parse(text, ret);
	free(text);
	return r;
}

void mounts_free(struct mounts *mounts)
{
	if (!mounts)
		return;
	vec_fini(&mounts->own);
	free(mounts);
}

bool mounts_has_own(const struct mounts *mounts, uint64_t number)
{
	return mounts->own.count > 0 &&
	       bsearch(&number, mounts->own.items, mounts->own.count, sizeof(number), compare) != NULL;
}

/* DONT_SYNC: what the kernel has in memory is enough.  A file system with a device number of its own lies on a disk, to
 * mount which takes root; seals are what files in memory have, also those that are in no mount. */
bool mounts_may_wait(const struct mounts *mounts, int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return true;
	if (mounts && (st.stx_mask & STATX_MNT_ID) && mounts_has_own(mounts, st.stx_mnt_id))
		return false;
	return st.stx_dev_major == 0 && fcntl(fd, F_GET_SEALS) < 0;
}
