#include "daemon/file_user.h"

#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static void become(struct file_user *user, uint32_t uid, uint32_t gid)
{
	user->identity.as_other = 1;
	user->identity.uid = uid;
	user->identity.gid = gid;
}

void file_user_of_nobody(struct file_user *user)
{
	*user = (struct file_user){ .owner = geteuid() };
	if (geteuid() == 0)
		become(user, NOBODY, NOBODY);
}

/* The folder of a process belongs to its effective user, also when what is in it belongs to root. */
static void become_process(struct file_user *user)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", user->pid);
	if (stat(path, &st) < 0)
		become(user, NOBODY, NOBODY);
	else if (st.st_uid != 0)
		become(user, st.st_uid, st.st_gid);
}

void file_user_of_attach(const struct wire_attach *attach, int pid, struct file_user *ret)
{
	struct file_user user = { .pid = pid, .owner = attach->as_owner ? attach->owner_uid : geteuid() };

	if (attach->as_owner) {
		become(&user, attach->owner_uid, attach->owner_gid);
		user.identity.group_count = attach->owner_group_count;
		memcpy(user.identity.groups, attach->owner_groups,
		       attach->owner_group_count * sizeof(user.identity.groups[0]));
	} else if (geteuid() == 0) {
		become_process(&user);
	}
	*ret = user;
}

void file_user_of_owner(uint32_t uid, int pid, struct file_user *ret)
{
	file_user_of_nobody(ret);
	ret->pid = pid;
	ret->owner = uid;
	if (uid != geteuid())
		become(ret, uid, NOBODY);
}

uint64_t file_user_key(const struct file_user *user)
{
	return hash_bytes(&user->identity, sizeof(user->identity));
}
