#include "daemon/permit.h"

#include "daemon/failures.h"

#include <stdio.h>
#include <unistd.h>

bool permit_peer(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

void permit_refuse(struct call *call, int pid)
{
	char reason[160];

	snprintf(reason, sizeof(reason), "this daemon runs as user %u and serves that user and root; you are user %u",
		 geteuid(), call->peer_uid);
	fail_not_permitted(call, pid, reason,
			   geteuid() == 0 ? "for a process of your own let allocwatch start your private daemon; "
					    "for others ask as root"
					  : "let allocwatch start a daemon of your own, or ask as root", 0);
}
