#define _GNU_SOURCE              /* setresuid */
#include "base/user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Secure bits of whoever started us may have kept them. */
static bool has_no_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 && data[0].effective == 0 && data[1].effective == 0 &&
	       data[0].permitted == 0 && data[1].permitted == 0;
}

static bool has_become(uid_t uid, gid_t gid)
{
	uid_t real_uid, effective_uid, saved_uid;
	gid_t real_gid, effective_gid, saved_gid;

	return getresuid(&real_uid, &effective_uid, &saved_uid) == 0 &&
	       getresgid(&real_gid, &effective_gid, &saved_gid) == 0 && real_uid == uid && effective_uid == uid &&
	       saved_uid == uid && real_gid == gid && effective_gid == gid && saved_gid == gid;
}

int user_become(uid_t uid, gid_t gid, const gid_t *groups, size_t count)
{
	if (uid == 0)
		return -EINVAL;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* Capabilities go with the last uid that is root's, unless somebody said that they are to be kept. */
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (setgroups(count, groups) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return has_become(uid, gid) && has_no_capabilities() ? 0 : -EPERM;
}
