#define _GNU_SOURCE
#include "tracer/privileges.h"

#include "target/rights.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

int privileges_drop_to(uid_t uid, gid_t gid, bool seizes_again)
{
	bool keep = seizes_again || rights_yama_asks();

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (geteuid() != 0 || uid == 0)
		return 0;
	/* Of this thread, which is the only one that looks at processes; the others keep nothing. */
	if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	if (!keep)
		return 0;
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	return rights_keep_ptrace();
}
