#include "daemon/permit.h"

#include "daemon/failures.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool permit_peer(const struct daemon *daemon, uid_t uid)
{
	return daemon->serves_all || uid == 0 || uid == geteuid();
}

void permit_refuse(struct call *call, int pid)
{
	char reason[160];

	snprintf(reason, sizeof(reason), "this daemon runs as user %u and serves that user and root; you are user %u",
		 geteuid(), call->peer.uid);
	fail_not_permitted(call, pid, reason,
			   geteuid() == 0 ? "for a process of your own let allocwatch start your private daemon; "
					    "for others ask as root"
					  : "let allocwatch start a daemon of your own, or ask as root", 0);
}

uid_t permit_owner(const struct call *call)
{
	return call->daemon->serves_all ? call->peer.uid : geteuid();
}

gid_t permit_readers(void)
{
	const struct group *group = getgrnam(READERS_GROUP);

	return group ? group->gr_gid : (gid_t)-1;
}

static bool is_member(const struct peer *peer, gid_t gid)
{
	if (gid == (gid_t)-1)
		return false;
	for (uint32_t i = 0; i < peer->group_count; i++) {
		if (peer->groups[i] == gid)
			return true;
	}
	return peer->gid == gid;
}

struct viewer permit_viewer(const struct call *call)
{
	return (struct viewer){ call->peer.uid, call->reads && call->daemon->serves_all &&
						is_member(&call->peer, call->daemon->readers) };
}

bool permit_sees_rules(const struct call *call)
{
	return call->peer.uid == 0 || call->peer.uid == geteuid() || permit_viewer(call).sees_roots;
}

bool permit_sees(const struct call *call, uid_t owner)
{
	struct viewer viewer = permit_viewer(call);

	return viewer.uid == 0 || viewer.uid == owner || (viewer.sees_roots && owner == 0);
}

struct session *permit_session(const struct call *call, int pid)
{
	struct session *session = sessions_find(call->daemon->sessions, pid);

	return session && permit_sees(call, session_owner(session)) ? session : NULL;
}

void permit_name_owner(const struct call *call, struct wire_attach *message)
{
	if (!call->daemon->serves_all || call->peer.uid == 0)
		return;
	message->as_owner = 1;
	message->owner_uid = call->peer.uid;
	message->owner_gid = call->peer.gid;
	message->owner_group_count = call->peer.group_count;
	memcpy(message->owner_groups, call->peer.groups, sizeof(message->owner_groups));
}
